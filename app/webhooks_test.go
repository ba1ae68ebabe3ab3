package app_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/app"
	"parley/app/deliver"
	"parley/app/feed"
	"parley/desk"
	"parley/store"
)

// addWebhook adds a webhook and returns its secret.
func (w *world) addWebhook(url string) (feed.Webhook, []byte) {
	w.t.Helper()
	added, text, err := w.Deliver.AddWebhook(w.t.Context(), w.caller(), desk.WebhookEdit{URL: &url}, nil)
	must(w.t, err)
	secret, err := desk.ParseWebhookSecret(text.Reveal())
	must(w.t, err)
	return added, secret
}

// signing sets the clock to a time, and returns the secrets that sign a request to a
// webhook then.
func (w *world) signing(id desk.ID, at desk.Time) []string {
	w.t.Helper()
	w.clock.advance(time.Duration(at-desk.TimeOf(w.clock.atServer())) * time.Millisecond)
	_, err := w.Deliver.Ping(w.t.Context(), w.caller(), id)
	must(w.t, err)
	posts := w.receiver.got()
	var list []string
	for _, k := range posts[len(posts)-1].Secrets {
		list = append(list, string(k))
	}
	return list
}

// A notingStore is a store that counts how often the list of webhooks is read.
type notingStore struct {
	store.Store
	asked atomic.Int64
}

func (s *notingStore) EnabledWebhooks(context.Context) ([]store.EnabledWebhook, error) {
	s.asked.Add(1)
	return nil, nil
}

func (s *notingStore) UpdateSettings(_ context.Context, _ desk.ID, decide func(*desk.Settings) (desk.Change, error)) error {
	_, err := decide(&desk.Settings{})
	return err
}

// TestWebhook_noted: at most half a second after a webhook has changed, the process looks
// for webhooks that it may serve. It does not do so after other changes.
func TestWebhook_noted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(notingStore)
		clock := new(clock)
		a := app.New(app.Deps{Store: s, Now: clock.now, NewID: clock.newID, Random: clock.random, Secret: make([]byte, 32), Log: slog.New(slog.DiscardHandler)})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			a.Deliver.Run(ctx)
		}()
		for n, change := range []desk.Change{{}, {Webhook: &desk.Webhook{}}, {}, {RemoveWebhook: &desk.Webhook{}}} {
			must(t, a.Feed.Store.UpdateSettings(ctx, desk.ID{1}, func(*desk.Settings) (desk.Change, error) { return change, nil }))
			time.Sleep(501 * time.Millisecond)
			synctest.Wait()
			if want := 1 + int64(n+1)/2; s.asked.Load() != want {
				t.Errorf("after change %d it has looked %d times, want %d", n, s.asked.Load(), want)
			}
		}
		stop()
		<-ended
	})
}

// TestWebhookSecrets_overlap: the newest two secrets sign, the previous one for the given time.
func TestWebhookSecrets_overlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	added, first := w.addWebhook("https://a.example")
	rotate := func(overlap int64) (secret string, from desk.Time) {
		t.Helper()
		rotated, text, err := w.Deliver.RotateWebhook(t.Context(), w.caller(), added.ID, overlap)
		must(t, err)
		key, err := desk.ParseWebhookSecret(text.Reveal())
		must(t, err)
		if len(key) != 32 {
			t.Errorf("a secret of %d bytes", len(key))
		}
		return string(key), rotated.UpdatedAt
	}
	check := func(at desk.Time, want ...string) {
		t.Helper()
		if got := w.signing(added.ID, at); strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%d secrets sign, want %d: %x, want %x", len(got), len(want), got, want)
		}
	}
	check(desk.TimeOf(w.clock.atServer()), string(first))
	second, at := rotate(60)
	check(at, second, string(first))
	check(at+59_000, second, string(first))
	check(at+61_000, second)
	third, at := rotate(desk.MaxOverlap)
	check(at, third, second) // the first secret no longer signs, although its time is not over
	check(at+1000*desk.MaxOverlap+1000, third)
	fourth, at := rotate(0)
	check(at, fourth)
	for _, overlap := range []int64{-1, desk.MaxOverlap + 1, 1 << 62} {
		_, _, err := w.Deliver.RotateWebhook(t.Context(), w.caller(), added.ID, overlap)
		refused(t, err, desk.InvalidRequest)
	}
	check(at, fourth)
}

