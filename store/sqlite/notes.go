package sqlite

import (
	"context"

	"parley/desk"
)

const noteColumns = `conversation_id, id, text, author_type, author_id, author_name, created_at`

func readNote(s *stmt) *desk.Note {
	return &desk.Note{
		ConversationID: s.readID(), ID: s.readID(), Text: s.readText(),
		Author:    desk.Author{Type: desk.AuthorType(s.readText()), ID: s.readID(), Name: s.readText()},
		CreatedAt: s.readTime(),
	}
}

const (
	notesQuery      = `SELECT ` + noteColumns + ` FROM notes WHERE workspace_id = ? AND conversation_id = ? AND id < ? ORDER BY id DESC LIMIT +?`
	noteQuery       = `SELECT ` + noteColumns + ` FROM notes WHERE workspace_id = ? AND conversation_id = ? AND id = ?`
	putNoteQuery    = `INSERT INTO notes (workspace_id, ` + noteColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	deleteNoteQuery = `DELETE FROM notes WHERE workspace_id = ? AND conversation_id = ? AND id = ?`
)

// Notes returns a page of the notes of a conversation (see store.Conversations).
func (s *Store) Notes(ctx context.Context, ws, conversation desk.ID, before *desk.ID, limit int) (found []*desk.Note, next *desk.ID, err error) {
	if before == nil {
		before = &lastID
	}
	err = s.read(ctx, int64(pointRead+limit/4), func(c conn) error { // notes of a conversation lie side by side
		rows := c.stmt(notesQuery).id(ws).id(conversation).id(*before).int(int64(limit) + 1)
		size := desk.NewPageSize(limit)
		for next == nil && rows.next() {
			if n := readNote(&rows); size.Add(n.ListBytes()) {
				found = append(found, n)
			} else {
				next = &found[len(found)-1].ID
			}
		}
		return failed("notes", rows.done())
	})
	return found, next, err
}

func (t *tx) PutNote(n *desk.Note) error {
	return failed("store note", t.c.stmt(putNoteQuery).id(t.ws).id(n.ConversationID).id(n.ID).text(n.Text).
		text(string(n.Author.Type)).id(n.Author.ID).text(n.Author.Name).time(n.CreatedAt).run())
}

// DeleteNote deletes a note, and asks for a scrub as an erasure does: the scrub clears
// the note's copies in the file.
func (t *tx) DeleteNote(conversation, id desk.ID) (bool, error) {
	if err := t.c.stmt(deleteNoteQuery).id(t.ws).id(conversation).id(id).run(); err != nil || t.c.Changes() == 0 {
		return false, failed("delete note", err)
	}
	return true, wantScrub(t.c)
}
