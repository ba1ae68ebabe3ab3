package desk

import "strings"

// MaxReference is the greatest length of a reference to a member, in bytes. It is that of
// an e-mail.
const MaxReference = MaxEmail

// A Reference names a member as callers do: by id or e-mail. Its canonical form is computed
// when it is made. So a transaction resolves it with one map access. The zero Reference
// names nobody.
type Reference struct {
	text  string // as sent, trimmed; "" if it names nobody
	id    ID     // if byID
	byID  bool
	email string // the canonical form
}

// ReferTo makes a Reference of a text. A text that is too long names nobody, and nothing is
// computed from it.
func ReferTo(text string) Reference {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > MaxReference {
		return Reference{}
	}
	if id, ok := ParseID(text); ok {
		return Reference{text: text, id: id, byID: true}
	}
	return Reference{text: text, email: CanonicalEmail(text)}
}

// Email is the canonical form of the e-mail by which the member is named, "" if there is
// none.
func (r Reference) Email() string { return r.email }

// MarshalText writes a reference into stored JSON.
func (r Reference) MarshalText() ([]byte, error) { return []byte(r.text), nil }

// UnmarshalText reads what MarshalText wrote.
func (r *Reference) UnmarshalText(text []byte) error {
	*r = ReferTo(string(text))
	return nil
}

// ResolveMember returns the member whom a reference names, or nil. If members share an
// e-mail since an earlier release, it returns the one with exactly this spelling.
func (s *Settings) ResolveMember(r Reference) *Member {
	switch {
	case r.text == "":
		return nil
	case r.byID:
		return s.members[r.id]
	}
	holders := s.byEmail[r.email]
	if len(holders) == 1 {
		return holders[0]
	}
	lower := strings.ToLower(r.text)
	for _, m := range holders {
		if strings.ToLower(m.Email) == lower { // the rule of the earlier release
			return m
		}
	}
	return nil
}
