package desk

import (
	"encoding/json"
	"slices"
	"strings"
)

// The kinds of identity for which parley has a normal form (contract §3). Any other
// lower-case word is a kind too; its values match exactly.
const (
	KindExternalID   = "external_id"
	KindEmail        = "email"
	KindPhone        = "phone"
	KindWhatsApp     = "whatsapp"      // digits of a chat account
	KindWhatsAppUser = "whatsapp_user" // the provider's user id
)

// How many identities one write may list (contract §3), and how many further identities a
// contact may hold. Every change of a contact reads all of them.
const (
	MaxIdentities = 50
	MaxFurther    = 1000
)

// furtherBytes is the size of a further identity in a Book, without its text.
const furtherBytes = 200

// An Identity is a normalised handle that finds one contact. Value is in normal form:
// an e-mail's canonical form, a phone's digits.
type Identity struct {
	Kind, Value string

	// Spelling is the form by which the first release matched the handle; "" if it
	// equals Value. It distinguishes contacts that share a claim since that release.
	Spelling string
}

// A Claim is the canonical form of an identity, which is unique in a workspace.
type Claim struct{ Kind, Value string }

// Claim returns the identity's canonical form. phone and whatsapp are one namespace, so
// they match each other.
func (i Identity) Claim() Claim {
	if i.Kind == KindWhatsApp {
		i.Kind = KindPhone
	}
	return Claim{i.Kind, i.canonical()}
}

func (i Identity) canonical() string {
	switch i.Kind {
	case KindEmail:
		return CanonicalEmail(i.Value)
	case KindPhone, KindWhatsApp:
		return CanonicalNumber(i.Value)
	case KindExternalID:
		return canonicalID(i.Value)
	}
	return i.Value
}

// Same tells whether two identities of one kind have the same canonical form.
func (i Identity) Same(other Identity) bool {
	return i.Kind == other.Kind && (i.Value == other.Value || i.canonical() == other.canonical())
}

// spelled returns the form by which the first release matched the handle.
func (i Identity) spelled() string {
	if i.Spelling != "" {
		return i.Spelling
	}
	return i.Value
}

// Refused returns why today's rules refuse a stored handle, or nil. Such a handle is
// kept, but has no claim.
func (i Identity) Refused() error {
	switch i.Kind {
	case KindEmail:
		return checkEmail(i.spelled())
	case KindExternalID:
		return checkFormat(i.Value)
	}
	return nil
}

// AddIdentity appends i, unless the list has it already.
func AddIdentity(list []Identity, i Identity) []Identity {
	if slices.Contains(list, i) {
		return list
	}
	if list == nil {
		list = make([]Identity, 0, 3) // most people have an id, an e-mail and a phone
	}
	return append(list, i)
}

// A SharedClaim is a claim that several contacts hold since an earlier release.
type SharedClaim struct {
	Claim
	Contacts []ID
}

// GatherShared joins adjacent rows of one claim, and drops claims with only one
// contact.
func GatherShared(rows []SharedClaim) (list []SharedClaim) {
	for _, row := range rows {
		if n := len(list); n > 0 && list[n-1].Claim == row.Claim {
			list[n-1].Contacts = append(list[n-1].Contacts, row.Contacts...)
		} else {
			list = append(list, row)
		}
	}
	return slices.DeleteFunc(list, func(s SharedClaim) bool { return len(s.Contacts) < 2 })
}

// Further identities are stored in the contact's row, as one flat JSON array: kind,
// value, kind, value.

// StoredFurther reads what FurtherText wrote.
func StoredFurther(text string) ([]Identity, error) {
	if text == "" {
		return nil, nil
	}
	if list, ok := plainFurther(text); ok {
		return list, nil
	}
	var words []string
	if err := json.Unmarshal([]byte(text), &words); err != nil {
		return nil, err
	}
	list := make([]Identity, 0, len(words)/2)
	for i := 0; i+1 < len(words); i += 2 {
		list = append(list, Identity{Kind: words[i], Value: words[i+1]})
	}
	return list, nil
}

// plainFurther is StoredFurther for a text without escapes, the usual case. It copies
// nothing: the identities share the text.
func plainFurther(text string) (list []Identity, ok bool) {
	if text[0] != '[' || strings.IndexByte(text, '\\') >= 0 {
		return nil, false
	}
	list = make([]Identity, 0, strings.Count(text, `","`)/2+1)
	word := func() (w string) {
		if w, ok = strings.CutPrefix(text[1:], `"`); ok {
			w, text, ok = strings.Cut(w, `"`)
		}
		return w
	}
	for text != "]" {
		i := Identity{Kind: word()}
		if !ok || !strings.HasPrefix(text, ",") {
			return nil, false
		}
		if i.Value = word(); !ok || text != "]" && !strings.HasPrefix(text, ",") {
			return nil, false
		}
		list = append(list, i)
	}
	return list, true
}

// FurtherText is the stored form of further identities; "" for none.
func FurtherText(list []Identity) string {
	if len(list) == 0 {
		return ""
	}
	sep := byte('[')
	var b []byte
	for _, i := range list {
		b = append(b, sep)
		b = AppendJSONString(b, i.Kind)
		b = append(b, ',')
		b = AppendJSONString(b, i.Value)
		sep = ','
	}
	return string(append(b, ']'))
}

// OfProvider tells whether the identity is a provider's own id of a person.
func (i Identity) OfProvider() bool { return i.Kind == KindWhatsAppUser }

// ParseIdentity returns an identity in its normal form (contract §3): an e-mail in its
// canonical form, a phone or chat account as digits, any other kind as text of 1 to 255
// characters. A phone is read in country, see ParsePhone.
func ParseIdentity(kind, value, country string) (Identity, error) {
	var err error
	switch kind {
	case KindEmail:
		if value, err = ParseEmail(value); err != nil {
			return Identity{}, err
		}
		return EmailIdentity(value), nil
	case KindPhone:
		digits, err := readPhone(value, country)
		if err != nil {
			return Identity{}, err
		}
		i := Identity{Kind: kind, Value: dropTrunk(digits)}
		if i.Value != digits {
			i.Spelling = digits
		}
		return i, nil
	case KindWhatsApp:
		value, err = parseAccount(value)
	case KindExternalID:
		value, err = ParseExternalID(value)
	default:
		value, err = parseText(value, "an identity's value", 1, MaxHandle)
	}
	if err != nil {
		return Identity{}, err
	}
	return Identity{Kind: kind, Value: value}, nil
}

// EmailIdentity is the identity of an e-mail as it was sent.
func EmailIdentity(email string) Identity {
	if isLowerASCII(email) {
		return Identity{Kind: KindEmail, Value: email}
	}
	i := Identity{Kind: KindEmail, Value: CanonicalEmail(email)}
	if lower := strings.ToLower(email); lower != i.Value {
		i.Spelling = lower
	}
	return i
}
