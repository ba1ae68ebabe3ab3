package whatsapp

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"parley/desk"
	"parley/provider"
)

// VerifySignature tells whether a callback's header X-Hub-Signature-256 is the signature
// of its body with one of the secrets. Signatures with an empty secret are never valid.
func VerifySignature(header string, body []byte, secrets ...provider.Secret) bool {
	given, ok := strings.CutPrefix(header, "sha256=")
	if !ok {
		return false
	}
	signed := false
	for _, s := range secrets {
		if s.Reveal() != "" && hmac.Equal([]byte(given), []byte(sign(s.Reveal(), body))) {
			signed = true
		}
	}
	return signed
}

// maxChallenge is the greatest length of a handshake's challenge, in bytes.
const maxChallenge = 256

// Handshake reads Meta's request that verifies a callback URL. The response is its
// challenge. See provider.CallbackProvider.
func (*Provider) Handshake(query func(string) string) (token, answer string, ok bool) {
	answer = query("hub.challenge")
	return query("hub.verify_token"), answer, query("hub.mode") == "subscribe" && len(answer) <= maxChallenge
}

// Signed tells whether a callback is signed with one of the channel's app secrets (see
// provider.CallbackProvider).
func (*Provider) Signed(at provider.Access, header func(string) string, body []byte) bool {
	return VerifySignature(header("X-Hub-Signature-256"), body, at.Secrets.AppSecret, at.Secrets.OldAppSecret)
}

var (
	errNoCallback = errors.New("whatsapp: the callback is no JSON object")
	errManyParts  = errors.New("whatsapp: the callback has more parts than Meta sends")
)

// maxParts is the greatest number of parts of a callback. A part of two bytes takes
// hundreds of bytes of memory once it is read. Meta's largest callbacks, with a thousand
// updates, have some tens of thousands of parts.
const maxParts = 250_000

// parts estimates how many objects, arrays and elements a JSON text has.
func parts(body []byte) (n int) {
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{', '[', ',':
			n++
		case '"':
			for i++; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		}
	}
	return n
}

// Read returns the updates of a callback, in order. It skips elements that are malformed
// or that it does not understand, and reads the rest. It returns an error if the body is
// not a JSON object. It never returns an item for later.
func (p *Provider) Read(n desk.InboundItem) ([]provider.Update, *provider.Later, error) {
	var body struct {
		Object text            `json:"object"`
		Entry  json.RawMessage `json:"entry"`
	}
	if parts(n.Body) > maxParts {
		return nil, nil, errManyParts
	}
	if !decodeObject(n.Body, &body) {
		return nil, nil, errNoCallback
	}
	if body.Object != "whatsapp_business_account" {
		return nil, nil, nil
	}
	r := reader{came: n.ReceivedAt}
	if r.came == 0 {
		r.came = n.Due
	}
	for _, raw := range list(body.Entry) {
		var entry struct {
			ID      text            `json:"id"`
			Time    text            `json:"time"`
			Changes json.RawMessage `json:"changes"`
		}
		if !decodeObject(raw, &entry) {
			continue
		}
		r.business, r.said = string(entry.ID), r.at(entry.Time)
		for _, raw := range list(entry.Changes) {
			var change struct {
				Field text            `json:"field"`
				Value json.RawMessage `json:"value"`
			}
			if decodeObject(raw, &change) {
				r.read(string(change.Field), change.Value)
			}
		}
	}
	return r.told, nil, nil
}

// OnlyReports tells whether each change in a callback is of the field "messages" and has statuses
// instead of messages. See provider.CallbackProvider.
func (*Provider) OnlyReports(body []byte) bool {
	n := bytes.Count(body, []byte(`"statuses"`))
	return n > 0 && n == bytes.Count(body, []byte(`"messages"`)) && n == bytes.Count(body, []byte(`"field"`))
}

// People lists the people in a callback: all texts that have the form of a number or a
// user id, also in elements that Read skips, except the channel's own number. See
// provider.CallbackProvider.
func (*Provider) People(body []byte) []desk.Identity {
	var all any // parsed once: a body may be large, and deep
	if json.Unmarshal(body, &all) != nil {
		return nil
	}
	list := people(nil, all, "")
	slices.SortFunc(list, func(a, b desk.Identity) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Kind, b.Kind))
	})
	return slices.Compact(list)
}

