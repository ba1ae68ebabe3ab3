package whatsapp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"parley/desk"
	"parley/provider"
)

// Subscribe makes Meta send the callbacks of the channel's business account to the
// token's app.
func (p *Provider) Subscribe(ctx context.Context, at provider.Access) error {
	var answer struct {
		Success looseBool `json:"success"`
	}
	_, err := p.get(ctx, call{at: at, method: http.MethodPost, path: []string{at.Channel.Account.BusinessID, "subscribed_apps"}}, &answer)
	if err == nil && !bool(answer.Success) {
		err = errors.New("the answer does not confirm the subscription")
	}
	if err != nil {
		return plain(err, "subscribe to the business account's callbacks")
	}
	return nil
}

// Check returns the problems of a channel. If the token does not work, it skips the
// remaining steps.
func (p *Provider) Check(ctx context.Context, at provider.Access) ([]provider.Problem, error) {
	c := &checker{p: p, ctx: ctx, at: at, business: at.Channel.Account.BusinessID, number: at.Channel.ExternalID}
	for _, step := range []func() error{c.token, c.account, c.phone, c.health, c.membership, c.callbacks, c.templates} {
		if err := step(); err != nil {
			return c.problems, plain(err, "check the channel")
		}
		if c.useless {
			break
		}
	}
	return c.problems, nil
}

// A checker collects problems. A step returns an error if it got no answer.
type checker struct {
	p        *Provider
	ctx      context.Context
	at       provider.Access
	business string
	number   string

	problems []provider.Problem
	useless  bool   // the token does not work
	bare     bool   // the app secret is wrong, so calls must not have a proof made with it
	lost     bool   // the token can't see the business account
	app      string // the app's id; "" if Meta does not return it
}

func (c *checker) blocking(format string, args ...any) {
	c.problems = append(c.problems, provider.Problem{Text: fmt.Sprintf(format, args...), Blocking: true})
}

// advise adds advice to the last problem. Its argument is the channel's id.
func (c *checker) advise(kind desk.AdviceKind) {
	c.problems[len(c.problems)-1].Advice = desk.Advice{Kind: kind, Arg: c.at.Channel.ID.String()}
}

func (c *checker) warn(format string, args ...any) {
	c.problems = append(c.problems, provider.Problem{Text: fmt.Sprintf(format, args...)})
}

// get requests fields of an object. A permanent refusal is returned as the first result,
// not as the error.
func (c *checker) get(v any, fields string, path ...string) (*graphError, error) {
	k := call{at: c.at, path: path, bare: c.bare}
	if fields != "" {
		k.query = url.Values{"fields": {fields}, "limit": {"1"}}
	}
	return c.ask(k, v)
}

func (c *checker) ask(k call, v any) (*graphError, error) {
	_, err := c.p.get(c.ctx, k, v)
	var e *graphError
	if !errors.As(err, &e) {
		return nil, err
	}
	switch {
	case e.forNow():
		return nil, err
	case e.meaning().fix == fixToken:
		c.useless = true
		c.blocking("WhatsApp does not accept the access token (code %d): make a new one for the system user", e.code)
		c.advise(desk.StoreToken)
	}
	return e, nil
}

// exists tells whether an object of the API has a field.
func (c *checker) exists(field string, path ...string) bool {
	var found map[string]any
	_, err := c.p.get(c.ctx, call{at: c.at, path: path, query: url.Values{"fields": {field}}, bare: c.bare}, &found)
	return err == nil
}

// debugged is Meta's description of a token.
type debugged struct {
	Data struct {
		AppID    text            `json:"app_id"`
		Valid    looseBool       `json:"is_valid"`
		Expires  text            `json:"expires_at"` // 0: never
		Scopes   []text          `json:"scopes"`
		Granular json.RawMessage `json:"granular_scopes"`
	} `json:"data"`
}

// soon is a period: the check warns if the token expires within it.
const soon = 7 * 24 * time.Hour

