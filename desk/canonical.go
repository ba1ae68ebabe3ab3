package desk

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// This file computes the canonical form of each kind of handle (contract §3). Two
// handles with the same canonical form are one identity. The canonical form of a
// canonical form is itself.
//
// Stored claims consist of these forms. If you change a rule here, raise canonicalRules:
// every database then rebuilds its claims. A number in IdentityRules never goes down,
// because a server whose numbers are lower refuses the database.

const canonicalRules = 2

// phoneData is the version of the phone library, whose data define trunk prefixes. A
// test compares it with go.mod.
const phoneData = "v1.8.1"

// IdentityRules names the rules and the data by which canonical forms are made.
func IdentityRules() string {
	return fmt.Sprintf("rules %d, unicode %s, normal forms %s, domains %s, phones %s",
		canonicalRules, unicode.Version, norm.Version, idna.UnicodeVersion, phoneData)
}

// OlderRules tells whether rules a are older than b, by the first number that differs.
func OlderRules(a, b string) bool { return slices.Compare(ruleNumbers(a), ruleNumbers(b)) < 0 }

var digitRuns = regexp.MustCompile(`[0-9]+`)

func ruleNumbers(rules string) (list []int) {
	for _, run := range digitRuns.FindAllString(rules, -1) {
		n, _ := strconv.Atoi(run)
		list = append(list, n)
	}
	return list
}

// CanonicalEmail returns the form by which e-mails match. It does not allocate for an
// e-mail in lower-case ASCII. A text longer than MaxEmail is returned as it is, because
// the time to encode a domain grows with the square of its length.
func CanonicalEmail(email string) string {
	if isLowerASCII(email) {
		return email
	}
	if isASCII(email) {
		return strings.ToLower(email) // the IDNA form of an ASCII domain is its lower-case form
	}
	if len(email) > MaxEmail {
		return email
	}
	at := strings.LastIndexByte(email, '@')
	if at < 0 {
		return fold(email)
	}
	return fold(email[:at]) + "@" + canonicalDomain(email[at+1:])
}

// domains is the processing of UTS 46, non-transitional.
var domains = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(true))

// canonicalDomain returns a domain's IDNA form. For a domain without an IDNA form it
// tries again with the folded domain, because the result must be its own canonical
// form.
func canonicalDomain(domain string) string {
	for range 2 {
		if isASCII(domain) {
			return strings.ToLower(domain)
		}
		if ascii, err := domains.ToASCII(domain); err == nil {
			return ascii
		}
		domain = fold(domain)
	}
	return domain
}

// fold applies NFC, then simple case folding, then NFC again.
func fold(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return norm.NFC.String(strings.Map(foldRune, norm.NFC.String(s)))
}

