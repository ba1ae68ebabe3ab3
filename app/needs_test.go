package app_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// rich returns a template with a title of a kind, and with a link if begin is not "".
func rich(name, kind, begin string) desk.TemplateSource {
	source := fmt.Sprintf(`{"name":%q,"language":"en","status":"APPROVED","category":"UTILITY","components":[{"type":"HEADER","format":%q},{"type":"BODY","text":"Look!"}`, name, kind)
	if begin != "" {
		source += fmt.Sprintf(`,{"type":"BUTTONS","buttons":[{"type":"URL","text":"Go","url":"%s{{1}}"}]}`, begin)
	}
	return desk.TemplateSource{Name: name, Language: "en", Source: source + "]}"}
}

// supplying returns an edit that sends a template with values by address. pairs has each
// address and, after it, its value.
func supplying(template string, pairs ...string) edit {
	return func(r *desk.SendRequest) {
		r.Template, r.Language, r.Variables = template, "en", desk.TemplateValues{Object: true}
		for i := 0; i < len(pairs); i += 2 {
			r.Variables.Named = append(r.Variables.Named, desk.NamedValue{Address: pairs[i], Value: pairs[i+1]})
		}
	}
}

// newPostman is like newCourier, with a template poster, which needs a picture and a link.
func newPostman(t *testing.T) (*world, *courier) {
	t.Helper()
	w, c := newCourier(t)
	w.template(rich("poster", "IMAGE", "https://shop.example/"))
	return w, c
}

// template puts a template into the channel's library.
func (w *world) template(source desk.TemplateSource) {
	w.t.Helper()
	w.provider.mu.Lock()
	w.provider.library = append([]desk.TemplateSource{source}, w.provider.library...)
	w.provider.mu.Unlock()
	_, _, err := w.SyncChannel(context.Background(), w.operator(), w.channel)
	must(w.t, err)
}

func (w *world) upload(content string) *desk.Media {
	w.t.Helper()
	m, err := w.Media.Upload(context.Background(), w.caller(), desk.FileHead{Name: "a.jpg"}, strings.NewReader(content))
	must(w.t, err)
	return m
}

func poster(file *desk.Media) edit {
	return supplying("poster", "header.media", file.ID.String(), "button.0", "A-17")
}

func (c *courier) handedOver() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tries["upload"]
}

func TestSend_needs(t *testing.T) {
	t.Parallel()
	w, courier := newPostman(t)
	file := w.upload(picture)
	m := w.message(w.sent("k", poster(file)))
	d := w.provider.sent()[0]
	if d.File == nil || d.File.Ref != "image/jpeg a.jpg 14 14 1" || d.File.Kind != desk.KindImage || fmt.Sprint(d.Components) != "[{button 0 [{ A-17}]}]" {
		t.Errorf("to the provider: %+v, %+v", d.File, d.Components)
	}
	if m.Media != file.ID || m.Attachment == nil || m.Kind != desk.KindTemplate || fmt.Sprint(m.Extra) != fmt.Sprint(&desk.Extra{Links: []desk.Link{{Title: "Go", URL: "https://shop.example/A-17"}}}) {
		t.Errorf("stored: %+v, %+v", m, m.Extra)
	}
	if at := w.attempts()[0]; at.Plan.Links != nil || at.Plan.Text != "" {
		t.Errorf("a settled attempt keeps what was said: %+v", at.Plan)
	}
	w.sent("k2", poster(file))
	if n := courier.handedOver(); n != 1 {
		t.Errorf("it is handed over %d times", n)
	}
	refused(t, w.Media.Delete(t.Context(), w.caller(), file.ID), desk.MediaInUse)
	w.clock.advance(2 * 24 * time.Hour)
	must(t, w.Media.Forget(t.Context(), w.ws))
	if w.message(w.sent("k3", poster(file))).Attachment == nil {
		t.Error("it is gone after a day")
	}
}

