package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/desk"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

const contactColumns = `c.id, c.external_id, c.name, c.email, c.phone, c.note, c.attributes, c.further,
	c.owner_id, c.created_at, c.updated_at, c.version, w.version`

// A contactRow is a contact whose owner is yet to be resolved by the settings of the
// version that was read with it.
type contactRow struct {
	desk.Contact
	owner    desk.ID
	settings int64
}

func readContact(row pgx.Row) (*contactRow, error) {
	var c contactRow
	var attributes, further string
	err := row.Scan(into(&c.ID), &c.ExternalID, &c.Name, &c.Email, &c.Phone, &c.Note, &attributes, &further,
		into(&c.owner), (*int64)(&c.CreatedAt), (*int64)(&c.UpdatedAt), &c.Version, &c.settings)
	if err == nil {
		c.Attributes = desk.StoredAttributes(attributes)
		c.Further, err = desk.StoredFurther(further)
	}
	return &c, err
}

// of resolves the owner.
func (c *contactRow) of(settings *desk.Settings) *desk.Contact {
	c.Owner = settings.Member(c.owner)
	return &c.Contact
}

const (
	contactsFrom = ` FROM contacts c JOIN workspaces w ON w.id = c.workspace_id WHERE c.workspace_id = $1`
	contactQuery = `SELECT ` + contactColumns + contactsFrom + ` AND c.id = $2`
)

// Contact returns a contact, or NotFound, and the settings at that moment.
func (s *Store) Contact(ctx context.Context, ws, id desk.ID) (contact *desk.Contact, settings *desk.Settings, err error) {
	err = s.read(ctx, func(p *pipe) error {
		c, err := one(p, "contact", readContact, contactQuery, uuid(ws), uuid(id))
		if err != nil {
			return err
		}
		if c == nil {
			return desk.NoContact()
		}
		if settings, err = s.settingsAt(p, ws, c.settings); err == nil {
			contact = c.of(settings)
		}
		return err
	})
	return contact, settings, err
}

// contactsQuery is the list's query with its arguments. There are few of them, so each is
// prepared once on a connection.
func contactsQuery(ws desk.ID, f desk.ContactFilter, after desk.ContactPlace, limit int) (string, []any) {
	args := []any{uuid(ws), int64(after.UpdatedAt), uuid(after.ID), int64(f.UpdatedSince), limit}
	bind := func(v any) int { args = append(args, v); return len(args) }
	var q strings.Builder
	q.WriteString(`SELECT ` + contactColumns + contactsFrom + ` AND (c.updated_at, c.id) > ($2, $3) AND c.updated_at >= $4`)
	if !f.Owner.IsZero() {
		fmt.Fprintf(&q, ` AND c.owner_id = $%d`, bind(uuid(f.Owner)))
	}
	for _, i := range f.Held {
		i = i.Claim()
		fmt.Fprintf(&q, ` AND c.id = (SELECT contact_id FROM identities WHERE workspace_id = $1 AND kind = $%d AND value = $%d)`,
			bind(i.Kind), bind(i.Value))
	}
	q.WriteString(` ORDER BY c.updated_at, c.id LIMIT $5`)
	return q.String(), args
}

// Contacts returns up to limit contacts that pass the filter and stand after the
// place given, in export order.
func (s *Store) Contacts(ctx context.Context, ws desk.ID, f desk.ContactFilter, after desk.ContactPlace, limit int) (list []*desk.Contact, err error) {
	query, args := contactsQuery(ws, f, after, limit)
	err = s.read(ctx, func(p *pipe) error {
		rows, err := all(p, "contacts", readContact, query, args...)
		if err != nil || len(rows) == 0 {
			return err
		}
		settings, err := s.settingsAt(p, ws, rows[0].settings) // one statement, one version
		if err != nil {
			return err
		}
		list = make([]*desk.Contact, len(rows))
		for n, row := range rows {
			list[n] = row.of(settings)
		}
		return nil
	})
	return list, err
}

