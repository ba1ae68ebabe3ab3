package whatsapp_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley/desk"
	"parley/provider"
	"parley/whatsapp"
)

// A Provider implements the interfaces that package app uses.
var _ interface {
	provider.Provider
	provider.CallbackProvider
	provider.Talker
} = (*whatsapp.Provider)(nil)

// The ids in the fixtures.
const (
	waba      = "100200300400500"
	numberID  = "200300400500600"
	appID     = "400500600700800"
	token     = "EAATESTTOKEN"
	appSecret = "app-secret-for-tests"
	proof     = "5e99d60d3ce490c0a8ed1012dfc890bd7a28314643d5e367ed47cb3918c39849"
)

// began is the time of the tests' clock, which stands still.
var began = time.Unix(1_790_000_000, 0)

func still() time.Time { return began }

func newProvider() *whatsapp.Provider { return whatsapp.New(whatsapp.Config{Now: still}) }

// serve starts a server for a test, with this handler, and returns its address.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// access returns access to a channel whose provider is at base.
func access(base string) provider.Access {
	return provider.Access{
		Workspace: desk.ID{0x15},
		Channel: &desk.Channel{
			ID: desk.ID{0xCA}, Kind: desk.WhatsAppChannel, ExternalID: numberID,
			Account: desk.Account{BusinessID: waba, BaseURL: base + "/"},
		},
		Secrets: provider.Secrets{Token: provider.NewSecret(token), AppSecret: provider.NewSecret(appSecret)},
	}
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sign returns the provider's signature header for a body.
func sign(body []byte) string {
	mac := hmac.New(sha256.New, []byte(appSecret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
