package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// TestSend_once: a send stores the message and all other effects. The same call again gets
// the same bytes and sends nothing.
func TestSend_once(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.send("k", of("order_update", "en_US", "A-17", "Ann", "A-17"), profile(named("Ann")))
	m := w.read(first)
	if first.Replayed || m.Existing || m.Kind != desk.SandboxChannel {
		t.Errorf("the first answer: %+v", m)
	}
	d := w.provider.sent()[0]
	contact, conversation := w.contact(m.Conversation.ContactID), w.conversation(m.Conversation.ID)
	if contact.Phone != number || contact.Name != "Ann" {
		t.Errorf("contact: %+v", contact)
	}
	const sentText = "*Order A-17*\nHi Ann, order A-17 ships today."
	want := desk.Message{
		ID: m.Message.ID, ConversationID: conversation.ID, ChannelID: w.channel, Direction: desk.Outbound, ExternalID: messageID(d.Attempt),
		Text: sentText, Delivery: desk.Sent, TS: m.Message.TS, OptIn: &desk.OptIn{Key: w.keyID, At: w.attempt(d.Attempt).Plan.OptIn.At, Request: desk.ID{0xEE}},
		Template: "order_update/en_US", Kind: desk.KindTemplate, Author: desk.Author{Type: desk.AuthorKey, ID: w.keyID, Name: w.caller().Key.Name},
	}
	m.Message.Attempt = desk.ID{} // stores do not read this field
	if got := w.message(m); !reflect.DeepEqual(*got, want) || !reflect.DeepEqual(m.Message, want) {
		t.Errorf("stored   %+v\nanswered %+v\nwant     %+v", got, m.Message, want)
	}
	if asOfMessages(*conversation) != asOfMessages(m.Conversation) || conversation.Status != desk.StatusOpen || conversation.Preview != "*Order A-17* Hi Ann, order A-17 ships today." ||
		conversation.LastMessageAt != m.Message.TS || !conversation.AssignedMember.IsZero() {
		t.Errorf("conversation: %+v", conversation)
	}
	if d.Workspace != w.ws || d.Channel.ID != w.channel || d.Number != number || d.Template.Name != "order_update" || len(d.Components) != 2 {
		t.Errorf("dispatched: %+v", d)
	}
	again := w.send("k", of("order_update", "en_US", "A-17", "Ann", "A-17"), profile(named("Ann")))
	if again.err != nil || !again.Replayed || !bytes.Equal(again.Body, first.Body) {
		t.Errorf("the same again: %v %q, %v", again.Replayed, again.Body, again.err)
	}
	if second := w.sent("k2"); !second.Existing || second.Conversation.ID != conversation.ID {
		t.Errorf("another key: %+v", second)
	}
	w.holds(1, 1, 2)
}

