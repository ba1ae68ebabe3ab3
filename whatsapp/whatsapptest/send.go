package whatsapptest

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// postMessage accepts a message, or applies the outcome of a rule.
func (s *Simulator) postMessage(c *call) {
	s.mu.Lock()
	s.attempts++
	s.mu.Unlock()
	if fail := s.admits(c); fail != nil {
		s.answer(c, nil, fail)
		return
	}
	if s.resets() {
		s.cut(c, nil, true)
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, 1<<20))
	if err != nil {
		s.answer(c, nil, refusal(100, "the body can't be read"))
		return
	}
	if !isJSON(c.r) {
		s.answer(c, nil, refusal(100, "Content-Type is not application/json"))
		return
	}
	m, fail := parse(raw)
	if fail != nil {
		s.answer(c, nil, fail)
		return
	}
	if m.read != "" {
		s.mu.Lock()
		s.reads = append(s.reads, ReadReceipt{m.read, s.c.Now()})
		s.mu.Unlock()
		s.answer(c, map[string]any{"success": true}, nil)
		return
	}
	snd, o, fail := s.take(m)
	if fail != nil {
		s.answer(c, nil, fail)
		return
	}
	s.play(c, snd, o)
}

// admits returns the refusal for a call that can be refused before its body is read, or
// nil.
func (s *Simulator) admits(c *call) *Failure {
	for _, header := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if _, ok := c.r.Header[header]; ok {
			return refusal(100, "The header %s makes Go's client repeat a message by itself. Graph has no idempotency keys: remove it.", header)
		}
	}
	if fail := s.allowed(c); fail != nil {
		return fail
	}
	if c.id != s.c.PhoneNumberID {
		return missingObject("post", c.id)
	}
	return nil
}

// take checks the message, applies the rules, and records it if it is accepted.
func (s *Simulator) take(m *message) (Send, Outcome, *Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fail := s.check(m); fail != nil {
		return Send{}, Outcome{}, fail
	}
	o, scripted := s.decide(m)
	if !scripted && m.kind != "template" && s.set.Window == WindowAsync && !s.open(m) {
		o = Outcome{Kind: AcceptThenFailed, Code: 131047}
	}
	if fail := s.refuse(m, &o); fail != nil {
		return Send{}, o, fail
	}
	snd := s.sendOf(m, o)
	if o.accepts() {
		s.record(m, snd)
	}
	return snd, o, nil
}

// later lists the codes about a person that Meta reports only after it has accepted the
// message.
var later = []int{131026, 131047, 131049, 131050, 130472, 131042}

// refuse returns the failure of an outcome, or nil if the outcome is not a refusal. It
// sets default codes. The caller holds s.mu.
func (s *Simulator) refuse(m *message, o *Outcome) *Failure {
	switch o.Kind {
	case AcceptThenFailed, RefuseRecipient:
		orElse(&o.Code, 131026)
		if o.Kind == AcceptThenFailed || !o.Sync && slices.Contains(later, o.Code) {
			return nil
		}
	case Throttle:
		o.Code = 130429
	case PairThrottle:
		return s.checkPair(m)
	case AuthError:
		if o.Code == 0 {
			o.Code, o.Subcode = 190, 463
		}
		s.set.Fault = o.failure()
	case HTTP503JSON:
		orElse(&o.Code, 2)
		return nil
	case Refuse:
	default:
		return nil
	}
	return o.failure()
}

func (o Outcome) failure() *Failure {
	f := refusal(o.Code, "%s", o.Details)
	f.Subcode = o.Subcode
	if o.HTTP != 0 {
		f.HTTP = o.HTTP
	}
	return f
}

// accepts tells whether the outcome accepts the message.
func (o Outcome) accepts() bool {
	switch o.Kind {
	case ResetBeforeRead, ResetAfterRead:
		return false
	case HTTP500HTML, HTTP502Empty, HTTP503JSON, HTTP200Garbage, HTTP200NoID:
		return o.Accepted
	}
	return true
}

func (s *Simulator) sendOf(m *message, o Outcome) Send {
	snd := Send{
		ID: s.wamid(), To: m.to, Recipient: m.recipient, WaID: s.waID(m.to), Type: m.kind, Template: m.template, Language: m.language,
		Text: m.text, Buttons: m.buttons, Media: m.media, Filename: m.filename, Quoted: m.quoted, Callback: m.callback, Outcome: o.Kind, At: s.c.Now(), category: "service",
	}
	for _, c := range m.components {
		snd.Parameters = append(snd.Parameters, c.params...)
	}
	if i := s.find(m.template, m.language); i >= 0 {
		snd.category = strings.ToLower(s.templates[i].text("category"))
	}
	return snd
}

// wamid returns an id that is unique among all simulators. The caller holds s.mu.
func (s *Simulator) wamid() string {
	s.made++
	b := binary.BigEndian.AppendUint32(nil, uint32(s.made))
	b = append(b, make([]byte, 14)...)
	_, _ = rand.Read(b[4:]) // it never fails
	return "wamid." + base64.StdEncoding.EncodeToString(b)
}

