package broadcast

import (
	"context"
	"slices"

	"parley/desk"
	"parley/store"
)

// lookStep is how many rows are judged at a time: their contacts may be large.
const lookStep = 200

// lookBytes limits the contacts that are judged at a time.
const lookBytes = 8 * desk.MaxBookBytes

// A reader reads what is known of people: the Store, or a transaction.
type reader interface {
	Book(desk.Lookup) (*desk.Book, error)
	RowFacts(store.RowQuestion) (store.RowFacts, error)
}

// A storeReader reads outside of transactions.
type storeReader struct {
	store store.Store
	ctx   context.Context //nolint:containedctx // it lives as long as one call
	ws    desk.ID
}

func (r storeReader) Book(l desk.Lookup) (*desk.Book, error) { return r.store.Book(r.ctx, r.ws, l) }

func (r storeReader) RowFacts(q store.RowQuestion) (store.RowFacts, error) {
	return r.store.RowFacts(r.ctx, r.ws, q)
}

// A look is a row that was judged.
type look struct {
	Row     *desk.BroadcastRow
	Contact *desk.Contact // nil: there is none
	Verdict desk.RowVerdict
	Numbers []store.NumberHash           // of the person
	Passed  map[store.NumberHash]desk.ID // other rows that have numbers, and do not keep this one from them
}

// look judges rows. t may be nil if the broadcast's stop has come.
func (a *Service) look(r reader, s *desk.Settings, b *desk.Broadcast, t *desk.Template, rows []*desk.BroadcastRow, now desk.Time) ([]look, error) {
	named := desk.Lookup{Most: lookBytes}
	for _, row := range rows {
		if row.Data.Phone != "" {
			named.Identities = append(named.Identities, phone(row))
		} else if !row.Contact.IsZero() {
			named.IDs = append(named.IDs, row.Contact)
		}
	}
	book, err := r.Book(named)
	if err != nil {
		return nil, err
	}
	if book.Over(named.Most) && len(rows) > 1 {
		first, err := a.look(r, s, b, t, rows[:len(rows)/2], now)
		if err != nil {
			return nil, err
		}
		second, err := a.look(r, s, b, t, rows[len(rows)/2:], now)
		return append(first, second...), err
	}
	looks := make([]look, len(rows))
	q := store.RowQuestion{Broadcast: b.ID, Channel: b.Channel}
	choices := make([][]store.NumberHash, len(rows))
	for i, row := range rows {
		l := &looks[i]
		l.Row = row
		address := row.Data.Phone
		if address != "" {
			l.Contact = book.Oldest(phone(row))
		} else if !row.Contact.IsZero() {
			l.Contact = book.Contact(row.Contact)
		}
		if l.Contact != nil {
			q.Contacts = append(q.Contacts, l.Contact.ID)
			if address == "" {
				address = l.Contact.Address()
			}
			for _, number := range l.Contact.Numbers() {
				l.Numbers = append(l.Numbers, a.Machine.NumberHash(s.ID, b.ID, number))
			}
		}
		if address != "" {
			l.Numbers = append(l.Numbers, a.Machine.NumberHash(s.ID, b.ID, desk.CanonicalNumber(address)))
			choices[i] = a.Machine.ChoiceHandles(s.ID, address, l.Contact)
		}
		q.Numbers, q.Choices = append(q.Numbers, l.Numbers...), append(q.Choices, choices[i]...)
	}
	facts, err := r.RowFacts(q)
	if err != nil {
		return nil, err
	}
	for i := range looks {
		l := &looks[i]
		is := desk.TheirTurn{Now: now, Contact: l.Contact}
		if l.Contact != nil {
			is.Taken = slices.ContainsFunc(facts.Claimed[l.Contact.ID], func(by desk.RowClaim) bool { return by.Bars(l.Row) })
			is.InConversation = facts.Open[l.Contact.ID]
		}
		for _, h := range l.Numbers {
			if by, taken := facts.Taken[h]; taken && by.Bars(l.Row) {
				is.Taken = true
			} else if taken && by.Row != l.Row.ID {
				if l.Passed == nil {
					l.Passed = map[store.NumberHash]desk.ID{}
				}
				l.Passed[h] = by.Row
			}
		}
		for _, h := range choices[i] {
			is.OptedOut = is.OptedOut || facts.Choices[h].Since > 0
		}
		l.Verdict = b.Judge(t, s, l.Row, is)
	}
	return looks, nil
}

func phone(r *desk.BroadcastRow) desk.Identity {
	return desk.Identity{Kind: desk.KindPhone, Value: r.Data.Phone}
}
