package desk

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nyaruka/phonenumbers"
)

// How many digits a phone number has (contract §3).
const (
	MinPhoneDigits = 7
	MaxPhoneDigits = 15
)

// ParseCountry returns a country in which phone numbers can be read: a code of
// ISO 3166-1 alpha-2, in upper case. "" means none and stays "".
func ParseCountry(s string) (string, error) {
	s = strings.ToUpper(strings.TrimSpace(s))
	if s != "" && !phonenumbers.GetSupportedRegions()[s] {
		return "", errors.New("a country is a code of ISO 3166 such as TR or US, this is none that phone numbers are known for")
	}
	return s, nil
}

// ParsePhone returns a phone number's digits, country code first, without + (contract §3).
// The first of these readings that applies counts:
//
//   - A number with a leading + is international.
//   - A number with an international prefix is international after the prefix. The prefix
//     is country's own, such as 011 or 0011, or 00. If both are possible, the first that
//     leaves a valid number counts: in Brazil, 0055 can be 00 and country 55, or the
//     prefix 0055.
//   - A number is national in country if it is valid there, or if it has a possible length
//     there and is not a valid international number. If the digits are valid there both
//     with and without a country code at their start (in Germany, 4915112345678), they
//     have the country code, so that digits which parley shows are read back as the same
//     number. A local number without its area code is refused.
//   - Any other digits are international, and must not begin with 0.
//
// The number must have 7 to 15 digits, both as it was sent, without the international
// prefix, and in the result. country is a result of ParseCountry; with "", no number is
// national. A trunk prefix after the country code is dropped.
func ParsePhone(s, country string) (string, error) {
	digits, err := readPhone(s, country)
	return dropTrunk(digits), err
}

// readPhone is ParsePhone without dropping the trunk prefix. The first release stored
// numbers in this form.
func readPhone(s, country string) (string, error) {
	digits, plus, err := scanPhone(s)
	if err != nil {
		return "", err
	}
	if plus {
		return international(digits)
	}
	t := territoryOf(country)
	if readings := t.withoutPrefix(digits); readings != nil {
		return pickReading(readings)
	}
	if err := checkDigits(digits); err != nil {
		return "", err
	}
	if t.owns(digits) {
		return digits, nil
	}
	local, fit := t.read(digits)
	switch {
	case fit == valid:
		return local, nil
	case fit == lacksArea:
		return "", errors.New("this is a local number without its area code: add the area code, or write it with + and the country code")
	case fit == possible && !isValidPhone(digits):
		return local, nil
	case digits[0] != '0':
		return digits, nil
	case t == nil:
		return "", errors.New("the workspace has no default country in which a number that begins with 0 could be read: write it with + and the country code")
	}
	return "", fmt.Errorf("this is no number of the workspace's default country (%s): write it with + and the country code", country)
}

// scanPhone extracts the digits of s, and tells whether + precedes them.
func scanPhone(s string) (digits string, plus bool, err error) {
	s = strings.TrimSpace(s)
	if rest, ok := strings.CutPrefix(s, "+"); ok && isDigits(rest) {
		return rest, true, nil // the usual form: nothing to copy
	}
	b := make([]byte, 0, 32) // 15 digits and the longest international prefix
	n := 0
	for i := range len(s) {
		switch c := s[i]; {
		case isDigit(c):
			if n++; n <= cap(b) {
				b = append(b, c)
			}
		case c == '+' && n == 0 && !plus:
			plus = true
		case strings.IndexByte(" -.()/", c) < 0:
			return "", false, errors.New("a phone number holds digits, an optional leading + and the separators space - . ( ) / and nothing else")
		}
	}
	if n > cap(b) {
		return "", false, digitsError(n)
	}
	return string(b), plus, nil
}

// international accepts digits that begin with a country code.
func international(digits string) (string, error) {
	if err := checkDigits(digits); err != nil {
		return "", err
	}
	if digits[0] == '0' {
		return "", errors.New("what follows + or an international prefix is a country code, which never begins with 0")
	}
	return digits, nil
}

func digitsError(n int) error {
	return fmt.Errorf("a phone number has %d to %d digits, this one has %d", MinPhoneDigits, MaxPhoneDigits, n)
}

// parseAccount returns the digits of a chat account. They must be 7 to 15 digits, and the
// first one must not be 0. A leading + is allowed, separators are not.
func parseAccount(s string) (string, error) {
	s = strings.TrimPrefix(strings.TrimSpace(s), "+")
	if !isDigits(s) {
		return "", errors.New("a chat account holds digits, nothing else")
	}
	return international(s)
}

