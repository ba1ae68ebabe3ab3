package console

import (
	"parley/desk"
)

// noteRows is the number of notes on a page of a conversation's notes.
const noteRows = 20

// A notePage has the notes of a conversation, and a form to add one.
type notePage struct {
	ID     desk.ID
	Path   string
	Back   string // the path of the conversation
	Person string
	Notes  []note
	More   string
	May    bool
}

func (s *Server) notes(c *call) error {
	v, err := c.readNotes()
	if err != nil {
		return err
	}
	return c.show("notes", v)
}

func (c *call) readNotes() (v view, err error) {
	id := c.id("id")
	conv, err := c.s.app.Conversation(c.r.Context(), c.p, id)
	if err != nil {
		return v, err
	}
	people, err := c.s.app.ContactsByID(c.r.Context(), c.p, []desk.ID{conv.ContactID})
	if err != nil {
		return v, err
	}
	list, next, err := c.s.app.Notes(c.r.Context(), c.p, id, c.query("older"), noteRows) // the parameter "after" already belongs to the list
	if err != nil {
		return v, err
	}
	query := c.listQuery()
	page := notePage{ID: id, Path: notesPath(id, query), Back: "/inbox/" + id.String() + query, Person: nameOf(people[conv.ContactID]), May: c.may(desk.ConversationsWrite)}
	for _, n := range list {
		v := note{ID: n.ID, Author: c.author(n.Author), Text: runs(n.Text), At: c.when(n.CreatedAt)}
		if page.May {
			v.Delete = notePath(id, n.ID, query)
		}
		page.Notes = append(page.Notes, v)
	}
	if next != "" {
		page.More = with(page.Path, "older", next)
	}
	return view{Title: "Notes", Data: page}, nil
}

func (s *Server) addNote(c *call) error {
	text, err := desk.ParseNoteText(c.form.raw("note"))
	if err != nil {
		err = desk.InvalidAt("/note", "%v", err)
	} else {
		_, err = s.app.AddNote(c.r.Context(), c.p, c.id("id"), text, desk.Field[desk.Reference]{})
	}
	if err == nil {
		return c.backTo(c.id("id"), "noted")
	}
	if alone(err) {
		return err
	}
	v, readErr := c.readNotes()
	if readErr != nil {
		return readErr
	}
	return c.again("notes", v, err)
}

func (s *Server) askNoteDeletion(c *call) error {
	id, query := c.id("id"), c.listQuery()
	n, err := s.app.Note(c.r.Context(), c.p, id, c.id("note"))
	if err != nil {
		return err
	}
	return c.confirm(confirmation{
		Action: notePath(id, n.ID, query), Heading: "Delete this note?", Button: "Delete", Back: "/inbox/" + id.String() + query,
		Text: []string{"“" + apart(excerpt(n.Text)) + "”", "It can't be had back."},
	})
}

func (s *Server) deleteNote(c *call) error {
	if err := s.app.DeleteNote(c.r.Context(), c.p, c.id("id"), c.id("note")); err != nil {
		return err
	}
	return c.backTo(c.id("id"), "note-deleted")
}
