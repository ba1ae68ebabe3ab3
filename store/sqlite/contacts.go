package sqlite

import (
	"context"
	"slices"
	"strings"

	"parley/desk"
	"parley/store/internal/stored"
)

const contactColumns = `c.id, c.external_id, c.name, c.email, c.phone, c.note, c.attributes, c.further, c.owner_id, c.created_at, c.updated_at, c.version`

// readContact reads a contact from contactColumns. Values that are in large_values, which
// is rare, are read through c. settings resolves the owner.
func readContact(c conn, s *stmt, settings *desk.Settings) *desk.Contact {
	v := readBrief(c, s, settings)
	if v.Brief && s.fail == nil {
		v.Further, s.fail = readFurther(c, settings.ID, v.ID)
		v.Brief = false
	}
	return v
}

// readBrief is like readContact, but it does not read further identities that are in
// large_values.
func readBrief(c conn, s *stmt, settings *desk.Settings) *desk.Contact {
	v := &desk.Contact{
		ID:         s.readID(),
		ExternalID: s.readText(),
		Name:       s.readText(),
		Email:      s.readText(),
		Phone:      s.readText(),
		Note:       s.readText(),
	}
	attributes, further := s.readText(), s.readText()
	v.Apart = desk.Apart{Attributes: attributes == apart, Further: further == apart}
	if v.Apart.Attributes {
		attributes, s.fail = readLarge(c, settings.ID, v.ID, attributesField)
	}
	if s.fail != nil {
		return v
	}
	v.Attributes = desk.StoredAttributes(attributes)
	if v.Brief = v.Apart.Further; !v.Brief {
		v.Further, s.fail = desk.StoredFurther(further)
	}
	v.Owner = settings.Member(s.readID())
	v.CreatedAt, v.UpdatedAt, v.Version = s.readTime(), s.readTime(), s.readInt()
	return v
}

// contactThereQuery tells whether there is a contact.
const contactThereQuery = `SELECT 1 FROM contacts WHERE workspace_id = ? AND id = ?`

const contactQuery = `SELECT w.settings_version, ` + contactColumns + ` FROM contacts c JOIN workspaces w ON w.id = c.workspace_id
	WHERE c.workspace_id = ? AND c.id = ?`

// Contact returns a contact, or nil, and the settings at that moment.
func (s *Store) Contact(ctx context.Context, ws, id desk.ID) (contact *desk.Contact, settings *desk.Settings, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		row := c.stmt(contactQuery).id(ws).id(id)
		if row.next() {
			if settings, row.fail = s.settingsAt(c, ws, row.readInt()); row.fail == nil {
				contact = readContact(c, &row, settings)
			}
		}
		return failed("contact", row.done())
	})
	return contact, settings, err
}

// contactsQuery returns the query of the list. There are few variants, so each is
// prepared once. It names the index: without statistics, SQLite would read a whole
// workspace in order, instead of the contacts of one owner.
func contactsQuery(f desk.ContactFilter) string {
	var q strings.Builder
	q.WriteString(`SELECT w.settings_version, ` + contactColumns + ` FROM contacts c`)
	if f.Owner.IsZero() {
		q.WriteString(` INDEXED BY contacts_updated`)
	} else {
		q.WriteString(` INDEXED BY contacts_owned`)
	}
	q.WriteString(` JOIN workspaces w ON w.id = c.workspace_id
	WHERE c.workspace_id = ? AND (c.updated_at, c.id) > (?, ?) AND c.updated_at >= ?`)
	if !f.Owner.IsZero() {
		q.WriteString(` AND c.owner_id = ?`)
	}
	q.WriteString(` ORDER BY c.updated_at, c.id LIMIT +?`)
	return q.String()
}

// Contacts returns a page of contacts (see store.Contacts).
func (s *Store) Contacts(ctx context.Context, ws desk.ID, f desk.ContactFilter, after desk.ContactPlace, limit int) (list []*desk.Contact, next *desk.ContactPlace, err error) {
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		rows := c.stmt(contactsQuery(f)).id(ws).time(after.UpdatedAt).id(after.ID).time(f.UpdatedSince)
		if !f.Owner.IsZero() {
			rows = rows.id(f.Owner)
		}
		list, next, err = s.contactPage(c, ws, rows.int(int64(limit)+1), limit)
		return err
	})
	return list, next, err
}

