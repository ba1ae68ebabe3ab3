package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"parley/desk"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

const contactColumns = `c.id, c.external_id, c.name, c.email, c.phone, c.note, c.attributes, c.further,
	c.owner_id, c.created_at, c.updated_at, c.version, w.settings_version`

// A contactRow is a contact whose owner is not resolved yet. The owner is resolved by
// the settings of the version that was read with the contact.
type contactRow struct {
	desk.Contact
	owner    desk.ID
	settings int64
}

// readContact reads contactColumns, and the columns that a query adds to them.
func readContact(row pgx.Row, more ...any) (*contactRow, error) {
	var c contactRow
	var attributes, further string
	err := row.Scan(append([]any{into(&c.ID), &c.ExternalID, &c.Name, &c.Email, &c.Phone, &c.Note, &attributes, &further,
		into(&c.owner), (*int64)(&c.CreatedAt), (*int64)(&c.UpdatedAt), &c.Version, &c.settings}, more...)...)
	if err == nil {
		c.Attributes = desk.StoredAttributes(attributes)
		c.Further, err = desk.StoredFurther(further)
	}
	return &c, err
}

func readOneContact(row pgx.Row) (*contactRow, error) { return readContact(row) }

// of returns the contact, with its owner resolved by these settings.
func (c *contactRow) of(settings *desk.Settings) *desk.Contact {
	c.Owner = settings.Member(c.owner)
	return &c.Contact
}

const (
	contactsFrom = ` FROM contacts c JOIN workspaces w ON w.id = c.workspace_id WHERE c.workspace_id = $1`
	contactQuery = `SELECT ` + contactColumns + contactsFrom + ` AND c.id >= $2 AND c.id <= $2 ORDER BY c.id` // the range of one id: see contactByID
)

// Contact returns a contact, or nil, and the settings at that moment.
func (s *Store) Contact(ctx context.Context, ws, id desk.ID) (contact *desk.Contact, settings *desk.Settings, err error) {
	err = s.read(ctx, func(p *pipe) error {
		c, err := one(p, "contact", readOneContact, contactQuery, uuid(ws), uuid(id))
		if err != nil || c == nil {
			return err
		}
		if settings, err = s.settingsAt(p, ws, c.settings); err == nil {
			contact = c.of(settings)
		}
		return err
	})
	return contact, settings, err
}

// contactsQuery returns the query of the list with its arguments. There are few
// variants, so each is prepared once on a connection.
//
// The query must leave the planner only one index. By the statistics, one owner may have
// every contact. Then reading the list of all contacts would seem to cost no more than
// reading the owner's. So if an owner is given, the order begins with the owner. The
// owner is also a range of one value instead of a constant: PostgreSQL knows that a
// constant does not change the order.
func contactsQuery(ws desk.ID, f desk.ContactFilter, after desk.ContactPlace, limit int) (string, []any) {
	args := []any{uuid(ws), int64(after.UpdatedAt), uuid(after.ID), int64(f.UpdatedSince), limit + 1}
	bind := func(v any) int { args = append(args, v); return len(args) }
	where, order := ` AND (updated_at, id) > ($2, $3) AND updated_at >= $4`, `updated_at, id`
	if !f.Owner.IsZero() {
		n := bind(uuid(f.Owner))
		where = fmt.Sprintf(` AND (owner_id, updated_at, id) > ($%d, $2, $3) AND owner_id >= $%d AND owner_id <= $%d AND updated_at >= $4`, n, n, n)
		order = `owner_id, updated_at, id`
	}
	return `SELECT ` + contactColumns + `, c.there FROM (` +
		upToPage(`SELECT *, octet_length(note) + octet_length(attributes) + octet_length(further) AS bytes FROM contacts WHERE workspace_id = $1`+where+
			` ORDER BY `+order+` LIMIT $5`, `updated_at, id`) +
		`) c JOIN workspaces w ON w.id = $1 ORDER BY c.updated_at, c.id`, args
}

