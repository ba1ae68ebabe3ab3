package sqlite

import (
	"context"
	"strings"

	"parley/desk"
)

const contactColumns = `c.id, c.external_id, c.name, c.email, c.phone, c.note, c.attributes, c.further,
	c.owner_id, c.created_at, c.updated_at, c.version`

// readContact reads contactColumns. settings resolves the owner.
func readContact(s *stmt, settings *desk.Settings) *desk.Contact {
	c := &desk.Contact{
		ID:         s.readID(),
		ExternalID: s.readText(),
		Name:       s.readText(),
		Email:      s.readText(),
		Phone:      s.readText(),
		Note:       s.readText(),
		Attributes: desk.StoredAttributes(s.readText()),
	}
	c.Further, s.fail = desk.StoredFurther(s.readText())
	c.Owner = settings.Member(s.readID())
	c.CreatedAt, c.UpdatedAt, c.Version = s.readTime(), s.readTime(), s.readInt()
	return c
}

const contactQuery = `SELECT w.version, ` + contactColumns + ` FROM contacts c JOIN workspaces w ON w.id = c.workspace_id
	WHERE c.workspace_id = ? AND c.id = ?`

// Contact returns a contact, or NotFound, and the settings at that moment.
func (s *Store) Contact(ctx context.Context, ws, id desk.ID) (contact *desk.Contact, settings *desk.Settings, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		row := c.stmt(contactQuery).id(ws).id(id)
		if row.next() {
			if settings, row.fail = s.settingsAt(c, ws, row.readInt()); row.fail == nil {
				contact = readContact(&row, settings)
			}
		}
		return failed("contact", row.done())
	})
	if err == nil && contact == nil {
		err = desk.NoContact()
	}
	return contact, settings, err
}

// contactsQuery is the list's query. There are few of them, so each is prepared once.
func contactsQuery(f desk.ContactFilter) string {
	var q strings.Builder
	q.WriteString(`SELECT w.version, ` + contactColumns + ` FROM contacts c JOIN workspaces w ON w.id = c.workspace_id
	WHERE c.workspace_id = ? AND (c.updated_at, c.id) > (?, ?) AND c.updated_at >= ?`)
	if !f.Owner.IsZero() {
		q.WriteString(` AND c.owner_id = ?`)
	}
	for range f.Held {
		q.WriteString(` AND c.id = (SELECT contact_id FROM identities WHERE workspace_id = ? AND kind = ? AND value = ?)`)
	}
	q.WriteString(` ORDER BY c.updated_at, c.id LIMIT ?`)
	return q.String()
}

// Contacts returns up to limit contacts that pass the filter and stand after the
// place given, in export order.
func (s *Store) Contacts(ctx context.Context, ws desk.ID, f desk.ContactFilter, after desk.ContactPlace, limit int) (list []*desk.Contact, err error) {
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		rows := c.stmt(contactsQuery(f)).id(ws).time(after.UpdatedAt).id(after.ID).time(f.UpdatedSince)
		if !f.Owner.IsZero() {
			rows = rows.id(f.Owner)
		}
		for _, i := range f.Held {
			i = i.Claim()
			rows = rows.id(ws).text(i.Kind).text(i.Value)
		}
		rows = rows.int(int64(limit))
		for rows.next() {
			var settings *desk.Settings
			if settings, rows.fail = s.settingsAt(c, ws, rows.readInt()); rows.fail == nil {
				list = append(list, readContact(&rows, settings))
			}
		}
		return failed("contacts", rows.done())
	})
	return list, err
}

// UpdateContacts loads all that ops can touch, calls apply, and stores what it
// changed, all or nothing.
func (s *Store) UpdateContacts(_ context.Context, ws desk.ID, ops []*desk.Op, apply func(*desk.Book)) error {
	ids, claims := wanted(ops)
	return s.write(func(c conn) error {
		settings, err := s.currentSettings(c, ws)
		if err != nil {
			return err
		}
		book, err := loadBook(c, settings, len(ops), ids, claims)
		if err != nil {
			return err
		}
		apply(book)
		return flushBook(c, ws, book)
	})
}

// FlushesAbreast is one: there is one writer.
func (s *Store) FlushesAbreast() int { return 1 }

// Book loads all that ops can touch, to try them out: nothing of it is stored, so the
// settings may be a moment older than the contacts.
func (s *Store) Book(ctx context.Context, ws desk.ID, ops []*desk.Op) (book *desk.Book, err error) {
	ids, claims := wanted(ops)
	err = s.read(ctx, int64(pointRead*(1+len(ops))), func(c conn) error {
		settings, err := s.currentSettings(c, ws)
		if err != nil {
			return err
		}
		book, err = loadBook(c, settings, len(ops), ids, claims)
		return err
	})
	return book, err
}

// wanted lists, as JSON arrays, the contacts that ops name: by id in hex, and by
// claim as kind:value (a kind holds no colon).
func wanted(ops []*desk.Op) (ids, claims string) {
	i, c := []byte{'['}, []byte{'['}
	for _, op := range ops {
		for _, id := range op.IDs() {
			i = append(id.Append(append(i, '"')), '"', ',')
		}
		for _, identity := range op.Identities() {
			identity = identity.Claim()
			c = append(c, '"')
			c = append(append(c, identity.Kind...), ':')
			c = append(c, desk.AppendJSONString(nil, identity.Value)[1:]...)
			c = append(c, ',')
		}
	}
	return closeArray(i), closeArray(c)
}

