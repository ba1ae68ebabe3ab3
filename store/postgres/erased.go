package postgres

import (
	"context"
	"slices"
	"time"

	"parley/desk"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// The messages of each conversation are read in the order of their key (see
// wantedContacts).
const (
	forgottenMessagesQuery = `SELECT m.conversation_id, m.ts, m.id, m.channel_id, m.external_id, m.attempt_id FROM unnest($2::uuid[]) u (id) CROSS JOIN LATERAL
	(SELECT * FROM messages WHERE workspace_id = $1 AND conversation_id = u.id AND (ts, id) > ($3, $4) ORDER BY workspace_id, conversation_id, ts, id LIMIT $5) m`
	keepErasedQuery = `INSERT INTO erased_messages (workspace_id, hash, erased_at) SELECT w.id, u.hash, $3 FROM unnest($2::bytea[]) u (hash)` + inWorkspace + `
	ON CONFLICT (workspace_id, hash) DO UPDATE SET erased_at = excluded.erased_at`
	erasedQuery     = `SELECT 1 FROM unnest($2::bytea[]) u (hash) CROSS JOIN LATERAL (SELECT 1 FROM erased_messages WHERE workspace_id = $1 AND hash = u.hash OFFSET 0) e LIMIT 1`
	dropErasedQuery = `DELETE FROM erased_messages WHERE workspace_id = $1 AND hash IN
	(SELECT hash FROM erased_messages WHERE workspace_id = $1 AND erased_at < (SELECT shard_micros(id) / 1000` + ofWorkspace + `) - $2::bigint ORDER BY workspace_id, erased_at, hash LIMIT $3)`
)

// erasedTogether is how many conversations are read in one step, up to a page of each.
const erasedTogether = 20

// forgetMessages stores hashes of the messages in conversations that are being deleted,
// and erases the attempts that sent them. It reads the messages in steps of bounded
// size, because there may be very many.
func forgetMessages(t *tx, conversations []desk.ID) error {
	for len(conversations) > 0 {
		n := min(erasedTogether, len(conversations))
		full, err := forgetPage(t, conversations[:n], desk.MessagePlace{})
		for conversation, last := range full {
			for more := true; more && err == nil; {
				var next map[desk.ID]desk.MessagePlace
				next, err = forgetPage(t, []desk.ID{conversation}, last)
				last, more = next[conversation]
			}
		}
		if err != nil {
			return err
		}
		conversations = conversations[n:]
	}
	return t.fail
}

// forgetPage handles one page of each conversation's messages, after a position. It returns
// the last positions of the conversations that have more messages.
func forgetPage(t *tx, conversations []desk.ID, after desk.MessagePlace) (full map[desk.ID]desk.MessagePlace, err error) {
	full = map[desk.ID]desk.MessagePlace{}
	var hashes []stored.ErasedHash
	ids, attempts := make(pgtype.FlatArray[uuid], len(conversations)), pgtype.FlatArray[uuid]{}
	for i, id := range conversations {
		ids[i] = uuid(id)
	}
	read := map[desk.ID]int{}
	t.each(func(row pgx.Row) error {
		var conversation, attempt desk.ID
		var place desk.MessagePlace
		var m desk.MessageRef
		if err := row.Scan(into(&conversation), (*int64)(&place.TS), into(&place.ID), into(&m.Channel), &m.ExternalID, into(&attempt)); err != nil {
			return err
		}
		if m.ExternalID != "" {
			hashes = append(hashes, stored.HashErased(t.s.key, t.ws, m))
		}
		if !attempt.IsZero() {
			attempts = append(attempts, uuid(attempt))
		}
		if read[conversation]++; read[conversation] == stored.ErasedPage {
			full[conversation] = place
		}
		return nil
	}, forgottenMessagesQuery, uuid(t.ws), ids, int64(after.TS), uuid(after.ID), stored.ErasedPage)
	if err := t.send("messages to forget"); err != nil {
		return nil, err
	}
	t.keepHashes(hashes)
	for page := range slices.Chunk(attempts, settledPage) {
		if err := eraseSettled(t.pipe, t.ws, page); err != nil {
			return nil, err
		}
	}
	return full, t.fail
}

// keepHashes stores hashes of messages that are being deleted.
func (t *tx) keepHashes(hashes []stored.ErasedHash) {
	if len(hashes) > 0 {
		stored.SortErased(hashes)
		t.put(keepErasedQuery, uuid(t.ws), bytesOf(hashes), int64(t.Now()))
	}
}

func bytesOf(hashes []stored.ErasedHash) [][]byte {
	list := make([][]byte, len(hashes))
	for i := range hashes {
		list[i] = hashes[i][:]
	}
	return list
}

// ReceivedMessage looks for the message first, and then for the hash. If the first
// statement waits for a deletion to commit, the second statement sees its hash.
func (t *tx) ReceivedMessage(m desk.MessageRef) (known *desk.Message, erased bool, err error) {
	t.each(func(row pgx.Row) (err error) { known, err = readOneMessage(row); return err }, messageByQuery+forUpdate, uuid(t.ws), uuid(m.Channel), m.ExternalID)
	t.queueErased([]desk.MessageRef{m}, &erased)
	err = t.send("message")
	return known, erased && known == nil, err
}

func (t *tx) AnyErased(list []desk.MessageRef) (erased bool, err error) {
	t.queueErased(list, &erased)
	return erased, t.send("erased messages")
}

// queueErased queues the query that tells whether any of the messages belongs to a
// deleted person.
func (t *tx) queueErased(list []desk.MessageRef, erased *bool) {
	hashes := make([]stored.ErasedHash, len(list))
	for i, m := range list {
		hashes[i] = stored.HashErased(t.s.key, t.ws, m)
	}
	t.each(func(pgx.Row) error { *erased = true; return nil }, erasedQuery, uuid(t.ws), bytesOf(hashes))
}

// ForgetErased deletes up to limit hashes of deleted messages. It deletes hashes
// that are older than age.
func (s *Store) ForgetErased(ctx context.Context, ws desk.ID, age time.Duration, limit int) (int, error) {
	tag, err := s.exec(ctx, "forget erased messages", dropErasedQuery, uuid(ws), age.Milliseconds(), limit)
	return int(tag.RowsAffected()), err
}

const (
	erasuresQuery    = `SELECT id, at FROM erasures WHERE workspace_id = $1 AND id > $2 ORDER BY id LIMIT $3`
	putErasuresQuery = `INSERT INTO erasures (workspace_id, id, at) SELECT w.id, u.id, u.at FROM unnest($2::uuid[], $3::bigint[]) u (id, at)` + inWorkspace + `
	ON CONFLICT (workspace_id, id) DO UPDATE SET at = least(erasures.at, excluded.at)`
)

// Erasures returns deleted contacts in the order of ids.
func (s *Store) Erasures(ctx context.Context, ws, after desk.ID, limit int) (list []desk.Erasure, more bool, err error) {
	err = s.read(ctx, func(p *pipe) error {
		found, err := all(p, "erasures", func(row pgx.Row) (e desk.Erasure, err error) {
			return e, row.Scan(into(&e.ID), (*int64)(&e.At))
		}, erasuresQuery, uuid(ws), uuid(after), limit+1)
		list, more = found[:min(len(found), limit)], len(found) > limit
		return err
	})
	return list, more, err
}

// PutErasures stores which contacts were deleted.
func (t *tx) PutErasures(list []desk.Erasure) error {
	t.putErasures(list)
	return t.fail
}

// putErasures queues that contacts were deleted. This is kept for ever.
func (t *tx) putErasures(list []desk.Erasure) {
	if len(list) == 0 {
		return
	}
	ids, at := make(pgtype.FlatArray[uuid], len(list)), make([]int64, len(list))
	for n, e := range list {
		ids[n], at[n] = uuid(e.ID), int64(e.At)
	}
	t.put(putErasuresQuery, uuid(t.ws), ids, at)
}
