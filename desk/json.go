package desk

const hexDigits = "0123456789abcdef"

// AppendJSONString appends s as a JSON string with the fewest escapes that RFC
// 8259 asks for: the quote, the backslash and what is below U+0020. Everything
// else stands for itself, so one text has one form. s is valid UTF-8; bytes that
// are none are copied as they are.
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

func needsEscape(c byte) bool { return c < ' ' || c == '"' || c == '\\' }

// quoteJSON is AppendJSONString to a string of its own. It allocates only that,
// unless something is escaped.
func quoteJSON(s string) string {
	for i := range len(s) {
		if needsEscape(s[i]) {
			return string(AppendJSONString(make([]byte, 0, len(s)+len(s)/8+8), s))
		}
	}
	return `"` + s + `"`
}
