package desk

import (
	"cmp"
	"strings"
)

// MaxDecimalDigits is the greatest number of digits before the point of a number, and also
// after it (contract §3). Leading and trailing zeros do not count.
const MaxDecimalDigits = 38

// ParseDecimal reads s, trimmed, as a number in the grammar of JSON (RFC 8259), so
// "+5", "0x10", ".5" and "1." are refused. It returns the canonical form of that exact
// decimal: a JSON number without exponent, without trailing zeros after the point, and
// 0 for every zero. It returns false for a text that is not a number, and for a number
// with too many digits.
func ParseDecimal(s string) (canonical string, ok bool) {
	s = strings.TrimSpace(s)
	n, ok := scanNumber(s)
	if !ok {
		return "", false
	}
	if n.canonical() {
		return s, true
	}
	return n.normal()
}

// A number has the parts of a JSON number, as written.
type number struct {
	negative        bool
	whole, fraction string
	hasExponent     bool
	exponent        int // limited to ±maxExponent, beyond which the result is the same
}

// maxExponent is far more than the length of any request. So no number of zeros in the
// fraction or the whole part can offset a greater exponent.
const maxExponent = 1 << 40

// scanNumber splits s into its parts. It returns false if s is not a JSON number.
func scanNumber(s string) (n number, ok bool) {
	s, n.negative = cutByte(s, '-')
	n.whole, s = cutDigits(s)
	if n.whole == "" || n.whole[0] == '0' && n.whole != "0" {
		return n, false
	}
	s, point := cutByte(s, '.')
	if point {
		if n.fraction, s = cutDigits(s); n.fraction == "" {
			return n, false
		}
	}
	if s == "" {
		return n, true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return n, false
	}
	n.hasExponent = true
	s, below := cutByte(s[1:], '-')
	if !below {
		s, _ = cutByte(s, '+')
	}
	digits, rest := cutDigits(s)
	for i := range len(digits) {
		n.exponent = min(n.exponent*10+int(digits[i]-'0'), maxExponent)
	}
	if below {
		n.exponent = -n.exponent
	}
	return n, digits != "" && rest == ""
}

// cutByte returns s without a leading c, and whether it had one.
func cutByte(s string, c byte) (string, bool) {
	if s != "" && s[0] == c {
		return s[1:], true
	}
	return s, false
}

// cutDigits splits s after its leading digits.
func cutDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return s[:i], s[i:]
}

// canonical tells whether the number is written in its canonical form.
func (n *number) canonical() bool {
	return !n.hasExponent &&
		len(n.whole) <= MaxDecimalDigits && len(n.fraction) <= MaxDecimalDigits &&
		!strings.HasSuffix(n.fraction, "0") &&
		(!n.negative || n.whole != "0" || n.fraction != "") // -0
}

// normal writes the number in its canonical form.
func (n *number) normal() (string, bool) {
	// The significant digits are [first, last) of whole and fraction taken as one,
	// with the point before the digit at index point.
	length := len(n.whole) + len(n.fraction)
	first, last := 0, length
	for first < last && n.digit(first) == '0' {
		first++
	}
	for last > first && n.digit(last-1) == '0' {
		last--
	}
	if first == last {
		return "0", true
	}
	point := len(n.whole) + n.exponent
	if point-first > MaxDecimalDigits || last-point > MaxDecimalDigits {
		return "", false
	}
	b := make([]byte, 0, 2*MaxDecimalDigits+3)
	if n.negative {
		b = append(b, '-')
	}
	if point <= first {
		b = append(b, '0')
	}
	for i := min(first, point); i < max(last, point); i++ {
		if i == point {
			b = append(b, '.')
		}
		b = append(b, n.digit(i))
	}
	return string(b), true
}

// digit returns the digit at index i, counted through the whole part and the fraction
// together. Outside of them, every digit is zero.
func (n *number) digit(i int) byte {
	switch {
	case i < 0 || i >= len(n.whole)+len(n.fraction):
		return '0'
	case i < len(n.whole):
		return n.whole[i]
	}
	return n.fraction[i-len(n.whole)]
}

// compareDecimals compares two numbers in their canonical form: -1, 0 or 1.
func compareDecimals(a, b string) int {
	a, below := cutByte(a, '-')
	b, other := cutByte(b, '-')
	switch {
	case below != other && below:
		return -1
	case below != other:
		return 1
	case below:
		a, b = b, a
	}
	wholeA, fractionA, _ := strings.Cut(a, ".")
	wholeB, fractionB, _ := strings.Cut(b, ".")
	return cmp.Or(cmp.Compare(len(wholeA), len(wholeB)), cmp.Compare(wholeA, wholeB), cmp.Compare(fractionA, fractionB))
}
