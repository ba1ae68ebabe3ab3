package postgres

import (
	"context"
	"slices"

	"parley/desk"
	"parley/store"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	searchPlaceColumns = `rules, seq, tag, built`
	searchPlacesQuery  = `SELECT workspace_id, ` + searchPlaceColumns + ` FROM search_places WHERE workspace_id = ANY ($1) AND rules > 0`
	searchPlaceQuery   = `SELECT ` + searchPlaceColumns + ` FROM search_places WHERE workspace_id = $1`
	newSearchPlace     = `INSERT INTO search_places (workspace_id, rules, seq, tag) VALUES ($1, 0, 0, 0) ON CONFLICT DO NOTHING`
	// Of several processes, one indexes the contacts of a workspace at a time.
	lockSearchPlace = `SELECT ` + searchPlaceColumns + ` FROM search_places WHERE workspace_id = $1 FOR UPDATE SKIP LOCKED`
	moveSearchPlace = `UPDATE search_places SET rules = $2, seq = $3, tag = $4, built = $5 WHERE workspace_id = $1`
	contactIDsQuery = `SELECT id FROM contacts WHERE workspace_id = $1 AND id > $2 ORDER BY id LIMIT $3`
	// Until the end of the transaction, nobody deletes the contacts. They are locked in the
	// order of ids, as by every other transaction.
	toIndexQuery = `SELECT c.id, c.external_id, c.name, c.email, c.phone, c.further FROM (SELECT unnest($2::uuid[]) ORDER BY 1) u (id) CROSS JOIN LATERAL
		(SELECT *` + contactByID + ` FOR KEY SHARE) c`
	termsQuery = `SELECT contact_id, term` + ofEach2 + `(SELECT * FROM search_terms WHERE workspace_id = $1 AND contact_id = u.i OFFSET 0) t ORDER BY contact_id, term`
	putTerms   = `INSERT INTO search_terms (workspace_id, contact_id, term)
		SELECT w.id, u.contact_id, u.term FROM unnest($2::uuid[], $3::text[]) u (contact_id, term)` + inWorkspace
	// The ids of deleted contacts whose erasure nobody has noted: not of those that are part of another, or back by an undo.
	noteErasuresQuery = `INSERT INTO erasures (workspace_id, id, at) SELECT w.id, u.id, $3::bigint FROM unnest($2::uuid[]) u (id)` + inWorkspace + `
		AND NOT EXISTS (SELECT 1 FROM merges WHERE workspace_id = $1 AND from_id = u.id AND survivor_id IS NOT NULL) AND NOT EXISTS (SELECT 1 FROM contacts WHERE workspace_id = $1 AND id = u.id) ON CONFLICT DO NOTHING RETURNING id`

	dropUnnamed = `DELETE FROM search_terms WHERE workspace_id = $1 AND contact_id > $2 AND contact_id <= $3 AND contact_id <> ALL ($4::uuid[])`

	eventsBehindQuery = `SELECT count(*) FROM (SELECT 1 FROM events WHERE workspace_id = $1 AND kind = ANY ($2)
		AND seq > coalesce((SELECT seq FROM search_places WHERE workspace_id = $1), 0) AND seq <= coalesce((SELECT seq FROM search_places WHERE workspace_id = $1), 0) + $3::bigint AND (SELECT rules FROM search_places WHERE workspace_id = $1) >= $4) e`
	contactsBehindQuery = `SELECT count(*) FROM (SELECT 1 FROM contacts WHERE workspace_id = $1
		AND NOT EXISTS (SELECT 1 FROM search_places WHERE workspace_id = $1 AND rules >= $3 AND built IS NULL)
		AND id > coalesce((SELECT built FROM search_places WHERE workspace_id = $1), '00000000-0000-0000-0000-000000000000') ORDER BY id LIMIT $2) c`
	countTermsQuery = `SELECT count(*) FROM (SELECT 1 FROM search_terms WHERE workspace_id = $1 AND term >= $2 AND term < $3 ORDER BY term LIMIT $4) t`
	// The parameters $2 to $4 are the prefixes of other parts: the number of the part, and the
	// range of the terms. No part may be left that finds no term of the contact. The order of the
	// innermost query leaves the planner only the primary key.
	termPairs = `SELECT p.term, p.contact_id, NOT EXISTS (SELECT 1 FROM unnest($2::bigint[]) o (part) WHERE NOT EXISTS (
			SELECT 1 FROM unnest($2::bigint[], $3::text[], $4::text[]) u (part, least, before) CROSS JOIN LATERAL (SELECT 1 FROM search_terms t
				WHERE t.workspace_id = $1 AND t.contact_id >= p.contact_id AND t.contact_id <= p.contact_id AND t.term >= u.least AND t.term < u.before
				ORDER BY t.contact_id, t.term LIMIT 1) t WHERE u.part = o.part))
		FROM (SELECT term, contact_id FROM search_terms WHERE workspace_id = $1 AND `
	pairsOfTermQuery    = termPairs + `term >= $5 AND term <= $5 AND contact_id < $6 ORDER BY term, contact_id DESC LIMIT $7) p ORDER BY p.term, p.contact_id DESC`
	pairsQuery          = termPairs + `term > $5 AND term >= $6 AND term < $7 ORDER BY term, contact_id DESC LIMIT $8) p ORDER BY p.term, p.contact_id DESC`
	contactsBeforeLimit = `SELECT *, octet_length(note) + octet_length(attributes) + octet_length(further) AS bytes FROM contacts WHERE workspace_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`
)

