// Package whatsapptest simulates the WhatsApp Business Cloud API on a port: the Graph
// calls, the webhooks, and the failures of both. It shares no code with the client under
// test, so that both can't contain the same mistake.
//
//	whatsapptest.go  Config, Settings, what was accepted
//	graph.go         the Graph API: who may call, which object, which page
//	message.go       a message as it was posted: its shape
//	check.go         whether the message may be sent
//	rules.go         the outcome that a message gets
//	send.go          the outcomes
//	template.go      the library of templates
//	media.go         files: uploads, what people send, their faults
//	webhook.go       signed bodies, posted until they are accepted
//	inbound.go       messages from people, and changes of accounts
//	control.go       the control API
//	failure.go       refusals in the words of the Graph API
//
// A Simulator is an http.Handler; httptest.NewServer(sim) puts it on a port. Graph
// calls live under /v{N}.0/, the control API under /_sim/:
//
//	GET    /_sim/                           this list, as text
//	POST   /_sim/inbound                    {"from":"905321112233","name":"Ayşe","text":"Merhaba"}
//	POST   /_sim/echo                       {"from":"905321112233","text":"typed in the phone app"}
//	GET    /_sim/media                      the files
//	POST   /_sim/media/{id}                 {"fault":"fail:2"}: what goes wrong when it is fetched
//	GET    /_sim/reads                      the messages that were marked as read
//	GET    /_sim/sends                      the accepted messages; ?callback=ID counts one
//	GET    /_sim/deliveries                 the last webhooks, and how they were answered
//	GET    /_sim/rules                      the scripted outcomes, first match wins
//	POST   /_sim/rules                      {"match":{"to":"+905321112233","next":1},"outcome":"accept_lose_response"}
//	DELETE /_sim/rules                      back to accepting
//	GET    /_sim/settings                   how it behaves
//	POST   /_sim/settings                   {"pair_limit":true,"paging":{"size":5}}: changes these settings
//	GET    /_sim/templates                  the library
//	PUT    /_sim/templates                  {"data":[…]} or […]: another library
//	POST   /_sim/templates/{name}/{lang}    {"status":"PAUSED"}: a change, and its webhook
//	DELETE /_sim/templates/{name}/{lang}
//	POST   /_sim/templates/{name}/{lang}/recreate
//	POST   /_sim/webhook                    {"url":"http://…","verify_token":"…","verify":true}
//	POST   /_sim/deliver                    the body, signed
//	POST   /_sim/change                     {"field":"account_alerts","value":{…}}: any webhook
//	POST   /_sim/preferences                {"from":"905321112233","value":"stop"}
//	POST   /_sim/user-id                    {"from":"905321112233","user_id":"TR.2"}
//	POST   /_sim/number                     {"from":"905321112233","to":"905324445566"}
//	POST   /_sim/restriction                {"type":"RESTRICTED_BIZ_INITIATED_MESSAGING"}
//	POST   /_sim/quality                    {"event":"THROUGHPUT_UPGRADE","limit":"TIER_UNLIMITED"}
//
// Messages are checked in this order, and the first check that fails gives the response:
// token (190), object (100/33), JSON (100), messaging_product (100), type and shape
// (100), recipient (131009, 131021, 131062, 131030), throttles (130429, 131056), a
// closed window that is refused at once (131047), file (100, 131053), template (132001,
// 132015, 132016), parameters (names 100, count 132000, text 132018, missing 131008,
// format 132012, length 132005), file of the header (100, 131053). Then the rules apply.
// A Simulator is safe for concurrent use.
//
// A file is fetched by its id. The response has an address under /_media/, which works
// for five minutes and only with the token. Uploads are kept for 30 days.
package whatsapptest

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Config has the ids and secrets of the simulated account. A field with the zero value
// gets its default.
type Config struct {
	Token         string // EAATESTTOKEN
	AppID         string // 400500600700800
	AppSecret     string // app-secret-for-tests
	OldSecret     string // signs webhooks of the outcome old_secret
	BusinessID    string // the WABA, 100200300400500
	PhoneNumberID string // 200300400500600
	DisplayNumber string // the sender's digits, 902125550101

	WebhookURL  string          // for webhooks; empty: none are posted
	VerifyToken string          // for the handshake; verify-me
	MediaURL    string          // the address of files; default: the host that was called
	StatusDelay time.Duration   // between two statuses; 20 ms
	RetryDelays []time.Duration // before each new try of a webhook that was not accepted; 50 ms, 200 ms, 1 s

	Templates []Template       // the library; 18 of all kinds
	Now       func() time.Time // the clock of timestamps and limits, not of delays
	Seed      uint64           // for Match.Share
	Log       *slog.Logger     // one line for each call; default: none

	Settings Settings // at the start
}

