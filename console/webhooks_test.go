package console

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/app/deliver"
	"parley/app/feed"
	"parley/desk"
)

// A receiver is a receiver of webhook requests. The test sets its responses.
type receiver struct {
	mu     sync.Mutex
	answer deliver.Posted
	got    []deliver.Post
}

// Post implements deliver.Poster.
func (r *receiver) Post(_ context.Context, p deliver.Post) deliver.Posted {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, p)
	return r.answer
}

func (r *receiver) answers(p deliver.Posted) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = p
}

var aSecret = regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`)

func TestWebhooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.signedIn(w.nora)
	v.get("/settings/webhooks").want(200, "No webhook yet").golden("webhooks/empty")
	v.get("/settings/webhooks/new").want(200, `value="*" checked`, `value="message.received"`).golden("webhooks/new")
	v.post("/settings/webhooks/new", "url", "http://crm.example/in", "types", "*").want(422, "must begin with https://", `value="http://crm.example/in"`).golden("webhooks/new-error")
	v.post("/settings/webhooks/new", "url", "https://crm.example/in").want(422, "Tick at least one kind of event")
	v.post("/settings/webhooks/new", "url", "https://crm.example/in", "types", "nonsense").want(422)
	g := v.post("/settings/webhooks/new", "url", "https://crm.example/in", "types", "message.*", "types", "message.read", "types", "contact.created").want(200, "Copy the secret now")
	secret := aSecret.FindString(g.body)
	path := regexp.MustCompile(`/settings/webhooks/[0-9a-f-]{36}`).FindString(g.body)
	if secret == "" || path == "" {
		t.Fatalf("%s", g.body)
	}
	v.post("/settings/webhooks/new", "url", "https://crm.example/in", "types", "*").want(409, "Another webhook of this workspace has this URL already")
	v.get("/settings/webhooks").want(200, "https://crm.example/in", "Works", "Messages, Contacts: created").golden("webhooks/list")
	v.get(path).want(200, "Works", "No deliveries here", `value="message.*" checked`, `value="contact.created" checked`).lacks(secret, "whsec_").golden("webhooks/webhook")

	// Edit the webhook, and turn it off and on.
	v.post(path, "url", "", "types", "*").want(422, "Error: Webhook")
	v.post(path, "url", "https://crm.example/<b>", "types", "message.*").sends(path + "?done=saved")
	v.post(path+"/enable", "enabled", "no").sends(path + "?done=turned-off")
	v.get(path).want(200, "Turned off", "Turn on", "https://crm.example/&lt;b&gt;")
	v.post(path+"/enable", "enabled", "yes").sends(path + "?done=turned-on")

	// A ping is sent. Then the receiver sends a hostile response.
	v.post(path+"/ping").want(200, "The ping:", "Taken")
	w.receiver.answers(deliver.Posted{StatusCode: 500, Error: "status", Response: "<script>alert(1)</script>", Took: 12 * time.Millisecond})
	v.post(path+"/ping").want(200, "It answered with an error (500), in 12 ms.", "&lt;script&gt;").lacks("<script>alert").golden("webhooks/pinged")

	// The webhook gets a new secret, which is shown once.
	v.get(path + "/rotate").want(200).golden("webhooks/rotate")
	v.post(path+"/rotate", "overlap", "x").want(422)
	if again := aSecret.FindString(v.post(path+"/rotate", "overlap", "3600").want(200, "has a new secret").body); again == "" || again == secret {
		t.Errorf("the new secret is %q", again)
	}

	// The deliveries begin again at another place of the feed.
	v.get(path + "/replay").want(200).golden("webhooks/replay")
	v.post(path+"/replay", "from", "event", "cursor", "evt_x").want(422, "This workspace has no event with this id")
	w.writes("+34 612 34 56 78", "Lucía", "Hello")
	v.post(path+"/replay", "from", "oldest", "cursor", "").sends(path + "?done=replaying")
	v.get(path+"?done=replaying").want(200, "It goes on from there.", "Since 09:30")
	v.post(path+"/replay", "from", "latest").sends(path + "?done=replaying")
	v.get(path).want(200, "<dd>None</dd>")

	v.get(path+"/remove").want(200, "Remove this webhook?", "https://crm.example/&lt;b&gt;").golden("webhooks/remove")
	v.post(path + "/remove").sends("/settings/webhooks?done=removed")
	for _, gone := range []string{path, path + "/rotate", path + "/replay", path + "/remove"} {
		v.get(gone).want(404)
		v.post(gone, "url", "https://x.example", "types", "*").want(404)
	}
}

// TestWebhooks_deliveries: pages show deliveries with their attempts and responses.
func TestWebhooks_deliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.signedIn(w.nora)
	w.receiver.answers(deliver.Posted{StatusCode: 503, Error: "status", Response: "busy <b>", Took: 7 * time.Millisecond})
	url, types := "https://crm.example/in", []string{"message.received"}
	webhook, _, err := w.app.Deliver.AddWebhook(t.Context(), w.operator(), desk.WebhookEdit{URL: &url, Types: &types}, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := "/settings/webhooks/" + webhook.ID.String()
	w.writes("+34 612 34 56 78", "Lucía", "Hello")
	v.get(path).want(200, "Since 09:30") // the delivery is pending
	ctx, stop := context.WithCancel(t.Context())
	delivering := make(chan struct{})
	go func() {
		defer close(delivering)
		w.app.Deliver.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-delivering
	})
	for end := time.Now().Add(30 * time.Second); !strings.Contains(v.get(path).body, "It answered with an error (503), in 7 ms."); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("nothing was delivered: %s", v.get(path).body)
		}
	}
	g := v.get(path).want(200, "Messages: received", "Waiting", "Failing")
	v.get(path+"?status=delivered").want(200, "No deliveries here")
	v.get(path+"?status=pending&after=nonsense").want(200, "Messages: received")
	v.get(path+"?status=nonsense").want(200, "Messages: received")
	at := regexp.MustCompile(path + `/deliveries/[0-9a-f-]{36}`).FindString(g.body)
	v.get(at).want(200, "busy &lt;b&gt;", "message.received", "Hello", "next attempt").lacks("busy <b>")
	w.receiver.answers(deliver.Posted{StatusCode: 204})
	v.post(at).sends(at + "?done=redelivering")
	for end := time.Now().Add(30 * time.Second); !strings.Contains(v.get(at).body, "Taken (204)"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it was not delivered again: %s", v.get(at).body)
		}
	}
	v.get(path+"?status=delivered").want(200, "Messages: received", "Works")
	if _, err := w.app.Deliver.EditWebhook(t.Context(), w.operator(), webhook.ID, desk.WebhookEdit{Enabled: new(bool)}); err != nil {
		t.Fatal(err)
	}
	v.post(at).want(409, "Enable it first")
	v.get(path + "/deliveries/" + w.newID().String()).want(404)
	v.post(path + "/deliveries/" + w.newID().String()).want(404)
}

// TestWebhooks_states: every state, and every error of an attempt, has words.
func TestWebhooks_states(t *testing.T) {
	t.Parallel()
	c := &call{s: newWorld(t).server, now: time.Now(), zone: time.UTC}
	for want, w := range map[string]feed.Webhook{
		"Works":      {Webhook: desk.Webhook{Enabled: true}},
		"Failing":    {Webhook: desk.Webhook{Enabled: true}, FailingSince: 1},
		"Turned off": {Webhook: desk.Webhook{DisabledReason: desk.DisabledByOwner}},
		"Gave up":    {Webhook: desk.Webhook{DisabledReason: desk.DisabledFailing}},
		"Gone":       {Webhook: desk.Webhook{DisabledReason: desk.DisabledGone}},
	} {
		if state, text := c.webhookState(&w); state.Text != want || text == "" {
			t.Errorf("%s: %s, %q", want, state.Text, text)
		}
	}
	for _, e := range append(desk.TryErrors, desk.TryExpired) {
		if attemptWords[e] == "" {
			t.Errorf("no words for %s", e)
		}
	}
	for _, e := range desk.EventTypes {
		if kindWords[e.Kind()] == "" {
			t.Errorf("no words for %s", e)
		}
	}
}
