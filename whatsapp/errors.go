package whatsapp

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	"parley/desk"
)

// A class is a kind of error code. All codes of a class need the same reaction.
type class byte

// The classes.
const (
	recipient class = 'R' // this person can't get the message: permanent
	form      class = 'F' // the message or its template must be corrected: permanent
	account   class = 'A' // the account, the number or the token must be corrected
	throttled class = 'T' // too many calls: temporary
	transient class = 'X' // a fault at the provider: temporary
)

// A meaning explains an error code.
type meaning struct {
	class      class
	title, fix string
}

// The advice that several codes share.
const (
	fixToken      = "Make a new access token for the system user and store it in the channel."
	fixPermission = "Give the token's system user this permission, and the business account as an asset."
	fixSlower     = "Send more slowly, and try this one again later."
	fixLater      = "Try again in a few seconds."
	fixPIN        = "Finish the two-step verification of the number in the provider's business tools."
	fixPayment    = "Put the account's payment method in order in the provider's business tools."
	fixUnused     = "This product does not use the feature; look up the code in the provider's list of error codes."
	fixTemplate   = "Send a template: the person wrote more than 24 hours ago."
	fixDetails    = "Correct what the title says, in the provider's business tools."
)

// meanings lists the codes of responses and of callbacks. The provider's titles change,
// but the meaning of a code does not.
var meanings = map[int]meaning{
	0:      {account, "Authentication failed", fixToken},
	1:      {transient, "Unknown API error", "Try once more; if it stays, look at the provider's status page."},
	2:      {transient, "Service unavailable", fixLater},
	3:      {account, "Capability or permission missing", "Give the app the missing permission in the provider's developer tools."},
	4:      {throttled, "App call limit reached", "Let this app make fewer calls, and try again later."},
	10:     {account, "Permission denied", fixPermission},
	17:     {throttled, "User call limit reached", fixSlower},
	33:     {account, "Business number deleted", "Connect another number: this one no longer exists."},
	100:    {form, "Invalid parameter", "Correct what the title names; if it names an id, check that the channel's ids are right."},
	102:    {account, "Session invalid", fixToken},
	104:    {account, "Access token missing", fixToken},
	190:    {account, "Access token expired or invalid", fixToken},
	341:    {throttled, "Application limit reached", fixSlower},
	368:    {account, "Account restricted for a policy violation", "Resolve the violation in the provider's business tools."},
	470:    {form, "Re-engagement message", fixTemplate},
	506:    {form, "Duplicate post", "Find out whether the first one went out before anything else."},
	613:    {throttled, "Call rate limit exceeded", fixSlower},
	803:    {account, "Some of the ids do not exist", "Check the channel's ids, and that the token may use them."},
	80007:  {throttled, "Account call limit reached", "Make fewer calls for this business account, and try again later."},
	80008:  {throttled, "Account call limit reached", "Make fewer calls for this business account, and try again later."},
	130403: {recipient, "The business has blocked this person", "Unblock the person first."},
	130429: {throttled, "Rate limit hit", fixSlower},
	130472: {recipient, "The person is part of an experiment", "Nothing can be corrected: do not send this marketing message again."},
	130497: {recipient, "The account may not message this country", "Reach people of this country in another way."},
	131000: {transient, "Something went wrong", "Try again later; if it stays, ask the provider's support."},
	131005: {account, "Access denied", fixPermission},
	131008: {form, "Required parameter is missing", "Give every variable of the template a value; the channel's templates may have to be fetched again."},
	131009: {form, "Parameter value is not valid", "Correct the value that the title names."},
	131016: {transient, "Service unavailable", fixLater},
	131021: {recipient, "Recipient cannot be sender", "Send to another number than the business's own."},
	131026: {recipient, "Message undeliverable", "Check the number, or reach the person in another way."},
	131030: {recipient, "Recipient not in the allowed list", "Add the number to the test number's list, in both of its spellings where a country has two, or send from a real number."},
	131031: {account, "Account locked", "Unlock the account in the provider's business tools."},
	131037: {account, "Display name not approved", "Have the number's display name approved in the provider's business tools."},
	131042: {account, "Payment problem", fixPayment},
	131044: {account, "Payment problem", fixPayment},
	131045: {account, "Number registration error", "Register the number again in the provider's business tools."},
	131047: {form, "Re-engagement message", fixTemplate},
	131048: {throttled, "Spam rate limit hit", "Stop campaigns, send what people welcome, and try again after a day."},
	131049: {recipient, "Not delivered to keep the ecosystem healthy", "Wait at least 24 hours before another marketing message to this person; trying sooner makes it worse."},
	131050: {recipient, "The person stopped marketing messages", "Send this person no marketing; other templates still reach them."},
	131051: {form, "Unsupported message type", "Send a message of a type that is supported."},
	131052: {form, "Media could not be downloaded", "Ask the person to send it again."},
	131053: {form, "Media could not be uploaded", "Send the file in a form that the provider takes; of a template, correct its media."},
	131055: {form, "Method not allowed", "Check the channel's API address: this one takes marketing messages only."},
	131056: {throttled, "Pair rate limit hit", "Wait before writing to this person again."},
	131057: {transient, "Account in maintenance", "Try again in a minute."},
	131062: {form, "A phone number is needed", "Find out the person's phone number: this message can't go to a user id."},
	131063: {form, "Marketing templates are switched off", "Switch them on for the account, or send a utility template."},
	131064: {throttled, "Messaging limited after wrong template categories", "Correct the templates' categories; the limit ends by itself."},
	132000: {form, "Number of parameters does not match", "Give every variable of the template a value without line breaks; the channel's templates may have to be fetched again."},
	132001: {form, "Template does not exist in this language", "Choose a template that is approved in this language."},
	132005: {form, "Filled text too long", "Shorten the values."},
	132007: {form, "Content breaks a rule", "Change the values: the provider's content rules forbid something in them."},
	132008: {form, "Parameter value is not valid", "Correct the value that the title names."},
	132012: {form, "Parameter format does not match", "This template needs another kind of value; the channel's templates may have to be fetched again."},
	132015: {form, "Template is paused", "Improve the template, or wait until the provider lets it go on."},
	132016: {form, "Template is disabled", "Make a new template: this one was paused too often."},
	132018: {form, "Template validation error", "Take line breaks, tabs and runs of more than four spaces out of the values."},
	132068: {form, "Flow is blocked", "Correct the form in the provider's business tools."},
	132069: {throttled, "Flow is throttled", "Wait an hour, or correct the form in the provider's business tools."},
	133000: {account, "Incomplete deregistration", "Deregister the number, then register it again."},
	133004: {transient, "Server temporarily unavailable", fixLater},
	133005: {account, "Two-step verification PIN mismatch", fixPIN},
	133006: {account, "Number must be verified", fixPIN},
	133008: {account, "Too many PIN guesses", fixPIN},
	133009: {account, "PIN guessed too fast", fixPIN},
	133010: {account, "Number not registered", "Register the number for the Cloud API."},
	133015: {account, "Number was just deleted", "Wait five minutes, then register the number again."},
	133016: {throttled, "Too many registrations", "Wait until the number may be registered again, up to three days."},
	134011: {account, "Payments terms not accepted", "Accept the payments terms in the provider's business tools."},
	134100: {form, "Only for marketing templates", fixUnused},
	134101: {transient, "Template is still being synchronised", "Wait ten minutes, then try again."},
	134102: {account, "Template is unavailable for this feature", fixUnused},
	135000: {form, "Generic user error", "Check the values; if they are right, ask the provider's support."},
	137000: {form, "Identity key mismatch", "Ask the person whether they have a new phone, then send again."},

	2494100: {transient, "Number in maintenance", "Try again in a minute."},
}

