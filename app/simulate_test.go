package app_test

import (
	"reflect"
	"strings"
	"testing"

	"parley/app"
	"parley/desk"
	"parley/provider"
)

// TestSimulate: a simulated message is stored like one from a real provider.
func TestSimulate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const number = "905321110010"
	asked := provider.InboundMessage{
		ExternalID: "asked", Number: number, Text: "Keep one?", At: desk.TimeOf(w.clock.atServer()), Kind: desk.KindButtons, Echo: true,
		Extra: &desk.Extra{Buttons: []desk.Button{{ID: "keep", Title: "Keep one"}}},
	}
	c, err := w.Receive(t.Context(), w.ws, w.channel, asked)
	if err != nil {
		t.Fatal(err)
	}
	like, none, long := "👍", "", string(make([]byte, 300))
	question := w.messages(c.ID)[0]
	for name, tc := range map[string]struct {
		in   app.Simulated
		want *desk.Message // nil: the message is refused
		at   string
	}{
		"a text":                            {in: app.Simulated{Text: " Hi "}, want: &desk.Message{Kind: "text", Text: "Hi"}},
		"a quote":                           {in: app.Simulated{Text: "Hi", ReplyTo: question.ID.String()}, want: &desk.Message{Kind: "text", Text: "Hi", ReplyTo: question.ID}},
		"a quote by its id at the provider": {in: app.Simulated{Text: "Hi", ReplyTo: "asked"}, want: &desk.Message{Kind: "text", Text: "Hi", ReplyTo: question.ID}},
		"a quote of something unknown":      {in: app.Simulated{Text: "Hi", ReplyTo: "unknown"}, want: &desk.Message{Kind: "text", Text: "Hi"}},
		"a choice": {in: app.Simulated{Choice: "keep", ReplyTo: "asked"}, want: &desk.Message{
			Kind: "choice", Text: "keep", ReplyTo: question.ID, Extra: &desk.Extra{Choice: &desk.Button{ID: "keep", Title: "keep"}},
		}},
		"a choice among the buttons": {in: app.Simulated{Choice: "keep", ReplyTo: question.ID.String()}, want: &desk.Message{
			Kind: "choice", Text: "Keep one", ReplyTo: question.ID, Extra: &desk.Extra{Choice: &desk.Button{ID: "keep", Title: "Keep one"}},
		}},
		"a choice with a title": {in: app.Simulated{Choice: "x", Text: "Other"}, want: &desk.Message{Kind: "choice", Text: "Other", Extra: &desk.Extra{Choice: &desk.Button{ID: "x", Title: "Other"}}}},
		"a reaction": {in: app.Simulated{Reaction: &like, ReplyTo: "asked"}, want: &desk.Message{
			Kind: "reaction", Text: "[reaction] 👍", ReplyTo: question.ID, Extra: &desk.Extra{Reaction: &desk.Reaction{Emoji: "👍"}},
		}},
		"a reaction that is taken back": {in: app.Simulated{Reaction: &none, ReplyTo: "asked"}, want: &desk.Message{
			Kind: "reaction", Text: "[reaction removed]", ReplyTo: question.ID, Extra: &desk.Extra{Reaction: &desk.Reaction{}},
		}},
		"typed in the phone app": {in: app.Simulated{Text: "Hi", Echo: true}, want: &desk.Message{Kind: "text", Text: "Hi", Direction: desk.Outbound}},

		"nothing":                     {at: "/text"},
		"a reaction with a text":      {in: app.Simulated{Reaction: &like, Text: "x", ReplyTo: "asked"}},
		"a reaction and a choice":     {in: app.Simulated{Reaction: &like, Choice: "x", ReplyTo: "asked"}},
		"a reaction to nothing":       {in: app.Simulated{Reaction: &like}, at: "/reply_to"},
		"a long reaction":             {in: app.Simulated{Reaction: &long, ReplyTo: "asked"}, at: "/reaction"},
		"a long choice":               {in: app.Simulated{Choice: long}, at: "/choice"},
		"a quote of nobody's message": {in: app.Simulated{Text: "Hi", ReplyTo: w.channel.String()}, at: "/reply_to"},
		"no time":                     {in: app.Simulated{Text: "Hi", At: "yesterday"}, at: "/at"},
		"the future":                  {in: app.Simulated{Text: "Hi", At: "2999-01-01T00:00:00Z"}, at: "/at"},
		"an odd id":                   {in: app.Simulated{Text: "Hi", ExternalID: "a\x00"}, at: "/external_id"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.From = "+" + number
			_, m, err := w.Simulate(t.Context(), w.operator(), w.channel, tc.in)
			if tc.want == nil {
				if e := desk.AsError(err); e.Type != desk.InvalidRequest || e.At != tc.at {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tc.want.Direction == "" {
				tc.want.Direction = desk.Inbound
			}
			if got := (desk.Message{Kind: m.Kind, Text: m.Text, ReplyTo: m.ReplyTo, Extra: m.Extra, Direction: m.Direction}); !reflect.DeepEqual(&got, tc.want) {
				t.Errorf("got %+v %+v, want %+v %+v", got, got.Extra, tc.want, tc.want.Extra)
			}
		})
	}
	// A reaction to an unknown message is dropped.
	dropped := app.Simulated{From: "+905321110011", Reaction: &like, ReplyTo: "asked"}
	if c, m, err := w.Simulate(t.Context(), w.operator(), w.channel, dropped); c != nil || m != nil || err != nil {
		t.Errorf("%+v, %+v, %v", c, m, err)
	}
}

// TestSimulate_files: a file is ready at once, or is fetched with its fault. It is deleted
// with its customer.
func TestSimulate_files(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	send := func(fault, text string) (*desk.Conversation, *desk.Message, error) {
		return w.Simulate(t.Context(), w.operator(), w.channel, app.Simulated{From: "+" + number, Text: text, File: &app.SimulatedFile{
			Name: "dir/a.txt", Type: "text/plain", Fault: fault, Content: strings.NewReader("bread"),
		}})
	}
	for fault, want := range map[string]desk.MediaStatus{"": desk.MediaReady, "fail:1": desk.MediaPending} {
		_, m, err := send(fault, "My list")
		must(t, err)
		if m.Kind != desk.KindDocument || m.Text != "[document: a.txt] My list" {
			t.Errorf("%q: %+v", fault, m)
		}
		file, err := w.Media.Record(t.Context(), w.operator(), m.Media)
		must(t, err)
		if file.Status != want || file.Name != "a.txt" {
			t.Errorf("%q: %+v", fault, file)
		}
	}
	if _, _, err := send("boom", ""); desk.AsError(err).At != "/fault" {
		t.Errorf("an odd fault: %v", err)
	}
	if _, _, err := send("", strings.Repeat("x", desk.MaxMessage)); desk.AsError(err).At != "/text" {
		t.Errorf("a long caption: %v", err)
	}
	c, _, err := send("gone", "")
	must(t, err)
	w.deleteContact(c.ContactID)
	list, err := w.Media.List(t.Context(), w.operator(), false, desk.ID{}, 100)
	must(t, err)
	if len(list) != 0 { // the file of the refused message was deleted, too
		t.Errorf("%d files are left", len(list))
	}
}