// contactPage reads rows, each with the version of the settings and a contact, until the
// page is full.
func (s *Store) contactPage(c conn, ws desk.ID, rows stmt, limit int) (list []*desk.Contact, next *desk.ContactPlace, err error) {
	size := desk.NewPageSize(limit)
	for next == nil && rows.next() {
		var settings *desk.Settings
		if settings, rows.fail = s.settingsAt(c, ws, rows.readInt()); rows.fail != nil {
			break
		}
		if found := readContact(c, &rows, settings); size.Add(found.ListBytes()) {
			list = append(list, found)
		} else {
			place := list[len(list)-1].Place()
			next = &place
		}
	}
	return list, next, failed("contacts", rows.done())
}

// newestContactsQuery returns the query of the list by newest change, of one owner or of
// all.
func newestContactsQuery(owned bool) string {
	index, where := `contacts_updated`, ``
	if owned {
		index, where = `contacts_owned`, ` AND c.owner_id = ?5`
	}
	return `SELECT w.settings_version, ` + contactColumns + ` FROM contacts c INDEXED BY ` + index + ` JOIN workspaces w ON w.id = c.workspace_id
	WHERE c.workspace_id = ?1 AND (c.updated_at, c.id) < (?2, ?3)` + where + ` ORDER BY c.updated_at DESC, c.id DESC LIMIT +?4`
}

// NewestContacts returns a page of contacts, newest change first (see store.Contacts).
func (s *Store) NewestContacts(ctx context.Context, ws, owner desk.ID, before *desk.ContactPlace, limit int) (list []*desk.Contact, next *desk.ContactPlace, err error) {
	if before == nil {
		before = &desk.ContactPlace{UpdatedAt: endOfTime, ID: lastID}
	}
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		rows := c.stmt(newestContactsQuery(!owner.IsZero())).id(ws).time(before.UpdatedAt).id(before.ID).int(int64(limit) + 1)
		if !owner.IsZero() {
			rows = rows.id(owner)
		}
		list, next, err = s.contactPage(c, ws, rows, limit)
		return err
	})
	return list, next, err
}

// UpdateContacts loads all contacts that ops can change, calls apply, and stores the
// changes, all or nothing.
func (s *Store) UpdateContacts(ctx context.Context, ws desk.ID, ops []*desk.Op, apply func(book *desk.Book, from, to int)) error {
	allIDs, allClaims := wanted(ops)
	return s.write(ctx, func(c conn) error {
		settings, err := s.toWrite(c, ws)
		if err != nil {
			return err
		}
		return stored.InParts(len(ops), func(from, to int) (fit int, err error) {
			ids, claims := allIDs, allClaims
			if to-from < len(ops) {
				ids, claims = wanted(ops[from:to])
			}
			most := 0
			if to-from > 1 {
				most = desk.MaxBookBytes
			}
			book, err := loadBook(c, settings, ops[from:to], ids, claims, most)
			if err != nil || book.Full() && to-from > 1 {
				return book.Len(), err
			}
			if err := loadMerged(c, book, idsOf(ops[from:to])); err != nil {
				return 0, err
			}
			apply(book, from, to)
			if err := flushBook(c, ws, book); err != nil || book.Ended() {
				return stored.NoMore, err
			}
			return 0, nil
		})
	})
}

// FlushesAbreast returns 1, because there is one writer.
func (s *Store) FlushesAbreast() int { return 1 }

// Book loads the contacts of a look-up. It stores nothing, so the settings may be
// slightly older than the contacts.
func (s *Store) Book(ctx context.Context, ws desk.ID, l desk.Lookup) (book *desk.Book, err error) {
	err = s.read(ctx, int64(pointRead*(1+len(l.IDs)+len(l.Identities))), func(c conn) error {
		settings, err := s.currentSettings(c, ws)
		if err != nil {
			return err
		}
		book, err = lookUp(c, settings, l)
		return err
	})
	return book, err
}

// wanted returns the contacts that ops name, as two JSON arrays: ids in hex, and claims
// as kind:value (a kind contains no colon).
func wanted(ops []*desk.Op) (ids, claims string) {
	i, c := []byte{'['}, []byte{'['}
	for _, op := range ops {
		i, c = appendWanted(i, c, op.IDs(), op.Identities())
	}
	return closeArray(i), closeArray(c)
}

