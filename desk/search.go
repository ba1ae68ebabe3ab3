package desk

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// This file has the rules by which a text finds contacts (contract-data §5). Stores keep the
// terms of each contact. If you change what a contact's terms are, raise SearchRules: every
// workspace is then indexed anew.

// SearchRules is the version of the rules by which terms are made.
const SearchRules = 2

// The limits of a search (contract-data §5).
const (
	MaxSearch      = 200     // characters of the text
	MaxSearchParts = 8       // words of the text
	MaxSearchPairs = 5000    // pairs of a term and a contact that one page looks at
	MaxSearchBytes = 8 << 20 // bytes of contacts that one page looks at
	MaxTermsHeld   = 300     // terms of one contact
	MaxTerm        = 64      // characters of a term, without its letter

	// SearchCounted is up to which number the pairs of a part are counted.
	SearchCounted = 1000

	// runStarts is how many characters of a run without spaces begin a word.
	runStarts = 16
)

// The letters with which terms begin, by what they are made of.
const (
	termWord   = "A" // a word of a name, or of the local part of an e-mail
	termHandle = "B" // a whole handle, or the domain of an e-mail
	termNumber = "C" // digits of a number
)

// Fold returns the form in which texts are compared: without marks of the scripts that
// write them optionally, and in one case.
func Fold(s string) string {
	if isASCII(s) {
		return strings.ReplaceAll(strings.ToLower(s), "'", "")
	}
	s = strings.Map(func(r rune) rune {
		if leftOut(r) {
			return -1
		}
		return r
	}, norm.NFKD.String(s))
	return norm.NFC.String(lettersAlike.Replace(strings.Map(cherokee, cases.Fold().String(s))))
}

// cherokee folds letters that cases.Fold leaves in two cases: it maps each of the two to the
// other one. Unicode folds Cherokee to capital letters.
func cherokee(r rune) rune {
	switch {
	case r >= 'ꭰ' && r <= 'ꮿ':
		return r - 'ꭰ' + 'Ꭰ'
	case r >= 'ᏸ' && r <= 'ᏽ':
		return r - 'ᏸ' + 'Ᏸ'
	}
	return r
}

// leftOut tells whether a decomposed text loses a character: apostrophes, and the marks of
// Latin, Greek, Cyrillic, Hebrew and Arabic letters.
func leftOut(r rune) bool {
	switch {
	case r == '\'', r == 0x2019, r == 0x02BC, r == 0x0640, r == 0x0670,
		r >= 0x0300 && r <= 0x036F, r >= 0x0591 && r <= 0x05C7, r >= 0x0610 && r <= 0x061A,
		r >= 0x064B && r <= 0x065F, r >= 0x06D6 && r <= 0x06ED:
		return true
	}
	return false
}

// lettersAlike are letters that have no decomposition, and how people type them on another
// keyboard.
var lettersAlike = strings.NewReplacer("ı", "i", "ø", "o", "đ", "d", "ð", "d", "ł", "l", "ħ", "h", "æ", "ae", "œ", "oe", "þ", "th")

// A kind of character, as words are made of them.
type wordChar int

const (
	between wordChar = iota // no part of a word
	spelled                 // of a script that separates its words
	joined                  // of a script that does not
)

func wordCharOf(r rune) wordChar {
	switch {
	case r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
		return joined
	case unicode.IsLetter(r) || unicode.IsMark(r) || unicode.Is(unicode.Nd, r):
		return spelled
	}
	return between
}

// eachWord calls f with the words of a folded text, in order. inner tells that a word is the
// end of a run which was a word itself.
func eachWord(s string, f func(word string, inner bool)) {
	for s != "" {
		first, size := utf8.DecodeRuneInString(s)
		kind, end := wordCharOf(first), size
		for end < len(s) {
			r, n := utf8.DecodeRuneInString(s[end:])
			if wordCharOf(r) != kind {
				break
			}
			end += n
		}
		run := s[:end]
		s = s[end:]
		if kind == between {
			continue
		}
		f(run, false)
		for n := 1; kind == joined && n < runStarts; n++ {
			_, size := utf8.DecodeRuneInString(run)
			if run = run[size:]; run == "" {
				break
			}
			f(run, true)
		}
	}
}

// termOf returns the term of a text, cut to its greatest length.
func termOf(letter, text string) string {
	if len(text) > MaxTerm {
		n := 0
		for i := range text {
			if n++; n > MaxTerm {
				text = text[:i]
				break
			}
		}
	}
	return letter + text
}