func (s *Simulator) record(m *message, snd Send) {
	s.sends = append(s.sends, snd)
	s.accepted[snd.Callback]++
	s.throughput.left--
	if s.set.PairLimit || snd.Outcome == PairThrottle {
		s.pair(m).left--
	}
}

// receipt returns the response for an accepted message.
func (s *Simulator) receipt(snd Send, o Outcome) map[string]any {
	contact := map[string]any{"input": snd.To, "wa_id": snd.WaID}
	if snd.Recipient != "" {
		contact = map[string]any{"input": snd.Recipient, "user_id": snd.Recipient}
	}
	sent := map[string]any{"id": snd.ID}
	if snd.Type == "template" {
		sent["message_status"] = "accepted"
	}
	if o.Kind == AcceptHeld {
		sent["message_status"] = "held_for_quality_assessment"
	}
	messages := []any{sent}
	if o.Kind == HTTP200NoID {
		messages = []any{}
	}
	return map[string]any{"messaging_product": "whatsapp", "contacts": []any{contact}, "messages": messages}
}

// play sends the response, and posts the statuses of an accepted message.
func (s *Simulator) play(c *call, snd Send, o Outcome) {
	if o.accepts() {
		if told := s.tell(snd, o); o.Kind == StatusBefore {
			for _, d := range told {
				d.Wait()
			}
		}
	}
	switch o.Kind {
	case AcceptLoseResponse:
		s.cut(c, nil, false)
	case ResetBeforeRead, ResetAfterRead:
		s.cut(c, nil, true)
	case AcceptTruncate:
		answer := compact(s.receipt(snd, o))
		s.cut(c, append([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=UTF-8\r\nContent-Length: 400\r\n\r\n"), answer[:40]...), false)
	case AcceptSlow:
		s.wait(c, o.Delay)
		s.answer(c, s.receipt(snd, o), nil)
	case HTTP500HTML:
		s.raw(c, http.StatusInternalServerError, "text/html; charset=utf-8", "<!DOCTYPE html><html><body><h1>Sorry, something went wrong.</h1></body></html>")
	case HTTP502Empty:
		s.raw(c, http.StatusBadGateway, "", "")
	case HTTP503JSON:
		f := o.failure()
		if o.HTTP == 0 {
			f.HTTP = http.StatusServiceUnavailable
		}
		s.answer(c, nil, f)
	case HTTP200Garbage:
		s.raw(c, http.StatusOK, "text/html; charset=utf-8", `<html>{"messages":[`)
	case Redirect307:
		s.redirect(c)
	default:
		s.answer(c, s.receipt(snd, o), nil)
	}
}

// redirect redirects the call to the previous API version, which would accept it again.
func (s *Simulator) redirect(c *call) {
	to := *c.r.URL
	n, _ := strconv.Atoi(strings.TrimSuffix(c.version[1:], ".0"))
	to.Path = fmt.Sprintf("/v%d.0/%s/messages", max(n-1, 1), c.id)
	c.w.Header().Set("Location", to.String())
	s.raw(c, http.StatusTemporaryRedirect, "", "")
}

// raw writes a response that Graph itself would not send.
func (s *Simulator) raw(c *call, status int, kind, body string) {
	s.head(c)
	c.w.Header()["Content-Type"] = nil // so that net/http does not guess one
	if kind != "" {
		c.w.Header().Set("Content-Type", kind)
	}
	c.w.WriteHeader(status)
	_, _ = io.WriteString(c.w, body)
	s.logCall(c, status)
}

// wait delays the response until the time is over, the client disconnects, or Close
// begins.
func (s *Simulator) wait(c *call, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.r.Context().Done():
	case <-s.closing:
	}
}

// cut writes these bytes and closes the connection, with a reset if reset is set.
func (s *Simulator) cut(c *call, last []byte, reset bool) {
	s.logCall(c, "cut")
	conn, _, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2 only ends the stream
	}
	defer conn.Close()
	_, _ = conn.Write(last)
	if plain, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = plain.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
	}
}

// statuses returns the statuses of an accepted message.
func (o Outcome) statuses() []string {
	switch {
	case o.Statuses != nil:
		return o.Statuses
	case o.Kind == AcceptNoStatus:
		return nil
	case o.Kind == AcceptThenFailed, o.Kind == RefuseRecipient, o.Kind == AcceptHeld && o.Code != 0:
		return []string{"failed"}
	case o.Kind == StatusReorder:
		return []string{"read", "delivered", "sent"}
	}
	return []string{"sent", "delivered", "read"}
}

// tell posts the statuses of an accepted message. It returns the webhooks that are
// already being posted.
func (s *Simulator) tell(snd Send, o Outcome) (told []*Delivery) {
	bodies := s.bodies(snd, o)
	post := func(body []byte) *Delivery {
		return s.deliver(&Delivery{ID: snd.ID, Body: body}, s.signing(o))
	}
	if o.Kind == StatusBefore {
		for _, body := range bodies {
			told = append(told, post(body))
		}
		return told
	}
	if len(bodies) == 0 {
		return nil
	}
	first := s.c.StatusDelay
	if o.Kind != AcceptSlow {
		first += o.Delay
	}
	s.begin(func() {
		for i, body := range bodies {
			wait := s.c.StatusDelay
			if i == 0 {
				wait = first
			}
			if !s.pause(wait) {
				return
			}
			post(body)
		}
	})
	return nil
}

