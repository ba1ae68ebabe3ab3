package app_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/provider"
)

func (w *world) sealed(channel desk.ID) []byte {
	w.t.Helper()
	return w.caller().Settings.Channel(channel).Account.Sealed
}

// TestSecrets_at_rest: the stored form does not show the secrets, and differs each time.
func TestSecrets_at_rest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	before := w.sealed(channel)
	for _, s := range []provider.Secrets{{Token: provider.NewSecret("s3cret-other")}, account(metaNumber, metaBusiness).Secrets} {
		_, err := w.EditChannel(t.Context(), w.operator(), channel, app.ChannelEdit{Secrets: s})
		must(t, err)
	}
	if after := w.sealed(channel); len(before) < 30 || bytes.Equal(before, after) || bytes.Equal(before[:12], after[:12]) {
		t.Errorf("sealed as %x, and then as %x", before, after)
	}
	var stored []byte
	for _, file := range []string{w.path, w.path + "-wal"} {
		content, err := os.ReadFile(file)
		must(t, err)
		stored = append(stored, content...)
	}
	if !bytes.Contains(stored, []byte(metaBusiness)) || bytes.Contains(stored, []byte("s3cret")) {
		t.Error("the database holds a secret, or these are not its files")
	}
}

// TestSecrets_are_bound: secrets can be decrypted only for their own channel, in their own
// workspace, with the installation's secret key.
func TestSecrets_are_bound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel, sibling := w.connect(metaNumber, metaBusiness), w.connect("200300400500601", metaBusiness)
	other := w.another()
	body := []byte("[]")
	put := func(ws desk.ID, c desk.Channel, sealed []byte) {
		t.Helper()
		c.Account.Sealed = sealed
		must(t, w.file.UpdateSettings(t.Context(), ws, func(*desk.Settings) (desk.Change, error) { return desk.Change{Channel: &c}, nil }))
	}
	opens := func(a *app.App, id desk.ID) bool {
		t.Helper()
		err := a.ReceiveCallback(t.Context(), desk.WhatsAppChannel, id, carrying(sign(appSecret, body)), body)
		if err != nil && (strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), id.String())) {
			t.Errorf("the error does not say which, or too much: %v", err)
		}
		return err == nil
	}
	if !opens(w.App, channel) || !opens(w.App, sibling) {
		t.Fatal("they don't open at all")
	}
	of := func(id desk.ID) desk.Channel { return *w.caller().Settings.Channel(id) }
	own := w.sealed(channel)
	put(w.ws, of(sibling), own)
	if opens(w.App, sibling) {
		t.Error("they open in another channel")
	}
	elsewhere := of(channel) // as if a row were copied
	elsewhere.ID[15]++
	put(other.ws, elsewhere, own)
	if opens(w.App, elsewhere.ID) {
		t.Error("they open in another workspace")
	}
	for name, sealed := range map[string][]byte{"cut short": own[:5], "cut": own[:len(own)-1], "changed": append([]byte{own[0] ^ 1}, own[1:]...)} {
		put(w.ws, of(channel), sealed)
		if opens(w.App, channel) {
			t.Errorf("they open though they are %s", name)
		}
	}
	put(w.ws, of(channel), own)
	if !opens(w.App, channel) {
		t.Error("they don't open again")
	}
	w.secret = bytes.Repeat([]byte{8}, 32)
	if opens(w.node(w.store, app.Bounds{}), channel) {
		t.Error("they open with another installation's key")
	}
}

// TestSecrets_are_bound_to_where_they_go: a person who can write to the database can't get
// the token by changing the address, the version or the number. After such a change, the
// channel reports a problem.
func TestSecrets_are_bound_to_where_they_go(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	for name, change := range map[string]func(*desk.Channel){
		"address": func(c *desk.Channel) { c.Account.BaseURL = "https://evil.example" },
		"version": func(c *desk.Channel) { c.Account.Version = "v1.0" },
		"number":  func(c *desk.Channel) { c.ExternalID = "999" },
	} {
		own := *w.caller().Settings.Channel(channel)
		changed := own
		change(&changed)
		w.rewrite(changed)
		calls := len(w.meta.calls)
		if e := refusalOf(t, w.send(name, on(channel)).err, desk.ChannelNotUsable); e.Details != (desk.Unusable{Reason: "secrets"}) {
			t.Errorf("%s: %+v", name, e.Details)
		}
		if _, _, err := w.SyncChannel(t.Context(), w.operator(), channel); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: synced, %v", name, err)
		}
		problems, err := w.CheckChannel(t.Context(), w.operator(), channel)
		if err != nil || len(problems) != 1 || !problems[0].Blocking || !strings.Contains(problems[0].Text, "sealed for another address, version or number") {
			t.Errorf("%s: checked %+v, %v", name, problems, err)
		}
		if len(w.meta.calls) != calls {
			t.Errorf("%s: the provider was called", name)
		}
		w.rewrite(own)
	}
	w.sent("k", on(channel))
}