// TestSend_refusals: the checks before a send, in the contract's order. Each request of a
// group fails its own check and all later ones.
func TestSend_refusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	silent := w.put(mailed("silent@example.com"))
	w.put(mailed("taken@example.com"), phoned("905321110099"))
	w.provider.library = append(w.provider.library, desk.TemplateSource{Name: "pending", Language: "en", Source: `{"name":"pending","language":"en",
		"status":"PENDING","category":"MARKETING","components":[{"type":"BODY","text":"Hi {{1}}"},{"type":"CAROUSEL"}]}`})
	_, _, err := w.SyncChannel(t.Context(), w.operator(), w.channel)
	must(t, err)
	w.writes(number, "STOP")
	since := w.messages(w.onlyConversation().ID)[0].TS
	disabled := w.addChannel()
	no := false
	_, err = w.EditChannel(t.Context(), w.operator(), disabled, app.ChannelEdit{Enabled: &no})
	must(t, err)

	optedIn := func(r *desk.SendRequest) { r.OptInConfirmed = false }
	nobody := assignedTo("nobody@example.com")
	for _, c := range []struct {
		name    string
		edits   []edit
		want    desk.ErrorType
		details any
		message string // a part of the error's text, which names the place
	}{
		{"opt-in", []edit{optedIn, on(desk.ID{9}), toContact(desk.ID{9})}, desk.OptInRequired, nil, "opt_in_confirmed"},
		{"channel", []edit{on(desk.ID{9}), toContact(desk.ID{9})}, desk.NotFound, nil, "channel"},
		{"disabled channel", []edit{on(disabled), toContact(desk.ID{9})}, desk.ChannelNotUsable, desk.Unusable{Reason: "disabled"}, "disabled"},
		{"contact", []edit{toContact(desk.ID{9}), nobody}, desk.NotFound, nil, "contact"},
		{"nowhere to send", []edit{toContact(silent.ID), nobody}, desk.RecipientUnreachable, nil, ""},
		{"profile, owner", []edit{profile(ownedBy("nobody@example.com")), nobody}, desk.InvalidRequest, nil, "/contact/owner"},
		{"profile, attributes", []edit{profile(having("size", "9")), nobody}, desk.InvalidAttributes,
			[]desk.AttributeProblem{{Key: "size", Message: desk.NoSuchAttribute}}, ""},
		{"profile of a known contact", []edit{toContact(silent.ID), profile(mailed("taken@example.com"))}, desk.IdentityConflict,
			[]desk.Identity{{Kind: "email", Value: "taken@example.com"}}, ""},
		{"assignee", []edit{nobody, of("nothing", "en")}, desk.InvalidRequest, nil, "/assignee"},
		{"template", []edit{of("nothing", "en")}, desk.NotFound, desk.Languages{}, "template"},
		{"language", []edit{of("hello", "de")}, desk.NotFound, desk.Languages{Languages: []string{"en", "tr"}}, "template"},
		{"not sendable", []edit{of("pending", "en")}, desk.TemplateNotSendable,
			desk.Unsendable{Status: "pending", Reasons: []string{desk.ReasonNotApproved, desk.ReasonCarousel}}, ""},
		{"opted out", []edit{of("sale", "en", "too many")}, desk.RecipientOptedOut, desk.OptedOut{Since: since}, ""},
		{"variables", []edit{of("order_update", "en_US", "A-17", "line\nbreak")}, desk.InvalidVariables, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := refusalOf(t, w.send("k", c.edits...).err, c.want)
			if c.details != nil && !reflect.DeepEqual(e.Details, c.details) {
				t.Errorf("details = %+v, want %+v", e.Details, c.details)
			}
			if !strings.Contains(e.Error(), c.message) {
				t.Errorf("says %v", e)
			}
		})
	}
	another := w.addChannel()
	e := refusalOf(t, w.send("k").err, desk.AmbiguousChannel)
	if list, _ := e.Details.([]*desk.Channel); len(list) != 2 || list[0].ID != w.channel || list[1].ID != another {
		t.Errorf("to choose from: %v", e.Details)
	}
	if n := len(w.attempts()); n != 0 || len(w.provider.sent()) != 0 {
		t.Errorf("%d attempts, %d calls", n, len(w.provider.sent()))
	}
}

func (w *world) onlyConversation() *desk.Conversation {
	w.t.Helper()
	list, _, err := w.Conversations(context.Background(), w.caller(), desk.ConversationFilter{}, "", 2)
	must(w.t, err)
	if len(list) != 1 {
		w.t.Fatalf("%d conversations", len(list))
	}
	return list[0]
}

// TestSend_finds_the_recipient: a send to a number finds the contact that holds it in any
// field. A send to a contact goes to the best of its numbers.
func TestSend_finds_the_recipient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	byChat := w.put(named("Chat"), alsoKnownAs(desk.KindWhatsApp, "905321110001"))
	byPhone := w.put(named("Phone"), phoned("905321110002"), alsoKnownAs(desk.KindWhatsApp, "905321110003"))
	for _, c := range []struct {
		key    string
		to     edit
		number string
		want   desk.ID
	}{
		{"the chat account's number", to("905321110001"), "905321110001", byChat.ID},
		{"the contact of a chat account", toContact(byChat.ID), "905321110001", byChat.ID},
		{"the contact of a phone", toContact(byPhone.ID), "905321110002", byPhone.ID},
		{"its other number", to("905321110003"), "905321110003", byPhone.ID},
	} {
		m := w.sent(c.key, c.to, profile(named("Another")))
		d := w.provider.sent()
		if m.Conversation.ContactID != c.want || d[len(d)-1].Number != c.number {
			t.Errorf("%s: to %s of %s", c.key, d[len(d)-1].Number, m.Conversation.ContactID)
		}
	}
	w.holds(2, 2, 4)
	if name := w.contact(byChat.ID).Name; name != "Chat" {
		t.Errorf("a profile has renamed a known contact: %q", name)
	}
}

