package sqlite

import (
	"context"
	"slices"

	"parley/desk"
	"parley/store"

	"github.com/go-json-experiment/json"
)

const (
	searchPlaceQuery    = `SELECT rules, seq, tag, built IS NOT NULL, built FROM search_places WHERE workspace_id = ?`
	historyPlaceQuery   = `SELECT seq, tag FROM history_places WHERE workspace_id = ?`
	putSearchPlaceQuery = `INSERT OR REPLACE INTO search_places (workspace_id, rules, seq, tag, built) VALUES (?, ?, ?, ?, ?)`
	contactIDsQuery     = `SELECT id FROM contacts WHERE workspace_id = ? AND id > ? ORDER BY id LIMIT +?`
	termsOfQuery        = `SELECT term FROM search_terms WHERE workspace_id = ? AND contact_id = ? ORDER BY term`
	hasTermQuery        = `SELECT 1 FROM search_terms WHERE workspace_id = ? AND contact_id = ? AND term >= ? AND term < ? LIMIT 1`
	putTermQuery        = `INSERT INTO search_terms (workspace_id, contact_id, term) VALUES (?, ?, ?)`
	dropTermQuery       = `DELETE FROM search_terms WHERE workspace_id = ? AND contact_id = ? AND term = ?`
	termedQuery         = `SELECT DISTINCT contact_id FROM search_terms WHERE workspace_id = ? AND contact_id > ? AND contact_id <= ?`
	countTermsQuery     = `SELECT count(*) FROM (SELECT 1 FROM search_terms INDEXED BY search_terms_found WHERE workspace_id = ? AND term >= ? AND term < ? LIMIT +?)`
	pairsOfTermQuery    = `SELECT term, contact_id FROM search_terms INDEXED BY search_terms_found
		WHERE workspace_id = ? AND term = ? AND contact_id < ? ORDER BY contact_id DESC LIMIT +?`
	pairsQuery        = `SELECT term, contact_id FROM search_terms INDEXED BY search_terms_found WHERE workspace_id = ? AND term >= ?` + pairsUpTo
	pairsAfterQuery   = `SELECT term, contact_id FROM search_terms INDEXED BY search_terms_found WHERE workspace_id = ? AND term > ?` + pairsUpTo
	pairsUpTo         = ` AND term < ? ORDER BY term, contact_id DESC LIMIT +?`
	eventsBehindQuery = `SELECT count(*) FROM (SELECT 1 FROM events WHERE workspace_id = ?1 AND seq > ?2 AND seq <= ?2 + ?4 AND kind IN (SELECT value FROM json_each(?3)))`
	// The order leaves SQLite no other index, so it stops at the limit.
	contactsBehindQuery = `SELECT count(*) FROM (SELECT 1 FROM contacts WHERE workspace_id = ? AND id > ? ORDER BY id LIMIT +?)`
	contactsBeforeQuery = `SELECT w.settings_version, ` + contactColumns + ` FROM contacts c JOIN workspaces w ON w.id = c.workspace_id
		WHERE c.workspace_id = ? AND c.id < ? ORDER BY c.id DESC LIMIT +?`
)

func searchPlace(c conn, ws desk.ID) (place store.SearchPlace, err error) {
	place, err = one("place of the search", c.stmt(searchPlaceQuery).id(ws), func(s *stmt) store.SearchPlace {
		return store.SearchPlace{
			Rules: int(s.readInt()), Event: desk.EventPlace{Seq: s.readInt(), Tag: s.readInt()}, Building: s.readInt() != 0, Built: s.readID(),
		}
	})
	if err != nil {
		return place, err
	}
	place.History, err = one("place of the history", c.stmt(historyPlaceQuery).id(ws), func(s *stmt) desk.EventPlace {
		return desk.EventPlace{Seq: s.readInt(), Tag: s.readInt()}
	})
	return place, err
}

