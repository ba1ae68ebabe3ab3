package desk_test

import (
	"encoding/base64"
	"net/netip"
	"strings"
	"testing"

	"parley/desk"
)

func TestWebhookURL(t *testing.T) {
	private := func(a netip.Addr) bool { return !a.Unmap().WithZone("").IsGlobalUnicast() || a.Unmap().IsPrivate() }
	long := "https://example.com/" + strings.Repeat("a", 2048-len("https://example.com/"))
	for text, want := range map[string]string{
		"https://example.com/in":                        "",
		"HTTPS://EXAMPLE.com:8443/in?a=1&b=%20#":        "fragment",
		"HTTPS://EXAMPLE.com:8443/in?a=1&b=%20":         "",
		"https://example.com":                           "",
		"https://xn--exmple-cua.com/in":                 "",
		"https://127.1/in":                              "", // a resolver may read this as an address, which is checked at the connect
		"https://0x7f000001/in":                         "",
		"https://8.8.8.8/":                              "",
		"https://[2606:4700::1111]:443/":                "",
		long:                                            "",
		long + "a":                                      "2048",
		"":                                              "absolute",
		"/in":                                           "absolute",
		"//example.com/in":                              "absolute",
		"example.com":                                   "absolute",
		"http://example.com/in":                         "https",
		"ftp://example.com":                             "https",
		"https:example.com":                             "host",
		"https:///in":                                   "host",
		"https://:443/in":                               "host",
		"https://user@example.com/":                     "user",
		"https://user:pass@example.com/":                "user",
		"https://@example.com/":                         "user",
		"https://example.com/#a":                        "fragment",
		"https://example.com/%23":                       "",
		"https://example.com:0/":                        "port",
		"https://example.com:65536/":                    "port",
		"https://example.com:a/":                        "no URL",
		"https://example.com/a b":                       "spaces",
		" https://example.com/":                         "spaces",
		"https://example.com/\n":                        "spaces",
		"https://exämple.com/":                          "ASCII",
		"https://example.com/%zz":                       "no URL",
		"https://127.0.0.1/":                            "127.0.0.1",
		"https://10.1.2.3:8443/in":                      "10.1.2.3",
		"https://[::1]/":                                "::1",
		"https://[::ffff:127.0.0.1]/":                   "127.0.0.1",
		"https://[fe80::1%25eth0]/":                     "fe80::1",
		"https://[::1/":                                 "no URL",
		"https://169.254.169.254/latest/meta-data/?x=y": "169.254",
	} {
		w, edit := desk.Webhook{}, desk.WebhookEdit{URL: &text}
		err := edit.Check(desk.WebhookRules{Refused: private})
		if want == "" {
			if w.Apply(edit); err != nil || w.URL != text {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if e := desk.AsError(err); err == nil || e.Type != desk.InvalidRequest || e.At != "/url" || !strings.Contains(e.Message, want) {
			t.Errorf("%q: %v, want one that says %q", text, err, want)
		}
	}
	plain := "http://127.0.0.1:9/"
	if err := (desk.WebhookEdit{URL: &plain}).Check(desk.WebhookRules{PlainHTTP: true}); err != nil {
		t.Error(err)
	}
}

func TestWebhookApply(t *testing.T) {
	failing := desk.Webhook{ID: desk.ID{1}, URL: "https://a.example", Types: []string{"*"}, DisabledReason: desk.DisabledFailing}
	active := desk.Webhook{ID: desk.ID{2}, URL: "https://b.example", Types: []string{"*"}, Enabled: true}
	s := desk.NewSettings(desk.Workspace{}, 1, nil, nil, nil, nil, failing, active)
	yes, no := true, false
	for name, c := range map[string]struct {
		of      desk.Webhook
		enabled bool
		want    desk.DisabledReason
	}{
		"enable":       {failing, yes, ""},
		"stays":        {failing, no, desk.DisabledFailing},
		"disable":      {active, no, desk.DisabledByOwner},
		"stays active": {active, yes, ""},
	} {
		if c.of.Apply(desk.WebhookEdit{Enabled: &c.enabled}); c.of.Enabled != c.enabled || c.of.DisabledReason != c.want {
			t.Errorf("%s: %+v", name, c.of)
		}
	}
	w := active
	if err := s.CheckWebhook(&w); err != nil {
		t.Errorf("its own URL: %v", err)
	}
	w.URL = failing.URL
	err := s.CheckWebhook(&w)
	if e := desk.AsError(err); e.Type != desk.WebhookExists || e.Details != (desk.ExistingWebhook{ID: failing.ID}) {
		t.Errorf("another's URL: %v", err)
	}
	many := make([]desk.Webhook, desk.MaxWebhooks)
	for i := range many {
		many[i] = desk.Webhook{ID: desk.ID{byte(i)}, URL: string(rune('a' + i))}
	}
	full := desk.NewSettings(desk.Workspace{}, 1, nil, nil, nil, nil, many...)
	if err := full.CheckWebhook(&desk.Webhook{ID: desk.ID{99}, URL: "new"}); !desk.IsType(err, desk.InvalidRequest) {
		t.Errorf("one too many: %v", err)
	}
	if err := full.CheckWebhook(&desk.Webhook{ID: desk.ID{3}, URL: "new"}); err != nil {
		t.Errorf("an edit of the last possible one: %v", err)
	}
	for _, types := range [][]string{{}, {"nothing"}, {"contact.*", ""}, {" *"}} {
		if err := (desk.WebhookEdit{Types: &types}).Check(desk.WebhookRules{}); desk.AsError(err).At != "/types" {
			t.Errorf("%q: %v", types, err)
		}
	}
}

// TestWebhookEvents checks which event a change of a webhook has, and whether the change
// makes parley forget the webhook's failures (Renew).
func TestWebhookEvents(t *testing.T) {
	stored := desk.Webhook{ID: desk.ID{1}, URL: "https://a.example", Types: []string{"*"}, Enabled: true, Sealed: []byte("a"), CreatedAt: 1, UpdatedAt: 2}
	off := stored
	off.ID, off.Enabled, off.DisabledReason = desk.ID{2}, false, desk.DisabledGone
	s := desk.NewSettings(desk.Workspace{}, 1, nil, nil, nil, nil, stored, off)
	edited := func(of desk.Webhook, change func(*desk.Webhook)) desk.Change {
		change(&of)
		return desk.Change{Webhook: &of}
	}
	for name, c := range map[string]struct {
		change desk.Change
		want   desk.EventType
		fields string
		renew  bool
	}{
		"new":     {edited(stored, func(w *desk.Webhook) { w.ID = desk.ID{3} }), desk.WebhookCreated, "", false},
		"same":    {edited(stored, func(*desk.Webhook) {}), "", "", false},
		"edited":  {edited(stored, func(w *desk.Webhook) { w.URL, w.Types = "x", []string{"key.*"} }), desk.WebhookUpdated, "types url", false},
		"rotated": {edited(stored, func(w *desk.Webhook) { w.Sealed = []byte("b") }), desk.WebhookUpdated, "secret", false},
		"owner": {edited(stored, func(w *desk.Webhook) { w.Enabled, w.DisabledReason = false, desk.DisabledByOwner }),
			desk.WebhookUpdated, "disabled_reason enabled", false},
		"gone":    {edited(stored, func(w *desk.Webhook) { w.Enabled, w.DisabledReason = false, desk.DisabledGone }), desk.WebhookDisabled, "", false},
		"failing": {edited(stored, func(w *desk.Webhook) { w.Enabled, w.DisabledReason = false, desk.DisabledFailing }), desk.WebhookDisabled, "", false},
		"enabled": {edited(off, func(w *desk.Webhook) { w.Enabled, w.DisabledReason = true, "" }), desk.WebhookUpdated, "disabled_reason enabled", true},
		"removed": {desk.Change{RemoveWebhook: &stored}, desk.WebhookDeleted, "", false},
	} {
		got := c.change.Against(s, desk.Actor{Kind: desk.BySystem}, 9)
		if c.want == "" {
			if !got.IsEmpty() || got.Events != nil {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if got.IsEmpty() || len(got.Events) != 1 || got.Events[0].Type != c.want || strings.Join(got.Events[0].Changed, " ") != c.fields || got.Renew != c.renew {
			t.Errorf("%s: %+v", name, got)
		}
		if w := got.Webhook; w != nil && w.UpdatedAt != 9 {
			t.Errorf("%s: updated at %d", name, w.UpdatedAt)
		}
	}
}

func TestWebhookSecret(t *testing.T) {
	secret := make([]byte, 70)
	for i := range secret {
		secret[i] = byte(i * 37)
	}
	for n := range secret {
		got, err := desk.ParseWebhookSecret(desk.WebhookSecretText(secret[:n]))
		if fits := n >= 24 && n <= 64; fits != (err == nil) || fits && string(got) != string(secret[:n]) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	text := base64.StdEncoding.EncodeToString(secret[:25])
	for _, wrong := range []string{"", "whsec_", text, "WHSEC_" + text, "whsec_" + strings.TrimRight(text, "="), "whsec_" + text + "\n", "whsec_" + text[:10] + "\n" + text[10:],
		"whsec_whsec_" + text, "whsec_" + strings.Repeat("-_", 20)} {
		_, err := desk.ParseWebhookSecret(wrong)
		if e := desk.AsError(err); err == nil || e.At != "/secret" || len(wrong) > 6 && strings.Contains(e.Message, wrong[6:]) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// TestEndpointsNeedAllTypes: the type * of an endpoint means every type.
func TestEndpointsNeedAllTypes(t *testing.T) {
	allow := func(p desk.Permission) error {
		if p == desk.ContactsRead {
			return nil
		}
		return desk.Errorf(desk.Forbidden, "%s", p)
	}
	for list, want := range map[string]bool{"contact.*": true, "contact.created,key.created,workspace.*": true, "*": false, "contact.*,*": false, "message.sent,contact.*": false} {
		f, err := desk.ParseEventFilter(strings.Split(list, ","))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.AllowAll(allow); (err == nil) != want || err != nil && !desk.IsType(err, desk.Forbidden) {
			t.Errorf("%s: %v", list, err)
		}
	}
}
