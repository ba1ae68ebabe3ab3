package app_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/provider"
)

// pigeon is a kind of channel that app does not know.
const pigeon desk.ChannelKind = "pigeon"

// A pigeons provider has templates and accounts, but no callbacks. It knows people only by
// its own ids.
type pigeons struct {
	provider.Provider
	fetched int
	refuses bool // refuse all secrets
}

func (*pigeons) Send(_ context.Context, d provider.Dispatch) (provider.Receipt, error) {
	return provider.Receipt{ExternalID: messageID(d.Attempt), UserID: "coop-7"}, nil
}

func (p *pigeons) Templates(context.Context, provider.Access) ([]desk.TemplateSource, error) {
	p.fetched++
	return templates(), nil
}

func (*pigeons) Check(context.Context, provider.Access) ([]provider.Problem, error) { return nil, nil }

func (p *pigeons) CheckAccount(c *desk.Channel, s *provider.Secrets) error {
	if p.refuses || c.Account.BusinessID == "" || s != nil && s.Token == (provider.Secret{}) {
		return desk.InvalidAt("/loft", "name the loft, and its password")
	}
	return nil
}

func (*pigeons) Identities(_, userID string) []desk.Identity {
	return []desk.Identity{{Kind: "pigeon", Value: userID}}
}

func (*pigeons) Limits(*desk.Channel, func() string) provider.Limits { return provider.Limits{} }

// TestThirdProvider: another kind of channel only needs a Provider.
func TestThirdProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	loft := &pigeons{}
	w.others = map[desk.ChannelKind]provider.Provider{pigeon: loft}
	w.stop()
	w.start(app.Bounds{})

	_, _, err := w.AddChannel(t.Context(), w.operator(), app.NewChannel{Kind: pigeon, ExternalID: "roof"})
	refused(t, err, desk.InvalidRequest)
	added, problems, err := w.AddChannel(t.Context(), w.operator(), app.NewChannel{
		Kind: pigeon, ExternalID: "roof", Account: desk.Account{BusinessID: "loft"},
		Secrets: provider.Secrets{Token: provider.NewSecret("s3cret-coo"), AppSecret: provider.NewSecret(appSecret)},
	})
	if err != nil || len(problems) != 0 || added.Secrets.VerifyToken != (provider.Secret{}) || loft.fetched != 1 {
		t.Fatalf("added %+v, %v, %v; %d fetches", added, problems, err, loft.fetched)
	}
	id := added.Channel.ID
	says := func(want string) {
		t.Helper()
		problems, err := w.CheckChannel(t.Context(), w.operator(), id)
		if err != nil || len(problems) > 1 || len(problems) == 1 != (want != "") || want != "" && !strings.Contains(problems[0].Text, want) {
			t.Errorf("problems: %+v, %v, want %q", problems, err, want)
		}
	}
	says("")
	w.clock.advance(4 * time.Hour)
	says("templates were fetched last")
	if err := w.SyncStale(t.Context()); err != nil || loft.fetched != 2 {
		t.Errorf("%d fetches, %v", loft.fetched, err)
	}
	says("")
	no := app.ChannelEdit{Secrets: provider.Secrets{AppSecret: provider.NewSecret("s3cret-egg")}}
	loft.refuses = true
	_, err = w.EditChannel(t.Context(), w.operator(), id, no)
	refused(t, err, desk.InvalidRequest)
	loft.refuses = false

	// Commands for simulated channels are refused. Callbacks of another provider are refused
	// also.
	_, err = w.PutTemplate(t.Context(), w.operator(), id, []byte(templates()[0].Source))
	refused(t, err, desk.InvalidRequest)
	_, err = w.ReceiveSimulated(t.Context(), w.operator(), id, "+"+number, "", "Hi")
	refused(t, err, desk.InvalidRequest)
	refused(t, w.calledBack(id, sign(appSecret, []byte("[]")), []byte("[]")), desk.Unauthorized)
	if kinds := w.CallbackKinds(); !slices.Equal(kinds, []desk.ChannelKind{desk.WhatsAppChannel}) {
		t.Errorf("callbacks of %v", kinds)
	}

	// The receipt of a message has the provider's id of the person, and the person's answer is
	// recognised by this id.
	sent := w.sent("key", on(id))
	answer, err := w.Receive(t.Context(), w.ws, id, provider.InboundMessage{ExternalID: "feather-1", UserID: "coop-7", Text: "Coo", At: desk.TimeOf(w.clock.now())})
	must(t, err)
	if answer.ID != sent.Conversation.ID {
		t.Errorf("the answer is in the conversation %s, not %s", answer.ID, sent.Conversation.ID)
	}
	want := []desk.Identity{{Kind: "pigeon", Value: "coop-7"}}
	if c := w.contact(answer.ContactID); !slices.Equal(c.Further, want) {
		t.Errorf("the contact has %+v", c.Further)
	}
	// A stranger gets an identity of this kind only.
	stranger, err := w.Receive(t.Context(), w.ws, id, provider.InboundMessage{ExternalID: "feather-2", UserID: "coop-8", Text: "Coo", At: desk.TimeOf(w.clock.now())})
	must(t, err)
	if c := w.contact(stranger.ContactID); len(c.Further) != 1 || c.Further[0].Kind != "pigeon" || c.Phone != "" {
		t.Errorf("the stranger is %+v", c)
	}
}
