package desk_test

import (
	"testing"

	"parley/desk"
)

// TestBlank: a text without visible characters is blank.
func TestBlank(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " ", "\t\n\u00a0\u3000", "\u200b", "\u200b \u200d\u2060", "\ufeff", "\u202e\u202c", "\u2066\u2069", "\u00ad", "\u2800", "\u3164", "\ufe0f", "\U000e0020", "\u180e", "\x00"} {
		if !desk.Blank(text) {
			t.Errorf("%q is seen", text)
		}
	}
	for _, text := range []string{"a", "\u200ba", ".", "0", "👩\u200d👧", "\u064b", "\u0e33"} {
		if desk.Blank(text) {
			t.Errorf("%q is blank", text)
		}
	}
	const unseen = "\u200b\u2060"
	_, note := desk.ParseNoteText(unseen)
	_, snippet := desk.NewSnippet("a", unseen, 0)
	for what, refused := range map[string]error{
		"a reply":   (&desk.ReplyRequest{Text: unseen}).Check(),
		"a caption": (&desk.ReplyRequest{Attachment: &desk.SentAttachment{Caption: unseen}}).Check(),
		"a title":   (&desk.ReplyRequest{Text: "a", Buttons: []desk.Button{{ID: "a", Title: unseen}}}).Check(),
		"a note":    note,
		"a snippet": snippet,
	} {
		if refused == nil {
			t.Errorf("%s that is blank is taken", what)
		}
	}
	if text, err := desk.ParseNoteText(" a\u200db\u200b "); text != "a\u200db\u200b" || err != nil {
		t.Errorf("a note that is seen has become %q, %v", text, err)
	}
}
