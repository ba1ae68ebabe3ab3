package broadcast

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/app/cursors"
	"parley/desk"
	"parley/store"
)

// An AddedRow is what became of a row that was sent.
type AddedRow struct {
	Status string // added, replaced or unchanged; "": see Err
	ID     desk.ID
	Err    error
}

// Add adds rows to a draft. A row replaces, in its place, the row of the same contact, or else
// of the same number.
func (a *Service) Add(ctx context.Context, p desk.Principal, id desk.ID, rows []desk.RowInput) (results []AddedRow, err error) {
	for _, needs := range []desk.Permission{desk.BroadcastsWrite, desk.ContactsRead} {
		if err := p.Allow(needs); err != nil {
			return nil, err
		}
	}
	found, err := a.Find(ctx, p.Workspace(), rows)
	if err != nil {
		return nil, err
	}
	err = a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		results, err = a.AddIn(tx, p, id, found, nil)
		return err
	})
	return results, err
}

// Named are rows with the people whom they name, as they are stored but for their ids. Those that are
// refused are nil, and have an error.
type Named struct {
	inputs []desk.RowInput
	rows   []*desk.BroadcastRow
	errs   []error
}

// findStep is how many rows' contacts are read at a time: they may be large.
const findStep = 200

// Find finds the people whom rows name. It is done before the transaction that adds the rows,
// because one at a time adds rows to a broadcast.
func (a *Service) Find(ctx context.Context, ws desk.ID, rows []desk.RowInput) (Named, error) {
	return a.find(rows, func(named desk.Lookup) (*desk.Book, error) { return a.Store.Book(ctx, ws, named) })
}

func (a *Service) find(rows []desk.RowInput, load func(desk.Lookup) (*desk.Book, error)) (list Named, err error) {
	list.inputs = rows
	for part := range slices.Chunk(rows, findStep) {
		var named desk.Lookup
		for i := range part {
			if r := &part[i]; r.Err == nil && r.Contact != nil {
				named.IDs = append(named.IDs, *r.Contact)
			} else if r.Err == nil {
				named.Identities = append(named.Identities, r.Find)
			}
		}
		book, err := load(named)
		if err != nil {
			return list, err
		}
		now := a.Now()
		for i := range part {
			row, err := newRow(book, &part[i], now)
			list.rows, list.errs = append(list.rows, row), append(list.errs, err)
		}
	}
	return list, nil
}

// AddIn is Add in a transaction of the caller's, with what Find has found. If tried is not nil, it
// stores nothing: then tried is how many other rows were found to be new before these.
func (a *Service) AddIn(tx store.Tx, p desk.Principal, id desk.ID, found Named, tried *int64) ([]AddedRow, error) {
	for _, needs := range []desk.Permission{desk.BroadcastsWrite, desk.ContactsRead} {
		if err := p.Still(tx.Settings(), needs, a.Now()); err != nil {
			return nil, err
		}
	}
	// The contacts are locked before the broadcasts, all at once and so in the order of their ids:
	// other transactions may add the same people in another order.
	there, err := tx.KeepContactsNext(contactsOf(found.rows))
	if err != nil {
		return nil, err
	}
	use, err := tx.BroadcastUse()
	if err != nil {
		return nil, err
	}
	b, err := existing(tx, id, desk.BroadcastDraft)
	if err == nil {
		err = b.TakesRows()
	}
	if err != nil {
		return nil, err
	}
	if found, err = a.findGone(tx, found, there); err != nil {
		return nil, err
	}
	before, put := b.Rows, tx.PutRows
	if tried != nil {
		b.Rows += *tried
		put = func(desk.ID, []store.RowChange) error { return nil }
	}
	results, err := a.add(tx, b, found, put)
	if err != nil {
		return nil, err
	}
	added := b.Rows - before
	if b.Rows > desk.MaxBroadcastRows {
		return nil, desk.Invalidf("a broadcast has at most %d rows", desk.MaxBroadcastRows)
	}
	if use.Rows+added > desk.MaxAllBroadcastRows {
		return nil, desk.Invalidf("the broadcasts of a workspace have at most %d rows together: delete old ones", desk.MaxAllBroadcastRows)
	}
	if added == 0 || tried != nil {
		return results, nil
	}
	return results, tx.PutBroadcast(b)
}