// TestSend_profile_of_another: a profile with the e-mail of another contact never makes that
// contact the recipient.
func TestSend_profile_of_another(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.put(named("Ann"), mailed("ann@example.com"), alsoKnownAs("telegram", "ann"))
	e := refusalOf(t, w.send("k", profile(named("Bob"), mailed("Ann@Example.com"), alsoKnownAs("telegram", "ann"), alsoKnownAs("telegram", "bob"))).err, desk.IdentityConflict)
	if want := []desk.Identity{{Kind: "email", Value: "ann@example.com"}, {Kind: "telegram", Value: "ann"}}; !reflect.DeepEqual(e.Details, want) {
		t.Errorf("details: %v, want %v", e.Details, want)
	}
	if now := w.contact(ann.ID); now.Name != "Ann" || now.Phone != "" || len(now.Further) != 1 {
		t.Errorf("Ann has become %+v", now)
	}
	if len(w.provider.sent()) != 0 {
		t.Error("something was sent")
	}
}

// TestSend_refused_leaves_nothing: a refused send leaves only its attempt in the log, no other
// rows, and its key is free. The next call with the key sends again.
func TestSend_refused_leaves_nothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.plays(refuses)
	for n := range 2 {
		e := refusalOf(t, w.send("k", profile(named("Ann"))).err, desk.ProviderRejected)
		if !reflect.DeepEqual(e, refusal.Answer()) || len(w.provider.sent()) != n+1 {
			t.Errorf("got %+v, %d calls", e, len(w.provider.sent()))
		}
		w.holds(0, 0, 0)
		at := w.attempts()[0]
		if w.holder("k") != nil || at.Phase != desk.Refused || !reflect.DeepEqual(at.Refusal, refusal) || at.SettledAt == 0 {
			t.Errorf("the attempt: %+v", at)
		}
		if at.Plan.Text != "" || at.Plan.Number != "" || at.Plan.Profile != nil {
			t.Errorf("the log speaks of the person: %+v", at.Plan)
		}
	}
	w.provider.plays(takes)
	if r := w.send("k", otherBody); r.err != nil || r.Replayed {
		t.Errorf("another body with the free key: %v %v", r.Replayed, r.err)
	}
	if n := len(w.attempts()); n != 3 {
		t.Errorf("%d attempts", n)
	}
}

// TestSend_in_doubt_keeps_the_key: a message that may have been sent is never sent again.
func TestSend_in_doubt_keeps_the_key(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]outcome{
		"the answer is lost": losesTheAnswer,
		"it takes too long":  hangs,
		"a panic":            func(context.Context, provider.Dispatch) (provider.Receipt, error) { panic("a bug") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldWith(t, app.Bounds{Provider: 20 * time.Millisecond})
			w.provider.plays(play)
			id := w.doubted(w.send("k").err)
			w.provider.plays(takes)
			if again := w.doubted(w.send("k").err); again != id {
				t.Errorf("the same call speaks of %s, not %s", again, id)
			}
			refused(t, w.send("k", otherBody).err, desk.IdempotencyKeyReused)
			if at := w.attempt(id); at.Phase != desk.InDoubt || len(w.provider.sent()) != 1 {
				t.Errorf("%s, %d calls", at.Phase, len(w.provider.sent()))
			}
			w.holds(0, 0, 0)
			if list, _, err := w.Attempts(t.Context(), w.operator(), app.AttemptFilter{Phase: desk.InDoubt}, "", 10); err != nil || len(list) != 1 || list[0].ID != id {
				t.Errorf("in doubt are %v, %v", list, err)
			}
		})
	}
}