// foldRune is simple case folding. İ and ı have none, and stay as they are.
func foldRune(r rune) rune {
	if unicode.SimpleFold(r) == r {
		return r
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

func isLowerASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf || 'A' <= s[i] && s[i] <= 'Z' {
			return false
		}
	}
	return true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// canonicalID is the form by which external ids match.
func canonicalID(s string) string {
	if isASCII(s) {
		return s
	}
	return norm.NFC.String(s)
}

var (
	errFormat      = errors.New("the text holds an invisible format character (Unicode Cf): remove it")
	errTrailingDot = errors.New("the domain of an e-mail does not end with a dot")
)

// checkFormat refuses format characters. They are invisible, so two handles that look
// the same would differ.
func checkFormat(s string) error {
	if isASCII(s) || strings.IndexFunc(s, func(r rune) bool { return unicode.Is(unicode.Cf, r) }) < 0 {
		return nil
	}
	return errFormat
}

// checkEmail refuses an e-mail that has no canonical form.
func checkEmail(email string) error {
	if strings.HasSuffix(email, ".") {
		return errTrailingDot
	}
	if isASCII(email) {
		return nil
	}
	if strings.HasSuffix(CanonicalEmail(email), ".") { // other scripts have their own full stops
		return errTrailingDot
	}
	return checkFormat(email)
}

// CanonicalNumber returns the digits by which phone numbers and chat accounts match. They
// have no trunk prefix; in countries where mobile numbers have two spellings, they are the
// spelling that people dial. A value that is not a number stays as it is.
func CanonicalNumber(digits string) string {
	for {
		number := dropTrunk(digits)
		if number == digits { // spellings are defined for numbers without a trunk prefix
			number = DialledNumber(digits)
		}
		if number == digits {
			return number
		}
		digits = number
	}
}

// dropTrunk drops all trunk prefixes after the country code: both zeros of +43 0 0 1234567.
func dropTrunk(digits string) string {
	for {
		dropped := dropOneTrunk(digits)
		if dropped == digits {
			return digits
		}
		digits = dropped
	}
}

// dropOneTrunk drops a trunk prefix after the country code if the number is possible
// without the prefix and not valid with it. The phone library has the same rule.
func dropOneTrunk(digits string) string {
	code := countryCode(digits)
	if code == 0 || hasTwin(digits) {
		return digits
	}
	national := digits[decimalLen(code):]
	if national == "" || !trunks()[code].mayBegin(national) {
		return digits
	}
	n, err := phonenumbers.Parse("+"+digits, "")
	if err != nil {
		return digits
	}
	dropped := fullDigits(n)
	if dropped == digits || checkDigits(dropped) != nil || !phonenumbers.IsPossibleNumber(n) || isValidNational(code, national) {
		return digits
	}
	return dropped
}

// hasTwin tells whether the digits are one of two spellings of a number. Digits with a
// 0 after the country code are not.
func hasTwin(digits string) bool {
	for _, t := range numberTwins {
		if head, rest, _, ok := t.split(digits); ok {
			return (head + rest)[len(t.country)] != '0'
		}
	}
	return false
}

// isValidNational tells whether the national digits are a valid number as they are, without
// dropping any.
func isValidNational(code int, national string) bool {
	value, err := strconv.ParseUint(national, 10, 64)
	if err != nil {
		return false
	}
	country := int32(code)
	n := &phonenumbers.PhoneNumber{CountryCode: &country, NationalNumber: &value}
	if zeros := int32(len(national) - len(strings.TrimLeft(national, "0"))); zeros > 0 {
		leading := true
		n.ItalianLeadingZero, n.NumberOfLeadingZeros = &leading, &zeros
	}
	return phonenumbers.IsValidNumber(n)
}

// countryCode returns the country code with which digits begin, or 0. No country code
// begins with another one.
func countryCode(digits string) int {
	code := 0
	for i := range min(3, len(digits)) {
		if !isDigit(digits[i]) {
			return 0
		}
		code = 10*code + int(digits[i]-'0')
		if trunks()[code] != nil {
			if !isDigits(digits) {
				return 0
			}
			return code
		}
	}
	return 0
}

func decimalLen(code int) int {
	switch {
	case code < 10:
		return 1
	case code < 100:
		return 2
	}
	return 3
}

// A trunk holds a country's data on trunk prefixes. It recognises quickly that a number has
// no trunk prefix, as most have none; the library needs some ten microseconds for that.
type trunk struct {
	first   uint16         // the digits with which a prefix may begin
	plain   string         // the prefix, if there is just one
	prefix  *regexp.Regexp // nil: the country has no trunk prefix
	lengths []int32        // the possible lengths of numbers; nil if the prefix can stand for other digits
}

// mayBegin tells whether national digits may begin with a trunk prefix that leaves a
// possible number.
func (t *trunk) mayBegin(national string) bool {
	if t.first&(1<<(national[0]-'0')) == 0 {
		return false
	}
	dropped := len(t.plain)
	if t.plain == "" {
		at := t.prefix.FindStringIndex(national)
		if at == nil {
			return false
		}
		dropped = at[1]
	} else if !strings.HasPrefix(national, t.plain) {
		return false
	}
	return t.lengths == nil || slices.Contains(t.lengths, int32(len(national)-dropped))
}

// trunks are indexed by country code; nil if there is no such code.
var trunks = sync.OnceValue(func() *[1000]*trunk {
	all, err := phonenumbers.MetadataCollection()
	if err != nil {
		panic(err) // the library read the same data when the program started
	}
	var byCode [1000]*trunk
	for _, m := range all.GetMetadata() {
		code := int(m.GetCountryCode())
		if byCode[code] == nil {
			byCode[code] = &trunk{}
		}
		// If several countries share a code, the library uses the data of the main
		// country.
		pattern := m.GetNationalPrefixForParsing()
		if pattern == "" || phonenumbers.GetRegionCodeForCountryCode(code) != m.GetId() {
			continue
		}
		t := byCode[code]
		t.first, t.prefix = firstDigits(pattern), regexp.MustCompile("^(?:"+pattern+")")
		if isDigits(pattern) {
			t.plain = pattern
		}
		if t.prefix.NumSubexp() == 0 {
			t.lengths = m.GetGeneralDesc().GetPossibleLength()
		}
	}
	return &byCode
})

// firstDigits returns the digits with which a match of the pattern may begin.
func firstDigits(pattern string) (digits uint16) {
	if pattern == "" {
		return 0
	}
	parsed, err := syntax.Parse("(?:"+pattern+")", syntax.Perl)
	if err != nil {
		return 1<<10 - 1
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 1<<10 - 1
	}
	var seen []uint32
	var walk func(uint32)
	walk = func(pc uint32) {
		if slices.Contains(seen, pc) {
			return
		}
		seen = append(seen, pc)
		switch i := program.Inst[pc]; i.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			walk(i.Out)
			walk(i.Arg)
		case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
			walk(i.Out)
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			for d := range 10 {
				if i.MatchRune(rune('0' + d)) {
					digits |= 1 << d
				}
			}
		}
	}
	walk(uint32(program.Start))
	return digits
}
