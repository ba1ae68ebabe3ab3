package postgres

import (
	"context"

	"parley/desk"

	"github.com/jackc/pgx/v5"
)

const noteColumns = `conversation_id, id, text, author_type, author_id, author_name, created_at`

// readNote reads noteColumns, and the columns that a query adds to them.
func readNote(row pgx.Row, more ...any) (*desk.Note, error) {
	n := &desk.Note{}
	err := row.Scan(append([]any{into(&n.ConversationID), into(&n.ID), &n.Text, (*string)(&n.Author.Type), into(&n.Author.ID), &n.Author.Name, (*int64)(&n.CreatedAt)}, more...)...)
	return n, err
}

func readOneNote(row pgx.Row) (*desk.Note, error) { return readNote(row) }

const (
	notesQuery = `SELECT ` + noteColumns + ` FROM notes WHERE workspace_id = $1 AND conversation_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4`
)

// Notes returns a page of the notes of a conversation (see store.Conversations).
func (s *Store) Notes(ctx context.Context, ws, conversation desk.ID, before *desk.ID, limit int) (list []*desk.Note, next *desk.ID, err error) {
	if before == nil {
		before = &lastID
	}
	err = s.read(ctx, func(p *pipe) error {
		list, next = nil, nil
		found, err := all(p, "notes", readOneNote, notesQuery, uuid(ws), uuid(conversation), uuid(*before), limit+1)
		size := desk.NewPageSize(limit)
		for _, n := range found {
			if !size.Add(n.ListBytes()) {
				next = &list[len(list)-1].ID
				break
			}
			list = append(list, n)
		}
		return err
	})
	return list, next, err
}

func (t *tx) PutNote(n *desk.Note) error {
	t.put(`INSERT INTO notes (workspace_id, `+noteColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, uuid(t.ws), uuid(n.ConversationID), uuid(n.ID), n.Text,
		string(n.Author.Type), uuid(n.Author.ID), n.Author.Name, int64(n.CreatedAt))
	return t.fail
}

func (t *tx) DeleteNote(conversation, id desk.ID) (bool, error) {
	there, err := one(t.pipe, "delete note", func(pgx.Row) (bool, error) { return true, nil },
		`DELETE FROM notes WHERE workspace_id = $1 AND conversation_id = $2 AND id = $3 RETURNING 1`, uuid(t.ws), uuid(conversation), uuid(id))
	return there, err
}