// TestWebhookSecrets_hidden: the database does not show the secrets.
func TestWebhookSecrets_hidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, secret := w.addWebhook("https://a.example")
	var stored []byte
	for _, file := range []string{w.path, w.path + "-wal"} {
		content, err := os.ReadFile(file)
		must(t, err)
		stored = append(stored, content...)
	}
	if !bytes.Contains(stored, []byte("https://a.example")) || bytes.Contains(stored, secret) || bytes.Contains(stored, []byte(desk.WebhookSecretText(secret)[6:])) {
		t.Error("the database holds a secret, or these are not its files")
	}
}

// TestWebhookEnabledAnew: a webhook that is enabled again has no failures, and continues at
// its cursor.
func TestWebhookEnabledAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	added, _ := w.addWebhook("https://a.example")
	cursor, _ := w.Feed.EventPlace(w.ws, added.Cursor)
	failing := desk.WebhookState{Cursor: cursor, FailingSince: added.CreatedAt, Failures: 12, Probes: 2, HeldUntil: added.CreatedAt}
	must(t, w.store.InTx(t.Context(), w.ws, func(tx store.Tx) error { return tx.PutWebhookState(added.ID, failing) }))
	set := func(enabled bool) feed.Webhook {
		t.Helper()
		changed, err := w.Deliver.EditWebhook(t.Context(), w.caller(), added.ID, desk.WebhookEdit{Enabled: &enabled})
		must(t, err)
		return changed
	}
	if got := set(true); got.FailingSince != added.CreatedAt {
		t.Errorf("an enabled webhook that is enabled: %+v", got)
	}
	if got := set(false); got.FailingSince != added.CreatedAt || got.DisabledReason != desk.DisabledByOwner {
		t.Errorf("disabled: %+v", got)
	}
	if got := set(true); got.FailingSince != 0 || got.Cursor != added.Cursor {
		t.Errorf("enabled anew: %+v", got)
	}
	states, err := w.store.WebhookStates(t.Context(), w.ws)
	must(t, err)
	if states[added.ID] != (desk.WebhookState{Cursor: cursor}) {
		t.Errorf("state = %+v", states[added.ID])
	}
}

// TestWebhookOfARevokedKey: when the revocation of a key was answered, nothing that the key
// sends later is stored. Webhooks that the key made stay.
func TestWebhookOfARevokedKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.caller()
	added, _ := w.addWebhook("https://a.example")
	url, keys := "https://k.example", []string{"key.*"}
	narrow, _, err := w.Deliver.AddWebhook(t.Context(), before, desk.WebhookEdit{URL: &url, Types: &keys}, nil)
	must(t, err)
	only := "webhooks:write,webhooks:read,events:read"
	_, err = w.EditKey(t.Context(), w.operator(), w.keyID, app.KeyEdit{Permissions: &only})
	must(t, err)
	url = "https://b.example"
	_, err = w.Deliver.EditWebhook(t.Context(), before, narrow.ID, desk.WebhookEdit{Types: &deliver.AllTypes})
	refused(t, err, desk.Forbidden)
	_, err = w.Deliver.EditWebhook(t.Context(), before, narrow.ID, desk.WebhookEdit{Types: &keys})
	must(t, err)
	_, _, err = w.Deliver.AddWebhook(t.Context(), before, desk.WebhookEdit{URL: &url}, nil)
	refused(t, err, desk.Forbidden)
	_, err = w.Deliver.EditWebhook(t.Context(), before, added.ID, desk.WebhookEdit{URL: &url})
	refused(t, err, desk.Forbidden)
	_, _, err = w.Deliver.RotateWebhook(t.Context(), before, added.ID, 0)
	refused(t, err, desk.Forbidden)
	_, err = w.RevokeKey(t.Context(), w.operator(), w.keyID)
	must(t, err)
	refused(t, w.Deliver.RemoveWebhook(t.Context(), before, added.ID), desk.Unauthorized)
	list, err := w.Deliver.Webhooks(t.Context(), w.operator())
	must(t, err)
	if len(list) != 2 || list[0].URL != "https://a.example" || list[0].UpdatedAt != added.UpdatedAt {
		t.Errorf("webhooks = %+v", list)
	}
}