// contactsOf returns the contacts of rows, of which some may be nil.
func contactsOf(rows []*desk.BroadcastRow) (contacts []desk.ID) {
	for _, r := range rows {
		if r != nil && !r.Contact.IsZero() {
			contacts = append(contacts, r.Contact)
		}
	}
	return contacts
}

// findGone finds anew the people of rows whose contacts were deleted or merged after Find.
func (a *Service) findGone(tx store.Tx, found Named, there map[desk.ID]bool) (Named, error) {
	var at []int
	var gone []desk.RowInput
	for i, r := range found.rows {
		if r != nil && !r.Contact.IsZero() && !there[r.Contact] {
			at, gone = append(at, i), append(gone, found.inputs[i])
		}
	}
	if len(gone) == 0 {
		return found, nil
	}
	again, err := a.find(gone, tx.Book)
	if err != nil {
		return found, err
	}
	found = Named{found.inputs, slices.Clone(found.rows), slices.Clone(found.errs)} // the transaction may run again
	for i, place := range at {
		found.rows[place], found.errs[place] = again.rows[i], again.errs[i]
	}
	return found, nil
}

// A putRows stores rows of a broadcast.
type putRows func(broadcast desk.ID, rows []store.RowChange) error

// add stores rows by put, and returns what became of each.
func (a *Service) add(tx store.Tx, b *desk.Broadcast, found Named, put putRows) ([]AddedRow, error) {
	known, err := sameRows(tx, b.ID, found.rows)
	if err != nil {
		return nil, err
	}
	results := make([]AddedRow, len(found.rows))
	changes := map[desk.ID]store.RowChange{}
	for i, row := range found.rows {
		if results[i].Err = found.errs[i]; row == nil {
			continue
		}
		r := *row // the transaction may run again
		same := known.of(&r)
		switch {
		case same == nil:
			r.ID, r.Broadcast, results[i].Status = a.NewID(), b.ID, "added"
			b.Rows++
			changes[r.ID] = store.RowChange{Row: &r}
		case same.SameInput(&r):
			results[i] = AddedRow{Status: "unchanged", ID: same.ID}
			continue
		default:
			results[i].Status = "replaced"
			r.ID, r.Broadcast = same.ID, b.ID
			change, again := changes[r.ID]
			if !again {
				change = store.Change(same)
			}
			change.Row = &r
			changes[r.ID] = change
			known.drop(same)
		}
		results[i].ID = r.ID
		known.add(&r)
	}
	return results, put(b.ID, slices.Collect(maps.Values(changes)))
}

// A known has the rows of people by contact and by number.
type known struct {
	byContact map[desk.ID]*desk.BroadcastRow
	byNumber  map[string]*desk.BroadcastRow
}

// sameRows returns the rows of a broadcast that have the same people as these, of which some may be
// nil.
func sameRows(tx store.Tx, broadcast desk.ID, rows []*desk.BroadcastRow) (known, error) {
	k := known{map[desk.ID]*desk.BroadcastRow{}, map[string]*desk.BroadcastRow{}}
	var numbers []string
	for _, r := range rows {
		if r != nil && r.Number != "" {
			numbers = append(numbers, r.Number)
		}
	}
	same, err := tx.SameRows(broadcast, contactsOf(rows), numbers)
	for _, r := range same {
		k.add(r)
	}
	return k, err
}