// rewrite stores a channel's row directly in the database.
func (w *world) rewrite(c desk.Channel) {
	w.t.Helper()
	must(w.t, w.file.UpdateSettings(context.Background(), w.ws, func(*desk.Settings) (desk.Change, error) { return desk.Change{Channel: &c}, nil }))
}

// TestSecrets_of_the_first_release: secrets of the first release are sealed again, once. Their
// old form is not bound to an address: if an old row is put back later, its secrets are
// decrypted for the provider's own address only.
func TestSecrets_of_the_first_release(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	mac := hmac.New(sha256.New, w.secret)
	mac.Write([]byte("channel secrets"))
	block, err := aes.NewCipher(mac.Sum(nil))
	must(t, err)
	vault, err := cipher.NewGCM(block)
	must(t, err)
	nonce := bytes.Repeat([]byte{5}, vault.NonceSize())
	old := *w.caller().Settings.Channel(channel)
	old.Account.Sealed = vault.Seal(nonce, nonce, []byte(`{"token":"s3cret-token","app_secret":"s3cret-app","verify_token":"s3cret-verify"}`), append(w.ws[:], channel[:]...))
	elsewhere := old
	elsewhere.Account.BaseURL = "https://proxy.example"

	must(t, w.file.BindSecret(t.Context(), "f"))
	w.rewrite(elsewhere)
	refused(t, w.send("before", on(channel)).err, desk.ChannelNotUsable)
	must(t, w.SealAnew(t.Context())) // as the upgrade does
	w.sent("upgraded", on(channel))
	if at := w.meta.calls[0]; at.Secrets.Token.Reveal() != "s3cret-token" || at.Channel.Account.BaseURL != elsewhere.Account.BaseURL {
		t.Errorf("sent by %+v", at.Channel)
	}
	if bytes.Equal(w.sealed(channel), old.Account.Sealed) {
		t.Error("nothing was sealed anew")
	}
	w.rewrite(elsewhere) // put the old row back
	must(t, w.SealAnew(t.Context()))
	refused(t, w.send("elsewhere", on(channel)).err, desk.ChannelNotUsable)
	w.rewrite(old)
	w.sent("own", on(channel))
}

// TestSecrets_are_not_shown: no way of printing or encoding a value shows its secrets.
func TestSecrets_are_not_shown(t *testing.T) {
	t.Parallel()
	s := provider.NewSecret("s3cret-token")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x", "%q"} {
		if got := fmt.Sprintf(verb, s); got != "(secret)" {
			t.Errorf("%s: %s", verb, got)
		}
	}
	a := account(metaNumber, metaBusiness)
	at := provider.Access{Secrets: a.Secrets}
	for _, v := range []any{s, &s, a, &a, at, &at, provider.Dispatch{Access: at}, app.ChannelEdit{Secrets: a.Secrets}, []provider.Secret{s}, map[string]any{"a": at}} {
		var out bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X"} {
			fmt.Fprintf(&out, verb, v)
		}
		if text, err := json.Marshal(v); err == nil { // some values can't be made into JSON
			out.Write(text)
		}
		for _, h := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
			slog.New(h).Info("it", "value", v, slog.Any("group", slog.GroupValue(slog.Any("value", v))))
		}
		for _, shown := range []string{"s3cret", "733363726574", "czNjcmV0"} { // the secret as text, in hexadecimal and as base64
			if strings.Contains(strings.ToLower(out.String()), strings.ToLower(shown)) {
				t.Errorf("%T shows %s", v, shown)
			}
		}
	}
	if s.Reveal() != "s3cret-token" {
		t.Error("whoever needs it does not get it")
	}
}