// token checks the access token by itself, and then with the credentials of its app. The
// second step also checks the app secret.
func (c *checker) token() error {
	var d debugged
	k := call{at: c.at, path: []string{"debug_token"}, query: url.Values{"input_token": {c.at.Secrets.Token.Reveal()}}}
	e, err := c.ask(k, &d)
	if err == nil && e != nil && e.code == 100 && !c.useless { // the proof made with the app secret may be wrong
		k.bare = true
		if e, err = c.ask(k, &d); e == nil && err == nil {
			c.bare = true
		}
	}
	if err != nil || c.useless || e != nil { // not every token may make this call
		return err
	}
	c.app = string(d.Data.AppID)
	if secret := c.at.Secrets.AppSecret.Reveal(); secret != "" && c.app != "" && !c.bare {
		k.bearer = c.app + "|" + secret
		var again debugged
		_, err := c.p.get(c.ctx, k, &again)
		switch {
		case errors.As(err, &e) && slices.Contains([]int{1, 100, 101, 190}, e.code):
			c.bare = true
		case e != nil && !e.forNow(): // not every app may make this call
		case err != nil:
			return err
		default:
			d = again
		}
	}
	if c.bare {
		c.blocking("the app secret is not the secret of the access token's app (%s), so callbacks can't be verified", cmp.Or(c.app, "unknown"))
		c.advise(desk.StoreAppSecret)
	}
	c.validity(&d)
	if !c.useless {
		c.permissions(&d)
	}
	return nil
}

// validity checks when the token expires.
func (c *checker) validity(d *debugged) {
	expires, _ := d.Data.Expires.number()
	left := time.Unix(expires, 0).Sub(c.p.now())
	on := time.Unix(expires, 0).UTC().Format("2006-01-02 15:04 MST")
	switch {
	case expires > 0 && left <= 0:
		c.useless = true
		c.blocking("the access token expired on %s: make one that never expires, for a system user", on)
		c.advise(desk.StoreToken)
	case !bool(d.Data.Valid):
		c.useless = true
		c.blocking("the access token is not valid (any more): make a new one for the system user")
		c.advise(desk.StoreToken)
	case expires > 0 && left <= soon:
		c.warn("the access token expires on %s: make one that never expires, for a system user", on)
		c.advise(desk.StoreToken)
	}
}

// permissions checks the permissions of the token, and its business accounts.
func (c *checker) permissions(d *debugged) {
	targets := map[text][]text{}
	for _, raw := range list(d.Data.Granular) {
		var g struct {
			Scope   text   `json:"scope"`
			Targets []text `json:"target_ids"`
		}
		if decodeObject(raw, &g) {
			targets[g.Scope] = append(targets[g.Scope], g.Targets...)
		}
	}
	for _, scope := range []text{"whatsapp_business_messaging", "whatsapp_business_management"} {
		switch assigned := targets[scope]; {
		case len(d.Data.Scopes) > 0 && !slices.Contains(d.Data.Scopes, scope):
			c.blocking("the access token lacks the permission %s: make a new one that has it", scope)
		case len(assigned) > 0 && !slices.Contains(assigned, text(c.business)): // an empty list means all accounts
			c.blocking("the access token's permission %s does not extend to the business account %s: make the account an asset of the token's system user", scope, c.business)
		}
	}
}

func (c *checker) account() error {
	var a struct {
		Review text `json:"account_review_status"`
	}
	e, err := c.get(&a, "id,name,account_review_status", c.business)
	switch {
	case err != nil || c.useless:
		return err
	case e == nil:
		if a.Review == "REJECTED" {
			c.warn("WhatsApp rejected the business account %s in its review: ask for another one in Meta's business tools", c.business)
		}
		return nil
	}
	c.lost = true
	if c.exists("display_phone_number", c.business) {
		c.blocking("the waba-id %s names a phone number, not a business account: give the id of the WhatsApp Business Account that the number belongs to", c.business)
		return nil
	}
	c.blocking("there is no business account %s for this access token%s: check the waba-id%s, and make the account an asset of the token's system user", c.business, says(e), c.proof(e))
	return nil
}