func appendWanted(i, c []byte, ids []desk.ID, identities []desk.Identity) ([]byte, []byte) {
	for _, id := range ids {
		i = append(id.Append(append(i, '"')), '"', ',')
	}
	for _, identity := range identities {
		claim := identity.Claim()
		c = append(c, '"')
		c = append(append(c, claim.Kind...), ':')
		c = append(c, desk.AppendJSONString(nil, claim.Value)[1:]...)
		c = append(c, ',')
	}
	return i, c
}

func closeArray(b []byte) string {
	return strings.TrimSuffix(string(b), ",") + "]"
}

const (
	loadBookQuery = `SELECT ` + contactColumns + ` FROM contacts c
	WHERE c.workspace_id = ?1 AND c.id IN (
		SELECT i.contact_id` + wantedClaims + `
		UNION ALL
		SELECT unhex(value, '-') FROM json_each(?3))`
	holdersQuery = `SELECT i.contact_id, i.kind, i.value` + wantedClaims
	wantedClaims = ` FROM json_each(?2) j CROSS JOIN claims i
		ON i.workspace_id = ?1 AND i.kind = substr(j.value, 1, instr(j.value, ':') - 1)
			AND i.value = substr(j.value, instr(j.value, ':') + 1)`
)

// loadBook loads all contacts that ops name into a Book, with one query for any number of
// contacts. It stops once the Book has more bytes than most (0: no limit). If there are
// brief operations, it reads further identities from large_values only for the contacts
// that need them.
func loadBook(c conn, settings *desk.Settings, ops []*desk.Op, ids, claims string, most int) (*desk.Book, error) {
	brief := slices.ContainsFunc(ops, func(op *desk.Op) bool { return op.Brief })
	book := desk.NewBook(settings, max(len(ops), 1))
	full := func() bool { return most > 0 && book.Over(most) }
	rows := c.stmt(loadBookQuery).id(settings.ID).text(claims).text(ids)
	for !full() && rows.next() {
		if brief {
			book.Load(readBrief(c, &rows, settings))
		} else {
			book.Load(readContact(c, &rows, settings))
		}
	}
	if err := rows.done(); err != nil || full() || !book.HasBrief() {
		return book, failed("load contacts", err)
	}
	holders := map[desk.Claim][]desk.ID{}
	rows = c.stmt(holdersQuery).id(settings.ID).text(claims)
	for rows.next() {
		id, claim := rows.readID(), desk.Claim{Kind: rows.readText(), Value: rows.readText()}
		if !slices.Contains(holders[claim], id) { // several operations may name the claim
			holders[claim] = append(holders[claim], id)
		}
	}
	err := rows.done()
	for _, contact := range book.ToRead(ops, holders) {
		if err != nil || full() {
			break
		}
		var further []desk.Identity
		if further, err = readFurther(c, settings.ID, contact.ID); err == nil {
			book.Read(contact, further)
		}
	}
	return book, failed("load contacts", err)
}

// lookUp loads the contacts that l names.
func lookUp(c conn, settings *desk.Settings, l desk.Lookup) (*desk.Book, error) {
	ids, claims := appendWanted([]byte{'['}, []byte{'['}, l.IDs, l.Identities)
	book, err := loadBook(c, settings, nil, closeArray(ids), closeArray(claims), l.Most)
	if err == nil {
		err = loadMerged(c, book, l.IDs)
	}
	return book, err
}

func idsOf(ops []*desk.Op) (ids []desk.ID) {
	for _, op := range ops {
		ids = append(ids, op.IDs()...)
	}
	return ids
}

// flushBook writes the Book's changes.
func flushBook(c conn, ws desk.ID, book *desk.Book) error {
	if err := putErasures(c, ws, book.Erasures()); err != nil { // before eraseMerges looks for them
		return err
	}
	return failed("store contacts", flushEntries(c, ws, book.Changed(), book.Events()))
}

