package app_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/store"
	"parley/whatsapp"
)

// A meta simulates WhatsApp. Its callbacks are lists of updates in JSON. Their signature is
// a hash of the app secret and the body.
type meta struct {
	*whatsapp.Provider // for methods without calls: limits, checks of accounts
	mu                 sync.Mutex
	library            []desk.TemplateSource
	away               error // the error when templates are fetched
	gone               error // the error that Check returns
	deaf               error // the error that Subscribe returns
	heals              error // the error that Check returns after a subscription
	healed             bool  // a subscription solves the blocking problems
	problems           []provider.Problem
	asked              []provider.Access // the channels for which Subscribe and Check were called
	subscribed         int
	fetched            map[desk.ID]int
	receipt            provider.Receipt // the receipt of each message, except its id
	refusal            *desk.Refusal

	meanwhile func(provider.Dispatch) // called while a message is on its way
	fetching  func()                  // called while a library is fetched
	slow      desk.ID                 // the channel whose library never comes
	calls     []provider.Dispatch
	sick      bool          // reading panics
	stuck     chan struct{} // reading waits until it is closed; nil: reading does not wait
	uploads   int
}

func newMeta() *meta {
	return &meta{Provider: whatsapp.New(whatsapp.Config{Now: time.Now}), library: templates(), fetched: map[desk.ID]int{}}
}

// change changes the behaviour of the simulated WhatsApp.
func (m *meta) change(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
}

func (m *meta) Send(_ context.Context, d provider.Dispatch) (provider.Receipt, error) {
	m.mu.Lock()
	meanwhile := m.meanwhile
	m.mu.Unlock()
	if meanwhile != nil {
		meanwhile(d)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, d)
	if m.refusal != nil {
		return provider.Receipt{}, m.refusal
	}
	r := m.receipt
	r.ExternalID = messageID(d.Attempt)
	return r, nil
}

// MarkRead replaces the method of whatsapp.Provider, so that no call is made.
func (m *meta) MarkRead(context.Context, provider.Access, string) error { return nil }

// Upload replaces the method of whatsapp.Provider, so that no call is made.
func (m *meta) Upload(context.Context, provider.Access, string, string, int64, io.Reader) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uploads++
	return fmt.Sprint("upload ", m.uploads), nil
}

func (m *meta) Templates(ctx context.Context, at provider.Access) ([]desk.TemplateSource, error) {
	m.mu.Lock()
	m.fetched[at.Channel.ID]++
	library, away, fetching, slow := m.library, m.away, m.fetching, m.slow
	m.mu.Unlock()
	if at.Channel.ID == slow {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if fetching != nil {
		fetching()
	}
	return library, away
}

func (m *meta) times(channel desk.ID) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fetched[channel]
}

func (m *meta) Check(_ context.Context, at provider.Access) ([]provider.Problem, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, at)
	return m.problems, m.gone
}

func (m *meta) Subscribe(_ context.Context, at provider.Access) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, at)
	m.subscribed++
	if m.healed {
		m.problems = slices.DeleteFunc(m.problems, func(p provider.Problem) bool { return p.Blocking })
	}
	m.gone = m.heals
	return m.deaf
}

func (m *meta) Read(n desk.InboundItem) (told []provider.Update, rest *provider.Later, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stuck != nil {
		<-m.stuck
	}
	if m.sick {
		panic("a bug in reading")
	}
	err = json.Unmarshal(n.Body, &told)
	return told, nil, err
}

func (m *meta) Signed(at provider.Access, header func(string) string, body []byte) bool {
	signed := false
	for _, s := range []provider.Secret{at.Secrets.AppSecret, at.Secrets.OldAppSecret} {
		signed = signed || s != (provider.Secret{}) && header("X-Hub-Signature-256") == sign(s.Reveal(), body)
	}
	return signed
}

func sign(secret string, body []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(append([]byte(secret), body...)))
}

func (m *meta) OnlyReports(body []byte) bool {
	return bytes.Contains(body, []byte(`"Delivery":`)) && !bytes.Contains(body, []byte(`"Message":{`))
}

