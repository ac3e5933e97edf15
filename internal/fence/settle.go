// SPDX-License-Identifier: Apache-2.0

package fence

// knowledge is what the one who looks at an unknown row can use.
type knowledge struct {
	looked     bool
	lookup     Lookup
	beganQuiet bool // the lookup began after a read that showed the row quiet
	canResend  bool // there is a request to send, and time left to send it
}

// settle decides what becomes of an unknown row. needLookup means: look up,
// then ask again.
func (p *Provider) settle(row Row, k knowledge) (op Op, needLookup bool) {
	if p.Lookup && !k.looked {
		return OpNote, true
	}
	if p.Lookup {
		if op, sure := p.settleByLookup(k); sure {
			return op, false
		}
	}
	mayResend := p.mayResend(row)
	switch {
	case mayResend && k.canResend && p.resendAfter(k):
		return OpResend, false
	case p.overdue(row):
		return OpPark, false
	case mayResend:
		return OpNote, false
	case !p.Lookup:
		return OpPark, false
	case k.lookup.Finding == FoundAbsent && k.beganQuiet: // and no lag declared: absent for ever
		return OpPark, false
	}
	return OpNote, false
}

func (p *Provider) settleByLookup(k knowledge) (Op, bool) {
	switch {
	case k.lookup.Finding == FoundEffect:
		return OpEffect, true
	case k.lookup.Finding == FoundRefusal && k.beganQuiet:
		return OpRefuseByLookup, true
	case k.lookup.Finding == FoundAbsent && k.beganQuiet && p.LagDeclared:
		return OpAbsent, true
	}
	return OpNote, false
}

// resendAfter: where the provider can be asked, only "absent" is a reason to
// send again; "processing" means that the original is still at work.
func (p *Provider) resendAfter(k knowledge) bool {
	return !p.Lookup || k.lookup.Finding == FoundAbsent
}

// mayResend is judged again inside OpResend, by the clock of that moment.
func (p *Provider) mayResend(row Row) bool {
	return p.Keyed() && row.Resends < p.MaxResends &&
		keyAlive(row.FirstSentAt, row.ReadAt, p.Times.KeyLife, p.Times.Margin())
}

// overdue reports whether the row has been unknown for longer than people want
// to wait for the machine.
func (p *Provider) overdue(row Row) bool {
	return p.ReviewAfter > 0 && row.ReadAt.Sub(row.LeaseUntil) > p.ReviewAfter
}

// parkReason tells a person why the row ended up with them.
func (p *Provider) parkReason(row Row) string {
	switch {
	case p.overdue(row):
		return "unknown for longer than the review time; " + row.Reason
	case p.Lookup:
		return "the lookup cannot conclude and the key cannot be sent again; " + row.Reason
	case !p.Keyed():
		return "the provider offers neither keys nor a lookup; " + row.Reason
	case row.Resends >= p.MaxResends:
		return "the limit of resends is reached; " + row.Reason
	}
	return "the provider's memory of the key may have ended; " + row.Reason
}
