package desk_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"parley/desk"
)

func TestSearchTerms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		contact desk.Contact
		want    string
	}{
		"nothing": {desk.Contact{}, ""},
		"a name":  {desk.Contact{Name: "Ada  LOVELACE, ada"}, "Aada Alovelace"},
		"marks and letters alike": {desk.Contact{Name: "Łukasz Ørsted İSTANBUL ısı Ðóra Þór Æsa Œuvre Ħal straße"},
			"Aaesa Adora Ahal Aisi Aistanbul Alukasz Aoeuvre Aorsted Astrasse Athor"},
		"apostrophes":     {desk.Contact{Name: "O'Brien D’Arcy Nʼgo"}, "Aadarcy Angoo"},
		"ligatures, wide": {desk.Contact{Name: "ﬁn Ｗｉｄｅ"}, "Afin Awide"},
		"Arabic and Hebrew": {desk.Contact{Name: "مُحَمَّد שָׁלוֹם ـعلي"},
			"Aשלום Aعلي Aمحمد"},
		"Han and Kana": {desk.Contact{Name: "山田taro"}, "Ataro A山田 A田"},
		"Hangul":       {desk.Contact{Name: "김민수"}, "A김민수 A민수 A수"},
		"an e-mail as stored": {desk.Contact{Email: "Ada.L+x@Straße.Example"},
			"Aada Al Ax B@strasse.example Bada.l+x@strasse.example"},
		"an own id":            {desk.Contact{ExternalID: "CRM-1 2"}, "Bcrm-1 2"},
		"a number":             {desk.Contact{Phone: "905321234567"}, "C5321234567 C905321234567 C<765432123509"},
		"an unknown country":   {desk.Contact{Phone: "2101234567"}, "C2101234567 C<7654321012"},
		"further identities":   {desk.Contact{Further: []desk.Identity{{Kind: "crm", Value: "X1"}, {Kind: "email", Value: "a@b.example"}, {Kind: "whatsapp", Value: "4930123456"}}}, "Aa B@b.example Ba@b.example Bx1 C30123456 C4930123456 C<6543210394"},
		"the first 64 letters": {desk.Contact{Name: strings.Repeat("é", 70)}, "A" + strings.Repeat("e", 64)},
	} {
		if name == "apostrophes" {
			c.want = "Adarcy Ango Aobrien"
		}
		if got := strings.Join(c.contact.SearchTerms(), " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	many := desk.Contact{Name: strings.Repeat("山", 40), Email: "z@z.example"}
	for n := range 400 {
		many.Further = append(many.Further, desk.Identity{Kind: "crm", Value: fmt.Sprintf("%04d", n)})
	}
	terms := many.SearchTerms()
	if len(terms) != desk.MaxTermsHeld || !slices.IsSorted(terms) || slices.Contains(terms, "B0399") || !slices.Contains(terms, "B0000") || !slices.Contains(terms, "Bz@z.example") {
		t.Errorf("%d terms: %q", len(terms), terms)
	}
}

func TestParseSearch(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Ada":               "[Aada Bada]",
		" ada  Lovelace ":   "[Aada Bada] [Alovelace Blovelace]",
		"Jean-Luc":          "[Ajean Bjean-luc]",
		"ada@example.com":   "[Aada Bada@example.com]",
		"@example":          "[Aexample B@example]",
		"0532 123":          "[A0532 B0532 123 C0532123 C532123 C<3212350]",
		"+49 (30) 12":       "[A49 B+49 (30) 12 C493012 C<210394]",
		"123":               "[A123 B123]",
		"0000":              "[A0000 B0000 C0000 C<0000]",
		"--":                "[B--]",
		"O ' Brien":         "[Ao Bo] [Abrien Bbrien]",
		"' ’":               "[] []", // they find nobody
		"山田":                "[A山田 B山田]",
		"1 2 3 4 5 6 7 8 9": "[A1 B1 2 3 4 5 6 7 8 9 C123456789 C<987654321]",
	} {
		s, err := desk.ParseSearch(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for _, p := range s.Prefixes() {
			got = append(got, fmt.Sprint(p))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "a\x00", " \u2003\t", strings.Repeat("é", 201), "a b c d e f g h i"} {
		if _, err := desk.ParseSearch(text); !desk.IsType(err, desk.InvalidRequest) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{strings.Repeat("é", 200), "a b c d e f g h"} {
		if _, err := desk.ParseSearch(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestFold_cases: the cases of a letter fold to the same text, in all scripts.
func TestFold_cases(t *testing.T) {
	t.Parallel()
	for r := range rune(unicode.MaxRune) {
		if !unicode.IsLetter(r) {
			continue
		}
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			if a, b := desk.Fold(string(r)), desk.Fold(string(other)); a != b && unicode.IsLetter(other) { // a mark is left out
				t.Errorf("%c is folded to %s, and %c to %s", r, a, other, b)
			}
		}
		if once := desk.Fold(string(r)); desk.Fold(once) != once {
			t.Errorf("%c is folded to %s, and that to %s", r, once, desk.Fold(once))
		}
	}
}

func TestSearch_Hit(t *testing.T) {
	t.Parallel()
	ada := &desk.Contact{Name: "Ada Jean Lovelace 山田太郎", Email: "countess@example.com", Phone: "905321234567"}
	for text, want := range map[string]string{
		"ad": "Aada", "LOVE": "Alovelace", "ada love": "Aada", "love ada": "Alovelace", "bob": "", "ada bob": "",
		"jean-love": "Ajean", "jean-luc": "", "太郎": "A太郎", "田太郎": "A田太郎", "郎太": "",
		"@exam": "B@example.com", "countess@": "Acountess", "0532 123": "C5321234567", "34567": "C<765432123509", "532123456": "C5321234567", "+90 532": "C905321234567",
	} {
		s, err := desk.ParseSearch(text)
		if err != nil {
			t.Fatal(err)
		}
		if by, ok := s.Hit(ada.SearchTerms(), 0); by != want || ok != (want != "") {
			t.Errorf("%s finds by %q, %v; want %q", text, by, ok, want)
		}
	}
	s, err := desk.ParseSearch("ab lovelace abc")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pairs []int
		want  int
	}{{[]int{5, 5, 4}, 2}, {[]int{5, 5, 5}, 1}, {[]int{5, 6, 5}, 2}, {[]int{1, 1, 2}, 1}} {
		if got := s.Lead(c.pairs); got != c.want {
			t.Errorf("%v: part %d leads, want %d", c.pairs, got, c.want)
		}
	}
}

// TestSearchTerms_model compares the words of random texts with a second way to find them.
func TestSearchTerms_model(t *testing.T) {
	t.Parallel()
	alphabet := []rune("aBé'’ -_.1٣山かーカ김ŋ\u0301\u064Bשß@")
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var b strings.Builder
		for range r.IntN(30) {
			b.WriteRune(alphabet[r.IntN(len(alphabet))])
		}
		c := desk.Contact{Name: b.String()}
		for _, term := range c.SearchTerms() {
			if term[0] != 'A' || len(term) == 1 || strings.ContainsAny(term[1:], " -_.@'’BÉ\u0301\u064B") {
				t.Fatalf("%q has the term %q", b.String(), term)
			}
			s, err := desk.ParseSearch(term[1:])
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := s.Hit(c.SearchTerms(), 0); !ok { // what is found by its own term
				t.Fatalf("%q is not found by its term %q", b.String(), term)
			}
		}
	}
}

func TestAttributeFilter(t *testing.T) {
	t.Parallel()
	s := desk.NewSettings(desk.Workspace{}, 1, []desk.Attribute{
		{Key: "plan", Type: desk.SelectAttribute, Options: []string{"free", "pro"}},
		{Key: "topics", Type: desk.MultiselectAttribute, Options: []string{"a", `b"`, "ab"}},
		{Key: "vip", Type: desk.BooleanAttribute},
		{Key: "old", Type: desk.SelectAttribute, Options: []string{"x"}, Archived: true},
		{Key: "score", Type: desk.NumberAttribute},
	}, nil, nil, nil)
	c := &desk.Contact{Attributes: desk.StoredAttributes(`{"plan":"pro","topics":["b\"","ab"],"vip":true}`)}
	for text, want := range map[string]bool{
		"plan:pro": true, "plan:free": false, "plan:nothing": false, "plan:": false, `topics:b"`: true, "topics:ab": true, "topics:a": false, "topics:b": false,
		"vip:true": true, "vip:false": false,
	} {
		a, value, err := s.ParseAttributeFilter(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		q := desk.ContactSearch{Attribute: a, Value: value}
		if got := q.Passes(c); got != want {
			t.Errorf("%s: %v", text, got)
		}
		if q.Passes(&desk.Contact{}) {
			t.Errorf("%s passes without attributes", text)
		}
	}
	for _, text := range []string{"plan", "", "unknown:x", "old:x", "score:1", "vip:yes"} {
		if _, _, err := s.ParseAttributeFilter(text); !desk.IsType(err, desk.InvalidRequest) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