// ranges lists ranges of codes with a common meaning.
var ranges = []struct {
	from, to int
	meaning
}{
	{200, 299, meaning{account, "Permissions error", fixPermission}},
	{138000, 138999, meaning{form, "Calling error", fixUnused}},
	{139100, 139103, meaning{form, "Blocking error", fixUnused}},
	{2388000, 2388999, meaning{form, "Template administration error", fixDetails}},
	{2593000, 2593999, meaning{form, "Synchronisation error", fixDetails}},
}

// missingObject is the meaning of code 100 with subcode 33.
var missingObject = meaning{account, "The id does not exist, or the token may not use it", "Check the channel's ids, and that the business account is an asset of the token's system user."}

const subcodeMissing = 33

func meaningOf(code, subcode int) (m meaning, listed bool) {
	if code == 100 && subcode == subcodeMissing {
		return missingObject, true
	}
	if m, listed = meanings[code]; listed {
		return m, true
	}
	for _, r := range ranges {
		if r.from <= code && code <= r.to {
			return r.meaning, true
		}
	}
	return m, false
}

// A graphError is an error in a response or a callback. In a response, it is the member
// "error", with message and type. In a callback, it has a title instead.
type graphError struct {
	Code        text          `json:"code"`
	Subcode     text          `json:"error_subcode"`
	Title       text          `json:"title"`
	Message     text          `json:"message"`
	UserMessage text          `json:"error_user_msg"`
	Data        errorData     `json:"error_data"`
	Transient   looseBool     `json:"is_transient"`
	Trace       text          `json:"fbtrace_id"`
	status      int           // of HTTP; 0 for a callback
	code        int           // 0 is a code too
	subcode     int           // 0: none
	wait        time.Duration // how long to wait, by the headers
}

