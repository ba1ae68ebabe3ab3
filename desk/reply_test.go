package desk_test

import (
	"strings"
	"testing"

	"parley/desk"
)

func TestReplyRequest(t *testing.T) {
	t.Parallel()
	button := func(id, title string) desk.Button { return desk.Button{ID: id, Title: title} }
	for name, c := range map[string]struct {
		text    string
		buttons []desk.Button
		at      string // what is wrong; "": nothing
	}{
		"text":                 {"Two left.\nShall I keep one? ", nil, ""},
		"longest":              {strings.Repeat("é", 4096), nil, ""},
		"too long":             {strings.Repeat("é", 4097), nil, "/text"},
		"empty":                {"", nil, "/text"},
		"blank":                {" \n\u00a0", nil, "/text"},
		"buttons":              {strings.Repeat("é", 1024), []desk.Button{button("a", "Yes"), button("b", "No"), button("c c", "Ünal, später bitte!!")}, ""},
		"too long for them":    {strings.Repeat("é", 1025), []desk.Button{button("a", "Yes")}, "/text"},
		"no button":            {"Hi", []desk.Button{}, "/buttons"},
		"four buttons":         {"Hi", []desk.Button{button("a", "A"), button("b", "B"), button("c", "C"), button("d", "D")}, "/buttons"},
		"an id twice":          {"Hi", []desk.Button{button("a", "A"), button("a", "B")}, "/buttons/1/id"},
		"a title twice":        {"Hi", []desk.Button{button("a", "A"), button("b", "A")}, "/buttons/1/title"},
		"no id":                {"Hi", []desk.Button{button("", "A")}, "/buttons/0/id"},
		"an id with a space":   {"Hi", []desk.Button{button("a ", "A")}, "/buttons/0/id"},
		"a long id":            {"Hi", []desk.Button{button(strings.Repeat("a", 257), "A")}, "/buttons/0/id"},
		"no title":             {"Hi", []desk.Button{button("a", " ")}, "/buttons/0/title"},
		"a long title":         {"Hi", []desk.Button{button("a", strings.Repeat("a", 21))}, "/buttons/0/title"},
		"a title of two lines": {"Hi", []desk.Button{button("a", "A\nB")}, "/buttons/0/title"},
	} {
		r := desk.ReplyRequest{Text: c.text, Buttons: c.buttons}
		err := r.Check()
		if c.at == "" && err != nil || c.at != "" && (err == nil || desk.AsError(err).At != c.at) {
			t.Errorf("%s: %v, want %q", name, err, c.at)
		}
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	const day = desk.WindowLength
	var w desk.Window
	check := func(now desk.Time, want desk.WindowState) {
		t.Helper()
		if got := w.State(now); got != want {
			t.Errorf("at %d: %+v, want %+v", now, got, want)
		}
	}
	check(5, desk.WindowState{Reason: desk.NeverWrote})
	w.Open(100, "1", "")
	w.Open(90, "2", "")
	check(100+day-1, desk.WindowState{Open: true, ClosesAt: 100 + day})
	check(100+day, desk.WindowState{ClosesAt: 100 + day, Reason: desk.WindowExpired})
	if !w.Shut(150, desk.ByTheProvider) || w.Shut(140, desk.NumberChanged) {
		t.Error("shut")
	}
	check(160, desk.WindowState{ClosesAt: 150, Reason: desk.ByTheProvider})
	w.Open(150, "3", "")
	check(160, desk.WindowState{ClosesAt: 150, Reason: desk.ByTheProvider})
	w.Open(151, "", "u")
	check(160, desk.WindowState{Open: true, ClosesAt: 151 + day})
	if w.Number != "" || w.UserID != "u" {
		t.Errorf("address: %+v", w)
	}
	w.Shut(151+2*day, desk.NumberChanged)                                                 // it had expired long before
	check(151+day-1, desk.WindowState{ClosesAt: 151 + 2*day, Reason: desk.NumberChanged}) // by a clock that is behind
	check(151+3*day, desk.WindowState{ClosesAt: 151 + day, Reason: desk.WindowExpired})
}