// Settings control how the simulator behaves (see Configure).
type Settings struct {
	WebhookVersion  int      `json:"webhook_version"`  // the Graph version of the payloads, 26; up to 23, payloads have a conversation
	HideUserIDs     bool     `json:"hide_user_ids"`    // no user ids anywhere, no contacts in statuses
	CountryRewrites bool     `json:"country_rewrites"` // wa_id drops the Brazilian 9, and adds the Mexican 1
	PairLimit       bool     `json:"pair_limit"`       // 131056 after PairBurst messages to a person; then one more every 6 s
	PairBurst       int      `json:"pair_burst"`       // 45
	PerSecond       int      `json:"per_second"`       // 130429 above it; 0: no limit
	Window          Window   `json:"window"`           // how text outside the 24 hours is refused
	Recipients      []string `json:"recipients"`       // a test number reaches only these (131030); empty: everybody
	RequireProof    bool     `json:"require_proof"`    // "Require App Secret" is on
	Unsubscribed    bool     `json:"unsubscribed"`     // the app gets no webhooks before it subscribes
	Signing         Signing  `json:"signing"`          // how webhooks are signed
	Usage           int      `json:"usage"`            // a percentage, in the usage headers
	RegainMinutes   int      `json:"regain_minutes"`   // until calls are allowed again, in the usage headers
	Paging          Paging   `json:"paging"`           // faults of the list of templates
	Fault           *Failure `json:"fault"`            // refuses every call
	UploadFault     *Failure `json:"upload_fault"`     // refuses every upload
	Phone           Template `json:"phone"`            // fields of the number that differ
	Business        Template `json:"business"`         // fields of the WABA that differ
	TokenInfo       Template `json:"token"`            // fields of debug_token that differ
}

// A Window says how a free message outside the customer service window is refused. A free
// message is one without a template.
type Window string

// The ways to refuse a free message.
const (
	WindowAsync Window = ""     // 200, then failed with 131047
	WindowSync  Window = "sync" // 400 with 131047
	WindowOff   Window = "off"  // not refused
)

// A Signing says how webhooks are signed.
type Signing string

// The ways to sign. Receivers accept only one of them.
const (
	SignedWell   Signing = ""
	SignedBadly  Signing = "bad_signature"
	SignedNot    Signing = "no_signature"
	SignedBefore Signing = "old_secret"
)

// Paging has faults of the list of templates. Pages are counted from 1.
type Paging struct {
	Size       int  `json:"size"`         // the greatest number on a page
	EmptyPage  int  `json:"empty_page"`   // this page is empty, and more pages follow
	Loop       bool `json:"loop"`         // the second page links to itself as the next page
	FailOnPage int  `json:"fail_on_page"` // this page is refused with 503
}

// A Send is a message that was accepted.
type Send struct {
	ID         string    `json:"wamid"`
	To         string    `json:"to,omitempty"`        // as in the request
	Recipient  string    `json:"recipient,omitempty"` // a user id, if To is empty
	WaID       string    `json:"wa_id,omitempty"`
	Type       string    `json:"type"`
	Template   string    `json:"template,omitempty"`
	Language   string    `json:"language,omitempty"`
	Parameters []Param   `json:"parameters,omitempty"`
	Text       string    `json:"text,omitempty"` // the body, or the caption
	Buttons    []Button  `json:"buttons,omitempty"`
	Media      string    `json:"media,omitempty"` // the id of its file
	Filename   string    `json:"filename,omitempty"`
	Quoted     string    `json:"quoted,omitempty"`   // the wamid of the quoted message
	Callback   string    `json:"callback,omitempty"` // biz_opaque_callback_data
	Outcome    Kind      `json:"outcome"`
	At         time.Time `json:"at"`

	category string // the template's category
}

// A Button is a reply button.
type Button struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// A Param is one parameter of a template.
type Param struct {
	Component string `json:"component"` // header, body, button
	Name      string `json:"name,omitempty"`
	Type      string `json:"type"`
	Text      string `json:"text,omitempty"`
	Media     string `json:"media,omitempty"` // the id of a file in the header
	Filename  string `json:"filename,omitempty"`
	Button    int    `json:"button,omitempty"` // the button's index

	named bool // the parameter has a name, perhaps an empty one
}

// A Simulator simulates the provider. New makes one.
type Simulator struct {
	c       Config
	client  *http.Client
	control http.Handler
	posts   chan struct{} // has an element for each webhook that is being posted
	closing chan struct{} // closed when Close begins
	ctx     context.Context
	cancel  context.CancelFunc

	mu          sync.Mutex
	set         Settings
	rules       []*Rule
	templates   []Template
	sends       []Send
	media       []*Media
	reads       []ReadReceipt
	accepted    map[string]int // by callback id
	attempts    int
	made        int                  // how many ids were made
	rand        *rand.Rand           // for Share
	pairs       map[string]*bucket   // by digits
	throughput  bucket               //
	lastInbound map[string]time.Time // by digits or user id
	names       map[string]string    // by digits or user id
	userIDs     map[string]string    // by digits, if it is not the usual id
	deliveries  []*Delivery          // the last ones
	pending     int                  // running goroutines
	idle        chan struct{}        // closed when no goroutine is running
	closed      bool
}