// says returns the code and the title of an error, for the end of a sentence.
func says(e *graphError) string { return fmt.Sprintf(" (code %d, %s)", e.code, e.failure().Title) }

// proof returns words about the app secret if it may be wrong. If an app requires a proof
// made with the app secret, Meta answers a wrong proof like any other wrong parameter.
func (c *checker) proof(e *graphError) string {
	if c.app == "" && e.code == 100 && e.subcode != subcodeMissing {
		return ", and the app secret"
	}
	return ""
}

// The statuses of a number that prevent sending. Other statuses are ignored.
var (
	silent    = []text{"PENDING", "OFFLINE", "DISCONNECTED", "BANNED", "DELETED", "MIGRATED", "UNVERIFIED", "UNLINKED"}
	endangers = []text{"FLAGGED", "RESTRICTED", "RATE_LIMITED"}
)

func (c *checker) phone() error {
	var n struct {
		Quality  text `json:"quality_rating"`
		Verified text `json:"code_verification_status"`
		Status   text `json:"status"`
		Platform text `json:"platform_type"`
		Mode     text `json:"account_mode"`
	}
	e, err := c.get(&n, "id,display_phone_number,verified_name,quality_rating,code_verification_status,name_status,status,platform_type,account_mode", c.number)
	if err != nil || c.useless {
		return err
	}
	if e != nil {
		c.number = ""
		if c.exists("id", c.at.Channel.ExternalID, "phone_numbers") {
			c.blocking("the phone-number-id %s names a business account, not a phone number: give the id of one of its numbers, as the WhatsApp manager shows it", c.at.Channel.ExternalID)
			return nil
		}
		c.blocking("there is no phone number %s for this access token%s: check the phone-number-id, which is not the number itself%s", c.at.Channel.ExternalID, says(e), c.proof(e))
		return nil
	}
	if n.Platform != "" && n.Platform != "CLOUD_API" {
		c.blocking("the number is not on the Cloud API (%s): register it there first", n.Platform)
	}
	switch {
	case slices.Contains(silent, n.Status):
		c.blocking("the number is not connected (%s): connect or register it in the WhatsApp manager", n.Status)
	case slices.Contains(endangers, n.Status):
		c.warn("the number's status is %s: see the WhatsApp manager for what it may still send", n.Status)
	case n.Status != "" && n.Status != "CONNECTED":
		c.warn("the number's status is %s, not CONNECTED: see the WhatsApp manager", n.Status)
	}
	switch n.Quality {
	case "RED":
		c.warn("people rate the number's messages as bad (quality RED), so WhatsApp may limit or block it: send less, and only what people welcome")
	case "YELLOW":
		c.warn("the number's quality is falling (YELLOW): send only what people welcome")
	}
	if slices.Contains([]text{"NOT_VERIFIED", "UNVERIFIED", "EXPIRED"}, n.Verified) {
		c.warn("the number's ownership is not verified (%s): verify it in the WhatsApp manager; a number that sends already goes on to", n.Verified)
	}
	if n.Mode == "SANDBOX" {
		c.warn("this is a test number: it reaches only those on its list of recipients")
	}
	return nil
}

