package storetest

import (
	"testing"

	"parley/desk"
	"parley/store"
)

func newWebhook(url string) *desk.Webhook {
	return &desk.Webhook{
		ID: newID(), URL: url, Types: []string{"contact.*", "message.received"}, Enabled: true, Sealed: []byte("\x00sealed"), CreatedAt: now(), UpdatedAt: now(),
	}
}

// addWebhook stores a new webhook. Its event is between other events.
func addWebhook(t *testing.T, s store.Store, ws desk.ID, w *desk.Webhook) *desk.Settings {
	t.Helper()
	return edit(t, s, ws, webhookChange(w))
}

func webhookChange(w *desk.Webhook) desk.Change {
	other := desk.Event{Type: desk.KeyUpdated, Subject: newID(), At: now()}
	return desk.Change{Webhook: w, Events: []desk.Event{other, {Type: desk.WebhookCreated, Subject: w.ID, At: now()}, other, other}}
}

func webhookStates(t *testing.T, s store.Store, ws desk.ID) map[desk.ID]desk.WebhookState {
	t.Helper()
	states, err := s.WebhookStates(t.Context(), ws)
	must(t, err)
	return states
}

// webhookSettings: a webhook is part of the settings. Its state begins at its own event,
// and is deleted with the webhook.
func webhookSettings(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	const url = "https://example.com/in?a=ü"
	w, twin := newWebhook(url), newWebhook(url)
	before, err := s.Settings(t.Context(), ws)
	must(t, err)
	settings := addWebhook(t, s, ws, w)
	equal(t, "webhook", settings.Webhook(w.ID), w)
	if settings.Version <= before.Version {
		t.Error("the version did not rise")
	}
	addWebhook(t, s, other, twin)
	got, err := s.WorkspaceOf(t.Context(), w.ID)
	if err != nil || got != ws {
		t.Errorf("the webhook leads to %v, %v", got, err)
	}
	upper := newWebhook("HTTPS://example.com/in?a=ü") // another URL: URLs are compared byte for byte
	addWebhook(t, s, ws, upper)
	if err := s.UpdateSettings(t.Context(), ws, func(*desk.Settings) (desk.Change, error) {
		return desk.Change{Webhook: newWebhook(url)}, nil
	}); err == nil {
		t.Error("two webhooks have one URL")
	}
	events, _ := follow(t, s, ws, feed(t, s, ws, store.EventQuery{}).Oldest, 50)
	want := map[desk.ID]desk.WebhookState{}
	for _, e := range events {
		if e.Type == desk.WebhookCreated {
			want[e.Subject] = desk.WebhookState{Cursor: e.Place}
		}
	}
	equal(t, "states", webhookStates(t, s, ws), want)
	if len(want) != 2 || want[w.ID].Cursor.Seq+4 != want[upper.ID].Cursor.Seq {
		t.Errorf("the states begin at %+v", want)
	}

	full := desk.WebhookState{Cursor: desk.EventPlace{Seq: 1 << 40, Tag: 1<<48 - 1}, FailingSince: now(), Failures: 10, Probes: 3, HeldUntil: now()}
	commit(t, s, ws, func(tx store.Tx) error {
		if err := tx.PutWebhookState(w.ID, full); err != nil {
			return err
		}
		stored, err := tx.WebhookState(w.ID)
		if err == nil {
			equal(t, "state in its transaction", stored, full)
		}
		return err
	})
	w.URL, w.Types, w.Enabled, w.DisabledReason, w.Sealed = url+"&b", []string{"*"}, false, desk.DisabledGone, []byte("anew")
	settings = edit(t, s, ws, desk.Change{Webhook: w})
	equal(t, "edited webhook", settings.Webhook(w.ID), w)
	equal(t, "state after an edit", webhookStates(t, s, ws)[w.ID], full)
	w.Enabled, w.DisabledReason = true, ""
	edit(t, s, ws, desk.Change{Webhook: w, Renew: true})
	equal(t, "state after enabling", webhookStates(t, s, ws), map[desk.ID]desk.WebhookState{w.ID: {Cursor: full.Cursor}, upper.ID: want[upper.ID]})

	settings = edit(t, s, ws, desk.Change{RemoveWebhook: w})
	if settings.Webhook(w.ID) != nil || len(settings.Webhooks()) != 1 {
		t.Errorf("after the removal: %+v", settings.Webhooks())
	}
	_, err = s.WorkspaceOf(t.Context(), w.ID)
	wantType(t, err, desk.NotFound)
	commit(t, s, ws, func(tx store.Tx) error { // like a delivery that ends after the webhook was removed
		if err := tx.PutWebhookState(w.ID, full); err != nil {
			return err
		}
		for _, id := range []desk.ID{w.ID, twin.ID} {
			if state, err := tx.WebhookState(id); state != (desk.WebhookState{}) || err != nil {
				t.Errorf("state = %+v, %v", state, err)
			}
		}
		return tx.PutWebhookState(twin.ID, full)
	})
	if states := webhookStates(t, s, ws); len(states) != 1 {
		t.Errorf("states after the removal: %+v", states)
	}
	if states := webhookStates(t, s, other); len(states) != 1 || states[twin.ID].Failures != 0 {
		t.Errorf("states of the other workspace: %+v", states)
	}
}
