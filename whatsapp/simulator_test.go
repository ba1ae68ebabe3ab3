package whatsapp_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"parley/desk"
	"parley/provider"
	"parley/whatsapp"
	"parley/whatsapp/whatsapptest"
)

// A line is a provider that is connected to a simulator. It reads the simulator's
// callbacks.
type line struct {
	*whatsapp.Provider
	*whatsapptest.Simulator
	at provider.Access

	mu   sync.Mutex
	told []provider.Update
}

func newLine(t *testing.T, set whatsapptest.Settings) *line {
	l := &line{Provider: newProvider()}
	hooks := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		told, _, err2 := l.Read(item(body))
		if err := errors.Join(err, err2); err != nil {
			t.Error(err)
		}
		l.mu.Lock()
		l.told = append(l.told, told...)
		l.mu.Unlock()
	})
	l.Simulator = whatsapptest.New(whatsapptest.Config{WebhookURL: hooks, Now: still, Settings: set})
	server := httptest.NewServer(l.Simulator)
	t.Cleanup(server.Close)
	t.Cleanup(l.Close)
	l.at = access(server.URL)
	return l
}

// all returns all updates since the last call. It first waits for callbacks that are
// being posted.
func (l *line) all(t *testing.T) []provider.Update {
	t.Helper()
	if err := l.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	told := l.told
	l.told = nil
	return told
}

// free returns a message without a template.
func (l *line) free(change func(*provider.Dispatch)) provider.Dispatch {
	d := dispatch("")
	d.Access, d.Template = l.at, nil
	change(&d)
	return d
}

// TestSimulator_sends: the simulator is as strict as the real provider. It accepts every
// kind of message, and its statuses arrive.
func TestSimulator_sends(t *testing.T) {
	t.Parallel()
	l := newLine(t, whatsapptest.Settings{Window: whatsapptest.WindowSync})
	l.Inbound(whatsapptest.Inbound{ID: "wamid.IN0001", From: "905321112233"}).Wait()
	l.all(t)
	upload := func(kind desk.MessageKind, mime string) func(*provider.Dispatch) {
		ref, err := l.Upload(t.Context(), l.at, mime, "dosya ş.bin", 4, strings.NewReader("file"))
		if err != nil {
			t.Fatal(err)
		}
		return func(d *provider.Dispatch) {
			d.File = &provider.SentFile{Ref: ref, Kind: kind, Name: "dosya ş.bin"}
			if kind != desk.KindAudio && kind != desk.KindSticker {
				d.File.Caption = "Buyurun"
			}
		}
	}
	for name, change := range map[string]func(*provider.Dispatch){
		"words":    func(d *provider.Dispatch) { d.Text = "Merhaba <b>\n" },
		"to an id": func(d *provider.Dispatch) { d.Text, d.Number, d.UserID = "x", "", "TR.9000000000000001" },
		"a quote":  func(d *provider.Dispatch) { d.Text, d.Quote = "x", "wamid.IN0001" },
		"a question": func(d *provider.Dispatch) {
			d.Text, d.Buttons = "Hangisi?", []desk.Button{{ID: "a", Title: "A"}, {ID: "b", Title: "B"}, {ID: "c", Title: "C"}}
		},
		"an image":   upload(desk.KindImage, "image/png"),
		"a video":    upload(desk.KindVideo, "video/mp4"),
		"a sound":    upload(desk.KindAudio, "audio/ogg"),
		"a document": upload(desk.KindDocument, "application/pdf"),
		"a sticker":  upload(desk.KindSticker, "image/webp"),
	} {
		receipt, err := l.Send(t.Context(), l.free(change))
		if err != nil || receipt.ExternalID == "" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		statuses := l.all(t)
		if len(statuses) != 3 || statuses[2].Status.ExternalID != receipt.ExternalID || statuses[2].Status.Attempt != attempt {
			t.Errorf("%s: %s", name, show(statuses))
		}
	}
	if files := l.Media(); len(files) != 5 || files[0].Name != "dosya ş.bin" || string(files[0].Content) != "file" {
		t.Errorf("%+v", files)
	}
}