// TestSend_waits: calls that come while their key is being sent get the answer of
// that send, whatever it is, and a call with another body is refused at once.
func TestSend_waits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		play outcome
		want desk.ErrorType // "": accepted
	}{
		"taken": {takes, ""}, "refused": {refuses, desk.ProviderRejected}, "in doubt": {losesTheAnswer, desk.SendOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			play, reached, release := blocks(c.play)
			w.provider.plays(play)
			other := w.node(&faultyStore{Store: w.file}, app.Bounds{})
			p := w.caller()
			const waiting = 5
			replies := make([]reply, 1+waiting+1) // the last one on another node
			var group sync.WaitGroup
			group.Go(func() { replies[0] = w.sendBy(w.App, p, "k") })
			<-reached
			refused(t, w.sendBy(w.App, p, "k", otherBody).err, desk.IdempotencyKeyReused)
			before := w.store.claimed.Load()
			for n := range waiting {
				group.Go(func() { replies[1+n] = w.sendBy(w.App, p, "k") })
			}
			group.Go(func() { replies[1+waiting] = w.sendBy(other, p, "k") })
			waitFor(t, "all to wait", func() bool { return w.store.claimed.Load() == before+waiting })
			waitFor(t, "one to look again", func() bool { return w.store.looked.Load() > 0 })
			close(release)
			group.Wait()
			for n, r := range replies {
				if c.want == "" {
					if r.err != nil || r.Replayed != (n > 0) || !bytes.Equal(r.Body, replies[0].Body) {
						t.Errorf("%d: %v %q, %v", n, r.Replayed, r.Body, r.err)
					}
					continue
				}
				if e := refusalOf(t, r.err, c.want); !reflect.DeepEqual(e, desk.AsError(replies[0].err)) {
					t.Errorf("%d: %+v", n, e)
				}
			}
			if n := len(w.provider.sent()); n != 1 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// TestSend_otherBodies: calls with another body that come while a key is being sent are refused, and
// those with the same body that come together with them are not.
func TestSend_otherBodies(t *testing.T) {
	t.Parallel()
	const calls = 64
	w := newWorld(t)
	play, reached, release := blocks(takes)
	w.provider.plays(play)
	p := w.caller()
	var group sync.WaitGroup
	for i := range 2 * calls {
		if i == 1 {
			<-reached
		}
		group.Go(func() {
			if i%2 == 1 {
				refused(t, w.sendBy(w.App, p, "k", otherBody).err, desk.IdempotencyKeyReused)
			} else if r := w.sendBy(w.App, p, "k"); r.err != nil {
				t.Error(r.err)
			}
		})
	}
	waitFor(t, "all to have looked for the key", func() bool { return w.store.claimed.Load() >= 2*calls })
	close(release)
	group.Wait()
	if n := len(w.provider.sent()); n != 1 {
		t.Errorf("%d were sent", n)
	}
}

// TestSend_many_wait: calls that wait for a send of their own process rarely read its
// attempt.
func TestSend_many_wait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	play, reached, release := blocks(takes)
	w.provider.plays(play)
	elsewhere := &faultyStore{Store: w.file}
	other, p := w.node(elsewhere, app.Bounds{}), w.caller()
	var group sync.WaitGroup
	send := func(a *app.App) {
		group.Go(func() {
			if r := w.sendBy(a, p, "k"); r.err != nil {
				t.Error(r.err)
			}
		})
	}
	send(w.App)
	<-reached
	began := time.Now()
	const waiting = 100
	for range waiting {
		send(w.App)
	}
	send(other)
	waitFor(t, "another process to look several times", func() bool { return elsewhere.looked.Load() >= 9 })
	looked, most := w.store.looked.Load(), int64(waiting*(time.Since(began)/time.Second))
	if looked > most {
		t.Errorf("%d calls have looked %d times in %v", waiting, looked, time.Since(began))
	}
	close(release)
	group.Wait()
	if n := len(w.provider.sent()); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestSend_waits_on_another_node: a call waits for a send of another node, and knows only
// what is stored.
func TestSend_waits_on_another_node(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		play outcome
		want desk.ErrorType
	}{
		"taken": {takes, ""}, "refused": {refuses, desk.ProviderRejected}, "in doubt": {losesTheAnswer, desk.SendOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			play, reached, release := blocks(c.play)
			w.provider.plays(play)
			store := &faultyStore{Store: w.file}
			other, p := w.node(store, app.Bounds{}), w.caller()
			var first, second reply
			var group sync.WaitGroup
			group.Go(func() { first = w.sendBy(w.App, p, "k") })
			<-reached
			group.Go(func() { second = w.sendBy(other, p, "k") })
			waitFor(t, "it to look again", func() bool { return store.looked.Load() > 0 })
			close(release)
			group.Wait()
			if c.want != "" {
				if e := refusalOf(t, second.err, c.want); !reflect.DeepEqual(e, desk.AsError(first.err)) {
					t.Errorf("here %+v, there %v", e, first.err)
				}
			} else if second.err != nil || !second.Replayed || !bytes.Equal(first.Body, second.Body) {
				t.Errorf("got %+v, want %+v", second, first)
			}
			if n := len(w.provider.sent()); n != 1 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// TestSend_two_holds: if two calls both find the key free, one of them holds it. The other
// gets the answer of the first, or is refused if it is another request.
func TestSend_two_holds(t *testing.T) {
	t.Parallel()
	for name, edits := range map[string][]edit{"the same": nil, "another": {otherBody}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			other, p := w.node(&faultyStore{Store: w.file}, app.Bounds{}), w.caller()
			var first reply
			w.store.in(1, begin, func() error {
				first = w.sendBy(other, p, "k", edits...)
				return nil
			})
			r := w.sendBy(w.App, p, "k")
			must(t, first.err)
			if edits != nil {
				refused(t, r.err, desk.IdempotencyKeyReused)
			} else if r.err != nil || !r.Replayed || !bytes.Equal(r.Body, first.Body) {
				t.Errorf("got %+v, want %+v", r, first)
			}
			if n := len(w.provider.sent()); n != 1 {
				t.Errorf("%d calls", n)
			}
			w.holds(1, 1, 1)
		})
	}
}

// TestSend_waiting_ends: a call stops waiting after a limit, when the server drains, and when
// the caller leaves. The send itself goes on.
func TestSend_waiting_ends(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wait time.Duration
		end  func(w *world, leave func())
	}{
		"the bound":      {20 * time.Millisecond, func(*world, func()) {}},
		"draining":       {time.Hour, func(w *world, _ func()) { w.Drain() }},
		"draining twice": {time.Hour, func(w *world, _ func()) { w.Drain(); w.Drain() }},
		"the caller":     {time.Hour, func(_ *world, leave func()) { leave() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, leave := context.WithCancel(context.Background())
			defer leave()
			w := newWorldWith(t, app.Bounds{Wait: c.wait})
			play, reached, release := blocks(takes)
			w.provider.plays(play)
			p := w.caller()
			var first, second reply
			var group, waiting sync.WaitGroup
			group.Go(func() { first = w.sendBy(w.App, p, "k") })
			<-reached
			waiting.Go(func() {
				_, err := w.Send(ctx, p, &desk.SendRequest{Key: "k"}, desk.ID{})
				second = reply{err: err}
			})
			if c.wait == time.Hour {
				waitFor(t, "it to wait", func() bool { return w.store.looked.Load() > 0 })
			}
			c.end(w, leave)
			waiting.Wait()
			if e := refusalOf(t, second.err, desk.SendInProgress); e.RetryAfter == 0 {
				t.Error("it does not say when to come back")
			}
			close(release)
			group.Wait()
			w.read(first)
		})
	}
}

// TestSend_runs_to_its_end: a send goes on even if the caller leaves when the message may
// have been sent already.
func TestSend_runs_to_its_end(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, leave := context.WithCancel(context.Background())
	w.provider.plays(func(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
		leave()
		if ctx.Err() != nil {
			return provider.Receipt{}, ctx.Err()
		}
		return takes(ctx, d)
	})
	_, err := w.Send(ctx, w.caller(), &desk.SendRequest{Key: "k", Phone: phoneOf(number), Template: "hello", Language: "en", OptInConfirmed: true}, desk.ID{})
	must(t, err)
	w.holds(1, 1, 1)
}

// TestSend_key_expires: after 30 days of service a key can be used again. The clocks do not
// matter.
func TestSend_key_expires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sent("k")
	w.clock.advance(400 * 24 * time.Hour)
	w.serve(30 * 24)
	if r := w.send("k"); !r.Replayed {
		t.Errorf("after almost 30 days: %+v", r)
	}
	refused(t, w.send("k", otherBody).err, desk.IdempotencyKeyReused)
	w.serve(1)
	if r := w.send("k", otherBody); r.err != nil || r.Replayed {
		t.Errorf("after 30 days: %+v", r)
	}
	if r := w.send("k", otherBody); !r.Replayed {
		t.Errorf("the new one: %+v", r)
	}
	w.holds(1, 1, 2)
}