// TestSend_fileDeleted: if the file is deleted while it is handed over, nothing is sent, and
// the key is free.
func TestSend_fileDeleted(t *testing.T) {
	t.Parallel()
	w, courier := newPostman(t)
	file, other := w.upload(picture), w.upload(picture+"2")
	courier.uploading = sync.OnceFunc(func() { must(t, w.Media.Delete(t.Context(), w.caller(), file.ID)) })
	refused(t, w.send("k", poster(file)).err, desk.NotFound)
	if n := len(w.attempts()); n != 0 || len(w.provider.sent()) != 0 {
		t.Errorf("%d attempts, %d calls", n, len(w.provider.sent()))
	}
	w.holds(0, 0, 0)
	w.sent("k", poster(other))
}

// TestSend_fileOfDeleted: if the person who sent the file is deleted while it is handed over,
// nothing is sent. An upload goes to the number's new contact.
func TestSend_fileOfDeleted(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprint(own), func(t *testing.T) {
			t.Parallel()
			w, courier := newPostman(t)
			conversation, file := w.gets(courier, "1", has(picture), provider.InboundMedia{})
			_, err := w.Media.FetchNext(t.Context(), w.ws)
			must(t, err)
			if !own {
				file = w.upload(picture + "2")
			}
			courier.uploading = sync.OnceFunc(func() { w.deleteContact(conversation.ContactID) })
			r := w.send("k", poster(file))
			if own {
				refused(t, r.err, desk.NotFound)
				w.holds(0, 0, 0)
				return
			}
			if m := w.message(w.read(r)); m.Attachment == nil || w.read(r).Conversation.ContactID == conversation.ContactID {
				t.Errorf("%+v", m)
			}
			w.holds(1, 1, 1)
		})
	}
}

// TestSend_fileOptedOut: a person who opts out of marketing while the file is handed over gets
// nothing, and nothing goes out on a channel that is turned off meanwhile.
func TestSend_fileOptedOut(t *testing.T) {
	t.Parallel()
	for want, meanwhile := range map[desk.ErrorType]func(*world){
		desk.RecipientOptedOut: func(w *world) { w.writes(number, "STOP") },
		desk.ChannelNotUsable: func(w *world) {
			off := false
			_, err := w.EditChannel(context.Background(), w.operator(), w.channel, app.ChannelEdit{Enabled: &off})
			must(w.t, err)
		},
	} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			w, courier := newPostman(t)
			offer := rich("offer", "IMAGE", "")
			offer.Source = strings.Replace(offer.Source, "UTILITY", "MARKETING", 1)
			w.template(offer)
			courier.uploading = sync.OnceFunc(func() { meanwhile(w) })
			refused(t, w.send("k", supplying("offer", "header.media", w.upload(picture).ID.String())).err, want)
			if len(w.attempts()) != 0 || len(w.provider.sent()) != 0 {
				t.Error("something was sent")
			}
		})
	}
}

