// Package exports reads all records of a workspace, page by page. There is no snapshot: what
// exists all the time is read once, and what changes meanwhile is read as it is then. No
// transaction is open between two pages.
//
//	exports.go  the Service; contacts, opt-outs
//	person.go   what is stored about one contact
package exports

import (
	"context"
	"slices"
	"sync"

	"parley/desk"
	"parley/store"
)

// Deps are the parts of a Service. All are required.
type Deps struct {
	Store store.Store
	Now   func() desk.Time                                 // the clock
	Hash  func(ws desk.ID, handle string) store.NumberHash // of a handle, as opt-outs have it
}

// A Service reads exports. Its methods are safe for concurrent use. They return the errors of
// the function that takes the records.
type Service struct {
	Deps

	mu     sync.Mutex
	people map[desk.ID]int // how many exports of each workspace are under way
	here   int             // how many exports of all contacts, of all workspaces
}

// New builds a Service.
func New(d Deps) *Service { return &Service{Deps: d, people: map[desk.ID]int{}} }

// together is how many records a page has at most.
const together = 1000

// each reads pages, and calls do for each record.
func each[T, P any](ctx context.Context, read func(after P) ([]T, bool, error), place func(T) P, do func([]T) error) error {
	var after P
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, rest, err := read(after)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := do(page); err != nil {
			return err
		}
		after, more = place(page[len(page)-1]), rest
	}
	return nil
}

// Contacts calls do for pages of all contacts, in the order of their ids.
func (a *Service) Contacts(ctx context.Context, p desk.Principal, do func([]*desk.Contact) error) error {
	if err := p.Allow(desk.ContactsRead); err != nil {
		return err
	}
	return each(ctx, func(after desk.ID) ([]*desk.Contact, bool, error) {
		return a.Store.ContactsAfter(ctx, p.Workspace(), after, together)
	}, func(c *desk.Contact) desk.ID { return c.ID }, do)
}

// Conversations calls do for pages of all conversations, in the order of their ids.
func (a *Service) Conversations(ctx context.Context, p desk.Principal, do func([]*desk.Conversation) error) error {
	if err := p.Allow(desk.ConversationsRead); err != nil {
		return err
	}
	return each(ctx, func(after desk.ID) ([]*desk.Conversation, bool, error) {
		return a.Store.ConversationsAfter(ctx, p.Workspace(), after, together)
	}, func(c *desk.Conversation) desk.ID { return c.ID }, do)
}

// Messages calls do for pages of all messages: by conversation, and in it the oldest first.
func (a *Service) Messages(ctx context.Context, p desk.Principal, do func([]*desk.Message) error) error {
	if err := p.Allow(desk.ConversationsRead); err != nil {
		return err
	}
	return each(ctx, func(after store.MessageKey) ([]*desk.Message, bool, error) {
		return a.Store.MessagesAfter(ctx, p.Workspace(), after, together)
	}, func(m *desk.Message) store.MessageKey {
		return store.MessageKey{Conversation: m.ConversationID, MessagePlace: m.Place()}
	}, do)
}

// Notes calls do for pages of all notes, in the order of their ids.
func (a *Service) Notes(ctx context.Context, p desk.Principal, do func([]*desk.Note) error) error {
	if err := p.Allow(desk.ConversationsRead); err != nil {
		return err
	}
	return each(ctx, func(after desk.ID) ([]*desk.Note, bool, error) {
		return a.Store.NotesAfter(ctx, p.Workspace(), after, together)
	}, func(n *desk.Note) desk.ID { return n.ID }, do)
}

// Erasures calls do for pages of all deleted contacts, in the order of their ids.
func (a *Service) Erasures(ctx context.Context, p desk.Principal, do func([]desk.Erasure) error) error {
	if err := p.Allow(desk.ContactsRead); err != nil {
		return err
	}
	return each(ctx, func(after desk.ID) ([]desk.Erasure, bool, error) {
		return a.Store.Erasures(ctx, p.Workspace(), after, together)
	}, func(e desk.Erasure) desk.ID { return e.ID }, do)
}

// OptOuts calls do for each number of a contact whose holder has opted out. It returns for how
// many other handles an opt-out is stored: only their hashes are known, so they can't be
// exported.
func (a *Service) OptOuts(ctx context.Context, p desk.Principal, do func([]desk.OptOutRow) error) (others int, err error) {
	found := 0
	err = a.Contacts(ctx, p, func(page []*desk.Contact) error {
		rows, known, err := a.optOutsOf(ctx, p.Workspace(), page)
		if err != nil {
			return err
		}
		found += known
		return do(rows)
	})
	if err != nil {
		return 0, err
	}
	total, err := a.Store.CountOptOuts(ctx, p.Workspace())
	return max(total-found, 0), err
}

// lookUp is how many handles are looked up at a time.
const lookUp = 1000

// optOutsOf returns the opt-outs of the contacts' numbers, and how many stored opt-outs these
// are: one that is stored for a number and for the provider's id of the same contact counts as
// two.
func (a *Service) optOutsOf(ctx context.Context, ws desk.ID, page []*desk.Contact) (rows []desk.OptOutRow, known int, err error) {
	type handle struct {
		contact int
		number  string // "": it is the provider's id
		hash    store.NumberHash
	}
	var handles []handle
	for n, c := range page {
		first := len(handles)
		for _, i := range c.Identities() {
			h := handle{contact: n}
			switch {
			case i.Claim().Kind == desk.KindPhone: // a chat account has a number, too
				h.number = i.Value
			case !i.OfProvider():
				continue
			}
			h.hash = a.Hash(ws, i.Value)
			if !slices.ContainsFunc(handles[first:], func(other handle) bool { return other.hash == h.hash }) { // one number in two spellings
				handles = append(handles, h)
			}
		}
	}
	ids := make([]int, len(page)) // how many ids of the provider have opted out, of each contact
	numbers := make([]bool, len(page))
	for part := range slices.Chunk(handles, lookUp) {
		hashes := make([]store.NumberHash, len(part))
		for n, h := range part {
			hashes[n] = h.hash
		}
		choices, err := a.Store.Choices(ctx, ws, hashes)
		if err != nil {
			return nil, 0, err
		}
		for _, h := range part {
			switch at := choices[h.hash].Since; {
			case at == 0:
			case h.number == "":
				ids[h.contact]++
			default:
				numbers[h.contact] = true
				rows = append(rows, desk.OptOutRow{Number: h.number, Since: at, OptedOut: true})
			}
		}
	}
	known = len(rows)
	for n, some := range numbers {
		if some {
			known += ids[n]
		}
	}
	return rows, known, nil
}