// TestSend_with_a_key_revoked_meanwhile: nothing is sent if the API key was revoked, expired
// or lost the permission meanwhile.
func TestSend_with_a_key_revoked_meanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range keyChanges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.store.in(1, begin, func() error { return c.change(w) })
			refused(t, w.send("k").err, c.want)
			if len(w.provider.sent()) != 0 || w.holder("k") != nil || len(w.attempts()) != 0 {
				t.Error("it went on")
			}
		})
	}
}

// TestSend_workspace_deleted: the workspace is deleted while the provider has the message.
// Whatever the provider answers, the caller learns that the workspace does not exist, and the
// process stops trying to store the outcome.
func TestSend_workspace_deleted(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]outcome{
		"accepted": takes,
		"refused":  func(context.Context, provider.Dispatch) (provider.Receipt, error) { return provider.Receipt{}, refusal },
		"lost": func(context.Context, provider.Dispatch) (provider.Receipt, error) {
			return provider.Receipt{}, errors.New("lost")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothStores(t, func(t *testing.T, w erasable) {
				w.provider.plays(func(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
					_, err := w.DeleteWorkspace(ctx, w.ws, "Acme", func(int) {})
					must(t, err)
					return answer(ctx, d)
				})
				if r := w.send("k"); !errors.Is(r.err, store.ErrNoWorkspace) || !desk.IsType(r.err, desk.NotFound) {
					t.Errorf("%+v", r)
				}
				w.stop() // waits for retries in the background
				for _, text := range []string{"ERROR", "stored"} {
					if lines := w.log.find(text); len(lines) > 0 {
						t.Errorf("the log: %q", lines)
					}
				}
			})
		})
	}
}

