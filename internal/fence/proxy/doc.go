// SPDX-License-Identifier: Apache-2.0

// Package proxy puts the fence between an app and a provider that is spoken to
// over HTTP. /<provider>/<path> goes to that provider and nowhere else; calls
// that may have an effect need a key, and package fence decides about them.
package proxy