// UpdateContacts loads all that ops can touch, calls apply, and stores what it
// changed, all or nothing.
func (s *Store) UpdateContacts(ctx context.Context, ws desk.ID, ops []*desk.Op, apply func(*desk.Book)) error {
	w := wanted(ops)
	return s.write(ctx, ws, false, func(t *tx) error {
		loaded := putLoad(t.pipe, ws, w)
		if err := t.open("load contacts"); err != nil {
			return err
		}
		book := bookOf(t.settings, len(ops), *loaded)
		apply(book)
		return flushBook(t, book)
	})
}

// FlushesAbreast is two: the one is with the database while the other is with parley. A
// third has only smaller groups to take, since one commit with events is under way at a time.
func (s *Store) FlushesAbreast() int { return 2 }

// Book loads all that ops can touch, to try them out: nothing of it is stored, so the
// settings may be a moment older than the contacts.
func (s *Store) Book(ctx context.Context, ws desk.ID, ops []*desk.Op) (book *desk.Book, err error) {
	w := wanted(ops)
	err = s.read(ctx, func(p *pipe) error {
		loaded := putLoad(p, ws, w)
		settings, err := s.currentSettings(p, ws)
		if err == nil {
			book = bookOf(settings, len(ops), *loaded)
		}
		return err
	})
	return book, err
}

// A claimed names contacts: by the identities that they hold, and by id.
type claimed struct {
	kinds, values []string
	ids           pgtype.FlatArray[uuid]
}

func wanted(ops []*desk.Op) (w claimed) {
	w.kinds, w.values, w.ids = []string{}, []string{}, pgtype.FlatArray[uuid]{}
	for _, op := range ops {
		for _, id := range op.IDs() {
			w.ids = append(w.ids, uuid(id))
		}
		for _, i := range op.Identities() {
			w.add(i.Claim())
		}
	}
	return w
}

func (w *claimed) add(i desk.Identity) {
	w.kinds, w.values = append(w.kinds, i.Kind), append(w.values, i.Value)
}

func (w claimed) args(ws desk.ID) []any { return []any{uuid(ws), w.kinds, w.values, w.ids} }

// What is looked up by lists of keys is looked up key by key: LATERAL leaves the planner no
// other way. Of a table that grows fast its figures are old, and by them it would rather
// read a whole workspace.
const (
	wantedContacts = `(SELECT i.contact_id FROM unnest($2::text[], $3::text[]) u (kind, value) CROSS JOIN LATERAL
			(SELECT contact_id FROM identities WHERE workspace_id = $1 AND kind = u.kind AND value = u.value LIMIT 1) i
		UNION SELECT unnest($4::uuid[]) ORDER BY 1) u (id)`
	loadBookQuery = `SELECT ` + contactColumns + ` FROM ` + wantedContacts + ` CROSS JOIN LATERAL
		(SELECT * FROM contacts WHERE workspace_id = $1 AND id = u.id LIMIT 1) c JOIN workspaces w ON w.id = $1`
	lockBookQuery = `SELECT c.id FROM ` + wantedContacts + ` CROSS JOIN LATERAL
		(SELECT id FROM contacts WHERE workspace_id = $1 AND id = u.id FOR UPDATE) c`
)

// putLoad lets the query wait that loads every contact named, whatever their number.
func putLoad(p *pipe, ws desk.ID, w claimed) *[]*contactRow {
	var loaded []*contactRow
	p.each(func(row pgx.Row) error {
		c, err := readContact(row)
		loaded = append(loaded, c)
		return err
	}, loadBookQuery, w.args(ws)...)
	return &loaded
}

func bookOf(settings *desk.Settings, n int, loaded []*contactRow) *desk.Book {
	book := desk.NewBook(settings, n)
	for _, c := range loaded {
		book.Load(c.of(settings))
	}
	return book
}