// TestSend_needsChange: if the template changes while the file is handed over, the send is
// checked against the new one.
func TestSend_needsChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change desk.TemplateSource
		want   desk.ErrorType // "": it is sent
		links  string
	}{
		"another kind": {rich("poster", "VIDEO", "https://shop.example/"), desk.MediaNotSendable, ""},
		"no link":      {rich("poster", "IMAGE", ""), desk.InvalidVariables, ""},
		"another link": {rich("poster", "IMAGE", "https://other.example/"), "", "[{Go https://other.example/A-17}]"},
		"no file": {desk.TemplateSource{Name: "poster", Language: "en",
			Source: `{"name":"poster","language":"en","status":"APPROVED","category":"UTILITY","components":[{"type":"BODY","text":"Hi"}]}`}, desk.InvalidVariables, ""},
		"paused": {desk.TemplateSource{Name: "poster", Language: "en",
			Source: strings.Replace(rich("poster", "IMAGE", "https://shop.example/").Source, "APPROVED", "PAUSED", 1)}, desk.TemplateNotSendable, ""},
		"another template": {rich("other", "IMAGE", ""), "", "[{Go https://shop.example/A-17}]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, courier := newPostman(t)
			courier.uploading = sync.OnceFunc(func() { w.template(c.change) })
			r := w.send("k", poster(w.upload(picture)))
			if c.want != "" {
				refused(t, r.err, c.want)
				if len(w.attempts()) != 0 || len(w.provider.sent()) != 0 {
					t.Error("something was sent")
				}
				return
			}
			if got := fmt.Sprint(w.message(w.read(r)).Extra.Links); got != c.links {
				t.Errorf("sent %s", got)
			}
		})
	}
	t.Run("for ever", func(t *testing.T) {
		t.Parallel()
		w, channel := newWorld(t), desk.ID{}
		n := 0
		change := func(template string) {
			w.meta.change(func() { w.meta.library = append(w.meta.library, rich(template, "IMAGE", "https://shop.example/")) })
			_, _, err := w.SyncChannel(context.Background(), w.operator(), channel)
			must(t, err)
		}
		channel = w.connect(metaNumber, metaBusiness)
		change("poster")
		w.store.pace = func([]desk.Bucket, time.Duration) (time.Duration, bool, error) {
			n++
			change(fmt.Sprint("other_", n))
			return 0, true, nil
		}
		refused(t, w.send("k", poster(w.upload(picture)), on(channel)).err, desk.Unavailable)
		if n != 4 || len(w.attempts()) != 0 || len(w.meta.calls) != 0 {
			t.Errorf("%d plans", n)
		}
	})
	t.Run("and the member is removed", func(t *testing.T) {
		t.Parallel()
		w, courier := newPostman(t)
		p, err := w.Access.Member(t.Context(), w.ws, w.ada.ID)
		must(t, err)
		courier.uploading = sync.OnceFunc(func() {
			w.template(rich("other", "IMAGE", ""))
			must(t, w.RemoveMember(context.Background(), w.operator(), w.ada.ID))
		})
		refused(t, w.sendBy(w.App, p, "k", poster(w.upload(picture))).err, desk.Unauthorized)
		if len(w.provider.sent()) != 0 {
			t.Error("it was sent")
		}
	})
}

// TestSend_lostFile: after an answer or a report that the provider can't use the file, the
// next send gives it to the provider again, and after no other failure.
func TestSend_lostFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.meta.library = append(w.meta.library, rich("poster", "IMAGE", "https://shop.example/"))
	channel := w.connect(metaNumber, metaBusiness)
	_, _, err := w.SyncChannel(t.Context(), w.operator(), channel)
	must(t, err)
	file := w.upload(picture)
	sends := 0
	send := func(uploads int) reply {
		t.Helper()
		sends++
		r := w.send(fmt.Sprint(sends), poster(file), on(channel))
		if w.meta.uploads != uploads {
			t.Fatalf("send %d: uploaded %d times, want %d", sends, w.meta.uploads, uploads)
		}
		return r
	}
	report := func(m desk.SentMessage, code int) {
		t.Helper()
		w.callback(channel, provider.Update{Channel: metaNumber, Status: &desk.StatusUpdate{
			ExternalID: m.Message.ExternalID, Delivery: desk.Failed, Failure: &desk.Failure{Code: code, Title: "x"}, At: desk.TimeOf(w.clock.now()),
		}})
		must(t, w.TakeInbound(t.Context(), w.ws))
		if got := w.message(m); got.Delivery != desk.Failed {
			t.Fatalf("after the report: %+v", got)
		}
	}
	w.read(send(1))
	report(w.read(send(1)), 131026)
	report(w.read(send(1)), 131053)
	report(w.read(send(2)), 131052)
	w.read(send(3))
	for _, stale := range []bool{false, true} {
		w.meta.change(func() {
			w.meta.refusal = &desk.Refusal{Type: desk.ProviderRejected, Message: "no", Failure: &desk.Failure{Code: 131053}, StaleMedia: stale}
		})
		refused(t, send(3).err, desk.ProviderRejected)
		w.meta.change(func() { w.meta.refusal = nil })
		want := 3
		if stale {
			want = 4
		}
		w.read(send(want))
	}
}