// TestSend_presumed: if the settings have changed, a presumed principal sends nothing.
func TestSend_presumed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.caller()
	p, ok := w.Access.Presume(w.key)
	if !ok {
		t.Fatal("the key is not known")
	}
	w.newKey("all") // any change of the settings
	if r := w.sendBy(w.App, p, "k"); !errors.Is(r.err, app.ErrStale) {
		t.Errorf("got %v", r.err)
	}
	if len(w.provider.sent()) != 0 {
		t.Error("something was sent")
	}
}

// TestSend_64_at_once: sends of different keys and messages from the same person, all
// new to us, make one contact with one open conversation that holds everything.
func TestSend_64_at_once(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.once.Store(true) // only different calls compete in this test
	p := w.caller()
	var group sync.WaitGroup
	conversations := make([]desk.ID, 64)
	for n := range conversations {
		group.Go(func() {
			if n%2 == 0 {
				c, err := w.ReceiveSimulated(context.Background(), w.operator(), w.channel, "+"+number, "", fmt.Sprintf("Hi %d", n))
				if err != nil {
					t.Error(err)
					return
				}
				conversations[n] = c.ID
				return
			}
			r := w.sendBy(w.App, p, fmt.Sprint(n))
			if r.err != nil {
				t.Error(r.err)
				return
			}
			conversations[n] = w.read(r).Conversation.ID
		})
	}
	group.Wait()
	if distinct := slices.Compact(conversations); len(distinct) != 1 {
		t.Errorf("conversations: %v", distinct)
	}
	w.holds(1, 1, 64)
	c := w.onlyConversation()
	if last := w.messages(c.ID)[0]; c.LastMessageAt != last.TS {
		t.Errorf("the conversation is of %d, its last message of %d", c.LastMessageAt, last.TS)
	}
}