// people adds the people that a value names to the list. own is the number of the channel
// that the value concerns, or "" if it is not known yet.
func people(list []desk.Identity, v any, own string) []desk.Identity {
	switch v := v.(type) {
	case map[string]any:
		if metadata, ok := v["metadata"].(map[string]any); ok {
			display, _ := metadata["display_phone_number"].(string)
			own = numberOf(text(display))
		}
		for name, member := range v {
			if name != "timestamp" && name != "metadata" && name != "id" {
				list = people(list, member, own)
			}
		}
	case []any:
		for _, element := range v {
			list = people(list, element, own)
		}
	case string:
		if len(v) > maxHandle {
			break
		}
		if userIDForm.MatchString(v) {
			return append(list, desk.Identity{Kind: desk.KindWhatsAppUser, Value: v})
		}
		if number := numberOf(text(v)); number != "" && number != own {
			return append(list, desk.Identity{Kind: desk.KindWhatsApp, Value: number})
		}
	}
	return list
}

// maxHandle is the greatest length of a number or a user id, in bytes.
const maxHandle = 150

// A reader collects the updates of a callback.
type reader struct {
	came     desk.Time // when the callback came; also the time of updates that have no time of their own
	business string    // the business account of the current entry
	said     desk.Time // the time of the current entry
	told     []provider.Update
}

// read reads one change of the callback.
func (r *reader) read(field string, value json.RawMessage) {
	switch field {
	case "messages", "smb_message_echoes", "user_preferences", "user_id_update":
		var v personal
		if !decodeObject(value, &v) {
			return
		}
		v.readPeople()
		each(r, &v, v.Messages, r.inbound)
		each(r, &v, v.Echoes, r.echo)
		each(r, &v, v.Statuses, r.status)
		each(r, &v, v.Preferences, r.preference)
		each(r, &v, v.UserIDUpdate, r.userID)
	case "message_template_status_update", "message_template_components_update", "message_template_quality_update", "template_category_update":
		r.template(field, value)
	case "account_update":
		r.account(value)
	}
}

// personal is the value of a change that concerns people.
type personal struct {
	Metadata struct {
		PhoneNumberID text `json:"phone_number_id"`
	} `json:"metadata"`
	Contacts     json.RawMessage `json:"contacts"`
	Messages     json.RawMessage `json:"messages"`
	Echoes       json.RawMessage `json:"message_echoes"`
	Statuses     json.RawMessage `json:"statuses"`
	Preferences  json.RawMessage `json:"user_preferences"`
	UserIDUpdate json.RawMessage `json:"user_id_update"`

	people             []person
	byNumber, byUserID map[string]int // the index in people of the first person with this handle
}

// readPeople reads the contacts of a change. They may be in any order, or missing.
func (v *personal) readPeople() {
	v.byNumber, v.byUserID = map[string]int{}, map[string]int{}
	note := func(first map[string]int, handle string) {
		if _, ok := first[handle]; !ok {
			first[handle] = len(v.people)
		}
	}
	for _, raw := range list(v.Contacts) {
		var c person
		if decodeObject(raw, &c) {
			note(v.byNumber, numberOf(c.WaID))
			note(v.byUserID, userIDOf(c.UserID))
			v.people = append(v.people, c)
		}
	}
}

// A person is a contact in a callback or in an answer.
type person struct {
	WaID    text `json:"wa_id"`
	UserID  text `json:"user_id"`
	Profile struct {
		Name text `json:"name"`
	} `json:"profile"`
}

// find returns the first person who has one of the two handles. A handle may be "".
func (v *personal) find(number, user string) (p person) {
	first := len(v.people)
	if i, ok := v.byNumber[number]; ok && number != "" {
		first = i
	}
	if i, ok := v.byUserID[user]; ok && user != "" {
		first = min(first, i)
	}
	if first < len(v.people) {
		p = v.people[first]
	}
	return p
}

// each calls the callback read for each object of an array. It adds to each update the
// channel that the array concerns.
func each[E any](r *reader, v *personal, elements json.RawMessage, read func(*personal, *E) (provider.Update, bool)) {
	for _, raw := range list(elements) {
		var e E
		if !decodeObject(raw, &e) {
			continue
		}
		h, ok := read(v, &e)
		if !ok {
			continue
		}
		if h.Channel = string(v.Metadata.PhoneNumberID); h.Channel == "" {
			h.Business = r.business
		}
		r.told = append(r.told, h)
	}
}

// userIDForm matches the provider's user ids. It does not match ids that are shared by a
// group of businesses, because no message can be sent to them.
var userIDForm = regexp.MustCompile(`^[A-Z]{2}\.[A-Za-z0-9]{1,128}$`)