var contactsBeforeQuery = `SELECT ` + contactColumns + `, c.there FROM (` + upToPage(contactsBeforeLimit, `id DESC`) + `) c JOIN workspaces w ON w.id = $1 ORDER BY c.id DESC`

func readSearchPlace(row pgx.Row, before ...any) (place store.SearchPlace, err error) {
	var built pgtype.UUID
	err = row.Scan(append(before, &place.Rules, &place.Event.Seq, &place.Event.Tag, &built)...)
	place.Building, place.Built = built.Valid, built.Bytes
	return place, err
}

// SearchPlaces returns how far the contacts of each workspace are indexed.
func (s *Store) SearchPlaces(ctx context.Context, of []desk.ID) (places map[desk.ID]store.SearchPlace, err error) {
	err = s.read(ctx, func(p *pipe) error {
		places = map[desk.ID]store.SearchPlace{}
		p.each(func(row pgx.Row) (err error) {
			var ws desk.ID
			place, err := readSearchPlace(row, into(&ws))
			places[ws] = place
			return err
		}, searchPlacesQuery, uuids(of))
		p.each(func(row pgx.Row) (err error) {
			var ws desk.ID
			var at desk.EventPlace
			err = row.Scan(into(&ws), &at.Seq, &at.Tag)
			place := places[ws]
			place.History = at
			places[ws] = place
			return err
		}, historyPlacesQuery, uuids(of))
		return p.send("places of the search")
	})
	return places, err
}

// ContactIDs returns ids of contacts, in order.
func (s *Store) ContactIDs(ctx context.Context, ws, after desk.ID, limit int) ([]desk.ID, error) {
	return readAll(ctx, s, "contacts to index", readID, contactIDsQuery, uuid(ws), uuid(after), limit)
}

// IndexContacts stores the terms and the history of contacts, and moves the place of the
// search. It takes three round trips, and more if a contact is gone.
func (s *Store) IndexContacts(ctx context.Context, ws desk.ID, from, to store.SearchPlace, contacts []desk.ID, history []desk.FeedEvent) (done bool, err error) {
	err = s.write(ctx, ws, false, func(t *tx) error {
		done = false
		free, place := false, store.SearchPlace{}
		if from.Rules == 0 {
			t.put(newSearchPlace, uuid(ws))
		}
		t.each(func(row pgx.Row) (err error) {
			free = true
			place, err = readSearchPlace(row)
			return err
		}, lockSearchPlace, uuid(ws))
		t.readHistoryPlace(ws, &place)
		if err := t.open("place of the search"); err != nil || !free || place != from {
			return err
		}
		kept := t.hasHistory(history, contacts)
		if err := indexContacts(t, contacts); err != nil {
			return err
		}
		putHistory(t, history, kept)
		if to.History != from.History {
			t.put(moveHistoryPlace, uuid(ws), to.History.Seq, to.History.Tag)
		}
		if from.Building {
			t.put(dropUnnamed, uuid(t.ws), uuid(from.Built), uuid(to.BuiltUpTo()), uuids(contacts))
		}
		built := pgtype.UUID{Bytes: to.Built, Valid: to.Building}
		t.put(moveSearchPlace, uuid(ws), to.Rules, to.Event.Seq, to.Event.Tag, built)
		done = true
		return nil
	})
	return done && err == nil, err
}

// indexContacts stores the terms of contacts. It also sends what is queued.
func indexContacts(t *tx, ids []desk.ID) error {
	if len(ids) == 0 {
		return t.send("contacts to index")
	}
	terms, held := map[desk.ID][]string{}, map[desk.ID][]string{}
	t.each(func(row pgx.Row) error {
		var c desk.Contact
		var further string
		err := row.Scan(into(&c.ID), &c.ExternalID, &c.Name, &c.Email, &c.Phone, &further)
		if err == nil {
			c.Further, err = desk.StoredFurther(further)
		}
		terms[c.ID] = c.SearchTerms()
		return err
	}, toIndexQuery, uuid(t.ws), uuids(ids))
	t.each(func(row pgx.Row) error {
		var id desk.ID
		var term string
		err := row.Scan(into(&id), &term)
		held[id] = append(held[id], term)
		return err
	}, termsQuery, uuid(t.ws), uuids(ids))
	if err := t.send("contacts to index"); err != nil {
		return err
	}
	var missing, gone, of []desk.ID
	var added []string
	for _, id := range ids {
		next, there := terms[id]
		if !there {
			missing = append(missing, id)
		}
		if lacks(next, held[id]) { // its terms are deleted and stored anew
			gone = append(gone, id)
			held[id] = nil
		}
		for _, term := range next {
			if _, same := slices.BinarySearch(held[id], term); !same {
				of, added = append(of, id), append(added, term)
			}
		}
	}
	if len(gone) > 0 {
		t.put(dropTerms, uuid(t.ws), uuids(gone))
	}
	if len(added) > 0 {
		t.put(putTerms, uuid(t.ws), uuids(of), added)
	}
	if len(missing) == 0 {
		return nil
	}
	return eraseLeft(t, missing)
}

