package desk

import (
	"encoding/base64"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A Webhook is an endpoint to which parley delivers events (contract-events §3).
type Webhook struct {
	ID             ID
	URL            string
	Types          []string // as they were given, see ParseEventFilter
	Enabled        bool
	DisabledReason DisabledReason
	Sealed         []byte // its secrets, encrypted
	CreatedAt      Time
	UpdatedAt      Time
}

// A DisabledReason says why a webhook is disabled; "" while it is enabled.
type DisabledReason string

// The reasons.
const (
	DisabledByOwner DisabledReason = "owner"
	DisabledFailing DisabledReason = "failing" // the endpoint failed for too long
	DisabledGone    DisabledReason = "gone"    // the endpoint answered 410
)

// MaxWebhooks is the greatest number of webhooks of a workspace.
const MaxWebhooks = 20

// A WebhookState says how far the deliveries of a webhook have come. It changes with every
// delivery, so it is not part of the settings.
type WebhookState struct {
	Cursor       EventPlace // deliveries have begun up to here
	FailingSince Time       // the first failure since the last success, or since it was enabled; 0: none
	Failures     int        // failed tries in a row
	Probes       int        // of a failing endpoint, in a row
	HeldUntil    Time       // no try begins earlier; 0: not held
}

func (w *Webhook) changes(old *Webhook) []string {
	if old == nil {
		return nil
	}
	var f fields
	f.add("disabled_reason", w.DisabledReason != old.DisabledReason)
	f.add("enabled", w.Enabled != old.Enabled)
	f.add("secret", !slices.Equal(w.Sealed, old.Sealed))
	f.add("types", !slices.Equal(w.Types, old.Types))
	f.add("url", w.URL != old.URL)
	return f
}

// NoWebhook is the answer for an id that no webhook of the workspace has.
func NoWebhook() *Error {
	return NotFoundf("no webhook has this id").Advise(ListWebhooks)
}

// A WebhookEdit has the new values of a webhook's fields; nil means no change.
type WebhookEdit struct {
	URL     *string
	Types   *[]string
	Enabled *bool
}

// WebhookRules are the operator's rules for URLs of webhooks, in addition to the fixed
// rules.
type WebhookRules struct {
	PlainHTTP bool                  // http is also allowed
	Refused   func(netip.Addr) bool // addresses to which nothing is delivered; nil: none
}

// Check returns InvalidRequest for values that no webhook may have.
func (edit WebhookEdit) Check(rules WebhookRules) error {
	if edit.URL != nil {
		if err := rules.checkURL(*edit.URL); err != nil {
			return err
		}
	}
	if edit.Types != nil {
		if _, err := ParseEventFilter(*edit.Types); err != nil {
			return InvalidAt("/types", "%v", err)
		}
	}
	return nil
}

// Apply makes the edit, which Check must have accepted.
func (w *Webhook) Apply(edit WebhookEdit) {
	if edit.URL != nil {
		w.URL = *edit.URL
	}
	if edit.Types != nil {
		w.Types = *edit.Types
	}
	if edit.Enabled != nil && *edit.Enabled != w.Enabled {
		w.Enabled, w.DisabledReason = *edit.Enabled, ""
		if !w.Enabled {
			w.DisabledReason = DisabledByOwner
		}
	}
}

// CheckWebhook returns WebhookExists if another webhook of the workspace has the URL, and
// InvalidRequest if the workspace has too many webhooks.
func (s *Settings) CheckWebhook(w *Webhook) error {
	for _, other := range s.webhooks {
		if other.URL == w.URL && other.ID != w.ID {
			e := Errorf(WebhookExists, "the webhook %s of this workspace has this URL already", other.ID)
			e.Details = ExistingWebhook{other.ID}
			return e
		}
	}
	if len(s.webhooks) >= MaxWebhooks && s.webhooks[w.ID] == nil {
		return Invalidf("the workspace has %d webhooks, and no more are possible", MaxWebhooks).Advise(RemoveWebhook)
	}
	return nil
}

// An ExistingWebhook is the details of WebhookExists.
type ExistingWebhook struct{ ID ID }

// maxWebhookURL is the greatest length of a webhook's URL, in bytes.
const maxWebhookURL = 2048

func (r WebhookRules) checkURL(text string) error {
	wrong := func(format string, args ...any) *Error { return InvalidAt("/url", format, args...) }
	schemes := "https://"
	if r.PlainHTTP {
		schemes = "https:// or http://"
	}
	if text == "" {
		return wrong("give the address of the endpoint, an absolute URL that begins with %s", schemes)
	}
	if len(text) > maxWebhookURL {
		return wrong("a URL may have %d bytes; this one has %d", maxWebhookURL, len(text))
	}
	if strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return wrong("a URL has no spaces, and no characters beyond ASCII: escape them with %%, and write the host as xn--")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return wrong("this is no URL")
	case u.Scheme == "http" && !r.PlainHTTP:
		return wrong("http is not encrypted, so the URL must begin with https://").Advise(AllowAddress)
	case u.Scheme != "https" && u.Scheme != "http":
		return wrong("a URL must be absolute and begin with %s", schemes)
	case u.Hostname() == "":
		return wrong("the URL has no host")
	case u.User != nil:
		return wrong("a URL may not hold a user or a password")
	case strings.Contains(text, "#"):
		return wrong("a URL may not have a fragment: leave out what begins with #")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return wrong("a port is a number from 1 to 65535")
		}
	}
	if address, refused := r.refusedHost(u); refused {
		return wrong("nothing is delivered to the address %s: it is not a public one, and the operator has not allowed it", address).Advise(AllowAddress)
	}
	return nil
}

