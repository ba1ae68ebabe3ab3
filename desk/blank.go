package desk

import (
	"strings"
	"unicode"
)

// Blank tells whether the text has only white space and invisible characters, such as
// U+200B. If a text has visible characters, its invisible characters are kept, because they
// may matter: U+200D joins emoji.
func Blank(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !unseen(r) }) < 0
}

// unseen tells whether a character that stands alone is invisible.
func unseen(r rune) bool {
	switch r {
	case '\u2800', '\u034F', '\u115F', '\u1160', '\u3164', '\uFFA0': // a blank pattern of Braille, a joiner, fillers
		return true
	}
	return unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