// A contactTable holds contacts by column, as unnest takes them.
type contactTable struct {
	ids                                                             pgtype.FlatArray[uuid]
	externalIDs, names, emails, phones, notes, attributes, furthers []string
	owners                                                          pgtype.FlatArray[pgtype.UUID]
	created, updated, versions                                      []int64
}

func (t *contactTable) add(c *desk.Contact, version int64) {
	var owner desk.ID
	if c.Owner != nil {
		owner = c.Owner.ID
	}
	t.ids, t.owners = append(t.ids, uuid(c.ID)), append(t.owners, orNull(owner))
	t.externalIDs, t.names, t.emails = append(t.externalIDs, c.ExternalID), append(t.names, c.Name), append(t.emails, c.Email)
	t.phones, t.notes = append(t.phones, c.Phone), append(t.notes, c.Note)
	t.attributes, t.furthers = append(t.attributes, c.Attributes.JSON()), append(t.furthers, desk.FurtherText(c.Further))
	t.created, t.updated = append(t.created, int64(c.CreatedAt)), append(t.updated, int64(c.UpdatedAt))
	t.versions = append(t.versions, version)
}

func (t *contactTable) args(ws desk.ID) []any {
	return []any{uuid(ws), t.ids, t.externalIDs, t.names, t.emails, t.phones, t.notes, t.attributes, t.furthers, t.owners,
		t.created, t.updated, t.versions}
}

const (
	contactRows = ` FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::uuid[],
	$11::bigint[], $12::bigint[], $13::bigint[])
	u (id, external_id, name, email, phone, note, attributes, further, owner_id, created_at, updated_at, version)`
	insertContacts = `INSERT INTO contacts (workspace_id, id, external_id, name, email, phone, note, attributes, further,
	owner_id, created_at, updated_at, version) SELECT $1, u.*` + contactRows
	// The rows that are still of the version that was loaded.
	atVersion = ` CROSS JOIN LATERAL (SELECT ctid AS place FROM contacts WHERE workspace_id = $1 AND id = u.id AND version = u.version LIMIT 1) l
	WHERE c.ctid = l.place`
	updateContacts = `WITH done AS (UPDATE contacts c SET external_id = u.external_id, name = u.name, email = u.email, phone = u.phone, note = u.note,
	attributes = u.attributes, further = u.further, owner_id = u.owner_id, created_at = u.created_at, updated_at = u.updated_at,
	version = c.version + 1` + contactRows + atVersion + allDone
	deleteContacts = `WITH done AS (DELETE FROM contacts c USING unnest($2::uuid[], $3::bigint[]) u (id, version)` + atVersion + allDone
	// An error when rows were missed, whose version another transaction has raised: so the
	// server itself goes no further, and the commit can be sent along.
	allDone      = ` RETURNING 1) SELECT 1 / (count(*) = cardinality($2::uuid[]))::integer FROM done`
	lockContacts = `SELECT FROM (SELECT unnest($2::uuid[]) ORDER BY 1) u (id) CROSS JOIN LATERAL
	(SELECT FROM contacts WHERE workspace_id = $1 AND id = u.id FOR UPDATE) c`

	releaseIdentities = `DELETE FROM identities i USING unnest($2::text[], $3::text[], $4::uuid[]) u (kind, value, contact_id) CROSS JOIN LATERAL
	(SELECT ctid AS place FROM identities
		WHERE workspace_id = $1 AND kind = u.kind AND value = u.value AND contact_id = u.contact_id LIMIT 1) l
	WHERE i.ctid = l.place`
	// Plainly, so that one that is taken is an error: to do nothing would drop a claim, to
	// update would steal it.
	takeIdentities = `INSERT INTO identities (workspace_id, kind, value, contact_id)
	SELECT $1, u.* FROM unnest($2::text[], $3::text[], $4::uuid[]) u`
)