// TestSimulator_refuses: messages that can't be sent are refused.
func TestSimulator_refuses(t *testing.T) {
	t.Parallel()
	l := newLine(t, whatsapptest.Settings{Window: whatsapptest.WindowSync})
	words := l.free(func(d *provider.Dispatch) { d.Text = "x" })
	var refused *desk.Refusal
	if _, err := l.Send(t.Context(), words); !errors.As(err, &refused) || refused.Type != desk.WindowClosed || refused.Failure.Code != 131047 {
		t.Errorf("%+v", err)
	}
	l.Configure(func(s *whatsapptest.Settings) { s.Window = whatsapptest.WindowAsync })
	if _, err := l.Send(t.Context(), words); err != nil {
		t.Error(err)
	}
	if told := l.all(t); len(told) != 1 || told[0].Status.Delivery != desk.Failed || told[0].Status.Failure.Code != 131047 {
		t.Errorf("%s", show(told))
	}
	l.Configure(func(s *whatsapptest.Settings) { s.Window = whatsapptest.WindowOff })
	refused = nil
	lost := l.free(func(d *provider.Dispatch) { d.File = &provider.SentFile{Ref: "1", Kind: desk.KindImage} })
	if _, err := l.Send(t.Context(), lost); !errors.As(err, &refused) || !refused.StaleMedia {
		t.Errorf("%+v", err)
	}
	refused = nil
	if _, err := l.Upload(t.Context(), l.at, "text/html", "a.html", 1, strings.NewReader("x")); !errors.As(err, &refused) || refused.Type != desk.ProviderRejected {
		t.Errorf("%+v", err)
	}
}

// TestSimulator_inbound: every kind of message arrives with its file, and is marked as
// read.
func TestSimulator_inbound(t *testing.T) {
	t.Parallel()
	l := newLine(t, whatsapptest.Settings{})
	for kind, want := range map[string]desk.MessageKind{
		"text": desk.KindText, "image": desk.KindImage, "video": desk.KindVideo, "audio": desk.KindAudio, "document": desk.KindDocument, "sticker": desk.KindSticker,
		"location": desk.KindLocation, "contacts": desk.KindContacts, "button": desk.KindChoice, "button_reply": desk.KindChoice, "list_reply": desk.KindChoice,
		"reaction": desk.KindReaction, "order": desk.KindOrder, "unsupported": desk.KindUnsupported, "nfm_reply": desk.KindUnsupported, "hologram": desk.KindUnsupported,
	} {
		for _, echo := range []bool{false, true} {
			post := l.Inbound
			if echo {
				post = l.Echo
			}
			d := post(whatsapptest.Inbound{Type: kind, Text: "x", ReplyTo: "wamid.0", File: []byte("file " + kind)})
			told := l.all(t)
			if len(told) != 1 || told[0].Message == nil {
				t.Errorf("%s: %s", kind, show(told))
				continue
			}
			m := told[0].Message
			if m.Kind != want || m.Echo != echo || m.ExternalID != d.ID || m.ReplyTo != "wamid.0" || (m.Media != nil) != (d.Media != "") {
				t.Errorf("%s: %s", kind, show(m))
			}
			if m.Media == nil {
				continue
			}
			var got bytes.Buffer
			file, err := l.Fetch(t.Context(), l.at, m.Media.Ref, hears, &got)
			if err != nil || got.String() != "file "+kind || file.Size != int64(got.Len()) || !bytes.Equal(file.SHA256, hash(got.String())) || !bytes.Equal(m.Media.SHA256, file.SHA256) || file.MIME != m.Media.MIME {
				t.Errorf("%s: %q, %+v, %v", kind, got.String(), file, err)
			}
		}
	}
	if err := l.MarkRead(t.Context(), l.at, "wamid.IN0001"); err != nil || len(l.Reads()) != 1 {
		t.Errorf("%v, %v", err, l.Reads())
	}
}

// TestSimulator_faults: fetching files with faults.
func TestSimulator_faults(t *testing.T) {
	t.Parallel()
	l := newLine(t, whatsapptest.Settings{})
	stranger := keep(t, "", answers(200, "x"))
	for fault, want := range map[string]error{
		"gone": provider.ErrMediaGone, "fail:1": nil, "truncate:1": nil, "expired:1": nil, "redirect:" + stranger.url + "/file": nil, "url:" + stranger.url + "/file": nil,
	} {
		d := l.Inbound(whatsapptest.Inbound{Type: "image", Fault: fault})
		var known error
		_, err := l.Fetch(t.Context(), l.at, d.Media, hears, io.Discard)
		if errors.Is(err, provider.ErrMediaGone) {
			known = provider.ErrMediaGone
		}
		if err == nil || !errors.Is(known, want) {
			t.Errorf("%s: %v", fault, err)
		}
		if _, err := l.Fetch(t.Context(), l.at, d.Media, hears, io.Discard); (err == nil) != strings.HasSuffix(fault, ":1") {
			t.Errorf("%s, again: %v", fault, err)
		}
	}
	d := l.Inbound(whatsapptest.Inbound{Type: "image", Fault: "size:2000000000"})
	if told, err := l.Fetch(t.Context(), l.at, d.Media, hears, &small{most: 1 << 20}); !errors.Is(err, errTooLarge) || told.Size != 2_000_000_000 {
		t.Errorf("%+v, %v", told, err)
	}
	if n := stranger.tokens.Load(); n != 0 {
		t.Errorf("a stranger got the token %d times", n)
	}
}