// backwards returns digits in the other order, marked as such: a number is also found by its
// last digits.
func backwards(digits string) string {
	b := []byte("<" + digits)
	slices.Reverse(b[1:])
	return string(b)
}

// withoutCountry returns the digits of a number after its country code; "" if the code is
// unknown.
func withoutCountry(digits string) string {
	code := 0
	for i := 0; i < len(digits) && i < 3; i++ {
		code = code*10 + int(digits[i]-'0')
		if callingCodes[code] {
			return digits[i+1:]
		}
	}
	return ""
}

// callingCodes are the country codes. None is the beginning of another one.
var callingCodes = phonenumbers.GetSupportedCallingCodes()

// SearchTerms returns the terms by which the contact is found, sorted, each once.
func (c *Contact) SearchTerms() []string {
	held := make(map[string]bool, 16)
	add := func(letter, text string) {
		if text != "" && len(held) < MaxTermsHeld {
			held[termOf(letter, text)] = true
		}
	}
	words := func(text string) { eachWord(Fold(text), func(word string, _ bool) { add(termWord, word) }) }
	words(c.Name)
	email := c.Email // as stored, not in its canonical form
	for _, i := range c.Identities() {
		if len(held) == MaxTermsHeld {
			break
		}
		switch i.Kind {
		case KindEmail:
			if email != "" {
				i.Value, email = email, ""
			}
			at := max(0, strings.LastIndexByte(i.Value, '@'))
			words(i.Value[:at])
			add(termHandle, Fold(i.Value))
			add(termHandle, Fold(i.Value[at:]))
		case KindPhone, KindWhatsApp:
			add(termNumber, i.Value)
			add(termNumber, withoutCountry(i.Value))
			add(termNumber, backwards(i.Value))
		default:
			add(termHandle, Fold(i.Value))
		}
	}
	list := make([]string, 0, len(held))
	for term := range held {
		list = append(list, term)
	}
	slices.Sort(list)
	return list
}

// A Search is a text that finds contacts.
type Search struct{ parts []searchPart }

// A searchPart is a part of the text. All parts must find a contact.
type searchPart struct {
	length   int      // in characters, folded
	prefixes []string // of the terms that it finds, with their letters; sorted
	further  []string // prefixes of terms that a contact must have too, if it is found by a word
}

// ParseSearch reads the text of a search. Its errors name the query parameter.
func ParseSearch(text string) (*Search, error) {
	switch n := utf8.RuneCountInString(text); {
	case checkStorable(text) != nil:
		return nil, InvalidAt("/q", "%v", checkStorable(text))
	case strings.TrimSpace(text) == "":
		return nil, InvalidAt("/q", "it is blank: send a part of a name, an e-mail, a number or an id")
	case n > MaxSearch:
		return nil, InvalidAt("/q", "it has %d characters, and may have %d", n, MaxSearch)
	}
	list := []string{strings.TrimSpace(text)}
	if !isNumberText(text) {
		if list = strings.Fields(text); len(list) > MaxSearchParts {
			return nil, InvalidAt("/q", "it has %d words, and may have %d", len(list), MaxSearchParts)
		}
	}
	s := &Search{}
	for _, part := range list {
		s.parts = append(s.parts, searchPartOf(part))
	}
	// A lone apostrophe, as in O ' Brien, folds to nothing: it says nothing about anybody.
	if said := slices.DeleteFunc(slices.Clone(s.parts), func(p searchPart) bool { return len(p.prefixes) == 0 }); len(said) > 0 {
		s.parts = said
	}
	return s, nil
}

// isNumberText tells whether a text has only digits and what people write between them.
func isNumberText(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) && strings.IndexByte(" +-.()/", s[i]) < 0 {
			return false
		}
	}
	return true
}

func searchPartOf(text string) searchPart {
	folded := Fold(text)
	p := searchPart{length: utf8.RuneCountInString(folded)}
	first := true
	eachWord(folded, func(word string, inner bool) {
		switch {
		case inner:
		case first:
			p.prefixes, first = append(p.prefixes, termOf(termWord, word)), false
		default:
			p.further = append(p.further, termOf(termWord, word))
		}
	})
	if folded != "" {
		p.prefixes = append(p.prefixes, termOf(termHandle, folded))
	}
	if digits := strings.Map(digitsOnly, text); isNumberText(text) && len(digits) >= 4 {
		p.prefixes = append(p.prefixes, termOf(termNumber, digits), termOf(termNumber, backwards(digits)))
		if rest := strings.TrimLeft(digits, "0"); rest != "" {
			p.prefixes = append(p.prefixes, termOf(termNumber, rest))
		}
	}
	slices.Sort(p.prefixes)
	p.prefixes = slices.Compact(p.prefixes)
	return p
}

