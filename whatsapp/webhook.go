package whatsapp

import (
	"cmp"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"parley/app"
	"parley/desk"
)

// VerifySignature tells whether a webhook's header X-Hub-Signature-256 signs its body,
// byte for byte, with one of the secrets. An empty secret signs nothing.
func VerifySignature(header string, body []byte, secrets ...app.Secret) bool {
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

// Signed tells whether a webhook is signed with one of the channel's app secrets; see
// app.WebhookReader.
func (*Provider) Signed(at app.Access, header string, body []byte) bool {
	return VerifySignature(header, body, at.Secrets.AppSecret, at.Secrets.OldAppSecret)
}

var errNoWebhook = errors.New("whatsapp: the webhook is no JSON object")

// Read says what a webhook tells, in its order. What it does not understand it leaves
// out, and one bad element takes nothing else with it; its error is of a body that is
// no JSON object. There is never a notice to keep.
func (p *Provider) Read(n app.Notice) ([]app.Happening, *app.Notice, error) {
	var body struct {
		Object text            `json:"object"`
		Entry  json.RawMessage `json:"entry"`
	}
	if !decodeObject(n.Body, &body) {
		return nil, nil, errNoWebhook
	}
	if body.Object != "whatsapp_business_account" {
		return nil, nil, nil
	}
	r := reader{came: n.Webhook}
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

// People lists whom a webhook names: everything in it that has the form of a number or
// of a user's id, also in what Read does not understand. See app.WebhookReader.
func (*Provider) People(body []byte) []string {
	var all any // parsed once: a body may be large, and deep
	if json.Unmarshal(body, &all) != nil {
		return nil
	}
	list := handles(nil, all)
	slices.Sort(list)
	return slices.Compact(list)
}

func handles(list []string, v any) []string {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if name != "timestamp" && name != "metadata" && name != "id" {
				list = handles(list, member)
			}
		}
	case []any:
		for _, element := range v {
			list = handles(list, element)
		}
	case string:
		if len(v) > maxHandle {
			break
		}
		if userIDForm.MatchString(v) {
			return append(list, v)
		}
		if number := numberOf(text(v)); number != "" {
			return append(list, number)
		}
	}
	return list
}

// maxHandle is how long a number or a user's id is at most, in bytes.
const maxHandle = 150

// A reader collects what the elements of a webhook tell.
type reader struct {
	came     desk.Time // when the webhook did, for what has no time of its own
	business string    // whose entry is being read
	said     desk.Time // when that was
	told     []app.Happening
}

// read reads one change.
func (r *reader) read(field string, value json.RawMessage) {
	switch field {
	case "messages", "user_preferences", "user_id_update":
		var v personal
		if !decodeObject(value, &v) {
			return
		}
		for _, raw := range list(v.Contacts) {
			var c person
			if decodeObject(raw, &c) {
				v.people = append(v.people, c)
			}
		}
		each(r, &v, v.Messages, r.inbound)
		each(r, &v, v.Statuses, r.status)
		each(r, &v, v.Preferences, r.preference)
		each(r, &v, v.UserIDUpdate, r.userID)
	case "message_template_status_update", "message_template_components_update", "message_template_quality_update", "template_category_update":
		r.template(field, value)
	case "account_update":
		r.account(value)
	}
}

// personal is the value of a change that tells of people.
type personal struct {
	Metadata struct {
		PhoneNumberID text `json:"phone_number_id"`
	} `json:"metadata"`
	Contacts     json.RawMessage `json:"contacts"`
	Messages     json.RawMessage `json:"messages"`
	Statuses     json.RawMessage `json:"statuses"`
	Preferences  json.RawMessage `json:"user_preferences"`
	UserIDUpdate json.RawMessage `json:"user_id_update"`

	people []person
}

// A person is whom the contacts of a webhook, or of an answer, describe.
type person struct {
	WaID    text `json:"wa_id"`
	UserID  text `json:"user_id"`
	Profile struct {
		Name text `json:"name"`
	} `json:"profile"`
}

// find returns the person who has one of the two handles. The contacts are in no
// order, and may be missing.
func (v *personal) find(number, user string) (p person) {
	i := slices.IndexFunc(v.people, func(p person) bool {
		return number != "" && numberOf(p.WaID) == number || user != "" && userIDOf(p.UserID) == user
	})
	if i >= 0 {
		p = v.people[i]
	}
	return p
}