// add adds a row. After a merge, two rows may have one contact: the one whose turn comes first counts.
func (k known) add(r *desk.BroadcastRow) {
	if first := k.byContact[r.Contact]; !r.Contact.IsZero() && (first == nil || r.ID.Compare(first.ID) < 0) {
		k.byContact[r.Contact] = r
	}
	if r.Number != "" {
		k.byNumber[r.Number] = r
	}
}

func (k known) drop(r *desk.BroadcastRow) {
	delete(k.byContact, r.Contact)
	delete(k.byNumber, r.Number)
}

// of returns the row of the same contact, or else of the same number; nil if there is none.
func (k known) of(r *desk.BroadcastRow) *desk.BroadcastRow {
	if same := k.byContact[r.Contact]; same != nil || r.Number == "" {
		return same
	}
	return k.byNumber[r.Number]
}

// newRow returns a row as it is stored, without its id, or why it is refused.
func newRow(book *desk.Book, in *desk.RowInput, now desk.Time) (*desk.BroadcastRow, error) {
	if in.Err != nil {
		return nil, in.Err
	}
	if in.Person != nil {
		if err := book.CheckMeaning(in.Person); err != nil {
			return nil, desk.Within("/contact", err)
		}
	}
	r := &desk.BroadcastRow{Status: desk.RowPending, At: now, Data: desk.RowData{Values: in.Values, Person: in.Person}}
	var c *desk.Contact
	switch {
	case in.Contact != nil:
		var err error
		if c, err = book.ByID(*in.Contact); err != nil { // it may name the contact that it was merged into
			return nil, err
		}
	case in.Find.Kind == desk.KindPhone:
		c = book.Oldest(in.Find)
		r.Data.Phone, r.To, r.Number = in.Find.Value, in.Find.Value, desk.CanonicalNumber(in.Find.Value)
	default:
		c = book.Oldest(in.Find)
	}
	if c == nil && r.Data.Phone == "" {
		return nil, desk.NoContact()
	}
	if c != nil {
		r.Contact = c.ID
	}
	return r, nil
}

// Clear deletes all rows of a draft. First the broadcast has none any more, so it can't start; then
// they go, some at a time, and until they are gone it takes no others. If the process dies in between,
// the driver goes on.
func (a *Service) Clear(ctx context.Context, p desk.Principal, id desk.ID) error {
	if err := p.Allow(desk.BroadcastsWrite); err != nil {
		return err
	}
	var b *desk.Broadcast
	err := a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) (err error) {
		if err := p.Still(tx.Settings(), desk.BroadcastsWrite, a.Now()); err != nil {
			return err
		}
		if b, err = existing(tx, id, desk.BroadcastDraft); err != nil {
			return err
		}
		if b.Rows == 0 && !b.Untidy { // perhaps with an audience: it may start before it would be tidy
			return nil
		}
		b.Rows, b.Untidy = 0, true
		return tx.PutBroadcast(b)
	})
	for more := err == nil && b.Untidy; more && err == nil; {
		more, err = a.tidy(ctx, p.Workspace(), b)
	}
	return err
}

// Rows returns a page of the rows of a broadcast, in order, and the cursor of the next page,
// "" if there is none. A page may be short, or even empty, although there is a next one.
func (a *Service) Rows(ctx context.Context, p desk.Principal, id desk.ID, f desk.RowFilter, cursor string, limit int) ([]desk.BroadcastRow, string, error) {
	for _, needs := range []desk.Permission{desk.BroadcastsRead, desk.ContactsRead} {
		if err := p.Allow(needs); err != nil {
			return nil, "", err
		}
	}
	b, err := a.Get(ctx, p, id)
	if err != nil {
		return nil, "", err
	}
	list := cursors.List{Workspace: p.Workspace(), Name: "rows", Filter: strings.Join([]string{id.String(), string(f.Status), string(f.Reason)}, " ")}
	if f.Contact != nil {
		list.Filter += " " + f.Contact.String()
	}
	if f.Replied != nil {
		list.Filter += fmt.Sprint(" replied ", *f.Replied)
	}
	var after desk.ID
	if cursor != "" {
		place, err := a.Cursors.Open(list, cursor)
		if err != nil {
			return nil, "", err
		}
		after = desk.ID(place)
	}
	asked := f
	if b.State == desk.BroadcastCancelled && (f.Status == desk.RowCancelled || f.Status == desk.RowPending) {
		asked.Status = "" // pending ones are shown as cancelled
	}
	found, next, err := a.Store.BroadcastRows(ctx, p.Workspace(), id, asked, after, limit)
	if err != nil {
		return nil, "", err
	}
	rows := make([]desk.BroadcastRow, 0, len(found))
	for _, r := range found {
		if seen := r.As(b); f.Passes(&seen) {
			rows = append(rows, seen)
		}
	}
	return rows, a.Cursors.SealID(list, next), nil
}