// TestAddChannel: a channel is stored only if the provider says that its number can be used.
func TestAddChannel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	add := func(a app.NewChannel) (provider.Access, []provider.Problem, error) {
		return w.AddChannel(t.Context(), w.operator(), a)
	}
	stored := func() int {
		return len(w.operator().Settings.Channels()) - 1 // all channels except the sandbox
	}
	fails := func(what string, want error, says string) {
		t.Helper()
		_, _, err := add(account(metaNumber, metaBusiness))
		if err == nil || want != nil && !errors.Is(err, want) || want == nil && !desk.IsType(err, desk.InvalidRequest) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "quality") || stored() != 0 {
			t.Errorf("%s: %v, %d stored", what, err, stored())
		}
	}
	gone := errors.New("the provider is away")
	w.meta.gone = gone
	fails("nothing can be asked", gone, "away")
	w.meta.gone = nil
	w.meta.problems = []provider.Problem{{Text: "quality is low"}, {Text: "the number is not connected", Blocking: true}}
	fails("it would not work", nil, "the number is not connected")
	unheard := provider.Problem{Text: "nothing is reported", Blocking: true, Unsubscribed: true}
	w.meta.problems = append(w.meta.problems, unheard)
	fails("it would not work, and is not subscribed to", nil, "the number is not connected")
	if w.meta.subscribed != 0 {
		t.Error("the app was subscribed for a channel that is then refused")
	}
	w.meta.problems = []provider.Problem{{Text: "quality is low"}, unheard}
	w.meta.deaf = errors.New("no permission")
	fails("it can't be subscribed to", nil, "nothing is reported")
	w.meta.deaf = nil
	w.meta.heals = gone
	fails("it works once it is subscribed to, but then the provider is away", gone, "away")
	w.meta.heals, w.meta.gone = nil, nil
	asked := len(w.meta.asked)
	for name, change := range map[string]func(*app.NewChannel){
		"no number":       func(a *app.NewChannel) { a.ExternalID = "" },
		"a phone number":  func(a *app.NewChannel) { a.ExternalID = "+905321110010" },
		"too long":        func(a *app.NewChannel) { a.ExternalID = strings.Repeat("1", 33) },
		"no business":     func(a *app.NewChannel) { a.Account.BusinessID = "" },
		"a name":          func(a *app.NewChannel) { a.Account.BusinessID = "Acme" },
		"no token":        func(a *app.NewChannel) { a.Secrets.Token = provider.Secret{} },
		"no app secret":   func(a *app.NewChannel) { a.Secrets.AppSecret = provider.Secret{} },
		"an odd version":  func(a *app.NewChannel) { a.Account.Version = "26.0" },
		"an odd address":  func(a *app.NewChannel) { a.Account.BaseURL = "ftp://graph.example.com" },
		"with a password": func(a *app.NewChannel) { a.Account.BaseURL = "https://a:b@graph.example.com" },
		"too fast":        func(a *app.NewChannel) { a.Account.PerSecond = 1001 },
		"backwards":       func(a *app.NewChannel) { a.Account.PerSecond = -1 },
	} {
		a := account(metaNumber, metaBusiness)
		change(&a)
		if _, _, err := add(a); !desk.IsType(err, desk.InvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(w.meta.asked) != asked || stored() != 0 {
		t.Errorf("the provider was asked of what can't be, or it is stored: %d", stored())
	}

	w.meta.healed = true // after the subscription, only the problem of the quality is left
	a := account(metaNumber, metaBusiness)
	a.Secrets.VerifyToken = provider.Secret{}
	added, problems, err := add(a)
	if err != nil || len(problems) != 1 || problems[0].Text != "quality is low" || stored() != 1 {
		t.Fatalf("added %+v, %+v, %v", added, problems, err)
	}
	if token := added.Secrets.VerifyToken.Reveal(); len(token) != 32 || w.verify(added.Channel.ID, token) != nil {
		t.Errorf("a verify token of %d characters was made up", len(token))
	}
	if at := w.meta.asked[len(w.meta.asked)-1]; at.Secrets.Token.Reveal() != "s3cret-token" || at.Workspace != w.ws {
		t.Errorf("checked %+v", at)
	}
	if library, err := w.TemplatesOf(t.Context(), w.operator(), added.Channel.ID); err != nil || len(library.Templates) != 4 {
		t.Errorf("its library: %+v, %v", library, err)
	}
	_, _, err = add(account(metaNumber, "100200300400501"))
	refused(t, err, desk.InvalidRequest)
	other := w.another()
	if _, problems, err := w.AddChannel(t.Context(), other.operator(), account(metaNumber, metaBusiness)); err != nil || len(problems) != 2 || problems[1].Blocking || !strings.Contains(problems[1].Text, "another workspace") || stored() != 1 {
		t.Errorf("another workspace has it too: %+v, %v", problems, err)
	}

	// If the templates can't be fetched after the channel was added, the verify token is still
	// returned.
	w.meta.away = errors.New("the provider is away")
	a.ExternalID = "200300400500601"
	added, problems, err = add(a)
	if err != nil || len(problems) != 2 || problems[1].Blocking || problems[1].Advice != (desk.Advice{Kind: desk.SyncChannel, Arg: added.Channel.ID.String()}) || stored() != 2 {
		t.Errorf("added %+v, %+v, %v", added, problems, err)
	}
	must(t, w.verify(added.Channel.ID, added.Secrets.VerifyToken.Reveal()))
}

// TestEditChannel_same: an edit that changes nothing writes nothing.
func TestEditChannel_same(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	yes, fast := true, 500
	edits := []app.ChannelEdit{
		{}, {Enabled: &yes}, {PerSecond: &fast}, {Secrets: account(metaNumber, metaBusiness).Secrets}, {Secrets: provider.Secrets{AppSecret: provider.NewSecret(appSecret)}},
		{Enabled: &yes, PerSecond: &fast, Bindings: map[desk.BindingPlace]desk.Binding{}},
	}
	edit := func(e app.ChannelEdit) {
		t.Helper()
		_, err := w.EditChannel(t.Context(), w.operator(), channel, e)
		must(t, err)
	}
	edit(edits[2])
	before, start := w.caller().Settings.Version, w.latest()
	for i, e := range edits {
		if edit(e); w.caller().Settings.Version != before || w.latest() != start {
			t.Errorf("edit %d has changed something", i)
			before, start = w.caller().Settings.Version, w.latest()
		}
	}
	edit(app.ChannelEdit{Secrets: provider.Secrets{Token: provider.NewSecret("s3cret-2")}})
	if !w.raised(before, 1) || w.latest() == start {
		t.Error("another token has changed nothing")
	}
}

// TestEditChannel_secrets: new secrets are tried at the provider first, and then replace the
// old ones. The previous app secret stays valid for a week, for callbacks on their way.
func TestEditChannel_secrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	edit := func(s provider.Secrets) error {
		_, err := w.EditChannel(t.Context(), w.operator(), channel, app.ChannelEdit{Secrets: s})
		return err
	}
	signs := func(want ...string) {
		t.Helper()
		for _, secret := range []string{"", appSecret, "s3cret-2", "s3cret-3"} {
			ok := w.calledBack(channel, sign(secret, []byte("[]")), []byte("[]")) == nil
			if expected := strings.Contains(" "+strings.Join(want, " ")+" ", " "+secret+" ") && secret != ""; ok != expected {
				t.Errorf("signed with %q: %v", secret, ok)
			}
		}
	}
	signs(appSecret)
	must(t, edit(provider.Secrets{Token: provider.NewSecret("s3cret-token-2")}))
	signs(appSecret)
	must(t, edit(provider.Secrets{AppSecret: provider.NewSecret("s3cret-2")}))
	signs(appSecret, "s3cret-2")
	must(t, edit(provider.Secrets{AppSecret: provider.NewSecret("s3cret-2")})) // the secret is the same as before
	signs(appSecret, "s3cret-2")
	w.meta.problems = []provider.Problem{{Text: "the app secret is wrong", Blocking: true}}
	refused(t, edit(provider.Secrets{AppSecret: provider.NewSecret("s3cret-3")}), desk.InvalidRequest)
	w.meta.problems = nil
	signs(appSecret, "s3cret-2")
	must(t, edit(provider.Secrets{AppSecret: provider.NewSecret("s3cret-3"), VerifyToken: provider.NewSecret("s3cret-verify-2")}))
	signs("s3cret-2", "s3cret-3")
	must(t, w.verify(channel, "s3cret-verify-2"))
	refused(t, w.verify(channel, verifyToken), desk.Forbidden)
	if at := w.meta.asked[len(w.meta.asked)-1]; at.Secrets.Token.Reveal() != "s3cret-token-2" || at.Secrets.AppSecret.Reveal() != "s3cret-3" {
		t.Error("other secrets were tried out than are stored")
	}

	fast, yes := 500, true
	c, err := w.EditChannel(t.Context(), w.operator(), channel, app.ChannelEdit{PerSecond: &fast, Enabled: &yes})
	if err != nil || c.Account.PerSecond != fast || c.Account.BusinessID != metaBusiness {
		t.Errorf("edited %+v, %v", c, err)
	}
	signs("s3cret-2", "s3cret-3")
	w.clock.advance(7*24*time.Hour - time.Minute) // a callback is repeated for this time
	signs("s3cret-2", "s3cret-3")
	w.clock.advance(2 * time.Minute)
	signs("s3cret-3")
	fast = 1001
	_, err = w.EditChannel(t.Context(), w.operator(), channel, app.ChannelEdit{PerSecond: &fast})
	refused(t, err, desk.InvalidRequest)
	for _, e := range []app.ChannelEdit{{PerSecond: &fast}, {Secrets: provider.Secrets{Token: provider.NewSecret("s3cret")}}} {
		e.Enabled = new(bool)
		_, err = w.EditChannel(t.Context(), w.operator(), w.channel, e)
		refused(t, err, desk.InvalidRequest)
	}
	if c := w.caller().Settings.Channel(w.channel); !c.Enabled || c.Account.Sealed != nil {
		t.Errorf("the sandbox is %+v", c)
	}
}

