package desk_test

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/desk"
)

// TestReferTo: a text of 254 bytes can name a member, a longer one names nobody. Spaces
// around it do not count.
func TestReferTo(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("a", desk.MaxReference-len("@example.com")) + "@example.com"
	ada, long := desk.Member{ID: desk.ID{7}, Email: "ada@exämple.com"}, desk.Member{ID: desk.ID{8}, Email: longest}
	s := desk.NewSettings(desk.Workspace{ID: desk.ID{1}}, 1, nil, []desk.Member{ada, long}, nil, nil)
	for text, want := range map[string]desk.ID{
		"ADA@EXÄMPLE.com":                           ada.ID,
		"ada@xn--exmple-cua.com":                    ada.ID,
		"\tada@exa\u0308mple.com\n":                 ada.ID,
		strings.ToUpper(ada.ID.String()):            ada.ID,
		longest:                                     long.ID,
		strings.Repeat(" ", 300) + longest:          long.ID,
		longest + "m":                               {},
		"a@" + strings.Repeat("中", 20_000) + ".com": {},
		"eve@example.com":                           {},
		"":                                          {},
	} {
		r := desk.ReferTo(text)
		if m := s.ResolveMember(r); (m == nil) != want.IsZero() || m != nil && m.ID != want {
			t.Errorf("%.40q leads to %+v, want %s", text, m, want)
		}
		stored, err := json.Marshal(r)
		var again desk.Reference
		if err == nil {
			err = json.Unmarshal(stored, &again)
		}
		if err != nil || again != r || len(stored) > desk.MaxReference+2 {
			t.Errorf("%.40q is stored as %s (%v)", text, stored, err)
		}
	}
	if r := desk.ReferTo(longest + "m"); r != (desk.Reference{}) || r.Email() != "" {
		t.Errorf("of a text that is too long, something was computed: %+v", r)
	}
	// CanonicalEmail does not encode a longer text.
	if text := "a@" + strings.Repeat("中", 90) + ".com"; desk.CanonicalEmail(text) != text {
		t.Errorf("a text of %d bytes has the form %s", len(text), desk.CanonicalEmail(text))
	}
}