func flushEntries(c conn, ws desk.ID, entries []*desk.Entry, events []desk.Event) error {
	if len(entries) == 0 {
		return nil
	}
	var deleted []*desk.Contact
	taken := make([][]desk.Claim, len(entries))
	for n, e := range entries {
		released, t := e.Claims()
		taken[n] = t
		for _, i := range released {
			if err := c.stmt(releaseClaimQuery).id(ws).text(i.Kind).text(i.Value).id(e.Stored.ID).run(); err != nil {
				return err
			}
		}
		for _, i := range e.Passes {
			if err := c.stmt(passClaimQuery).id(ws).text(i.Kind).text(i.Value).id(e.Stored.ID).id(e.MergedInto).run(); err != nil {
				return err
			}
		}
		if e.Now == nil && e.Stored != nil && e.MergedInto.IsZero() {
			deleted = append(deleted, e.Stored)
		}
	}
	for n, e := range entries {
		if err := flushEntry(c, ws, e); err != nil {
			return err
		}
		if err := takeClaims(c, ws, e.Now, taken[n]); err != nil {
			return err
		}
	}
	if deleted != nil {
		if err := wantScrub(c); err != nil {
			return err
		}
		if err := eraseCallbacks(c, ws, deleted); err != nil {
			return err
		}
		if err := eraseAttempts(c, ws, deleted); err != nil {
			return err
		}
		if err := eraseRows(c, ws, deleted); err != nil {
			return err
		}
	}
	return flushEvents(c, ws, events)
}

// takeClaims stores claims, three in one statement. Most contacts have three claims, and
// each statement costs as much time as each row.
func takeClaims(c conn, ws desk.ID, holder *desk.Contact, claims []desk.Claim) error {
	for len(claims) > 0 {
		query, n := takeClaimQuery, 1
		if len(claims) >= 3 {
			query, n = takeThreeQuery, 3
		}
		s := c.stmt(query).id(ws).text(claims[0].Kind).text(claims[0].Value).id(holder.ID)
		for _, i := range claims[1:n] {
			s = s.text(i.Kind).text(i.Value)
		}
		if err := s.run(); err != nil {
			return err
		}
		claims = claims[n:]
	}
	return nil
}

// What is made from the events of a contact: the terms by which a search finds it, and its
// history.
const (
	dropTermsQuery   = `DELETE FROM search_terms WHERE workspace_id = ? AND contact_id = ?`
	dropHistoryQuery = `DELETE FROM history WHERE workspace_id = ? AND contact_id = ?`
)

func flushEntry(c conn, ws desk.ID, e *desk.Entry) error {
	now := e.Now
	switch {
	case now == nil && e.Stored == nil:
		return nil
	case now == nil && !e.MergedInto.IsZero():
		return dropContact(c, ws, e.Stored)
	case now == nil:
		sent, got, err := mediaOfContact(c, ws, e.Stored.ID)
		if err != nil {
			return err
		}
		if err := eraseConversations(c, ws, e.Stored.ID); err != nil {
			return err
		}
		if err := eraseMedia(c, ws, e.Stored.ID, sent, got); err != nil {
			return err
		}
		if err := eraseResponses(c, ws, e.Stored.ID); err != nil {
			return err
		}
		if err := eraseMerges(c, ws, e.Stored.ID); err != nil {
			return err
		}
		if err := c.stmt(dropHistoryQuery).id(ws).id(e.Stored.ID).run(); err != nil {
			return err
		}
		return dropContact(c, ws, e.Stored)
	}
	attributes, further, err := storeValues(c, ws, e)
	if err != nil {
		return err
	}
	query := `UPDATE contacts SET external_id = ?, name = ?, email = ?, phone = ?, note = ?, attributes = ?,
			further = ?, owner_id = ?, created_at = ?, updated_at = ?, version = version + 1 WHERE workspace_id = ? AND id = ?`
	if e.Stored == nil {
		query = `INSERT INTO contacts (external_id, name, email, phone, note, attributes, further,
			owner_id, created_at, updated_at, workspace_id, id, version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	}
	var owner desk.ID
	if now.Owner != nil {
		owner = now.Owner.ID
	}
	s := c.stmt(query).text(now.ExternalID).text(now.Name).text(now.Email).text(now.Phone).text(now.Note).
		text(attributes).text(further).idOrNull(owner).time(now.CreatedAt).time(now.UpdatedAt).id(ws).id(now.ID)
	if e.Stored == nil {
		s = s.int(max(now.Version, 1))
	}
	return s.run()
}

// dropContact deletes a contact's row with what is kept beside it. The data that other tables
// have of the person stays.
func dropContact(c conn, ws desk.ID, contact *desk.Contact) error {
	if err := eraseLarge(c, ws, contact); err != nil {
		return err
	}
	if err := c.stmt(dropTermsQuery).id(ws).id(contact.ID).run(); err != nil {
		return err
	}
	return c.stmt(`DELETE FROM contacts WHERE workspace_id = ? AND id = ?`).id(ws).id(contact.ID).run()
}
