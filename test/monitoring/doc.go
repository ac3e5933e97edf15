// SPDX-License-Identifier: Apache-2.0

// Package monitoring tries the chart's alerts and its dashboard with
// Prometheus' own query engine. It is a module of its own, so that Prometheus is
// no dependency of the product. Of Prometheus only the engine and the parsers are
// used: its storage and its rule manager would bring the clients of every cloud.
package monitoring