// A Checked is what would become of people now.
type Checked struct {
	LookedAt int
	Sendable int
	Skips    map[desk.RowReason]int
	Samples  []Sample
}

// A Sample is a message that would be sent.
type Sample struct {
	Contact desk.ID
	Text    string
}

// The limits of a check: the people that it judges, those that it looks at to find them, and how
// many messages it shows.
const (
	checked       = 1000
	checkedPeople = 5000
	samples       = 5
)

// Check judges the next people of a broadcast as at their turn, and sends nothing. It refuses
// what a start refuses. It returns the cursor of the people after them, "" if there are none.
func (a *Service) Check(ctx context.Context, p desk.Principal, id desk.ID, cursor string) (c Checked, next string, err error) {
	for _, needs := range []desk.Permission{desk.BroadcastsRead, desk.ContactsRead} {
		if err := p.Allow(needs); err != nil {
			return c, "", err
		}
	}
	b, err := a.Get(ctx, p, id)
	if err != nil {
		return c, "", err
	}
	list, after := cursors.List{Workspace: p.Workspace(), Name: "check", Filter: id.String()}, desk.ID{}
	if b.Collects() {
		list.Name = "check of an audience"
	}
	if cursor != "" {
		place, err := a.Cursors.Open(list, cursor)
		if err != nil {
			return c, "", err
		}
		after = desk.ID(place)
	}
	if b.State.Ended() {
		return c, "", b.InState()
	}
	r, err := a.prepare(ctx, p.Settings, b)
	if err != nil {
		return c, "", err
	}
	r.into(b)
	c.Skips = map[desk.RowReason]int{}
	for looked := 0; c.LookedAt < checked && looked < checkedPeople; {
		limit := min(lookStep, checked-c.LookedAt)
		page, err := a.nextPeople(ctx, p.Settings, b, after, limit)
		if err != nil {
			return c, "", err
		}
		if err := a.judge(ctx, p.Settings, b, r.template, page.rows(), &c); err != nil {
			return c, "", err
		}
		if !page.more {
			return c, "", nil
		}
		looked, after = looked+limit, page.next
	}
	return c, a.Cursors.Seal(list, after[:]), nil
}

// judge adds what would become of rows now.
func (a *Service) judge(ctx context.Context, s *desk.Settings, b *desk.Broadcast, t *desk.Template, rows []*desk.BroadcastRow, c *Checked) error {
	looks, err := a.look(storeReader{a.Store, ctx, s.ID}, s, b, t, rows, a.Now())
	if err != nil {
		return err
	}
	for _, l := range looks {
		c.LookedAt++
		if l.Verdict.Reason != "" {
			c.Skips[l.Verdict.Reason]++
			continue
		}
		c.Sendable++
		if len(c.Samples) < samples {
			sample := Sample{Text: t.Text(l.Verdict.Values)}
			if l.Contact != nil {
				sample.Contact = l.Contact.ID
			}
			c.Samples = append(c.Samples, sample)
		}
	}
	return nil
}