// New builds a Simulator. The caller must close it.
func New(c Config) *Simulator {
	orElse(&c.Token, "EAATESTTOKEN")
	orElse(&c.AppID, "400500600700800")
	orElse(&c.AppSecret, "app-secret-for-tests")
	orElse(&c.OldSecret, "old-app-secret-for-tests")
	orElse(&c.BusinessID, "100200300400500")
	orElse(&c.PhoneNumberID, "200300400500600")
	orElse(&c.DisplayNumber, "902125550101")
	c.DisplayNumber = digits(c.DisplayNumber)
	orElse(&c.VerifyToken, "verify-me")
	orElse(&c.StatusDelay, 20*time.Millisecond)
	if c.RetryDelays == nil {
		c.RetryDelays = []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, time.Second}
	}
	if c.Templates == nil {
		c.Templates = Library()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	s := &Simulator{
		c: c, client: webhookClient(), posts: make(chan struct{}, atOnce), closing: make(chan struct{}),
		accepted: map[string]int{}, rand: rand.New(rand.NewPCG(c.Seed, 0)), pairs: map[string]*bucket{},
		lastInbound: map[string]time.Time{}, names: map[string]string{}, userIDs: map[string]string{},
		idle: make(chan struct{}),
	}
	close(s.idle)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.control = s.routes()
	s.Configure(func(set *Settings) { *set = c.Settings })
	s.SetTemplates(c.Templates)
	return s
}

// orElse sets a missing value to its default.
func orElse[T comparable](v *T, byDefault T) {
	var zero T
	if *v == zero {
		*v = byDefault
	}
}

// Configure changes how the simulator behaves, from the next call on.
func (s *Simulator) Configure(change func(*Settings)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.set)
	orElse(&s.set.WebhookVersion, 26)
	orElse(&s.set.PairBurst, 45)
	orElse(&s.set.RegainMinutes, 5)
}

func (s *Simulator) settings() Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set
}

// SetWebhook sets the URL for webhooks. If it is empty, no webhooks are posted.
func (s *Simulator) SetWebhook(url, verifyToken string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.WebhookURL = url
	if verifyToken != "" {
		s.c.VerifyToken = verifyToken
	}
}

func (s *Simulator) webhook() (url, verifyToken string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.c.WebhookURL, s.c.VerifyToken
}

// Sends returns the accepted messages, oldest first.
func (s *Simulator) Sends() []Send {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sends)
}

// Accepted returns how many accepted messages had this callback id. It is one if the
// message was sent exactly once.
func (s *Simulator) Accepted(callback string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted[callback]
}

// AcceptedTotal returns how many messages were accepted.
func (s *Simulator) AcceptedTotal() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sends)
}

// Duplicates returns the callback ids that were accepted more than once, sorted.
func (s *Simulator) Duplicates() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var twice []string
	for callback, n := range s.accepted {
		if n > 1 && callback != "" {
			twice = append(twice, callback)
		}
	}
	slices.Sort(twice)
	return twice
}

// Attempts returns how often a message was posted, accepted or not.
func (s *Simulator) Attempts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempts
}

// Settle waits until no status is due and no webhook is being posted.
func (s *Simulator) Settle(ctx context.Context) error {
	for {
		s.mu.Lock()
		pending, idle := s.pending, s.idle
		s.mu.Unlock()
		if pending == 0 {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends slow responses. It waits up to five seconds for webhooks that are being
// posted, or are due within a second. Later webhooks are not posted.
func (s *Simulator) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	s.mu.Unlock()
	soon, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	if s.Settle(soon) != nil {
		s.c.Log.Warn("webhooks were left undelivered")
	}
	s.cancel()
	<-s.idleNow()
	s.client.CloseIdleConnections()
}

func (s *Simulator) idleNow() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.idle
}

// begin runs the callback do in a goroutine. Settle and Close wait for it.
func (s *Simulator) begin(do func()) {
	s.mu.Lock()
	if s.pending == 0 {
		s.idle = make(chan struct{})
	}
	s.pending++
	s.mu.Unlock()
	go func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.pending--; s.pending == 0 {
				close(s.idle)
			}
		}()
		do()
	}()
}

// pause waits. It returns false if Close has begun and the wait is too long.
func (s *Simulator) pause(d time.Duration) bool {
	if d <= 0 {
		return s.ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	closing := s.closing
	if d <= time.Second {
		closing = nil
	}
	select {
	case <-timer.C:
		return true
	case <-closing:
		return false
	case <-s.ctx.Done():
		return false
	}
}

// IDs are the ids of the simulated account.
type IDs struct{ BusinessID, PhoneNumberID, AppID, DisplayNumber string }

// IDs returns the ids in calls and webhooks.
func (s *Simulator) IDs() IDs {
	return IDs{s.c.BusinessID, s.c.PhoneNumberID, s.c.AppID, s.c.DisplayNumber}
}