// newestContactsQuery returns the query of the list by newest change, of one owner or of
// all, with its arguments.
func newestContactsQuery(ws, owner desk.ID, before desk.ContactPlace, limit int) (string, []any) {
	args := []any{uuid(ws), int64(before.UpdatedAt), uuid(before.ID), limit + 1}
	where, order := ` AND (updated_at, id) < ($2, $3)`, `updated_at DESC, id DESC`
	if !owner.IsZero() {
		args = append(args, uuid(owner))
		where = ` AND (owner_id, updated_at, id) < ($5, $2, $3) AND owner_id >= $5 AND owner_id <= $5`
		order = `owner_id DESC, updated_at DESC, id DESC`
	}
	return `SELECT ` + contactColumns + `, c.there FROM (` +
		upToPage(`SELECT *, octet_length(note) + octet_length(attributes) + octet_length(further) AS bytes FROM contacts WHERE workspace_id = $1`+where+
			` ORDER BY `+order+` LIMIT $4`, `updated_at DESC, id DESC`) +
		`) c JOIN workspaces w ON w.id = $1 ORDER BY c.updated_at DESC, c.id DESC`, args
}

// NewestContacts returns a page of contacts, newest change first (see store.Contacts).
func (s *Store) NewestContacts(ctx context.Context, ws, owner desk.ID, before *desk.ContactPlace, limit int) ([]*desk.Contact, *desk.ContactPlace, error) {
	if before == nil {
		before = &desk.ContactPlace{UpdatedAt: endOfTime, ID: lastID}
	}
	query, args := newestContactsQuery(ws, owner, *before, limit)
	return s.contactPage(ctx, ws, limit, query, args)
}

// upToPage returns the query with its rows limited to those of a page, and with the
// number of all rows as a further column. The query must have a column bytes with the
// size of each row. So the server need not send the other rows, or read their large
// values.
func upToPage(query, order string) string {
	return `SELECT * FROM (SELECT *, sum(bytes) OVER (ORDER BY ` + order + `) - bytes AS before, count(*) OVER () AS there
		FROM (` + query + `) q) q WHERE before < ` + strconv.Itoa(desk.MaxPage)
}

// Contacts returns a page of contacts (see store.Contacts).
func (s *Store) Contacts(ctx context.Context, ws desk.ID, f desk.ContactFilter, after desk.ContactPlace, limit int) ([]*desk.Contact, *desk.ContactPlace, error) {
	query, args := contactsQuery(ws, f, after, limit)
	return s.contactPage(ctx, ws, limit, query, args)
}

// contactPage reads a page of contacts.
func (s *Store) contactPage(ctx context.Context, ws desk.ID, limit int, query string, args []any) (list []*desk.Contact, next *desk.ContactPlace, err error) {
	err = s.read(ctx, func(p *pipe) error {
		list, next = nil, nil
		there := 0
		rows, err := all(p, "contacts", func(row pgx.Row) (*contactRow, error) { return readContact(row, &there) }, query, args...)
		if err != nil || len(rows) == 0 {
			return err
		}
		settings, err := s.settingsAt(p, ws, rows[0].settings) // all rows are from one statement, so they have one version
		if err != nil {
			return err
		}
		size := desk.NewPageSize(limit)
		for _, row := range rows {
			c := row.of(settings)
			if !size.Add(c.ListBytes()) {
				break
			}
			list = append(list, c)
		}
		if len(list) < there {
			place := list[len(list)-1].Place()
			next = &place
		}
		return nil
	})
	return list, next, err
}

