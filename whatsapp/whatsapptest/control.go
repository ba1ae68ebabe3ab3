package whatsapptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// A control is one call of the control API.
type control struct {
	pattern string
	example string // a body, or a description
	do      func(*http.Request) (any, error)
}

// calls returns the list of all calls of the control API.
func (s *Simulator) calls() []control {
	return []control{
		{"POST /_sim/inbound", `{"from":"905321112233","name":"Ayşe","text":"Merhaba"}`, s.postInbound},
		{"POST /_sim/echo", `{"from":"905321112233","text":"typed in the phone app"}`, s.postEcho},
		{"GET /_sim/media", "the files that were uploaded, or sent by people", s.getMedia},
		{"POST /_sim/media/{id}", `{"fault":"fail:2"}`, s.postMediaFault},
		{"GET /_sim/reads", "the messages that were marked as read", s.getReads},
		{"GET /_sim/sends", "what was accepted; ?callback=ID counts one", s.getSends},
		{"GET /_sim/deliveries", "the last webhooks, and how they were answered", s.getDeliveries},
		{"GET /_sim/rules", "the scripted outcomes, first match wins", s.getRules},
		{"POST /_sim/rules", `{"match":{"to":"+905321112233","next":1},"outcome":"accept_lose_response"}`, s.postRule},
		{"DELETE /_sim/rules", "back to accepting", s.deleteRules},
		{"GET /_sim/settings", "how it behaves", s.getSettings},
		{"POST /_sim/settings", `{"pair_limit":true,"paging":{"size":5}}`, s.postSettings},
		{"GET /_sim/templates", "the library", s.getTemplates},
		{"PUT /_sim/templates", `{"data":[{"name":"hello","language":"en","components":[{"type":"BODY","text":"Hi"}]}]}`, s.putTemplates},
		{"POST /_sim/templates/{name}/{language}", `{"status":"PAUSED"}`, s.postTemplate},
		{"DELETE /_sim/templates/{name}/{language}", "", s.deleteTemplate},
		{"POST /_sim/templates/{name}/{language}/recreate", "the id changes, the name stays", s.recreateTemplate},
		{"POST /_sim/webhook", `{"url":"http://127.0.0.1:8480/hooks/whatsapp/CHANNEL","verify_token":"verify-me","verify":true}`, s.postWebhook},
		{"POST /_sim/deliver", "the body is posted as it is, signed", s.postDeliver},
		{"POST /_sim/change", `{"field":"account_alerts","value":{}}`, s.postChange},
		{"POST /_sim/preferences", `{"from":"905321112233","value":"stop"}`, s.postPreferences},
		{"POST /_sim/user-id", `{"from":"905321112233","user_id":"TR.9000000000000002"}`, s.postUserID},
		{"POST /_sim/number", `{"from":"905321112233","to":"905324445566"}`, s.postNumber},
		{"POST /_sim/restriction", `{"type":"RESTRICTED_BIZ_INITIATED_MESSAGING"}`, s.postRestriction},
		{"DELETE /_sim/restriction", "the account may do everything again", s.deleteRestriction},
		{"POST /_sim/quality", `{"event":"THROUGHPUT_UPGRADE","limit":"TIER_UNLIMITED"}`, s.postQuality},
	}
}

// ControlHelp lists the control API, with an example of each call's body.
func ControlHelp() string {
	var text strings.Builder
	for _, c := range (*Simulator)(nil).calls() {
		method, path, _ := strings.Cut(c.pattern, " ")
		fmt.Fprintf(&text, "%-6s %s\n", method, path)
		if c.example != "" {
			fmt.Fprintf(&text, "       %s\n", c.example)
		}
	}
	fmt.Fprintf(&text, "\nOutcomes: %s\n%s", strings.Join(kindNames(), ", "), outcomeHelp)
	return text.String()
}

// outcomeHelp explains less obvious outcomes, and how to simulate a broken channel.
const outcomeHelp = `
A person's message of type image, video, audio, document or sticker has a file: "file" is its content in
base64, "mime" its type, "filename" its name, and "fault" what goes wrong when it is fetched:
` + faultHelp + `.

An outcome can have a delay before its first status, as {"kind":"accept_lose_response","delay":"30s"}.
auth_error refuses every call from then on, until DELETE /_sim/rules. pair_throttle accepts until the
person's allowance is used up. A refusal has a code: {"kind":"refuse","code":131030}.

Settings that break a channel, for parley channel check:
  {"unsubscribed":true}                      the app gets no webhooks
  {"token":{"is_valid":false}}               or "expires_at":1700000000, or "scopes":[]
  {"phone":{"quality_rating":"RED"}}         or "status":"DISCONNECTED"
  {"business":{"account_review_status":"REJECTED"}}
  {"fault":{"http":401,"code":190}}          every call is refused
  {"unsubscribed":false,"token":null,"phone":null,"business":null,"fault":null}   all is well again
`

func kindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return names
}

func (s *Simulator) routes() http.Handler {
	mux := http.NewServeMux()
	for _, c := range s.calls() {
		mux.HandleFunc(c.pattern, func(w http.ResponseWriter, r *http.Request) {
			answer, err := c.do(r)
			status := http.StatusOK
			if err != nil {
				status, answer = http.StatusBadRequest, map[string]string{"error": err.Error()}
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			enc := json.NewEncoder(w)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			_ = enc.Encode(answer) // it fails only if the client has disconnected
		})
	}
	mux.HandleFunc("GET /_sim/{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, ControlHelp())
	})
	return mux
}

// read decodes the body of a control call. It refuses unknown keys.
func read[T any](r *http.Request, into T) (T, error) {
	b, err := body(r)
	if err == nil {
		err = strictly(b, &into)
	}
	return into, err
}

func body(r *http.Request) ([]byte, error) { return io.ReadAll(io.LimitReader(r.Body, 64<<20)) }

// posted returns the answer to a control call that has posted a webhook. It first waits
// until the webhook is accepted or given up.
func posted(d *Delivery) (any, error) {
	status := d.Wait()
	answer := map[string]any{"wamid": d.ID, "webhook_status": status, "tries": len(d.Answers())}
	if d.Media != "" {
		answer["media_id"] = d.Media
	}
	return answer, nil
}

var done = map[string]bool{"success": true}

func (s *Simulator) postInbound(r *http.Request) (any, error) {
	in, err := readInbound(r)
	if err != nil {
		return nil, err
	}
	return posted(s.Inbound(in))
}

func (s *Simulator) postEcho(r *http.Request) (any, error) {
	in, err := readInbound(r)
	if err != nil {
		return nil, err
	}
	return posted(s.Echo(in))
}

func readInbound(r *http.Request) (Inbound, error) {
	in, err := read(r, Inbound{})
	if err == nil {
		_, err = parseFault(in.Fault)
	}
	return in, err
}

func (s *Simulator) getMedia(*http.Request) (any, error) { return s.Media(), nil }

func (s *Simulator) postMediaFault(r *http.Request) (any, error) {
	in, err := read(r, struct {
		Fault string `json:"fault"`
	}{})
	if err != nil {
		return nil, err
	}
	return done, s.SetFault(r.PathValue("id"), in.Fault)
}

func (s *Simulator) getReads(*http.Request) (any, error) {
	return map[string]any{"reads": append([]ReadReceipt{}, s.Reads()...)}, nil
}

func (s *Simulator) getSends(r *http.Request) (any, error) {
	if callback := r.URL.Query().Get("callback"); callback != "" {
		return map[string]int{"accepted": s.Accepted(callback)}, nil
	}
	sends := s.Sends()
	return map[string]any{"total": len(sends), "attempts": s.Attempts(), "duplicates": s.Duplicates(), "sends": sends}, nil
}

func (s *Simulator) getDeliveries(*http.Request) (any, error) { return s.Deliveries(), nil }

func (s *Simulator) getRules(*http.Request) (any, error) { return s.Rules(), nil }

func (s *Simulator) postRule(r *http.Request) (any, error) {
	rule, err := read(r, Rule{})
	if err != nil {
		return nil, err
	}
	if rule.Outcome.Kind == "" {
		return nil, fmt.Errorf("the rule has no outcome; there are %s", strings.Join(kindNames(), ", "))
	}
	s.AddRule(rule)
	return s.Rules(), nil
}

func (s *Simulator) deleteRules(*http.Request) (any, error) {
	s.ClearRules()
	return done, nil
}

func (s *Simulator) getSettings(*http.Request) (any, error) { return s.settings(), nil }