// TestSend_64_of_one_key: 64 calls come with one key. Only one of them sends.
func TestSend_64_of_one_key(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.once.Store(true)
	nodes := []*app.App{w.App, w.node(&faultyStore{Store: w.file}, app.Bounds{})}
	p := w.caller()
	replies := make([]reply, 64)
	var group sync.WaitGroup
	for n := range replies {
		group.Go(func() { replies[n] = w.sendBy(nodes[n%2], p, "k") })
	}
	group.Wait()
	first := 0
	for n, r := range replies {
		if r.err != nil || !bytes.Equal(r.Body, replies[0].Body) {
			t.Errorf("%d: %q, %v", n, r.Body, r.err)
		}
		if !r.Replayed {
			first++
		}
	}
	if first != 1 || len(w.provider.sent()) != 1 {
		t.Errorf("%d first answers, %d calls", first, len(w.provider.sent()))
	}
	w.holds(1, 1, 1)
}

// TestSend_through_the_sandbox: each of the sandbox's numbers behaves as documented. Its
// messages and statuses go through the same code as those of a real provider.
func TestSend_through_the_sandbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.plays(w.provider.Sandbox.Send)
	refused(t, w.send("1", to("905321110001")).err, desk.ProviderRejected)
	if e := refusalOf(t, w.send("2", to("905321120002")).err, desk.ProviderUnavailable); e.RetryAfter == 0 {
		t.Error("it does not say when to come back")
	}
	w.doubted(w.send("3", to("905321130003")).err)
	fails, reads := w.sent("4", to("905321140004")), w.sent("5", to("905321150006"))
	// The statuses are stored, so another process may process them.
	w.stop()
	w.start(app.Bounds{})
	w.run()
	waitFor(t, "the statuses", func() bool {
		return w.message(fails).Delivery == desk.Failed && w.message(reads).Delivery == desk.Read
	})
	if f := w.message(fails).Failure; f == nil || f.Code != 131026 {
		t.Errorf("the failure: %+v", f)
	}
	if at := w.holder("3"); at.Phase != desk.InDoubt {
		t.Errorf("the lost one is %s", at.Phase)
	}
	w.holds(2, 2, 2)
}

// TestSend_member: the message and the attempt name the member who confirmed the opt-in.
func TestSend_member(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, err := w.Access.Member(t.Context(), w.ws, w.ada.ID)
	must(t, err)
	sent := w.read(w.sendBy(w.App, p, "by a member"))
	m, by := w.message(sent), desk.Actor{Kind: desk.ByMember, ID: w.ada.ID}
	if m.OptIn == nil || m.OptIn.Actor() != by || !m.OptIn.Key.IsZero() || m.OptIn.At == 0 {
		t.Errorf("the opt-in is %+v", m.OptIn)
	}
	if at := w.holder("by a member"); at.Actor != by {
		t.Errorf("the attempt is by %+v", at.Actor)
	}
	m = w.message(w.sent("by a key"))
	if m.OptIn.Actor() != (desk.Actor{Kind: desk.ByKey, ID: w.keyID}) {
		t.Errorf("the opt-in is %+v", m.OptIn)
	}
}

// TestSend_profile_of_a_full_contact: a profile with an identity of another contact is refused for
// that, whatever else this contact would make of the profile.
func TestSend_profile_of_a_full_contact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	edits := []func(*desk.ContactWrite){mailed("full@example.com")}
	for n := range desk.MaxFurther {
		edits = append(edits, alsoKnownAs("crm", fmt.Sprint(n)))
	}
	for part := range slices.Chunk(edits[1:], desk.MaxIdentities-1) {
		w.put(append(part, edits[0])...)
	}
	profile := desk.ContactWrite{}
	for _, edit := range []func(*desk.ContactWrite){mailed("full@example.com"), alsoKnownAs("crm", "one more")} {
		edit(&profile)
	}
	err := w.send("k", func(r *desk.SendRequest) { r.Profile = &profile }).err
	refused(t, err, desk.IdentityConflict)
	if list, _ := desk.AsError(err).Details.([]desk.Identity); len(list) != 1 || list[0].Value != "full@example.com" {
		t.Errorf("details: %+v", desk.AsError(err).Details)
	}
}