// UpdateContacts loads all contacts that ops can change, calls apply, and stores the
// changes, all or nothing.
//
// If the last writes in the workspace have found no contact, it first guesses that these
// operations name none either (see createGuessed).
func (s *Store) UpdateContacts(ctx context.Context, ws desk.ID, ops []*desk.Op, apply func(book *desk.Book, from, to int)) error {
	if done, err := s.createGuessed(ctx, ws, ops, apply); done || err != nil {
		return err
	}
	return s.write(ctx, ws, false, func(t *tx) error {
		return stored.InParts(len(ops), func(from, to int) (fit int, err error) {
			most := 0
			if to-from > 1 {
				most = desk.MaxBookBytes
			}
			loaded := putLoad(t.pipe, ws, wanted(ops[from:to]), most)
			if t.settings == nil {
				err = t.open("load contacts")
			} else {
				err = t.send("load contacts")
			}
			if err != nil || loaded.full {
				return len(loaded.contacts), err
			}
			s.newcomers.note(ws, len(loaded.contacts) == 0)
			book := bookOf(t.settings, to-from, loaded)
			if err := loadMerged(t.pipe, ws, book, idsOf(ops[from:to])); err != nil {
				return 0, err
			}
			apply(book, from, to)
			if err := flushBook(t, book); err != nil || book.Ended() {
				return stored.NoMore, err
			}
			return 0, nil
		})
	})
}

const sharesClaimsQuery = `SELECT 1 FROM claims WHERE workspace_id = $1 AND share > 0 ORDER BY workspace_id, kind, value LIMIT 1`

// lookForShared looks for shared claims of a workspace.
func (s *Store) lookForShared(ctx context.Context, ws desk.ID) error {
	var shares bool
	err := s.read(ctx, func(p *pipe) error {
		shares = false
		p.each(func(pgx.Row) error { shares = true; return nil }, sharesClaimsQuery, uuid(ws))
		return p.send("shared claims")
	})
	if err == nil {
		s.newcomers.mu.Lock()
		defer s.newcomers.mu.Unlock()
		s.newcomers.shares[ws] = shares
	}
	return err
}

// createGuessed runs operations as if no contact had any of their identities, and stores
// the new contacts in one round trip. It returns false, and has stored nothing, if it does
// not guess, if an operation would not create a contact, or if the guess was wrong: a
// contact holds one of the identities, or the settings in memory are not the newest.
func (s *Store) createGuessed(ctx context.Context, ws desk.ID, ops []*desk.Op, apply func(book *desk.Book, from, to int)) (done bool, err error) {
	settings := s.settings.Newest(ws)
	if s.citus || settings == nil || len(ops) > mostGuessed {
		return false, nil
	}
	likely, known := s.newcomers.likely(ws)
	if !likely {
		return false, nil
	}
	if !known {
		return false, s.lookForShared(ctx, ws) // the next write may guess
	}
	if err := s.rules.Check(); err != nil {
		return false, err
	}
	for _, op := range ops {
		if op.Kind != desk.OpUpsert {
			return false, nil
		}
	}
	book := desk.NewBook(settings, len(ops))
	apply(book, 0, len(ops))
	changed := book.Changed()
	for _, e := range changed {
		if e.Stored != nil || e.Now == nil {
			return false, nil
		}
	}
	if len(changed) != len(ops) {
		return false, nil
	}
	err = s.atOnceIn(ctx, ws, "create contacts", func(p *pipe) {
		p.put(lockShared, uuid(ws), lockOf(ws))
		p.put(stillSettings, uuid(ws), settings.Version)
		t := &tx{pipe: p, s: s, ws: ws, settings: settings}
		if err = flushBook(t, book); err == nil {
			putEvents(p, ws, t.events)
		}
	})
	switch {
	case sqlState(err) == uniqueViolation || conflicts(err):
		s.newcomers.note(ws, false)
		return false, nil
	case sqlState(err) == readOnlyTransaction, ended(err):
		return false, nil // the ordinary way finds a connection that works
	}
	return err == nil, err
}

// ended tells whether the server has ended the session by an error. Then it has not
// committed what was sent.
func ended(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Severity == "FATAL"
}

// FlushesAbreast returns 2: while the database works on one group, parley works on the
// other. A third flush would only make the groups smaller, because commits with events
// run one after the other.
func (s *Store) FlushesAbreast() int { return 2 }

// Book loads the contacts of a look-up. It stores nothing, so the settings may be
// slightly older than the contacts.
func (s *Store) Book(ctx context.Context, ws desk.ID, l desk.Lookup) (book *desk.Book, err error) {
	w := named(l)
	err = s.read(ctx, func(p *pipe) error {
		loaded := putLoad(p, ws, w, l.Most)
		settings, err := s.currentSettings(p, ws)
		if err == nil {
			book = bookOf(settings, 1, loaded)
			err = loadMerged(p, ws, book, l.IDs)
		}
		return err
	})
	return book, err
}