// flushBook lets what changed on the Book wait for the commit. Rows are locked in the order of their keys, so that two flushes wait for
// each other and don't deadlock; a statement that writes many has no order of its own.
func flushBook(t *tx, book *desk.Book) error {
	t.events = append(t.events, book.Events()...)
	var inserted, updated, gone contactTable
	var released, taken claims
	var deleted []*desk.Contact
	for _, p := range book.Changed() {
		let, took := p.Claims()
		released.add(let, p.Stored)
		taken.add(took, p.Now)
		switch {
		case p.Stored == nil && p.Now == nil: // came and went
		case p.Now == nil:
			gone.add(p.Stored, p.Stored.Version)
			deleted = append(deleted, p.Stored)
		case p.Stored == nil:
			inserted.add(p.Now, 1)
		default:
			updated.add(p.Now, p.Stored.Version)
		}
	}
	if touched := slices.Concat(gone.ids, updated.ids); len(touched) > 1 {
		t.put(lockContacts, uuid(t.ws), touched)
	}
	if len(gone.ids) > 0 {
		t.put(deleteContacts, uuid(t.ws), gone.ids, gone.versions)
		eraseConversations(t.pipe, t.ws, gone.ids)
		eraseWebhooks(t.pipe, t.ws, deleted)
	}
	if len(updated.ids) > 0 {
		t.put(updateContacts, updated.args(t.ws)...)
	}
	if len(inserted.ids) > 0 {
		t.put(insertContacts, inserted.args(t.ws)...)
	}
	if len(released) > 0 {
		t.put(releaseIdentities, released.args(t.ws)...)
	}
	if len(taken) > 0 {
		t.put(takeIdentities, taken.args(t.ws)...)
	}
	if deleted == nil {
		return t.fail
	}
	return eraseAttempts(t.pipe, t.ws, deleted)
}

// A claim is an identity and who holds it.
type claim struct {
	desk.Identity
	holder desk.ID
}

type claims []claim

func (c *claims) add(list []desk.Identity, holder *desk.Contact) {
	for _, i := range list {
		*c = append(*c, claim{i, holder.ID})
	}
}

func (c claims) args(ws desk.ID) []any {
	slices.SortFunc(c, func(a, b claim) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Value, b.Value)) })
	var w claimed
	for _, i := range c {
		w.add(i.Identity)
		w.ids = append(w.ids, uuid(i.holder))
	}
	return w.args(ws)
}

const insertEvents = `WITH counter AS (
		INSERT INTO event_counters (workspace_id, seq) VALUES ($1, cardinality($2::bigint[]))
		ON CONFLICT (workspace_id) DO UPDATE SET seq = event_counters.seq + excluded.seq RETURNING seq)
	INSERT INTO events (workspace_id, seq, at, kind, subject_id, actor_id, changed)
	SELECT $1, counter.seq - cardinality($2::bigint[]) + u.n, u.at, u.kind, u.subject_id, u.actor_id, u.changed
	FROM counter, unnest($2::bigint[], $3::text[], $4::uuid[], $5::uuid[], $6::text[])
		WITH ORDINALITY u (at, kind, subject_id, actor_id, changed, n)`

// putEvents lets the events wait for the commit.
func putEvents(p *pipe, ws desk.ID, events []desk.Event) {
	if len(events) == 0 {
		return
	}
	n := len(events)
	at, kinds, changed := make([]int64, n), make([]string, n), make([]string, n)
	subjects, actors := make(pgtype.FlatArray[uuid], n), make(pgtype.FlatArray[uuid], n)
	for i, e := range events {
		at[i], kinds[i], changed[i] = int64(e.At), string(e.Kind), strings.Join(e.Changed, ",")
		subjects[i], actors[i] = uuid(e.Subject), uuid(e.Actor)
	}
	p.put(insertEvents, uuid(ws), at, kinds, subjects, actors, changed)
}