// numberOf returns the digits of an account, or "" if the account has no digits.
func numberOf(t text) string {
	account, err := desk.ParseIdentity(desk.KindWhatsApp, string(t), "")
	if err != nil {
		return ""
	}
	return account.Value
}

func userIDOf(t text) string {
	if !userIDForm.MatchString(string(t)) {
		return ""
	}
	return string(t)
}

// maxExternalID is more than the length of any message id of the provider.
const maxExternalID = 512

// externalIDOf returns a message id, or "" if it can't be stored.
func externalIDOf(t text) string {
	if len(t) > maxExternalID || strings.IndexByte(string(t), 0) >= 0 {
		return ""
	}
	return string(t)
}

// lastSecond is the end of the year 9999.
const lastSecond = 253402300799

// at returns the time that t contains in seconds. If t is not a time, it returns the time
// of the callback.
func (r *reader) at(t text) desk.Time {
	seconds, ok := t.number()
	if !ok || seconds <= 0 || seconds > lastSecond {
		return r.came
	}
	// A time in the future would count as the newest forever.
	return min(desk.TimeOf(time.Unix(seconds, 0)), r.came+clockSkew)
}

// clockSkew is how far the provider's clock may be ahead, in milliseconds.
const clockSkew = desk.Time(60 * 1000)

// A status is a delivery status of a message.
type status struct {
	RecipientUserID text            `json:"recipient_user_id"`
	ID              text            `json:"id"`
	Status          text            `json:"status"`
	Timestamp       text            `json:"timestamp"`
	CallbackData    text            `json:"biz_opaque_callback_data"`
	Errors          json.RawMessage `json:"errors"`
}

var deliveries = map[text]desk.DeliveryStatus{
	"sent": desk.Sent, "delivered": desk.Delivered, "read": desk.Read, "played": desk.Read, "failed": desk.Failed,
}

func (r *reader) status(_ *personal, s *status) (h provider.Update, ok bool) {
	n := &desk.StatusUpdate{ExternalID: externalIDOf(s.ID), Delivery: deliveries[s.Status], At: r.at(s.Timestamp), Attempt: attemptOf(s.CallbackData), UserID: userIDOf(s.RecipientUserID)}
	if n.ExternalID == "" || n.Delivery == "" {
		return h, false
	}
	if n.Delivery == desk.Failed {
		n.Failure = firstFailure(s.Errors)
	}
	h.Status = n
	return h, true
}

// attemptOf reads parley's callback data. It returns zero for the data of another
// program.
func attemptOf(data text) desk.ID {
	id, _ := desk.ParseID(strings.TrimPrefix(string(data), "parley:"))
	return id
}

// firstFailure returns the first error of a failed status.
func firstFailure(errors json.RawMessage) *desk.Failure {
	for _, raw := range list(errors) {
		if e := parseError(raw); e != nil {
			return e.failure()
		}
	}
	return &desk.Failure{Title: "Message failed", Fix: "The provider gives no reason: try another way to reach the person, or ask its support."}
}

// A preference is a person's marketing choice.
type preference struct {
	WaID      text `json:"wa_id"`
	UserID    text `json:"user_id"`
	Category  text `json:"category"`
	Value     text `json:"value"`
	Timestamp text `json:"timestamp"`
}

func (r *reader) preference(v *personal, p *preference) (h provider.Update, ok bool) {
	change := map[text]desk.OptChange{"stop": desk.OptOut, "resume": desk.OptInAgain}[p.Value]
	who := v.find(numberOf(p.WaID), userIDOf(p.UserID))
	w := &provider.MarketingChoice{Number: cmp.Or(numberOf(p.WaID), numberOf(who.WaID)), UserID: cmp.Or(userIDOf(p.UserID), userIDOf(who.UserID)), Change: change, At: r.at(p.Timestamp)}
	if p.Category != "marketing_messages" || change == desk.OptNone || w.Number == "" && w.UserID == "" {
		return h, false
	}
	h.Choice = w
	return h, true
}

// A userIDUpdate reports that a person has another user id.
type userIDUpdate struct {
	WaID      text  `json:"wa_id"`
	UserID    shift `json:"user_id"`
	Timestamp text  `json:"timestamp"`
}

type shift struct {
	Previous text `json:"previous"`
	Current  text `json:"current"`
}

func (r *reader) userID(_ *personal, u *userIDUpdate) (h provider.Update, ok bool) {
	h.Move = moved(provider.Move{
		Number: numberOf(u.WaID), UserID: userIDOf(u.UserID.Previous), NewUserID: userIDOf(u.UserID.Current), At: r.at(u.Timestamp),
	})
	return h, h.Move != nil
}