func (s *Simulator) postSettings(r *http.Request) (any, error) {
	var own Settings // a copy: it must not share data with the settings in use
	if err := strictly(compact(s.settings()), &own); err != nil {
		return nil, err
	}
	set, err := read(r, own)
	if err != nil {
		return nil, err
	}
	s.Configure(func(now *Settings) { *now = set })
	return s.settings(), nil
}

func (s *Simulator) getTemplates(*http.Request) (any, error) {
	return map[string]any{"data": s.Templates()}, nil
}

func (s *Simulator) putTemplates(r *http.Request) (any, error) {
	list, err := ReadTemplates(r.Body)
	if err != nil {
		return nil, err
	}
	s.SetTemplates(list)
	return map[string]int{"templates": len(list)}, nil
}

func (s *Simulator) postTemplate(r *http.Request) (any, error) {
	patch, err := read(r, TemplatePatch{})
	if err != nil {
		return nil, err
	}
	return done, s.TemplateSet(r.PathValue("name"), r.PathValue("language"), patch)
}

func (s *Simulator) deleteTemplate(r *http.Request) (any, error) {
	return done, s.TemplateDelete(r.PathValue("name"), r.PathValue("language"))
}

func (s *Simulator) recreateTemplate(r *http.Request) (any, error) {
	id, err := s.TemplateRecreate(r.PathValue("name"), r.PathValue("language"))
	return map[string]string{"id": id}, err
}

func (s *Simulator) postWebhook(r *http.Request) (any, error) {
	in, err := read(r, struct {
		URL         string `json:"url"`
		VerifyToken string `json:"verify_token"`
		Verify      bool   `json:"verify"`
	}{})
	if err != nil {
		return nil, err
	}
	s.SetWebhook(in.URL, in.VerifyToken)
	if in.Verify {
		err = s.VerifyWebhook(r.Context())
	}
	return done, err
}

func (s *Simulator) postDeliver(r *http.Request) (any, error) {
	b, err := body(r)
	if err != nil {
		return nil, err
	}
	return posted(s.Deliver(b))
}

func (s *Simulator) postChange(r *http.Request) (any, error) {
	in, err := read(r, struct {
		Field string          `json:"field"`
		Value json.RawMessage `json:"value"`
	}{})
	if err == nil && (in.Field == "" || in.Value == nil) {
		err = errors.New("a change has a field and a value")
	}
	if err != nil {
		return nil, err
	}
	return posted(s.Change(in.Field, in.Value))
}

// A person is the body of calls about a person.
type person struct {
	From   string `json:"from"`
	To     string `json:"to"`
	UserID string `json:"user_id"`
	Value  string `json:"value"`
}

// about reads the body of a call about a person. It refuses a body for which the callback
// needs returns "".
func about(r *http.Request, needs func(person) string) (person, error) {
	in, err := read(r, person{})
	if err == nil && (in.From == "" || needs(in) == "") {
		err = errors.New("something is missing; GET /_sim/ shows an example")
	}
	return in, err
}

func (s *Simulator) postPreferences(r *http.Request) (any, error) {
	in, err := about(r, func(p person) string { return p.Value })
	if err != nil {
		return nil, err
	}
	return posted(s.Preferences(in.From, in.Value))
}

func (s *Simulator) postUserID(r *http.Request) (any, error) {
	in, err := about(r, func(p person) string { return p.UserID })
	if err != nil {
		return nil, err
	}
	return posted(s.UserIDUpdate(in.From, in.UserID))
}

func (s *Simulator) postNumber(r *http.Request) (any, error) {
	in, err := about(r, func(p person) string { return p.To })
	if err != nil {
		return nil, err
	}
	return posted(s.NumberChange(in.From, in.To))
}

func (s *Simulator) postRestriction(r *http.Request) (any, error) {
	in, err := read(r, struct {
		Type string `json:"type"`
	}{"RESTRICTED_BIZ_INITIATED_MESSAGING"})
	if err != nil {
		return nil, err
	}
	return posted(s.AccountRestriction(in.Type))
}

func (s *Simulator) deleteRestriction(*http.Request) (any, error) {
	return posted(s.AccountReconnected())
}

func (s *Simulator) postQuality(r *http.Request) (any, error) {
	in, err := read(r, struct {
		Event string `json:"event"`
		Limit string `json:"limit"`
	}{"THROUGHPUT_UPGRADE", "TIER_UNLIMITED"})
	if err != nil {
		return nil, err
	}
	return posted(s.QualityUpdate(in.Event, in.Limit))
}