// refusedHost returns the address that a URL has as its host, if that address is refused. A
// host's name is resolved and checked at each connect.
func (r WebhookRules) refusedHost(u *url.URL) (netip.Addr, bool) {
	address, err := netip.ParseAddr(u.Hostname())
	return address, err == nil && r.Refused != nil && r.Refused(address)
}

// CheckBase refuses an address that a tenant sets for a provider's API, if parley would
// refuse to connect to it.
func (r WebhookRules) CheckBase(base string) error {
	if base == "" {
		return nil
	}
	if !r.PlainHTTP {
		return InvalidAt("/graph_url", "only whoever runs this server can set another address")
	}
	u, err := url.Parse(base)
	if err != nil {
		return InvalidAt("/graph_url", "this is no URL")
	}
	if address, refused := r.refusedHost(u); refused {
		return InvalidAt("/graph_url", "the address %s is not a public one, and the operator has not allowed it", address).Advise(AllowAddress)
	}
	return nil
}

// FilterOf returns the filter of types, or nil if they are wrong. Call it before taking a
// lock.
func FilterOf(types []string) *EventFilter {
	f, err := ParseEventFilter(types)
	if err != nil {
		return nil
	}
	return &f
}

// AllowAll returns Forbidden unless a reader may read all types of the filter. For * the
// reader must be allowed to read every type, because an endpoint gets them all. (The method
// For is different: it leaves out types that the reader may not read.)
func (f EventFilter) AllowAll(allow func(Permission) error) error {
	for _, t := range EventTypes {
		if needs := t.Needs(); needs != "" && (f.all || len(f.named) == 0 || slices.Contains(f.named, t)) {
			if err := allow(needs); err != nil {
				return err
			}
		}
	}
	return nil
}

// The secret of a webhook is shown as this prefix and base64 (Standard Webhooks).
const (
	webhookSecretPrefix = "whsec_"
	minWebhookSecret    = 24
	maxWebhookSecret    = 64

	// NewWebhookSecret is the number of random bytes in a new secret.
	NewWebhookSecret = 32
)

// After a rotation, the previous secret signs for DefaultOverlap seconds, or for as long as
// the caller says, up to MaxOverlap.
const (
	MaxOverlap     = 604_800
	DefaultOverlap = 86_400
)

// WebhookSecretText is a secret as it is shown.
func WebhookSecretText(secret []byte) string {
	return webhookSecretPrefix + base64.StdEncoding.EncodeToString(secret)
}

// ParseWebhookSecret reads a secret as it is shown. Its error does not repeat the secret.
func ParseWebhookSecret(text string) ([]byte, error) {
	secret, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(text, webhookSecretPrefix))
	if err != nil || WebhookSecretText(secret) != text || len(secret) < minWebhookSecret || len(secret) > maxWebhookSecret {
		return nil, InvalidAt("/secret", "a secret is %s and %d to %d bytes in base64", webhookSecretPrefix, minWebhookSecret, maxWebhookSecret)
	}
	return secret, nil
}
