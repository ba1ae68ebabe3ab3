package desk

const hexDigits = "0123456789abcdef"

// AppendJSONString appends s as a JSON string with the fewest escapes that RFC 8259
// requires: the quote, the backslash and characters below U+0020. So each text has one
// form. s must be valid UTF-8; invalid bytes are copied.
func AppendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if !needsEscape(c) {
			continue
		}
		b = append(append(b, s[start:i]...), '\\')
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, c)
		case '\b':
			b = append(b, 'b')
		case '\t':
			b = append(b, 't')
		case '\n':
			b = append(b, 'n')
		case '\f':
			b = append(b, 'f')
		case '\r':
			b = append(b, 'r')
		default:
			b = append(b, 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
		}
	}
	return append(append(b, s[start:]...), '"')
}

// jsonBytes is an upper limit of a text's length as a JSON string, in bytes.
func jsonBytes(s string) int {
	n := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '\n' || c == '\t' || c == '\r' || c == '\b' || c == '\f':
			n++
		case c < ' ':
			n += len(`u0000`)
		}
	}
	return n
}

func needsEscape(c byte) bool { return c < ' ' || c == '"' || c == '\\' }

// jsonLength is how many bytes AppendJSONString appends.
func jsonLength(s string) int {
	n := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case !needsEscape(c):
		case c < ' ' && c != '\b' && c != '\t' && c != '\n' && c != '\f' && c != '\r':
			n += len(`u0000`)
		default:
			n++
		}
	}
	return n
}

// quoteJSON is AppendJSONString into a new string. It allocates only that string,
// unless something is escaped.
func quoteJSON(s string) string {
	for i := range len(s) {
		if needsEscape(s[i]) {
			return string(AppendJSONString(make([]byte, 0, len(s)+len(s)/8+8), s))
		}
	}
	return `"` + s + `"`
}

// recordRoom is an upper limit for the size of a record's JSON without its texts: the field
// names, ids and times.
const recordRoom = 512