// errorData is an object with details, or sometimes just a string.
type errorData struct{ details string }

func (d *errorData) UnmarshalJSON(b []byte) error {
	var object struct {
		Details text `json:"details"`
	}
	d.details = ""
	if decodeObject(b, &object) {
		d.details = string(object.Details)
		return nil
	}
	var s string
	if json.Unmarshal(b, &s) == nil {
		d.details = s
	}
	return nil
}

// A looseBool is true only for the JSON value true.
type looseBool bool

func (b *looseBool) UnmarshalJSON(raw []byte) error {
	*b = string(raw) == "true"
	return nil
}

// parseError reads an error object. It returns nil if raw is not an object or has no
// code.
func parseError(raw []byte) *graphError {
	e := &graphError{}
	if !decodeObject(raw, e) {
		return nil
	}
	code, ok := e.Code.number()
	if !ok || code < 0 || code > 1<<31 {
		return nil
	}
	subcode, _ := e.Subcode.number()
	e.code, e.subcode = int(code), int(subcode)
	return e
}

// errorOf returns the error in a response, or nil.
func errorOf(a answer, now time.Time) *graphError {
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	if !decodeObject(a.body, &body) {
		return nil
	}
	e := parseError(body.Error)
	if e != nil {
		e.status, e.wait = a.status, a.wait(now)
	}
	return e
}

// numbered matches the code with which older messages begin.
var numbered = regexp.MustCompile(`^\(#\d+\)\s*`)

func (e *graphError) title() string {
	if e.Title != "" {
		return string(e.Title)
	}
	return numbered.ReplaceAllString(string(e.Message), "")
}

func (e *graphError) details() string {
	if e.Data.details != "" {
		return e.Data.details
	}
	return string(e.UserMessage)
}

// meaning returns the meaning of the error, even if its code is not listed.
func (e *graphError) meaning() meaning {
	m, listed := meaningOf(e.code, e.subcode)
	if listed {
		return m
	}
	m.class = form
	if e.status >= 500 || bool(e.Transient) {
		m.class = transient
	}
	return m
}

// forNow tells whether the same call may succeed later.
func (e *graphError) forNow() bool {
	c := e.meaning().class
	return c == throttled || c == transient
}

func (e *graphError) failure() *desk.Failure {
	f := failureOf(e.code, e.subcode, e.title(), e.details())
	return &f
}

// failureOf explains an error code. title and details are the provider's texts. They are
// shown only if they contain no number that could be a person's.
func failureOf(code, subcode int, title, details string) desk.Failure {
	details = presentable(details)
	m, listed := meaningOf(code, subcode)
	if !listed {
		m.title = presentable(title)
		if m.title == "" {
			m.title = "Unknown error"
		}
		m.fix = fmt.Sprintf("Look up code %d in the provider's list of error codes, or ask its support.", code)
		if details != "" {
			m.fix = fmt.Sprintf("Look up code %d in the provider's list of error codes, or ask its support; it says: %s", code, details)
		}
	}
	if fold := strings.TrimRight(details, ". "); fold != "" && !strings.EqualFold(fold, strings.TrimRight(m.title, ". ")) {
		m.title += ": " + details
	}
	return desk.Failure{Code: code, Title: m.title, Fix: m.fix}
}

// maxShown is the greatest number of characters of the provider's texts that are shown.
const maxShown = 300

// secretLike matches words that could be a token or a part of one.
var secretLike = regexp.MustCompile(`[A-Za-z0-9_|-]{20,}|EAA[A-Za-z0-9]+`)

// presentable returns the provider's text on one line, without words that could be a
// secret. It returns "" if the text contains digits that could be a phone number.
func presentable(words string) string {
	words = secretLike.ReplaceAllString(words, "…")
	digits := 0
	for _, r := range words {
		switch {
		case unicode.IsDigit(r):
			if digits++; digits >= desk.MinPhoneDigits {
				return ""
			}
		case !strings.ContainsRune(" -.()+/\u00a0", r):
			digits = 0
		}
	}
	return oneLine(words, maxShown)
}

