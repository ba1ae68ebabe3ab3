package app_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"parley/app"
	"parley/desk"
	"parley/store"
)

// addWebhook adds a webhook and returns its secret.
func (w *world) addWebhook(url string) (app.Webhook, []byte) {
	w.t.Helper()
	added, text, err := w.AddWebhook(w.t.Context(), w.caller(), desk.WebhookEdit{URL: &url}, nil)
	must(w.t, err)
	secret, err := desk.ParseWebhookSecret(text.Reveal())
	must(w.t, err)
	return added, secret
}

// signing are the secrets that sign a webhook's deliveries at a time.
func (w *world) signing(id desk.ID, at desk.Time) []string {
	w.t.Helper()
	keys, err := w.WebhookSecrets(w.ws, w.caller().Settings.Webhook(id), at)
	must(w.t, err)
	var list []string
	for _, k := range keys {
		list = append(list, string(k))
	}
	return list
}

// TestWebhookSecrets_overlap: the newest two sign, the one before for the time given.
func TestWebhookSecrets_overlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	added, first := w.addWebhook("https://a.example")
	rotate := func(overlap int64) (secret string, from desk.Time) {
		t.Helper()
		rotated, text, err := w.RotateWebhook(t.Context(), w.caller(), added.ID, overlap)
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
	check(at, third, second) // the first goes although its time is not over
	check(at+1000*desk.MaxOverlap+1000, third)
	fourth, at := rotate(0)
	check(at, fourth)
	for _, overlap := range []int64{-1, desk.MaxOverlap + 1, 1 << 62} {
		_, _, err := w.RotateWebhook(t.Context(), w.caller(), added.ID, overlap)
		refused(t, err, desk.InvalidRequest)
	}
	check(at, fourth)
}

// TestWebhookSecrets_are_bound: they open in their own webhook, of their own workspace,
// and nowhere else; the database does not show them.
func TestWebhookSecrets_are_bound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	added, secret := w.addWebhook("https://a.example")
	w.addWebhook("https://b.example")
	own := *w.caller().Settings.Webhook(added.ID)
	opens := func(a *app.App, ws desk.ID, changed desk.Webhook) bool {
		t.Helper()
		keys, err := a.WebhookSecrets(ws, &changed, own.UpdatedAt)
		if err != nil && !strings.Contains(err.Error(), changed.ID.String()) {
			t.Errorf("the error does not say which: %v", err)
		}
		return err == nil && len(keys) > 0
	}
	if !opens(w.App, w.ws, own) {
		t.Fatal("they don't open at all")
	}
	other := own
	other.ID[15]++
	if opens(w.App, w.ws, other) {
		t.Error("they open in another webhook")
	}
	if opens(w.App, w.another().ws, own) {
		t.Error("they open in another workspace")
	}
	for name, sealed := range map[string][]byte{"missing": nil, "cut short": own.Sealed[:5], "cut": own.Sealed[:len(own.Sealed)-1],
		"changed": append(bytes.Clone(own.Sealed[:20]), append([]byte{own.Sealed[20] ^ 1}, own.Sealed[21:]...)...)} {
		changed := own
		changed.Sealed = sealed
		if opens(w.App, w.ws, changed) {
			t.Errorf("they open though they are %s", name)
		}
	}
	w.secret = bytes.Repeat([]byte{8}, 32)
	if opens(w.node(w.store, app.Bounds{}), w.ws, own) {
		t.Error("they open with another installation's key")
	}
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

// TestWebhookEnabledAnew: enabling a webhook forgets its failures, and goes on at its
// cursor.
func TestWebhookEnabledAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	added, _ := w.addWebhook("https://a.example")
	cursor, _ := w.EventPlace(w.ws, added.Cursor)
	failing := desk.WebhookState{Cursor: cursor, FailingSince: added.CreatedAt, Failures: 12, Probes: 2, HeldUntil: added.CreatedAt}
	must(t, w.store.InTx(t.Context(), w.ws, func(tx store.Tx) error { return tx.PutWebhookState(added.ID, failing) }))
	set := func(enabled bool) app.Webhook {
		t.Helper()
		changed, err := w.EditWebhook(t.Context(), w.caller(), added.ID, desk.WebhookEdit{Enabled: &enabled})
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

// TestWebhookOfARevokedKey: after a revocation was answered, nothing that the key sends
// is stored. The webhooks that it made stay.
func TestWebhookOfARevokedKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.caller()
	added, _ := w.addWebhook("https://a.example")
	url, keys := "https://k.example", []string{"key.*"}
	narrow, _, err := w.AddWebhook(t.Context(), before, desk.WebhookEdit{URL: &url, Types: &keys}, nil)
	must(t, err)
	only := "webhooks:write,webhooks:read,events:read"
	_, err = w.EditKey(t.Context(), w.operator(), w.keyID, app.KeyEdit{Permissions: &only})
	must(t, err)
	url = "https://b.example"
	_, err = w.EditWebhook(t.Context(), before, narrow.ID, desk.WebhookEdit{Types: &app.AllTypes})
	refused(t, err, desk.Forbidden)
	_, err = w.EditWebhook(t.Context(), before, narrow.ID, desk.WebhookEdit{Types: &keys})
	must(t, err)
	_, _, err = w.AddWebhook(t.Context(), before, desk.WebhookEdit{URL: &url}, nil)
	refused(t, err, desk.Forbidden)
	_, err = w.EditWebhook(t.Context(), before, added.ID, desk.WebhookEdit{URL: &url})
	refused(t, err, desk.Forbidden)
	_, _, err = w.RotateWebhook(t.Context(), before, added.ID, 0)
	refused(t, err, desk.Forbidden)
	_, err = w.RevokeKey(t.Context(), w.operator(), w.keyID)
	must(t, err)
	refused(t, w.RemoveWebhook(t.Context(), before, added.ID), desk.Unauthorized)
	list, err := w.Webhooks(t.Context(), w.operator())
	must(t, err)
	if len(list) != 2 || list[0].URL != "https://a.example" || list[0].UpdatedAt != added.UpdatedAt {
		t.Errorf("webhooks = %+v", list)
	}
}