// health reports whether Meta limits the number. It requests fields that older versions
// of the API do not have, so an error is not a problem of the channel.
func (c *checker) health() error {
	var n struct {
		Health struct {
			Can      text            `json:"can_send_message"`
			Entities json.RawMessage `json:"entities"`
		} `json:"health_status"`
	}
	if c.number == "" {
		return nil
	}
	k := call{at: c.at, path: []string{c.number}, query: url.Values{"fields": {"health_status,throughput,whatsapp_business_manager_messaging_limit"}}, bare: c.bare}
	if _, err := c.p.get(c.ctx, k, &n); err != nil || n.Health.Can != "BLOCKED" && n.Health.Can != "LIMITED" {
		return c.ctx.Err()
	}
	var reasons []string
	for _, raw := range list(n.Health.Entities) {
		var entity struct {
			Type   text            `json:"entity_type"`
			Errors json.RawMessage `json:"errors"`
		}
		decodeObject(raw, &entity)
		for _, raw := range list(entity.Errors) {
			var e struct {
				Description text `json:"error_description"`
				Solution    text `json:"possible_solution"`
			}
			if decodeObject(raw, &e) {
				words := strings.TrimSpace(presentable(string(e.Description)) + " " + presentable(string(e.Solution)))
				reasons = append(reasons, oneLine(string(entity.Type), maxShown)+": "+words)
			}
		}
	}
	why := "see the WhatsApp manager for why"
	if reasons != nil {
		why = strings.Join(reasons, "; ")
	}
	if n.Health.Can == "BLOCKED" {
		c.blocking("WhatsApp lets the number send nothing: %s", why)
	} else {
		c.warn("WhatsApp limits what the number may send: %s", why)
	}
	return nil
}

// membership checks that the number belongs to the business account.
func (c *checker) membership() error {
	if c.lost || c.number == "" {
		return nil
	}
	found := false
	var others []string
	at := c.at
	if c.bare {
		at.Secrets.AppSecret = provider.Secret{}
	}
	err := c.p.pages(c.ctx, at, "phone_numbers", "id", func(raw json.RawMessage) error {
		var n struct {
			ID text `json:"id"`
		}
		if decodeObject(raw, &n) {
			found = found || string(n.ID) == c.number
			others = append(others, oneLine(string(n.ID), desk.MaxHandle))
		}
		return nil
	})
	var e *graphError
	switch {
	case errors.As(err, &e) && !e.forNow():
		c.blocking("the business account %s does not show its numbers%s: %s", c.business, says(e), e.failure().Fix)
		return nil
	case err != nil || found:
		return err
	case others == nil:
		others = []string{"none"}
	}
	c.blocking("the phone number %s is not one of the business account %s, which has: %s", c.number, c.business, strings.Join(others, ", "))
	return nil
}

// callbacks checks that the business account sends callbacks to our app.
func (c *checker) callbacks() error {
	if c.lost {
		return nil
	}
	var s struct {
		Data json.RawMessage `json:"data"`
	}
	e, err := c.get(&s, "", c.business, "subscribed_apps")
	if err != nil || c.useless {
		return err
	}
	if e != nil {
		c.blocking("the business account does not show which apps get its callbacks%s: %s", says(e), e.failure().Fix)
		return nil
	}
	apps := list(s.Data)
	for _, raw := range apps {
		var one struct {
			App struct {
				ID text `json:"id"`
			} `json:"whatsapp_business_api_data"`
		}
		if decodeObject(raw, &one) && (c.app == "" || string(one.App.ID) == c.app) {
			return nil
		}
	}
	others := ""
	if len(apps) > 0 {
		others = ", but to other apps"
	}
	c.blocking("WhatsApp sends no callbacks of the business account %s to the access token's app%s, so statuses and customers' messages do not arrive: storing the access token again subscribes the app",
		c.business, others)
	c.advise(desk.StoreToken)
	c.problems[len(c.problems)-1].Unsubscribed = true
	return nil
}

// templates checks that the templates can be listed.
func (c *checker) templates() error {
	if c.lost {
		return nil
	}
	var page struct {
		Data json.RawMessage `json:"data"`
	}
	e, err := c.get(&page, "name", c.business, "message_templates")
	if err == nil && e != nil && !c.useless {
		c.blocking("the access token may not list the templates%s: %s", says(e), e.failure().Fix)
	}
	return err
}
