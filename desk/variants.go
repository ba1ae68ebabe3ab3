package desk

import "strings"

// Some numbers have two spellings. People dial one of them; a chat account that is
// older than a change of the country's numbering plan has the other. Both are one
// identity.

// A numberTwin says that numbers of a country exist with and without certain digits
// (the infix) after the country code.
type numberTwin struct {
	country, infix string
	area           int    // how many digits are between the country code and the infix
	rest           int    // how many digits follow the infix
	first          string // with which digits the rest may begin; "": any
	short          bool   // people dial the short spelling
}

var numberTwins = []numberTwin{
	{country: "55", infix: "9", area: 2, rest: 8, first: "6789"}, // Brazil: mobiles got a ninth digit; landlines did not
	{country: "52", infix: "1", rest: 10, short: true},           // Mexico: the 1 of mobiles no longer exists
	{country: "54", infix: "9", rest: 10, short: true},           // Argentina: the 9 of mobiles called from abroad
}

// split splits a number, and tells whether it is a long or a short spelling.
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

// DialledNumber is the spelling that people dial. All variants of a number have the
// same one.
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
