package whatsapp

import (
	"net/url"
	"strings"
	"time"

	"parley/desk"
	"parley/provider"
)

// The defaults of a channel's API address and version.
const (
	defaultBase    = "https://graph.facebook.com"
	defaultVersion = "v26.0"
)

// CheckAccount refuses ids and settings that a number of the Cloud API can't have (see
// provider.Provider).
func (*Provider) CheckAccount(c *desk.Channel, s *provider.Secrets) error {
	for _, id := range [2]struct{ at, value string }{{"/phone_number_id", c.ExternalID}, {"/waba_id", c.Account.BusinessID}} {
		if id.value == "" || len(id.value) > 32 || strings.Trim(id.value, "0123456789") != "" {
			return desk.InvalidAt(id.at, "give the number by which Meta's WhatsApp manager names it, digits only; it is not the phone number")
		}
	}
	if v := c.Account.Version; v != "" && (len(v) < 4 || v[0] != 'v' || strings.Trim(v[1:], "0123456789.") != "") {
		return desk.InvalidAt("/graph_version", "give a version such as "+defaultVersion)
	}
	if base := c.Account.BaseURL; base != "" {
		if u, err := url.Parse(base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return desk.InvalidAt("/graph_url", "give a URL such as "+defaultBase)
		}
	}
	if n := c.Account.PerSecond; n < 0 || n > desk.MaxPerSecond {
		return desk.InvalidAt("/per_second", "give 1 to %d", desk.MaxPerSecond)
	}
	if s != nil && (s.Token == (provider.Secret{}) || s.AppSecret == (provider.Secret{})) {
		return desk.Invalidf("the access token and the app secret must not be empty")
	}
	return nil
}

// Identities returns the identities of a WhatsApp user (see provider.Provider).
func (*Provider) Identities(number, userID string) (list []desk.Identity) {
	if userID != "" {
		list = append(list, desk.Identity{Kind: desk.KindWhatsAppUser, Value: userID})
	}
	if number != "" {
		list = append(list, desk.Identity{Kind: desk.KindWhatsApp, Value: number})
	}
	return list
}

// The provider's limits for one person: ten messages at once, and then one every six
// seconds. The limits of a number are desk.PerSecond and desk.MaxPerSecond.
const (
	pairInterval = 6 * time.Second
	pairBurst    = 10
)

// codeTooFast is the provider's code for a number that sends too fast.
const codeTooFast = 130429

// Limits returns the limits of the number, and of the number together with the person
// (see provider.Provider).
func (*Provider) Limits(c *desk.Channel, person func() string) provider.Limits {
	rate := c.Account.PerSecond
	if rate == 0 {
		rate = desk.PerSecond
	}
	channel := c.ID.String()
	return provider.Limits{
		Buckets: []desk.Bucket{
			{Name: "number " + channel, Interval: time.Second / time.Duration(rate), Burst: 1},
			{Name: "pair " + channel + " " + person(), Person: true, Interval: pairInterval, Burst: pairBurst},
		},
		HeldBack: desk.Refusal{
			Type:    desk.ProviderUnavailable,
			Message: "this message was held back, because the provider limits how many messages a number sends in a second, and accepts for one person ten at once and then one in six seconds: nothing was sent, send it again later, with the same Idempotency-Key",
			Failure: &desk.Failure{Code: codeTooFast, Title: "Held back by parley, to stay within the provider's limits", Fix: "Send more slowly."},
		},
	}
}

// CallbackFields are the fields to which the app at Meta must be subscribed.
const CallbackFields = "messages, smb_message_echoes, message_template_status_update, message_template_components_update, message_template_quality_update, template_category_update, phone_number_quality_update, account_update, user_preferences, user_id_update"

// ReportingAdvice says where to enter a callback URL at Meta (see
// provider.CallbackProvider).
func (*Provider) ReportingAdvice(path string) string {
	return "in Meta's app, under WhatsApp, Configuration, set the callback URL to the server's public address with the path " + path + ", and subscribe to the fields " + CallbackFields
}