// SearchPlaces returns how far the contacts of each workspace are indexed.
func (s *Store) SearchPlaces(ctx context.Context, of []desk.ID) (places map[desk.ID]store.SearchPlace, err error) {
	err = s.read(ctx, int64(pointRead*len(of)), func(c conn) error {
		places = map[desk.ID]store.SearchPlace{}
		for _, ws := range of {
			place, err := searchPlace(c, ws)
			if err != nil {
				return err
			}
			if place != (store.SearchPlace{}) {
				places[ws] = place
			}
		}
		return nil
	})
	return places, err
}

// ContactIDs returns ids of contacts, in order.
func (s *Store) ContactIDs(ctx context.Context, ws, after desk.ID, limit int) (list []desk.ID, err error) {
	err = s.read(ctx, int64(limit), func(c conn) error {
		list, err = all("contacts to index", c.stmt(contactIDsQuery).id(ws).id(after).int(int64(limit)), (*stmt).readID)
		return err
	})
	return list, err
}

// IndexContacts stores the terms and the history of contacts, and moves the place of the
// search.
func (s *Store) IndexContacts(ctx context.Context, ws desk.ID, from, to store.SearchPlace, contacts []desk.ID, history []desk.FeedEvent) (done bool, err error) {
	err = s.write(ctx, func(c conn) error {
		done = false
		settings, err := s.toWrite(c, ws)
		if err != nil {
			return err
		}
		if place, err := searchPlace(c, ws); err != nil || place != from {
			return err
		}
		for _, id := range contacts {
			if err := indexContact(c, settings, id); err != nil {
				return failed("index contact", err)
			}
		}
		if from.Building {
			if err := dropUnnamed(c, ws, from.Built, to.BuiltUpTo(), contacts); err != nil {
				return failed("drop terms", err)
			}
		}
		if err := putHistory(c, ws, history); err != nil {
			return failed("history", err)
		}
		if to.History != from.History {
			if err := c.stmt(putHistoryPlaceQuery).id(ws).int(to.History.Seq).int(to.History.Tag).run(); err != nil {
				return failed("place of the history", err)
			}
		}
		built := c.stmt(putSearchPlaceQuery).id(ws).int(int64(to.Rules)).int(to.Event.Seq).int(to.Event.Tag)
		if to.Building {
			built = built.id(to.Built)
		} else {
			built = built.null()
		}
		done = true
		return failed("place of the search", built.run())
	})
	return done && err == nil, err
}

// dropUnnamed deletes the terms of contacts after one id, up to another one, except those that
// are named.
func dropUnnamed(c conn, ws, after, upTo desk.ID, named []desk.ID) error {
	held, err := all("terms", c.stmt(termedQuery).id(ws).id(after).id(upTo), (*stmt).readID)
	if err != nil {
		return err
	}
	known := make(map[desk.ID]bool, len(named))
	for _, id := range named {
		known[id] = true
	}
	for _, id := range held {
		if known[id] {
			continue
		}
		if err := c.stmt(dropTermsQuery).id(ws).id(id).run(); err != nil {
			return err
		}
	}
	return nil
}

func indexContact(c conn, settings *desk.Settings, id desk.ID) error {
	var terms []string
	row := c.stmt(contactQuery).id(settings.ID).id(id)
	if row.next() {
		row.readInt() // the version of the settings
		if contact := readContact(c, &row, settings); row.fail == nil {
			terms = contact.SearchTerms()
		}
	}
	if err := row.done(); err != nil {
		return err
	}
	held, err := all("terms", c.stmt(termsOfQuery).id(settings.ID).id(id), (*stmt).readText)
	if err != nil {
		return err
	}
	for _, change := range []struct {
		query     string
		list, but []string
	}{{dropTermQuery, held, terms}, {putTermQuery, terms, held}} {
		for _, term := range change.list {
			if _, same := slices.BinarySearch(change.but, term); same {
				continue
			}
			if err := c.stmt(change.query).id(settings.ID).id(id).text(term).run(); err != nil {
				return err
			}
		}
	}
	return nil
}

