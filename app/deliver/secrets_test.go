package deliver

import (
	"bytes"
	"strings"
	"testing"

	"parley/app/feed"
	"parley/app/vault"
	"parley/desk"
)

// TestWebhookSecrets_are_bound: the secrets can be decrypted only for their own webhook, in
// their own workspace, with the installation's key.
func TestWebhookSecrets_are_bound(t *testing.T) {
	t.Parallel()
	with := func(key byte) *Service {
		return New(Deps{Feed: feed.New(feed.Deps{}), Vault: vault.New(bytes.Repeat([]byte{key}, 32), func(b []byte) { b[0] = key })})
	}
	a, ws := with(7), desk.ID{1}
	own := desk.Webhook{ID: desk.ID{2}}
	own.Sealed = a.sealWebhook(ws, own.ID, []webhookSecret{{Key: []byte("a secret")}})
	opens := func(a *Service, ws desk.ID, changed desk.Webhook) bool {
		t.Helper()
		keys, err := a.webhookSecrets(ws, &changed, 0)
		if err != nil && !strings.Contains(err.Error(), changed.ID.String()) {
			t.Errorf("the error does not say which: %v", err)
		}
		return err == nil && len(keys) > 0
	}
	if !opens(a, ws, own) {
		t.Fatal("they don't open at all")
	}
	other := own
	other.ID[15]++
	if opens(a, ws, other) {
		t.Error("they open in another webhook")
	}
	if opens(a, desk.ID{3}, own) {
		t.Error("they open in another workspace")
	}
	for name, sealed := range map[string][]byte{"missing": nil, "cut short": own.Sealed[:5], "cut": own.Sealed[:len(own.Sealed)-1],
		"changed": append(bytes.Clone(own.Sealed[:20]), append([]byte{own.Sealed[20] ^ 1}, own.Sealed[21:]...)...)} {
		changed := own
		changed.Sealed = sealed
		if opens(a, ws, changed) {
			t.Errorf("they open though they are %s", name)
		}
	}
	if opens(with(8), ws, own) {
		t.Error("they open with another installation's key")
	}
}