func (m *meta) People(body []byte) (list []desk.Identity) {
	var told []provider.Update
	if err := json.Unmarshal(body, &told); err != nil {
		return nil
	}
	for _, h := range told {
		if h.Message != nil {
			list = append(list, m.Identities(h.Message.Number, h.Message.UserID)...)
		}
		if h.Status != nil && h.Status.UserID != "" {
			list = append(list, m.Identities("", h.Status.UserID)...)
		}
		if h.Move != nil {
			list = append(list, m.Identities(h.Move.Number, h.Move.UserID)...)
			list = append(list, m.Identities(h.Move.NewNumber, h.Move.NewUserID)...)
		}
		if h.Choice != nil {
			list = append(list, m.Identities(h.Choice.Number, h.Choice.UserID)...)
		}
	}
	return list
}

// The secrets of the tests' WhatsApp channels.
const (
	metaNumber, metaBusiness = "200300400500600", "100200300400500"
	appSecret, verifyToken   = "s3cret-app", "s3cret-verify"
)

func account(number, business string) app.NewChannel {
	return app.NewChannel{
		Kind: desk.WhatsAppChannel, ExternalID: number, Account: desk.Account{BusinessID: business, PerSecond: 1000},
		Secrets: provider.Secrets{Token: provider.NewSecret("s3cret-token"), AppSecret: provider.NewSecret(appSecret), VerifyToken: provider.NewSecret(verifyToken)},
	}
}

// connect adds a WhatsApp channel.
func (w *world) connect(number, business string) desk.ID {
	w.t.Helper()
	return w.connectAs(account(number, business))
}

func (w *world) connectAs(a app.NewChannel) desk.ID {
	w.t.Helper()
	at, _, err := w.AddChannel(context.Background(), w.operator(), a)
	must(w.t, err)
	return at.Channel.ID
}

// callback sends a callback with updates to a channel, as WhatsApp does.
func (w *world) callback(channel desk.ID, told ...provider.Update) {
	w.t.Helper()
	body, err := json.Marshal(told)
	must(w.t, err)
	must(w.t, w.calledBack(channel, sign(appSecret, body), body))
}

// calledBack sends a callback with this signature and body, as WhatsApp does.
func (w *world) calledBack(channel desk.ID, signature string, body []byte) error {
	return w.ReceiveCallback(context.Background(), desk.WhatsAppChannel, channel, carrying(signature), body)
}

// carrying returns the headers of a callback with a signature.
func carrying(signature string) func(string) string {
	return func(name string) string { return map[string]string{"X-Hub-Signature-256": signature}[name] }
}

// verify simulates that WhatsApp verifies a channel's callback URL with a token.
func (w *world) verify(channel desk.ID, token string) error {
	query := map[string]string{"hub.mode": "subscribe", "hub.verify_token": token, "hub.challenge": "1158201444"}
	answer, err := w.VerifyCallback(context.Background(), desk.WhatsAppChannel, channel, func(name string) string { return query[name] })
	if err == nil && answer != query["hub.challenge"] {
		w.t.Errorf("the challenge is answered with %q", answer)
	}
	return err
}

// inbound returns a message as a callback reports it. Its id and its time depend on n.
func inbound(n int, number, user, text string) provider.Update {
	return provider.Update{Channel: metaNumber, Message: &provider.InboundMessage{
		ExternalID: fmt.Sprint("wamid.in.", n), Number: number, UserID: user, Text: text, At: desk.Time(1000 * n),
	}}
}

// writer returns the contact who wrote the message inbound(n, …), or nil if the message is
// not stored.
func (w *world) writer(channel desk.ID, n int) (c *desk.Contact) {
	w.t.Helper()
	must(w.t, w.file.InTx(context.Background(), w.ws, func(tx store.Tx) error {
		m, err := tx.MessageBy(channel, fmt.Sprint("wamid.in.", n))
		if err != nil || m == nil {
			return err
		}
		conversation, err := tx.Conversation(m.ConversationID)
		if err != nil {
			return err
		}
		c, err = tx.Contact(conversation.ContactID)
		return err
	}))
	return c
}
