package desk

import "strings"

// Some numbers are known by two spellings: people dial one, and a chat account that is
// older than a change of the country's plan has the other. A variant only ever looks a
// person up; it is no identity.

// A numberTwin says that numbers of a country are known with and without digits after
// the country's code.
type numberTwin struct {
	country, infix string
	area           int    // how many digits stand between the code and the infix
	rest           int    // how many stand after it
	first          string // what the rest may begin with; "": anything
	oneWay         bool   // only the long spelling leads to the short one: the short may be somebody else's landline
	short          bool   // the short spelling is the one that people dial
}

var numberTwins = []numberTwin{
	{country: "55", infix: "9", area: 2, rest: 8, first: "6789"},     // Brazil: mobiles got a ninth digit; landlines did not
	{country: "52", infix: "1", rest: 10, short: true},               // Mexico: the 1 of mobiles was abolished
	{country: "54", infix: "9", rest: 10, oneWay: true, short: true}, // Argentina: the 9 of mobiles called from abroad
}

// split takes a number apart, and tells whether it is a long or a short spelling.
func (t numberTwin) split(number string) (head, rest string, long, ok bool) {
	head, found := strings.CutPrefix(number, t.country)
	if !found || len(head) < t.area {
		return "", "", false, false
	}
	head, rest = number[:len(t.country)+t.area], head[t.area:]
	if len(rest) == t.rest+len(t.infix) {
		rest, long = strings.CutPrefix(rest, t.infix)
	}
	ok = len(rest) == t.rest && (t.first == "" || strings.ContainsRune(t.first, rune(rest[0])))
	return head, rest, long, ok
}

// NumberVariants returns the other spellings by which the holder of a number, as digits,
// may be known.
func NumberVariants(number string) []string {
	for _, t := range numberTwins {
		switch head, rest, long, ok := t.split(number); {
		case !ok:
		case long:
			return []string{head + rest}
		case !t.oneWay:
			return []string{head + t.infix + rest}
		}
	}
	return nil
}

// DialledNumber is the spelling of a number that all its variants share: the one that
// people dial.
func DialledNumber(number string) string {
	for _, t := range numberTwins {
		switch head, rest, _, ok := t.split(number); {
		case !ok:
		case t.short:
			return head + rest
		default:
			return head + t.infix + rest
		}
	}
	return number
}