// TestSend_holdsFile: a send whose outcome is unknown keeps its file. Once it was not sent,
// the file can be deleted.
func TestSend_holdsFile(t *testing.T) {
	t.Parallel()
	w, _ := newPostman(t)
	file := w.upload(picture)
	attempt := w.inDoubt("k", poster(file))
	refused(t, w.Media.Delete(t.Context(), w.caller(), file.ID), desk.MediaInUse)
	w.clock.advance(2 * 24 * time.Hour)
	must(t, w.Media.Forget(t.Context(), w.ws))
	_, err := w.Release(t.Context(), w.operator(), attempt, true)
	must(t, err)
	list, _, err := w.Conversations(t.Context(), w.caller(), desk.ConversationFilter{}, "", 2)
	must(t, err)
	if m := w.messages(list[0].ID)[0]; m.Attachment == nil || m.Media != file.ID || fmt.Sprint(m.Extra.Links) != "[{Go https://shop.example/A-17}]" {
		t.Errorf("released as sent: %+v", m)
	}

	second := w.upload(picture + "2")
	attempt = w.inDoubt("k2", poster(second))
	_, err = w.Release(t.Context(), w.operator(), attempt, false)
	must(t, err)
	must(t, w.Media.Delete(t.Context(), w.caller(), second.ID))
}

// TestSend_fileErased: a file goes with its person, unless another person's message has it.
// What is on its way to a deleted person is not stored.
func TestSend_fileErased(t *testing.T) {
	t.Parallel()
	w, _ := newPostman(t)
	shared, alone := w.upload(picture), w.upload(picture+"2")
	first := w.sent("1", poster(shared))
	second := w.sent("2", poster(shared), to("905321110011"))
	w.sent("3", poster(alone))
	w.deleteContact(first.Conversation.ContactID)
	for _, c := range []struct {
		file *desk.Media
		kept bool
	}{{shared, true}, {alone, false}} {
		m, err := w.file.Media(t.Context(), w.ws, c.file.ID)
		must(t, err)
		if (m != nil) != c.kept {
			t.Errorf("after the first deletion: %v, want it kept: %v", m, c.kept)
		}
	}
	attempt := w.inDoubt("4", poster(shared), to("905321110011"))
	w.deleteContact(second.Conversation.ContactID)
	at, err := w.file.Attempt(t.Context(), w.ws, attempt)
	must(t, err)
	if !at.Erased || at.Plan.Links != nil || at.Plan.Text != "" || !at.Holds().IsZero() {
		t.Errorf("the attempt in doubt: %+v", at.Plan)
	}
	_, err = w.Release(t.Context(), w.operator(), attempt, true)
	must(t, err)
	w.holds(0, 0, 0)
	must(t, w.file.InTx(t.Context(), w.ws, func(tx store.Tx) error {
		used, err := tx.MediaInUse(shared.ID)
		if used {
			t.Error("something uses the file")
		}
		return err
	}))
}

// TestSend_fileNotTaken: if the provider does not get the file, nothing is sent, and the key
// is free.
func TestSend_fileNotTaken(t *testing.T) {
	t.Parallel()
	w, courier := newPostman(t)
	file := w.upload(picture)
	courier.refuses = &desk.Refusal{Type: desk.ProviderRejected, Message: "no", Failure: &desk.Failure{Code: 131053}}
	refused(t, w.send("k", poster(file)).err, desk.ProviderRejected)
	courier.refuses = fmt.Errorf("broken")
	refused(t, w.send("k", poster(file)).err, desk.ProviderUnavailable)
	if len(w.attempts()) != 0 || len(w.provider.sent()) != 0 {
		t.Error("something was sent")
	}
	courier.refuses = nil
	w.sent("k", poster(file))
}