func digitsOnly(r rune) rune {
	if r < '0' || r > '9' {
		return -1
	}
	return r
}

// Prefixes returns for each part the prefixes of the terms by which it finds contacts. No
// prefix of a part begins with another one of it.
func (s *Search) Prefixes() [][]string {
	list := make([][]string, len(s.parts))
	for i, p := range s.parts {
		list[i] = p.prefixes
	}
	return list
}

// Others returns the prefixes of all parts but the leading one.
func (s *Search) Others(lead int) [][]string {
	list := s.Prefixes()
	return slices.Delete(list, lead, lead+1)
}

// Lead returns the part in whose order the hits come: the one with the fewest pairs of a term
// and a contact, then the longest, then the first.
func (s *Search) Lead(pairs []int) int {
	lead := 0
	for i := range s.parts {
		if cmp.Or(cmp.Compare(pairs[i], pairs[lead]), cmp.Compare(s.parts[lead].length, s.parts[i].length)) < 0 {
			lead = i
		}
	}
	return lead
}

// Hit tells whether all parts find a contact with these terms, sorted, and by which term the
// leading part finds it first.
func (s *Search) Hit(terms []string, lead int) (by string, ok bool) {
	for i := range s.parts {
		first, ok := s.parts[i].first(terms)
		if !ok {
			return "", false
		}
		if i == lead {
			by = first
		}
	}
	return by, true
}

// first returns the first term by which the part finds a contact with these terms.
func (p *searchPart) first(terms []string) (string, bool) {
	for _, prefix := range p.prefixes {
		if prefix[:1] == termWord && slices.ContainsFunc(p.further, func(word string) bool { _, ok := firstWith(terms, word); return !ok }) {
			continue
		}
		if term, ok := firstWith(terms, prefix); ok {
			return term, true
		}
	}
	return "", false
}

// firstWith returns the first of the sorted terms that begins with a prefix.
func firstWith(terms []string, prefix string) (string, bool) {
	i, _ := slices.BinarySearch(terms, prefix)
	if i < len(terms) && strings.HasPrefix(terms[i], prefix) {
		return terms[i], true
	}
	return "", false
}

// A TermPlace is a position in the pairs of a part: by term, then by contact, newest first.
// The zero place is the beginning.
type TermPlace struct {
	Term    string
	Contact ID
}

// A TermPair is a term that a store has for a contact.
type TermPair struct {
	TermPlace
	Fits bool // the contact also has terms that begin with the other parts' prefixes
}

// A ContactSearch says which contacts are sought. At least Text or Attribute is set.
type ContactSearch struct {
	Text      *Search
	Attribute *Attribute
	Value     string // of the attribute, as it is written in a query
	Owner     ID     // zero: any
}

// ParseAttributeFilter reads the query parameter KEY:VALUE.
func (s *Settings) ParseAttributeFilter(text string) (*Attribute, string, error) {
	key, value, ok := strings.Cut(text, ":")
	if !ok {
		return nil, "", InvalidAt("/attribute", "write KEY:VALUE, such as plan:pro")
	}
	a := s.Attributes[key]
	switch {
	case a == nil || a.Archived:
		return nil, "", InvalidAt("/attribute", "there is no active attribute with the key %s", Quote(key))
	case !a.Type.hasOptions() && a.Type != BooleanAttribute:
		return nil, "", InvalidAt("/attribute", "the attribute %s is of type %s: only select, multiselect and boolean can be asked for", key, a.Type)
	case a.Type == BooleanAttribute && value != "true" && value != "false":
		return nil, "", InvalidAt("/attribute", "the attribute %s is a boolean: ask for %s:true or %s:false", key, key, key)
	}
	return a, value, nil
}

// Passes tells whether a contact has the attribute's value and the owner. It does not check
// the text.
func (q *ContactSearch) Passes(c *Contact) bool {
	if !q.Owner.IsZero() && ownerID(c.Owner) != q.Owner {
		return false
	}
	return q.Attribute == nil || c.Attributes.holds(q.Attribute, q.Value)
}

// AfterPrefix returns the least text that is greater than all texts which begin with a prefix.
func AfterPrefix(prefix string) string {
	for prefix != "" {
		last, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		switch {
		case last == 0xD7FF:
			return prefix + "\uE000" // between them are no characters
		case last < utf8.MaxRune:
			return prefix + string(last+1)
		}
	}
	return prefix
}