// SearchBehind counts the changes that are not indexed yet.
func (s *Store) SearchBehind(ctx context.Context, ws desk.ID, types []desk.EventType, most int) (n int, err error) {
	names, err := json.Marshal(types)
	if err != nil {
		return 0, err
	}
	err = s.read(ctx, pointRead, func(c conn) error {
		n = 0
		place, err := searchPlace(c, ws)
		if err != nil {
			return err
		}
		if place.Building || place.Rules < desk.SearchRules {
			contacts, err := one("contacts to index", c.stmt(contactsBehindQuery).id(ws).id(place.Built).int(int64(most)), (*stmt).readInt)
			if err != nil {
				return err
			}
			n = int(contacts)
		}
		if place.Rules >= desk.SearchRules {
			events, err := one("changes to index", c.stmt(eventsBehindQuery).id(ws).int(place.Event.Seq).text(string(names)).int(int64(most)), (*stmt).readInt)
			n += int(events)
			return err
		}
		return nil
	})
	return n, err
}

// CountTerms counts terms by their prefixes.
func (s *Store) CountTerms(ctx context.Context, ws desk.ID, prefixes [][]string, most int) (counts []int, err error) {
	err = s.read(ctx, int64(pointRead*len(prefixes)), func(c conn) error {
		counts = make([]int, len(prefixes))
		for i, list := range prefixes {
			for _, prefix := range list {
				n, err := one("count terms", c.stmt(countTermsQuery).id(ws).text(prefix).text(desk.AfterPrefix(prefix)).int(int64(most-counts[i])), (*stmt).readInt)
				if err != nil {
					return err
				}
				counts[i] += int(n)
			}
		}
		return nil
	})
	return counts, err
}

// TermPairs returns terms of contacts that begin with one of the prefixes.
func (s *Store) TermPairs(ctx context.Context, ws desk.ID, prefixes []string, others [][]string, after desk.TermPlace, limit int) (pairs []desk.TermPair, err error) {
	pair := func(s *stmt) desk.TermPair {
		return desk.TermPair{TermPlace: desk.TermPlace{Term: s.readText(), Contact: s.readID()}}
	}
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		pairs = nil
		if after.Term != "" {
			if pairs, err = all("terms", c.stmt(pairsOfTermQuery).id(ws).text(after.Term).id(after.Contact).int(int64(limit)), pair); err != nil {
				return err
			}
		}
		for _, prefix := range prefixes {
			end := desk.AfterPrefix(prefix)
			if len(pairs) == limit || end <= after.Term {
				continue
			}
			query, from := pairsQuery, prefix
			if after.Term >= prefix {
				query, from = pairsAfterQuery, after.Term
			}
			more, err := all("terms", c.stmt(query).id(ws).text(from).text(end).int(int64(limit-len(pairs))), pair)
			if err != nil {
				return err
			}
			pairs = append(pairs, more...)
		}
		for i := range pairs {
			if pairs[i].Fits, err = hasAll(c, ws, pairs[i].Contact, others); err != nil {
				return err
			}
		}
		return nil
	})
	return pairs, err
}

// hasAll tells whether a contact has a term with a prefix of each list.
func hasAll(c conn, ws, contact desk.ID, lists [][]string) (bool, error) {
	for _, prefixes := range lists {
		has := false
		for _, prefix := range prefixes {
			found, err := one("terms", c.stmt(hasTermQuery).id(ws).id(contact).text(prefix).text(desk.AfterPrefix(prefix)), (*stmt).readInt)
			if err != nil {
				return false, err
			}
			if has = found != 0; has {
				break
			}
		}
		if !has {
			return false, nil
		}
	}
	return true, nil
}

// ContactsBefore returns contacts, the greatest id first.
func (s *Store) ContactsBefore(ctx context.Context, ws, before desk.ID, limit int) (list []*desk.Contact, more bool, err error) {
	if before.IsZero() {
		before = lastID
	}
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		var next *desk.ContactPlace
		list, next, err = s.contactPage(c, ws, c.stmt(contactsBeforeQuery).id(ws).id(before).int(int64(limit)+1), limit)
		more = next != nil
		return err
	})
	return list, more, err
}