// moved returns the move with only the values that have changed. It returns nil if
// nothing has changed or if the person can't be identified.
func moved(m provider.Move) *provider.Move {
	if m.NewNumber == m.Number {
		m.NewNumber = ""
	}
	if m.NewUserID == m.UserID {
		m.NewUserID = ""
	}
	if m.Number == "" && m.UserID == "" || m.NewNumber == "" && m.NewUserID == "" {
		return nil
	}
	return &m
}

// templateStatuses are the review events that give a template's new status. After any
// other event, the template must be fetched again.
var templateStatuses = map[string]string{
	"APPROVED": "APPROVED", "REINSTATED": "APPROVED", "UNARCHIVED": "APPROVED",
	"PENDING": "PENDING", "REJECTED": "REJECTED", "PAUSED": "PAUSED", "DISABLED": "DISABLED", "IN_APPEAL": "IN_APPEAL",
	"PENDING_DELETION": "PENDING_DELETION", "DELETED": "DELETED", "LIMIT_EXCEEDED": "LIMIT_EXCEEDED", "ARCHIVED": "ARCHIVED",
}

func (r *reader) template(field string, value json.RawMessage) {
	var v struct {
		Event    text `json:"event"`
		Name     text `json:"message_template_name"`
		Language text `json:"message_template_language"`
	}
	if !decodeObject(value, &v) || v.Name == "" || v.Language == "" {
		return
	}
	news := &provider.TemplateUpdate{Name: string(v.Name), Language: strings.ReplaceAll(string(v.Language), "-", "_")}
	if field == "message_template_status_update" {
		news.Status = templateStatuses[strings.ToUpper(string(v.Event))]
	}
	r.told = append(r.told, provider.Update{Business: r.business, Template: news})
}

func (r *reader) account(value json.RawMessage) {
	var v struct {
		Event        text            `json:"event"`
		Restrictions json.RawMessage `json:"restriction_info"`
		Ban          struct {
			State json.RawMessage `json:"waba_ban_state"`
		} `json:"ban_info"`
	}
	if !decodeObject(value, &v) {
		return
	}
	blocked, replies, until, told := "", false, desk.Time(0), true
	switch v.Event {
	case "ACCOUNT_RESTRICTION":
		blocked, replies, until = r.restriction(v.Restrictions)
		told = blocked != ""
	case "ACCOUNT_DELETED":
		blocked = "the business account was deleted at WhatsApp: connect the channel's number to another account"
	case "ACCOUNT_RECONNECTED":
	case "DISABLED_UPDATE":
		states := []text{text(strings.Trim(string(v.Ban.State), `"`))}
		for _, raw := range list(v.Ban.State) {
			states = append(states, text(strings.Trim(string(raw), `"`)))
		}
		if slices.Contains(states, "DISABLE") {
			blocked = "WhatsApp has disabled the business account: appeal in the provider's business tools"
		}
		told = blocked != "" || slices.Contains(states, "REINSTATE")
	default:
		told = false
	}
	if told {
		r.told = append(r.told, provider.Update{Business: r.business, Account: &provider.AccountStatus{Blocked: blocked, Replies: replies, Until: until, At: r.said}})
	}
}

// restriction reads the restrictions of an account. why is the reason for which the
// account may not start conversations, or "" if it may. replies tells whether the account
// may reply. until is the end of the restriction, or 0 if the callback does not have it.
func (r *reader) restriction(restrictions json.RawMessage) (why string, replies bool, until desk.Time) {
	replies = true
	for _, raw := range list(restrictions) {
		var one struct {
			Type       text `json:"restriction_type"`
			Expiration text `json:"expiration"`
		}
		if !decodeObject(raw, &one) {
			continue
		}
		switch one.Type {
		case "RESTRICTED_CUSTOMER_INITIATED_MESSAGING": // it counts only together with the other restriction; without it, the errors of calls decide
			replies = false
		case "RESTRICTED_BIZ_INITIATED_MESSAGING":
			end := ""
			if seconds, ok := one.Expiration.number(); ok && 0 < seconds && seconds <= lastSecond {
				until = desk.TimeOf(time.Unix(seconds, 0))
				end = " until " + until.String()
			}
			why = "WhatsApp lets this business account write to nobody first" + end + ": the provider's business tools name the violation"
		}
	}
	return why, replies && why != "", until
}