func closeArray(b []byte) string {
	return strings.TrimSuffix(string(b), ",") + "]"
}

const loadBookQuery = `SELECT ` + contactColumns + ` FROM contacts c
	WHERE c.workspace_id = ?1 AND c.id IN (
		SELECT i.contact_id FROM json_each(?2) j CROSS JOIN identities i
		ON i.workspace_id = ?1 AND i.kind = substr(j.value, 1, instr(j.value, ':') - 1)
			AND i.value = substr(j.value, instr(j.value, ':') + 1)
		UNION ALL
		SELECT unhex(value, '-') FROM json_each(?3))`

// loadBook loads every contact that is named into a Book for n operations, in one
// query whatever their number.
func loadBook(c conn, settings *desk.Settings, n int, ids, claims string) (*desk.Book, error) {
	book := desk.NewBook(settings, n)
	rows := c.stmt(loadBookQuery).id(settings.ID).text(claims).text(ids)
	for rows.next() {
		book.Load(readContact(&rows, settings))
	}
	return book, failed("load contacts", rows.done())
}

// flushBook writes what changed on the Book.
func flushBook(c conn, ws desk.ID, book *desk.Book) error {
	return failed("store contacts", flushPages(c, ws, book.Changed(), book.Events()))
}

func flushPages(c conn, ws desk.ID, pages []*desk.Page, events []desk.Event) error {
	if len(pages) == 0 {
		return nil
	}
	var deleted []*desk.Contact
	taken := make([][]desk.Identity, len(pages))
	for n, p := range pages {
		released, t := p.Claims()
		taken[n] = t
		for _, i := range released {
			if err := c.stmt(`DELETE FROM identities WHERE workspace_id = ? AND kind = ? AND value = ?`).
				id(ws).text(i.Kind).text(i.Value).run(); err != nil {
				return err
			}
		}
		if p.Now == nil && p.Stored != nil {
			deleted = append(deleted, p.Stored)
		}
	}
	for n, p := range pages {
		if err := flushPage(c, ws, p); err != nil {
			return err
		}
		for _, i := range taken[n] {
			if err := c.stmt(`INSERT INTO identities (workspace_id, kind, value, contact_id) VALUES (?, ?, ?, ?)`).
				id(ws).text(i.Kind).text(i.Value).id(p.Now.ID).run(); err != nil {
				return err
			}
		}
	}
	if deleted != nil {
		if err := eraseWebhooks(c, ws, deleted); err != nil {
			return err
		}
		if err := eraseAttempts(c, ws, deleted); err != nil {
			return err
		}
	}
	return flushEvents(c, ws, events)
}

func flushPage(c conn, ws desk.ID, p *desk.Page) error {
	now := p.Now
	switch {
	case now == nil && p.Stored == nil:
		return nil
	case now == nil:
		if err := eraseConversations(c, ws, p.Stored.ID); err != nil {
			return err
		}
		return c.stmt(`DELETE FROM contacts WHERE workspace_id = ? AND id = ?`).id(ws).id(p.Stored.ID).run()
	case p.Stored == nil:
		return bindContact(c.stmt(`INSERT INTO contacts (external_id, name, email, phone, note, attributes, further,
			owner_id, created_at, updated_at, version, workspace_id, id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?)`), now).
			id(ws).id(now.ID).run()
	default:
		return bindContact(c.stmt(`UPDATE contacts SET external_id = ?, name = ?, email = ?, phone = ?, note = ?, attributes = ?,
			further = ?, owner_id = ?, created_at = ?, updated_at = ?, version = version + 1 WHERE workspace_id = ? AND id = ?`), now).
			id(ws).id(now.ID).run()
	}
}

func bindContact(s stmt, c *desk.Contact) stmt {
	var owner desk.ID
	if c.Owner != nil {
		owner = c.Owner.ID
	}
	return s.text(c.ExternalID).text(c.Name).text(c.Email).text(c.Phone).text(c.Note).
		text(c.Attributes.JSON()).text(desk.FurtherText(c.Further)).idOrNull(owner).time(c.CreatedAt).time(c.UpdatedAt)
}

const newestEventQuery = `SELECT seq FROM events WHERE workspace_id = ? ORDER BY seq DESC LIMIT 1`

// flushEvents numbers the events on from the newest. There is one writer at a time,
// so the numbers are in commit order without a counter row, which would be one more
// page to write in every commit.
func flushEvents(c conn, ws desk.ID, events []desk.Event) error {
	if len(events) == 0 {
		return nil
	}
	seq, known := c.newest[ws]
	if !known {
		row := c.stmt(newestEventQuery).id(ws)
		if row.next() {
			seq = row.readInt()
		}
		if err := row.done(); err != nil {
			return err
		}
	}
	c.newest[ws] = seq + int64(len(events))
	for _, e := range events {
		seq++
		if err := c.stmt(`INSERT INTO events (workspace_id, seq, at, kind, subject_id, actor_id, changed) VALUES (?, ?, ?, ?, ?, ?, ?)`).
			id(ws).int(seq).time(e.At).text(string(e.Kind)).id(e.Subject).id(e.Actor).text(strings.Join(e.Changed, ",")).run(); err != nil {
			return err
		}
	}
	return nil
}
