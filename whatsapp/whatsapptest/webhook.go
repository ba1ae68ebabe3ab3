package whatsapptest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	atOnce = 64   // how many webhooks are posted at a time
	kept   = 1000 // how many deliveries are remembered
)

func webhookClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: atOnce, IdleConnTimeout: time.Minute, DisableCompression: true},
		Timeout:       20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Sign returns the header X-Hub-Signature-256 for a webhook with this body.
func Sign(secret string, body []byte) string { return "sha256=" + sum(secret, body) }

func sum(secret string, message []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(message)
	return hex.EncodeToString(mac.Sum(nil))
}

// Escape writes JSON as Meta does: in ASCII, other characters as \u and four lower-case
// digits, and a backslash before each slash. Existing escapes do not change.
func Escape(plain []byte) []byte {
	out := make([]byte, 0, len(plain)+len(plain)/8)
	for i := 0; i < len(plain); {
		switch c := plain[i]; {
		case c == '\\' && i+1 < len(plain) && plain[i+1] < utf8.RuneSelf:
			out = append(out, c, plain[i+1])
			i += 2
		case c == '/':
			out = append(out, '\\', '/')
			i++
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, size := utf8.DecodeRune(plain[i:])
			for _, unit := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
			i += size
		}
	}
	return out
}

// A Delivery is a webhook and its tries.
type Delivery struct {
	ID    string // of the message that it reports on, if any
	Media string // the id of this message's file, if any
	Body  []byte // the bytes that are posted

	signature string
	done      chan struct{}
	mu        sync.Mutex
	answers   []int
}

// Wait waits until the webhook is accepted or given up, and returns the last status: 200
// if it was accepted, 0 if there was no response or no URL.
func (d *Delivery) Wait() int {
	<-d.done
	if answers := d.Answers(); len(answers) > 0 {
		return answers[len(answers)-1]
	}
	return 0
}

// Answers returns the status of each try so far, 0 for a try without a response.
func (d *Delivery) Answers() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.answers)
}

// Done is closed when the webhook is accepted or given up.
func (d *Delivery) Done() <-chan struct{} { return d.done }

// Deliveries returns the last thousand webhooks, oldest first.
func (s *Simulator) Deliveries() []*Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deliveries)
}

// Deliver signs these bytes and posts them. While the response is not 200, it posts them
// again after each of the delays.
func (s *Simulator) Deliver(body []byte) *Delivery {
	return s.deliver(&Delivery{Body: body}, s.settings().Signing)
}

// Change posts a webhook with one change of this field.
func (s *Simulator) Change(field string, value any) *Delivery {
	entry := s.entry(change(field, value))
	if field != "messages" && field != "user_preferences" && field != "user_id_update" {
		entry["time"] = s.c.Now().Unix()
	}
	return s.Deliver(envelope(entry))
}

func change(field string, value any) map[string]any {
	return map[string]any{"field": field, "value": value}
}

func (s *Simulator) entry(changes ...map[string]any) map[string]any {
	return map[string]any{"id": s.c.BusinessID, "changes": changes}
}

func envelope(entries ...map[string]any) []byte {
	return compact(map[string]any{"object": "whatsapp_business_account", "entry": entries})
}

func (s *Simulator) deliver(d *Delivery, signing Signing) *Delivery {
	d.done = make(chan struct{})
	d.signature = s.signature(d.Body, signing)
	target, _ := s.webhook()
	if target == "" || s.settings().Unsubscribed {
		close(d.done)
		return d
	}
	s.mu.Lock()
	if s.deliveries = append(s.deliveries, d); len(s.deliveries) > kept {
		s.deliveries = slices.Delete(s.deliveries, 0, len(s.deliveries)-kept)
	}
	s.mu.Unlock()
	s.begin(func() {
		defer close(d.done)
		for try := 0; !s.try(d, target) && try < len(s.c.RetryDelays); try++ {
			if !s.pause(s.c.RetryDelays[try]) {
				return
			}
		}
	})
	return d
}

func (s *Simulator) signature(body []byte, signing Signing) string {
	switch signing {
	case SignedNot:
		return ""
	case SignedBadly:
		return Sign(s.c.AppSecret+"?", body)
	case SignedBefore:
		return Sign(s.c.OldSecret, body)
	default:
		return Sign(s.c.AppSecret, body)
	}
}

// try posts the webhook once, and tells whether it was accepted.
func (s *Simulator) try(d *Delivery, target string) bool {
	select {
	case s.posts <- struct{}{}:
		defer func() { <-s.posts }()
	case <-s.ctx.Done():
		return false
	}
	status := s.post(d, target)
	s.c.Log.Info("webhook", "status", status, "bytes", len(d.Body))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers = append(d.answers, status)
	return status == http.StatusOK
}

func (s *Simulator) post(d *Delivery, target string) int {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, target, bytes.NewReader(d.Body))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "facebookexternalua")
	if d.signature != "" {
		req.Header.Set("X-Hub-Signature-256", d.signature)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // so that the connection can be used again
	return resp.StatusCode
}

// VerifyWebhook makes the handshake of the webhook's URL, and returns an error if it fails.
func (s *Simulator) VerifyWebhook(ctx context.Context) error {
	target, token := s.webhook()
	return s.verify(ctx, target, token)
}

func (s *Simulator) verify(ctx context.Context, target, token string) error {
	u, err := url.Parse(target)
	if err != nil || target == "" {
		return fmt.Errorf("%q is no webhook URL", target)
	}
	n, err := rand.Int(rand.Reader, big.NewInt(1<<31))
	if err != nil {
		return err
	}
	challenge := n.String()
	query := u.Query()
	query.Set("hub.mode", "subscribe")
	query.Set("hub.challenge", challenge)
	query.Set("hub.verify_token", token)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || string(body) != challenge {
		return fmt.Errorf("the handshake was answered with %d and %q, not with 200 and the challenge", resp.StatusCode, body)
	}
	return nil
}

// MarshalJSON writes the delivery for the control API.
func (d *Delivery) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"id": d.ID, "body": string(d.Body), "signature": d.signature, "answers": d.Answers()})
}