// TestCheckChannel_signs_of_life: a check also reports missing callbacks, which the provider
// does not know.
func TestCheckChannel_signs_of_life(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.meta.away = errors.New("the provider is away")
	channel := w.connect(metaNumber, metaBusiness)
	says := func(want ...string) {
		t.Helper()
		problems, err := w.CheckChannel(t.Context(), w.operator(), channel)
		must(t, err)
		for i, p := range problems {
			if i >= len(want) || !strings.Contains(p.Text, want[i]) {
				t.Errorf("says %q", p.Text)
			}
		}
		if len(problems) != len(want) {
			t.Errorf("%d problems, want %q", len(problems), want)
		}
	}
	const never, old, unasked, silent = "never fetched", "fetched last on", "the provider has not asked", "in the last seven days"
	says(never, unasked)
	refused(t, w.verify(channel, "x"), desk.Forbidden)
	says(never, unasked)
	must(t, w.verify(channel, verifyToken))
	says(never)
	w.meta.away = nil
	_, _, err := w.SyncChannel(t.Context(), w.operator(), channel)
	must(t, err)
	says()
	w.clock.advance(2 * time.Hour)
	says()
	w.clock.advance(2 * time.Hour)
	says(old)
	w.clock.advance(7 * 24 * time.Hour)
	says(old, silent)
	w.callback(channel, many(1)...)
	says(old)
	w.clock.advance(8 * 24 * time.Hour)
	must(t, w.Forget(t.Context()))
	says(old, silent)
	if problems, err := w.CheckChannel(t.Context(), w.operator(), w.channel); err != nil || len(problems) != 0 {
		t.Errorf("of a sandbox: %+v, %v", problems, err)
	}
}