func idsOf(ops []*desk.Op) (ids []desk.ID) {
	for _, op := range ops {
		ids = append(ids, op.IDs()...)
	}
	return ids
}

// A claimed names contacts by the identities that they hold, and by their ids.
type claimed struct {
	kinds, values []string
	ids           pgtype.FlatArray[uuid]
}

func wanted(ops []*desk.Op) claimed {
	w := claimed{[]string{}, []string{}, pgtype.FlatArray[uuid]{}}
	for _, op := range ops {
		w.name(op.IDs(), op.Identities())
	}
	return w
}

func named(l desk.Lookup) claimed {
	w := claimed{[]string{}, []string{}, pgtype.FlatArray[uuid]{}}
	w.name(l.IDs, l.Identities)
	return w
}

func (w *claimed) name(ids []desk.ID, identities []desk.Identity) {
	for _, id := range ids {
		w.ids = append(w.ids, uuid(id))
	}
	for _, i := range identities {
		w.add(i.Claim())
	}
}

func (w *claimed) add(i desk.Claim) {
	w.kinds, w.values = append(w.kinds, i.Kind), append(w.values, i.Value)
}

func (w claimed) args(ws desk.ID) []any { return []any{uuid(ws), w.kinds, w.values, w.ids} }

// Lists of keys are looked up key by key: LATERAL leaves the planner no other way. The statistics of
// a fast-growing table are old, and with old statistics the planner would read a whole workspace.
//
// contactByID leaves the planner only the primary key. If the table is empty when the
// plan is made, contacts_updated seems to cost as much. But contacts_updated is not in
// the order of ids, and the planner does not know that the range contains only one id.
const (
	contactByID    = ` FROM contacts WHERE workspace_id = $1 AND id >= u.id AND id <= u.id ORDER BY id`
	wantedContacts = `(SELECT i.contact_id FROM unnest($2::text[], $3::text[]) u (kind, value) CROSS JOIN LATERAL
			(SELECT contact_id FROM claims WHERE workspace_id = $1 AND kind = u.kind AND value = u.value OFFSET 0) i
		UNION SELECT unnest($4::uuid[]) ORDER BY 1) u (id)`
	loadBookQuery = `SELECT ` + contactColumns + ` FROM ` + wantedContacts + ` CROSS JOIN LATERAL
		(SELECT *` + contactByID + ` LIMIT 1) c JOIN workspaces w ON w.id = $1`
	lockNamed     = `SELECT c.id FROM ` + wantedContacts + ` CROSS JOIN LATERAL (SELECT id` + contactByID
	lockBookQuery = lockNamed + forChange + `) c`
	lockMergeBook = lockNamed + forUpdate + `) c`
)

// A load collects the contacts for a Book.
type load struct {
	contacts []*contactRow
	bytes    int
	full     bool // the contacts have more bytes than most
}

// putLoad queues one query that loads all named contacts. Once the contacts have more
// bytes than most (0: no limit), it does not keep the rest.
func putLoad(p *pipe, ws desk.ID, w claimed, most int) *load {
	l := &load{}
	p.each(func(row pgx.Row) error {
		if l.full {
			return nil
		}
		c, err := readContact(row)
		if err != nil {
			return err
		}
		l.contacts = append(l.contacts, c)
		l.bytes += c.Size()
		l.full = most > 0 && l.bytes > most
		return nil
	}, loadBookQuery, w.args(ws)...)
	return l
}

func bookOf(settings *desk.Settings, n int, loaded *load) *desk.Book {
	book := desk.NewBook(settings, n)
	for _, c := range loaded.contacts {
		book.Load(c.of(settings))
	}
	return book
}

