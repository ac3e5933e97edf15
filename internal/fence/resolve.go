// SPDX-License-Identifier: Apache-2.0

package fence

import "errors"

// ResolveDone is a person's word that the effect happened. The row is the one
// the person was shown: if another attempt owns the key by now, the statement
// does not apply. A response, or at least the provider's own id, is required,
// since it is what later copies are told.
func ResolveDone(shown Row, who, why string, response Response) (Statement, error) {
	switch {
	case who == "" || why == "":
		return Statement{}, errors.New("who decides and why are required: both are kept with the row")
	case response.Status == 0 && response.ProviderID == "":
		return Statement{}, errors.New("an effect needs a response or the provider's id for it")
	}
	return Statement{Op: OpResolveDone, Key: shown.Key, Token: shown.Token, Response: &response, Reason: why, By: ByPerson, Who: who}, nil
}

// ResolveReleased is a person's word that nothing happened and that the key is
// free. It applies only to a quiet row: before that a request may still act.
// Force does not wait for quiet; the effect may then happen twice.
func ResolveReleased(shown Row, who, why string, force bool) (Statement, error) {
	if who == "" || why == "" {
		return Statement{}, errors.New("who decides and why are required: both are kept with the row")
	}
	op := OpResolveReleased
	if force {
		op, why = OpForceReleased, "forced before quiet: "+why
	}
	return Statement{Op: op, Key: shown.Key, Token: shown.Token, Reason: why, By: ByPerson, Who: who}, nil
}
