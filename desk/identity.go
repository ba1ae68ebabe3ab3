package desk

import (
	"encoding/json"
	"slices"
)

// The kinds of identity that parley knows a normal form for (contract §3). Any
// other lower-case word is a kind too, with exact values.
const (
	KindExternalID   = "external_id"
	KindEmail        = "email"
	KindPhone        = "phone"
	KindWhatsApp     = "whatsapp"      // digits of a chat account
	KindWhatsAppUser = "whatsapp_user" // the provider's user id
)

// How many identities one write may list (contract §3), and how many further ones a
// contact may hold: every change of a contact goes through all of them.
const (
	MaxIdentities = 50
	MaxFurther    = 1000
)

// An Identity is a normalised handle that finds one contact. Value is in normal
// form: an e-mail in lower case, a phone as digits.
type Identity struct{ Kind, Value string }

// Claim is the form in which an identity is unique in a workspace: phone and
// whatsapp are one namespace, so they match each other by digits.
func (i Identity) Claim() Identity {
	if i.Kind == KindWhatsApp {
		i.Kind = KindPhone
	}
	return i
}

// AddIdentity appends i unless it is there already.
func AddIdentity(list []Identity, i Identity) []Identity {
	if slices.Contains(list, i) {
		return list
	}
	return append(list, i)
}

// Further identities are stored in the contact's row, as one flat JSON array: kind,
// value, kind, value.

// StoredFurther reads what FurtherText wrote.
func StoredFurther(text string) ([]Identity, error) {
	if text == "" {
		return nil, nil
	}
	var words []string
	if err := json.Unmarshal([]byte(text), &words); err != nil {
		return nil, err
	}
	list := make([]Identity, 0, len(words)/2)
	for i := 0; i+1 < len(words); i += 2 {
		list = append(list, Identity{words[i], words[i+1]})
	}
	return list, nil
}

// FurtherText is the form in which further identities are stored; "" of none.
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
