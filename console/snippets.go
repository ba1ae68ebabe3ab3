package console

import (
	"slices"
	"strings"

	"parley/app"
	"parley/desk"
)

// sampleCustomer is the contact's name in previews of saved replies.
const sampleCustomer = "Ada Lovelace"

// snippetRows is the number of saved replies on a page of the list.
const snippetRows = 100

// shownSnippet is the number of characters that the list shows of a saved reply.
const shownSnippet = 120

// A snippetsPage is the list of saved replies.
type snippetsPage struct {
	Rows        []snippetRow
	First, Next string
	Full        bool
	Most        int
}

// A snippetRow is a saved reply in the list.
type snippetRow struct {
	Shortcut, Href, Text string
	Changed              moment
}

func (s *Server) snippets(c *call) error {
	list, _, err := s.app.Snippets(c.r.Context(), c.p, app.SnippetQuery{})
	if err != nil {
		return err
	}
	page := snippetsPage{Full: len(list) >= desk.MaxSnippets, Most: desk.MaxSnippets}
	from := 0
	if after := c.query("after"); after != "" {
		page.First = "/settings/snippets"
		from, _ = slices.BinarySearchFunc(list, after, func(v desk.Snippet, after string) int {
			if v.Shortcut <= after {
				return -1
			}
			return 1
		})
	}
	for _, v := range list[from:] {
		if len(page.Rows) == snippetRows {
			page.Next = with("/settings/snippets", "after", page.Rows[snippetRows-1].Shortcut)
			break
		}
		page.Rows = append(page.Rows, snippetRow{v.Shortcut, snippetPath(v.Shortcut) + "/edit", firstOf(v.Text, shownSnippet), c.when(v.UpdatedAt)})
	}
	return c.show("snippets", view{Title: "Saved replies", Data: page})
}

func snippetPath(shortcut string) string { return "/settings/snippets/" + shortcut }

// firstOf returns the beginning of a text, on one line.
func firstOf(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		return strings.TrimSpace(string(r[:most-1])) + "…"
	}
	return text
}

// A snippetPage is a saved reply, or the form for a new one.
type snippetPage struct {
	Path         string // "" for a new one
	Action       string
	Name         string
	Shortcut     *field // nil: the shortcut can't be changed
	Text         *field
	Seen         string // the text that the member has seen
	Now          string // the text that another member has stored meanwhile
	Placeholders []placeholderRow
	Filled       []run
	Changed      moment
	Button       string
}

// A placeholderRow explains a placeholder.
type placeholderRow struct{ Written, Means, Sample string }

// snippetView returns the form of a saved reply. For nil, it returns the form for a new
// one.
func (c *call) snippetView(v *desk.Snippet) (*snippetPage, view) {
	f, d := c.form, &snippetPage{Action: "/settings/snippets/new", Button: "Add"}
	title := "New saved reply"
	if v != nil {
		d.Path, d.Action, d.Name, d.Seen, d.Changed, d.Button = snippetPath(v.Shortcut), snippetPath(v.Shortcut)+"/edit", v.Shortcut, v.Text, c.when(v.UpdatedAt), "Save"
		title = "/" + v.Shortcut
	} else {
		d.Shortcut = f.Field("shortcut", "Shortcut", "What your team types after a / to find it, such as hours: 1 to 32 small letters, digits, _ and -, a letter first.", "").Need()
	}
	d.Text = f.Field("text", "Text", "Up to "+count(desk.MaxSnippetText)+" characters. It can be changed each time before it is sent.", d.Seen).Tall(6).Need()
	if f.values != nil {
		d.Text.Value, d.Seen = f.raw("text"), f.raw("seen")
	}
	values := desk.HintValues(c.p.Settings.Member(c.p.Actor.ID), sampleCustomer, desk.FromContact)
	for _, b := range desk.Bindings {
		if b != desk.Free {
			d.Placeholders = append(d.Placeholders, placeholderRow{"{{" + string(b) + "}}", bindingWords[b], values[b].Value})
		}
	}
	d.Filled = runs((&desk.Snippet{Text: d.Text.Value}).Fill(values))
	return d, view{Title: title, Data: d}
}