// pickReading returns the first reading that is a valid number. If none is, it returns the
// first reading, or an error if that does not have the form of a number.
func pickReading(readings []string) (string, error) {
	if len(readings) > 1 {
		if i := slices.IndexFunc(readings, isValidPhone); i >= 0 {
			return international(readings[i])
		}
	}
	return international(readings[0])
}

// isValidPhone tells whether digits, country code first, are a valid number. The library
// also accepts some numbers of which it drops digits first. Such numbers are not valid
// here.
func isValidPhone(digits string) bool {
	n, err := phonenumbers.Parse("+"+digits, "")
	return err == nil && phonenumbers.IsValidNumber(n) && fullDigits(n) == digits
}

// A territory is data for reading a number in a country, besides the functions of the phone
// library. nil means no country.
type territory struct {
	region    string
	code      string         // country code, such as 90
	prefix    *regexp.Regexp // the country's own international prefix
	subscribe []int32        // lengths of ordinary numbers without area code
	ordinary  []int32        // lengths of ordinary numbers (fixed lines, mobiles) in full
}

// territories are the countries by ISO code. They are built when the first number
// without + is read.
var territories = sync.OnceValue(func() map[string]*territory {
	all, err := phonenumbers.MetadataCollection()
	if err != nil {
		panic(err) // the library read the same data when the program started
	}
	byRegion := make(map[string]*territory, len(all.GetMetadata()))
	for _, m := range all.GetMetadata() {
		if m.GetInternationalPrefix() == "" {
			continue // not a country, but a worldwide service
		}
		byRegion[m.GetId()] = newTerritory(m)
	}
	return byRegion
})

// territoryOf returns the country's territory, or nil if there is none.
func territoryOf(country string) *territory {
	if country == "" {
		return nil
	}
	return territories()[country]
}

func newTerritory(m *phonenumbers.PhoneMetadata) *territory {
	t := &territory{
		region:    m.GetId(),
		code:      strconv.Itoa(int(m.GetCountryCode())),
		prefix:    regexp.MustCompile("^(?:" + m.GetInternationalPrefix() + ")"),
		subscribe: m.GetGeneralDesc().GetPossibleLengthLocalOnly(),
	}
	for _, d := range []*phonenumbers.PhoneNumberDesc{m.GetFixedLine(), m.GetMobile()} {
		t.subscribe = append(slices.Clip(t.subscribe), d.GetPossibleLengthLocalOnly()...)
		lengths := d.GetPossibleLength()
		if len(lengths) == 0 { // the library leaves out lengths that equal the general description
			lengths = m.GetGeneralDesc().GetPossibleLength()
		}
		if lengths[0] > 0 { // -1: there are no such numbers
			t.ordinary = append(t.ordinary, lengths...)
		}
	}
	return t
}

// withoutPrefix returns the digits that follow an international prefix, once for each
// prefix that fits. The country's own prefix comes first. The result is nil if no prefix
// fits.
func (t *territory) withoutPrefix(digits string) []string {
	var readings []string
	if t != nil {
		n := len(t.prefix.FindString(digits))
		if n > 1 || n == 1 && len(digits) > 1 && digits[1] != '0' { // Samoa's 0 is not the first half of 00
			readings = append(readings, digits[n:])
		}
	}
	if rest, ok := strings.CutPrefix(digits, "00"); ok && !slices.Contains(readings, rest) {
		readings = append(readings, rest)
	}
	return readings
}

// owns tells whether digits are a valid number of the country, country code first.
func (t *territory) owns(digits string) bool {
	return t != nil && strings.HasPrefix(digits, t.code) && isValidPhone(digits)
}

// A fit says how well digits match a country's numbering plan.
type fit uint8

const (
	unfit     fit = iota
	lacksArea     // a local number without its area code
	possible      // has a possible length
	valid         // matches a number range
)

// read interprets digits as a number that is dialled in the country. full, with the country
// code, is set only if the number is possible or valid.
func (t *territory) read(digits string) (full string, f fit) {
	if t == nil {
		return "", unfit
	}
	n, err := phonenumbers.Parse(digits, t.region)
	if err != nil {
		return "", unfit
	}
	full = fullDigits(n)
	national := int32(len(phonenumbers.GetNationalSignificantNumber(n)))
	length := phonenumbers.IsPossibleNumberWithReason(n)
	switch {
	case checkDigits(full) != nil:
		return "", unfit
	case phonenumbers.IsValidNumber(n):
		return full, valid
	case slices.Contains(t.subscribe, national):
		return full, lacksArea
	case slices.Contains(t.ordinary, national):
		return full, possible
	case length == phonenumbers.IS_POSSIBLE && national < slices.Min(t.ordinary):
		return full, lacksArea // a short service number would have been valid
	}
	return full, unfit
}