// TestAddChannel_address: the setter of the API's address is stored. Members may not set an
// address that is refused to webhooks; the operator may.
func TestAddChannel_address(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.stop()
	w.opened = true
	w.start(app.Bounds{})
	admin := "admin"
	_, err := w.EditMember(t.Context(), w.operator(), w.ada.ID, app.MemberEdit{Role: &admin})
	must(t, err)
	member, err := w.Access.Member(t.Context(), w.ws, w.ada.ID)
	must(t, err)
	add := func(p desk.Principal, number, base string) (desk.ID, error) {
		n := account(number, metaBusiness)
		n.Account.BaseURL = base
		at, _, err := w.AddChannel(t.Context(), p, n)
		return at.Channel.ID, err
	}
	for _, base := range []string{"http://127.0.0.2", "https://127.0.0.2:8080/x", "http://[::ffff:127.0.0.2]/"} {
		_, err := add(member, "200300400500611", base)
		if e := refusalOf(t, err, desk.InvalidRequest); e.At != "/graph_url" {
			t.Errorf("%s: %v", base, err)
		}
	}
	for _, c := range []struct {
		by   desk.Principal
		base string
		want desk.Setter
	}{{member, "http://127.0.0.1", desk.SetByTenant}, {member, "https://graph.example.com", desk.SetByTenant}, {member, "", ""}, {w.operator(), "http://127.0.0.2", desk.SetByOperator}, {w.operator(), "", ""}} {
		member.Settings = w.operator().Settings
		id, err := add(c.by, "2003004005006"+strconv.Itoa(20+len(w.operator().Settings.Channels())), c.base)
		must(t, err)
		if got := w.operator().Settings.Channel(id).Account.BaseOf; got != c.want {
			t.Errorf("%+v: set by %q", c, got)
		}
	}
}