// each reads the objects of an array, and sends what they tell on its way with the
// channel that it concerns.
func each[E any](r *reader, v *personal, elements json.RawMessage, read func(*personal, *E) (app.Happening, bool)) {
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

// userIDForm is that of the provider's ids of people. There are others, of people in a
// group of businesses, by which nobody is addressed.
var userIDForm = regexp.MustCompile(`^[A-Z]{2}\.[A-Za-z0-9]{1,128}$`)

// numberOf returns the digits of an account, "" when it has none.
func numberOf(t text) string {
	digits, err := desk.ParseHandle(desk.KindWhatsApp, string(t), "")
	if err != nil {
		return ""
	}
	return digits
}

func userIDOf(t text) string {
	if !userIDForm.MatchString(string(t)) {
		return ""
	}
	return string(t)
}

// maxExternalID is beyond the longest id of a message that the provider gives.
const maxExternalID = 512

// externalIDOf returns a message's id, "" when it is none that could be stored.
func externalIDOf(t text) string {
	if len(t) > maxExternalID || strings.IndexByte(string(t), 0) >= 0 {
		return ""
	}
	return string(t)
}

// lastSecond is the end of the year 9999.
const lastSecond = 253402300799

// at reads a time in seconds; what is none becomes the webhook's own.
func (r *reader) at(t text) desk.Time {
	seconds, ok := t.number()
	if !ok || seconds <= 0 || seconds > lastSecond {
		return r.came
	}
	// What comes from the future would be the newest for ever.
	return min(desk.TimeOf(time.Unix(seconds, 0)), r.came+clockSkew)
}

// clockSkew is how far the provider's clock may be ahead, in milliseconds.
const clockSkew = desk.Time(60 * 1000)

// A status is how far a message came.
type status struct {
	ID           text            `json:"id"`
	Status       text            `json:"status"`
	Timestamp    text            `json:"timestamp"`
	CallbackData text            `json:"biz_opaque_callback_data"`
	Errors       json.RawMessage `json:"errors"`
}

var deliveries = map[text]desk.Delivery{
	"sent": desk.Sent, "delivered": desk.Delivered, "read": desk.Read, "played": desk.Read, "failed": desk.Failed,
}

func (r *reader) status(_ *personal, s *status) (h app.Happening, ok bool) {
	n := &desk.StatusNotice{ExternalID: externalIDOf(s.ID), Delivery: deliveries[s.Status], At: r.at(s.Timestamp), Attempt: attemptOf(s.CallbackData)}
	if n.ExternalID == "" || n.Delivery == "" {
		return h, false
	}
	if n.Delivery == desk.Failed {
		n.Failure = firstFailure(s.Errors)
	}
	h.Status = n
	return h, true
}

// attemptOf reads our own callback data; zero for what another tool wrote.
func attemptOf(data text) desk.ID {
	id, _ := desk.ParseID(strings.TrimPrefix(string(data), "parley:"))
	return id
}

// firstFailure explains the first error of a failed status.
func firstFailure(errors json.RawMessage) *desk.Failure {
	for _, raw := range list(errors) {
		if e := parseError(raw); e != nil {
			return e.failure()
		}
	}
	return &desk.Failure{Title: "Message failed", Fix: "The provider gives no reason: try another way to reach the person, or ask its support."}
}

// A preference is what a person told the provider of marketing.
type preference struct {
	WaID      text `json:"wa_id"`
	UserID    text `json:"user_id"`
	Category  text `json:"category"`
	Value     text `json:"value"`
	Timestamp text `json:"timestamp"`
}

func (r *reader) preference(v *personal, p *preference) (h app.Happening, ok bool) {
	change := map[text]desk.OptChange{"stop": desk.OptOut, "resume": desk.OptInAgain}[p.Value]
	who := v.find(numberOf(p.WaID), userIDOf(p.UserID))
	w := &app.Wish{Number: cmp.Or(numberOf(p.WaID), numberOf(who.WaID)), UserID: cmp.Or(userIDOf(p.UserID), userIDOf(who.UserID)), Change: change, At: r.at(p.Timestamp)}
	if p.Category != "marketing_messages" || change == desk.OptNone || w.Number == "" && w.UserID == "" {
		return h, false
	}
	h.Wish = w
	return h, true
}

// A userIDUpdate is the news that a person has another id.
type userIDUpdate struct {
	WaID      text  `json:"wa_id"`
	UserID    shift `json:"user_id"`
	Timestamp text  `json:"timestamp"`
}

type shift struct {
	Previous text `json:"previous"`
	Current  text `json:"current"`
}

func (r *reader) userID(_ *personal, u *userIDUpdate) (h app.Happening, ok bool) {
	h.Move = moved(app.Move{
		Number: numberOf(u.WaID), UserID: userIDOf(u.UserID.Previous), NewUserID: userIDOf(u.UserID.Current), At: r.at(u.Timestamp),
	})
	return h, h.Move != nil
}

// moved returns a move without what has not changed, and nil when nothing is left of
// it, or nothing to know the person by.
func moved(m app.Move) *app.Move {
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

// templateStatuses are the events of a review that say at once what a template's
// status is. After the others it has to be read anew.
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
	news := &app.TemplateNews{Name: string(v.Name), Language: strings.ReplaceAll(string(v.Language), "-", "_")}
	if field == "message_template_status_update" {
		news.Status = templateStatuses[strings.ToUpper(string(v.Event))]
	}
	r.told = append(r.told, app.Happening{Business: r.business, Template: news})
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
	blocked, until, told := "", desk.Time(0), true
	switch v.Event {
	case "ACCOUNT_RESTRICTION":
		blocked, until = r.restriction(v.Restrictions)
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
		r.told = append(r.told, app.Happening{Business: r.business, Standing: &app.Standing{Blocked: blocked, Until: until, At: r.said}})
	}
}

// restriction says why the account may not write to people first, "" when it may, and
// until when, 0 when that is not said.
func (r *reader) restriction(restrictions json.RawMessage) (why string, until desk.Time) {
	for _, raw := range list(restrictions) {
		var one struct {
			Type       text `json:"restriction_type"`
			Expiration text `json:"expiration"`
		}
		if !decodeObject(raw, &one) || one.Type != "RESTRICTED_BIZ_INITIATED_MESSAGING" {
			continue
		}
		if seconds, ok := one.Expiration.number(); ok && 0 < seconds && seconds <= lastSecond {
			until = desk.TimeOf(time.Unix(seconds, 0))
			why = " until " + until.String()
		}
		return "WhatsApp lets this business account write to nobody first" + why + ": the provider's business tools name the violation", until
	}
	return "", 0
}