// oneLine replaces each run of white space and control characters by one space, and cuts
// the text after most characters.
func oneLine(s string, most int) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	return cut(s, most)
}

// cut returns s if it has at most this many characters. Otherwise it returns the
// beginning of s with "…" as the last character.
func cut(s string, most int) string {
	n := 0
	end := 0 // the end of the first most-1 characters
	for i := range s {
		if n == most-1 {
			end = i
		}
		if n++; n > most {
			return strings.TrimRightFunc(s[:end], unicode.IsSpace) + "…"
		}
	}
	return s
}

// How many seconds to wait after a temporary refusal, unless the provider asks for more.
const (
	retryPair      = 4
	retryThrottled = 30
	retryTransient = 2
	retryAccount   = 300
	retrySpam      = 24 * 60 * 60
)

// refusal returns the refusal for a message that was certainly not accepted.
func (e *graphError) refusal() *desk.Refusal {
	m := e.meaning()
	r := refusalOf(m.class, e.wait)
	if e.code == 131056 {
		r.RetryAfter = max(retryPair, seconds(e.wait))
	}
	if e.code == 131048 {
		r.RetryAfter = max(retrySpam, seconds(e.wait))
	}
	r.Failure = e.failure()
	r.StaleTemplate = staleTemplate[e.code]
	r.Account = e.account()
	return r
}

// account returns the refusal of the whole account, or nil if the error concerns only
// this call.
func (e *graphError) account() *desk.AccountRefusal {
	m := e.meaning()
	if m.class != account {
		return nil
	}
	return &desk.AccountRefusal{Code: e.code, Title: m.title, Trace: presentableTrace(string(e.Trace)), Token: m.fix == fixToken}
}

// As lets errors.As find a *desk.AccountRefusal.
func (e *graphError) As(target any) bool {
	into, ok := target.(**desk.AccountRefusal)
	if !ok {
		return false
	}
	refused := e.account()
	if refused != nil {
		*into = refused
	}
	return refused != nil
}

// maxTrace is more than the length of the provider's traces.
const maxTrace = 64

// presentableTrace returns the text if it looks like a trace of the provider, otherwise
// "".
func presentableTrace(trace string) string {
	if len(trace) > maxTrace || strings.ContainsFunc(trace, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return ""
	}
	return trace
}

// effects says which codes mean more for a broadcast than that one message is refused.
var effects = map[int]desk.Effect{
	131056: desk.PersonEffect,
	131049: desk.NotCounted,
	132015: desk.TemplateEffect, 132016: desk.TemplateEffect,
	131053: desk.FileEffect,
	131048: desk.ChannelEffect, 131064: desk.ChannelEffect,
}

// Effect says what a failure means for a broadcast (see provider.Caster).
func (*Provider) Effect(f *desk.Failure) desk.Effect { return effects[f.Code] }

// staleTemplate has the codes which mean that a template has changed at the provider
// since it was fetched.
var staleTemplate = map[int]bool{132000: true, 132001: true, 132012: true, 132015: true, 132016: true}

// refusalOf returns a refusal of a class. wait is how long the provider asks to wait.
func refusalOf(c class, wait time.Duration) *desk.Refusal {
	switch c {
	case recipient:
		return &desk.Refusal{Type: desk.ProviderRejected, Message: "WhatsApp will not deliver this message to this person, and nothing was sent"}
	case account:
		return &desk.Refusal{
			Type: desk.ProviderUnavailable, RetryAfter: max(retryAccount, seconds(wait)),
			Message: "WhatsApp takes nothing from this channel until its account is put in order, and nothing was sent",
		}
	case throttled:
		return &desk.Refusal{
			Type: desk.ProviderUnavailable, RetryAfter: max(retryThrottled, seconds(wait)),
			Message: "WhatsApp takes no more messages for now, and nothing was sent: send it again later, with the same Idempotency-Key",
		}
	case transient:
		return &desk.Refusal{
			Type: desk.ProviderUnavailable, RetryAfter: max(retryTransient, seconds(wait)),
			Message: "WhatsApp had a fault, and nothing was sent: send it again later, with the same Idempotency-Key",
		}
	}
	return &desk.Refusal{Type: desk.ProviderRejected, Message: "WhatsApp refused this message as it is, and nothing was sent"}
}

// seconds returns a duration in seconds, rounded up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