// A contactTable holds contacts by column, as the parameters of unnest.
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
	owner_id, created_at, updated_at, version) SELECT w.id, u.*` + contactRows + inWorkspace
	// The rows that still have the version that was loaded.
	atVersion = ` CROSS JOIN LATERAL (SELECT ctid AS place` + contactByID + ` LIMIT 1) l
	WHERE c.ctid = l.place AND c.version = u.version`
	updateContacts = `WITH done AS (UPDATE contacts c SET external_id = u.external_id, name = u.name, email = u.email, phone = u.phone, note = u.note,
	attributes = u.attributes, further = u.further, owner_id = u.owner_id, created_at = u.created_at, updated_at = u.updated_at,
	version = c.version + 1` + contactRows + atVersion + allDone
	deleteContacts        = `WITH done AS (DELETE FROM contacts c USING unnest($2::uuid[], $3::bigint[]) u (id, version)` + atVersion + allDone
	updateContactsOnCitus = `WITH done AS (UPDATE contacts c SET external_id = u.external_id, name = u.name, email = u.email, phone = u.phone, note = u.note,
	attributes = u.attributes, further = u.further, owner_id = u.owner_id, created_at = u.created_at, updated_at = u.updated_at,
	version = c.version + 1` + contactRows + ` WHERE c.workspace_id = $1 AND c.id = u.id AND c.version = u.version` + allDone
	deleteContactsOnCitus = `WITH done AS (DELETE FROM contacts c USING unnest($2::uuid[], $3::bigint[]) u (id, version)
	WHERE c.workspace_id = $1 AND c.id = u.id AND c.version = u.version` + allDone
	// This statement fails if rows are missing because another transaction has raised
	// their version. Then the server skips the statements behind it, so the commit can be
	// sent in the same round trip.
	allDone      = ` RETURNING 1) SELECT 1 / (count(*) = cardinality($2::uuid[]))::integer FROM done`
	lockThose    = `SELECT 1 FROM (SELECT unnest($2::uuid[]) ORDER BY 1) u (id) CROSS JOIN LATERAL (SELECT 1` + contactByID
	lockToChange = lockThose + forChange + `) c`
	lockToDelete = lockThose + forUpdate + `) c`

	// Whoever deletes a contact, or merges it, waits for this lock. A change of one does not. They
	// are locked in the order of ids, as by every other transaction.
	keepContacts = `SELECT c.id FROM (SELECT unnest($2::uuid[]) ORDER BY 1) u (id) CROSS JOIN LATERAL
	(SELECT id` + contactByID + ` FOR KEY SHARE) c`

	// What is made from the events of contacts: the terms by which a search finds them, and
	// their history.
	dropTerms   = `DELETE FROM search_terms WHERE workspace_id = $1 AND contact_id = ANY ($2::uuid[])`
	dropHistory = `DELETE FROM history WHERE workspace_id = $1 AND contact_id = ANY ($2::uuid[])`

	releaseClaims = `DELETE FROM claims i USING unnest($2::text[], $3::text[], $4::uuid[]) u (kind, value, contact_id) CROSS JOIN LATERAL
	(SELECT ctid AS place FROM claims
		WHERE workspace_id = $1 AND kind = u.kind AND value = u.value AND contact_id = u.contact_id LIMIT 1) l
	WHERE i.ctid = l.place`
	releaseClaimsOnCitus = `DELETE FROM claims i USING unnest($2::text[], $3::text[], $4::uuid[]) u (kind, value, contact_id)
	WHERE i.workspace_id = $1 AND i.kind = u.kind AND i.value = u.value AND i.contact_id = u.contact_id`
	// A claim that contacts share since an older release keeps its place among them.
	passClaim = `UPDATE claims SET contact_id = $5 WHERE workspace_id = $1 AND kind = $2 AND value = $3 AND contact_id = $4`
	// It is a plain INSERT, so that a claim of another contact is an error. DO NOTHING
	// would drop the claim, and DO UPDATE would steal it.
	takeClaims = `INSERT INTO claims (workspace_id, kind, value, share, contact_id)
	SELECT w.id, u.kind, u.value, 0, u.contact_id FROM unnest($2::text[], $3::text[], $4::uuid[]) u (kind, value, contact_id)` + inWorkspace
)

// flushBook queues the Book's changes for the commit. Rows are locked in the order of
// their keys, so that two flushes wait for each other instead of deadlocking. A
// statement that writes many rows guarantees no order.
func flushBook(t *tx, book *desk.Book) error {
	t.events = append(t.events, book.Events()...)
	var inserted, updated, gone contactTable
	var released, taken claims
	var deleted []*desk.Contact
	var erased pgtype.FlatArray[uuid]
	for _, e := range book.Changed() {
		let, took := e.Claims()
		released.add(let, e.Stored)
		taken.add(took, e.Now)
		switch {
		case e.Stored == nil && e.Now == nil: // created and deleted again
		case e.Now == nil:
			gone.add(e.Stored, e.Stored.Version)
			for _, i := range e.Passes {
				t.put(passClaim, uuid(t.ws), i.Kind, i.Value, uuid(e.Stored.ID), uuid(e.MergedInto))
			}
			if e.MergedInto.IsZero() {
				deleted, erased = append(deleted, e.Stored), append(erased, uuid(e.Stored.ID))
			}
		case e.Stored == nil:
			inserted.add(e.Now, max(e.Now.Version, 1))
		default:
			updated.add(e.Now, e.Stored.Version)
		}
	}
	if touched := slices.Concat(gone.ids, updated.ids); len(touched) > 1 {
		lock := lockToChange
		if len(gone.ids) > 0 {
			lock = lockToDelete
		}
		t.put(lock, uuid(t.ws), touched)
	}
	if len(gone.ids) > 0 {
		t.put(form(t.citus, deleteContacts, deleteContactsOnCitus), uuid(t.ws), gone.ids, gone.versions)
		t.put(dropTerms, uuid(t.ws), gone.ids)
	}
	t.putErasures(book.Erasures()) // before eraseMerges looks for them
	if len(erased) > 0 {
		named := lockCallbacks(t.pipe, t.ws, deleted)
		if err := eraseConversations(t, erased); err != nil {
			return err
		}
		named.drop(t.pipe, t.ws)
		eraseStatuses(t.pipe, t.ws, deleted)
		eraseResponses(t.pipe, t.ws, erased)
		eraseMerges(t.pipe, t.ws, erased)
		t.put(dropHistory, uuid(t.ws), erased)
	}
	if len(updated.ids) > 0 {
		t.put(form(t.citus, updateContacts, updateContactsOnCitus), updated.args(t.ws)...)
	}
	if len(inserted.ids) > 0 {
		t.put(insertContacts, inserted.args(t.ws)...)
	}
	if len(released) > 0 {
		t.put(form(t.citus, releaseClaims, releaseClaimsOnCitus), released.args(t.ws)...)
	}
	if len(taken) > 0 {
		t.put(takeClaims, taken.args(t.ws)...)
	}
	if deleted == nil {
		return t.fail
	}
	if err := eraseRows(t, deleted); err != nil {
		return err
	}
	return eraseAttempts(t, deleted)
}

// A claim is a desk.Claim with the contact that holds it.
type claim struct {
	desk.Claim
	holder desk.ID
}

type claims []claim

func (c *claims) add(list []desk.Claim, holder *desk.Contact) {
	for _, i := range list {
		*c = append(*c, claim{i, holder.ID})
	}
}

func (c claims) args(ws desk.ID) []any {
	slices.SortFunc(c, func(a, b claim) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Value, b.Value)) })
	var w claimed
	for _, i := range c {
		w.add(i.Claim)
		w.ids = append(w.ids, uuid(i.holder))
	}
	return w.args(ws)
}

// loadMerged tells a Book where those of the named contacts are that were merged. It takes a
// round trip only if a contact is missing.
func loadMerged(p *pipe, ws desk.ID, book *desk.Book, ids []desk.ID) error {
	missing := book.Missing(ids)
	if missing == nil {
		return nil
	}
	found, err := merged(p, ws, missing)
	for id, m := range found {
		book.LoadMerged(id, m)
	}
	return err
}