// eraseLeft deletes what is left of contacts that a server of the release before has deleted, which
// during an upgrade does not know what came later. It notes no erasures either.
func eraseLeft(t *tx, missing []desk.ID) error {
	left, err := all(t.pipe, "what is left of contacts", readID, noteErasuresQuery, uuid(t.ws), uuids(missing), int64(t.Now()))
	if err != nil || len(left) == 0 {
		return err
	}
	eraseMerges(t.pipe, t.ws, uuids(left))
	t.put(dropHistory, uuid(t.ws), uuids(left))
	deleted := make([]*desk.Contact, len(left))
	for i, id := range left {
		deleted[i] = &desk.Contact{ID: id}
	}
	return eraseRows(t, deleted)
}

// lacks tells whether the sorted list lacks one of the texts.
func lacks(list, texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { _, found := slices.BinarySearch(list, text); return !found })
}

// SearchBehind counts the changes that are not indexed yet.
func (s *Store) SearchBehind(ctx context.Context, ws desk.ID, types []desk.EventType, most int) (n int, err error) {
	err = s.read(ctx, func(p *pipe) error {
		n = 0
		add := func(row pgx.Row) error {
			var more int
			err := row.Scan(&more)
			n += more
			return err
		}
		p.each(add, contactsBehindQuery, uuid(ws), most, desk.SearchRules)
		p.each(add, eventsBehindQuery, uuid(ws), types, most, desk.SearchRules)
		return p.send("changes to index")
	})
	return n, err
}

// CountTerms counts terms by their prefixes.
func (s *Store) CountTerms(ctx context.Context, ws desk.ID, prefixes [][]string, most int) (counts []int, err error) {
	err = s.read(ctx, func(p *pipe) error {
		counts = make([]int, len(prefixes))
		for i, list := range prefixes {
			for _, prefix := range list {
				p.each(func(row pgx.Row) error {
					var n int
					err := row.Scan(&n)
					counts[i] = min(most, counts[i]+n)
					return err
				}, countTermsQuery, uuid(ws), prefix, desk.AfterPrefix(prefix), most)
			}
		}
		return p.send("count terms")
	})
	return counts, err
}

// TermPairs returns terms of contacts that begin with one of the prefixes.
func (s *Store) TermPairs(ctx context.Context, ws desk.ID, prefixes []string, others [][]string, after desk.TermPlace, limit int) (pairs []desk.TermPair, err error) {
	parts, least, before := []int64{}, []string{}, []string{}
	for i, list := range others {
		if len(list) == 0 { // it finds nobody
			list = []string{"\uFFFF"}
		}
		for _, prefix := range list {
			parts, least, before = append(parts, int64(i)), append(least, prefix), append(before, desk.AfterPrefix(prefix))
		}
	}
	err = s.read(ctx, func(p *pipe) error {
		pairs = nil
		read := func(query string, args ...any) error {
			more, err := all(p, "terms", func(row pgx.Row) (pair desk.TermPair, err error) {
				return pair, row.Scan(&pair.Term, into(&pair.Contact), &pair.Fits)
			}, query, append([]any{uuid(ws), parts, least, before}, args...)...)
			pairs = append(pairs, more...)
			return err
		}
		if after.Term != "" {
			if err := read(pairsOfTermQuery, after.Term, uuid(after.Contact), limit); err != nil {
				return err
			}
		}
		for _, prefix := range prefixes {
			end := desk.AfterPrefix(prefix)
			if len(pairs) == limit || end <= after.Term {
				continue
			}
			if err := read(pairsQuery, after.Term, prefix, end, limit-len(pairs)); err != nil {
				return err
			}
		}
		return nil
	})
	return pairs, err
}

// ContactsBefore returns contacts, the greatest id first.
func (s *Store) ContactsBefore(ctx context.Context, ws, before desk.ID, limit int) (list []*desk.Contact, more bool, err error) {
	if before.IsZero() {
		before = lastID
	}
	list, next, err := s.contactPage(ctx, ws, limit, contactsBeforeQuery, []any{uuid(ws), uuid(before), limit + 1})
	return list, next != nil, err
}