func (s *Simulator) signing(o Outcome) Signing {
	switch o.Kind {
	case BadSignature, NoSignature, OldSecret:
		return Signing(o.Kind)
	}
	return s.settings().Signing
}

// bodies returns the webhooks with the statuses of a message.
func (s *Simulator) bodies(snd Send, o Outcome) (bodies [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := o.statuses()
	if o.Kind == StatusBatch {
		return [][]byte{s.batch(snd, list, o)}
	}
	for _, status := range list {
		body := envelope(s.entry(s.statusChange(snd, s.status(snd, status, o, list))))
		bodies = append(bodies, body)
		if o.Kind == StatusDuplicate {
			bodies = append(bodies, body)
		}
	}
	if o.Kind == StatusForeign {
		for i := range 2 {
			other := s.foreign(i)
			bodies = append(bodies, envelope(s.entry(s.statusChange(other, s.status(other, "delivered", o, list)))))
		}
	}
	return bodies
}

// foreign returns a message that another program has sent. Every second such message has
// callback data.
func (s *Simulator) foreign(i int) Send {
	snd := Send{ID: s.wamid(), To: "+905320000000", WaID: "905320000000", Type: "text", At: s.c.Now(), category: "service"}
	if i%2 == 0 {
		snd.Callback = "other-tool:" + strconv.Itoa(i)
	}
	return snd
}

// batch returns one webhook with N statuses: first the message's own statuses, then
// foreign ones. A change has two statuses, and an entry has two changes.
func (s *Simulator) batch(snd Send, own []string, o Outcome) []byte {
	var entries, changes []map[string]any
	var now []any
	for i := range max(o.N, 1) {
		of, status := snd, "delivered"
		if i < len(own) {
			status = own[i]
		} else {
			of = s.foreign(i)
		}
		now = append(now, s.status(of, status, o, own))
		if last := i == max(o.N, 1)-1; len(now) == 2 || last {
			changes = append(changes, s.statusChange(of, now...))
			now = nil
			if len(changes) == 2 || last {
				entries = append(entries, s.entry(changes...))
				changes = nil
			}
		}
	}
	return envelope(entries...)
}

// statusChange returns a change with statuses. It has the recipient's contact, unless a
// status is a failure.
func (s *Simulator) statusChange(snd Send, statuses ...any) map[string]any {
	value := s.value()
	value["statuses"] = statuses
	failed := func(one any) bool { return one.(map[string]any)["status"] == "failed" }
	if !s.set.HideUserIDs && !slices.ContainsFunc(statuses, failed) {
		value["contacts"] = []any{s.contact(snd.WaID, s.addressee(snd))}
	}
	return change("messages", value)
}

// addressee returns the recipient's user id. The caller holds s.mu.
func (s *Simulator) addressee(snd Send) string {
	if snd.Recipient != "" {
		return snd.Recipient
	}
	return s.userID(snd.WaID)
}

// ranks gives the order of a message's statuses.
var ranks = map[string]int{"sent": 1, "delivered": 2, "read": 3, "failed": 2}

// status returns one status of a message. all are the statuses that the message will
// have.
func (s *Simulator) status(snd Send, status string, o Outcome, all []string) map[string]any {
	at := snd.At.Add(time.Duration(ranks[status]) * s.c.StatusDelay)
	st := map[string]any{"id": snd.ID, "status": status, "timestamp": seconds(at)}
	if snd.WaID != "" {
		st["recipient_id"] = snd.WaID
	}
	if !s.set.HideUserIDs && (status != "failed" || snd.Recipient != "") {
		st["recipient_user_id"] = s.addressee(snd)
	}
	if snd.Callback != "" {
		st["biz_opaque_callback_data"] = snd.Callback
	}
	if status == "failed" {
		code := o.Code
		orElse(&code, 131026)
		st["errors"] = []any{inWebhook(code, o.Details)}
		return st
	}
	if status == "sent" || status == "delivered" && !slices.Contains(all, "sent") {
		st["pricing"] = pricing(snd.category)
	}
	if s.set.WebhookVersion <= 23 && status != "read" {
		st["conversation"] = conversation(snd, status)
	}
	return st
}

func pricing(category string) map[string]any {
	p := map[string]any{"billable": true, "pricing_model": "PMP", "type": "regular", "category": category}
	if category == "service" {
		p["billable"], p["type"] = false, "free_customer_service"
	}
	return p
}

func conversation(snd Send, status string) map[string]any {
	c := map[string]any{"id": "conversation-" + snd.WaID, "origin": map[string]any{"type": snd.category}}
	if status == "sent" {
		c["expiration_timestamp"] = seconds(snd.At.Add(24 * time.Hour))
	}
	return c
}

// seconds formats a time as in messages and statuses.
func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