func (c *call) aSnippet() (*desk.Snippet, error) {
	list, _, err := c.s.app.Snippets(c.r.Context(), c.p, app.SnippetQuery{})
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Shortcut == c.r.PathValue("shortcut") {
			return &list[i], nil
		}
	}
	return nil, errNotHere
}

func (s *Server) newSnippet(c *call) error {
	_, v := c.snippetView(nil)
	return c.show("snippet", v)
}

func (s *Server) addSnippet(c *call) error { return c.putSnippet(nil, c.form.text("shortcut")) }

func (s *Server) snippet(c *call) error {
	stored, err := c.aSnippet()
	if err != nil {
		return err
	}
	_, v := c.snippetView(stored)
	return c.show("snippet", v)
}

func (s *Server) editSnippet(c *call) error {
	stored, err := c.aSnippet()
	if err != nil {
		return err
	}
	return c.putSnippet(stored, stored.Shortcut)
}

// newlines converts newlines to \n.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// putSnippet stores the form's text. If another member has stored another text under this
// shortcut meanwhile, it shows that text and asks for confirmation.
func (c *call) putSnippet(stored *desk.Snippet, shortcut string) error {
	d, v := c.snippetView(stored)
	if c.form.has("preview") {
		return c.show("snippet", v)
	}
	seen := ""
	if stored != nil {
		if seen = c.form.raw("seen"); seen == newlines.Replace(stored.Text) {
			seen = stored.Text
		}
	}
	_, _, err := c.s.app.EditSnippet(c.r.Context(), c.p, shortcut, c.form.raw("text"), &seen)
	switch {
	case err == nil && stored == nil:
		return c.see("/settings/snippets", "added")
	case err == nil:
		return c.see("/settings/snippets", "saved")
	case desk.IsType(err, desk.Changed) && stored == nil:
		err = desk.InvalidAt("/shortcut", "another saved reply has this shortcut")
	case desk.AsError(err).At == "/text": // the form names the placeholders
		what, _, _ := strings.Cut(desk.AsError(err).Message, ": use {{")
		err = desk.InvalidAt("/text", "%s", what)
	case desk.IsType(err, desk.Changed):
		now, _ := desk.AsError(err).Details.(*desk.Snippet)
		if now == nil {
			return errNotHere
		}
		d.Now, d.Seen, d.Button = now.Text, now.Text, "Save anyway"
		err = desk.Errorf(desk.Changed, "somebody has changed this saved reply meanwhile, so nothing was saved")
	}
	c.form.refuse(desk.AsError(err))
	if d.Shortcut != nil {
		d.Shortcut.Error = c.form.errors["shortcut"]
	}
	d.Text.Error = c.form.errors["text"]
	return c.again("snippet", v, err)
}

func (c *call) snippetDeletion() (confirmation, error) {
	stored, err := c.aSnippet()
	if err != nil {
		return confirmation{}, err
	}
	return confirmation{Heading: "Delete /" + stored.Shortcut + "?", Action: snippetPath(stored.Shortcut) + "/delete", Button: "Delete", Back: snippetPath(stored.Shortcut) + "/edit",
		Text: []string{firstOf(stored.Text, 400), "Messages that were sent with it stay as they are."}}, nil
}

func (s *Server) askSnippetDeletion(c *call) error {
	v, err := c.snippetDeletion()
	if err != nil {
		return err
	}
	return c.confirm(v)
}

func (s *Server) deleteSnippet(c *call) error {
	stored, err := c.aSnippet()
	if err == nil {
		err = s.app.DeleteSnippet(c.r.Context(), c.p, stored.Shortcut)
	}
	if err != nil {
		return err
	}
	return c.see("/settings/snippets", "deleted")
}
