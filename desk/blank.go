package desk

import (
	"strings"
	"unicode"
)

// Blank tells whether a reader of the text sees nothing: it has only spaces, and characters
// that are not visible, such as U+200B. Among others, such characters may matter (U+200D joins
// emoji), so they stay where they are.
func Blank(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !unseen(r) }) < 0
}

// unseen tells whether nothing is seen of a character that stands alone.
func unseen(r rune) bool {
	switch r {
	case '\u2800', '\u034F', '\u115F', '\u1160', '\u3164', '\uFFA0': // a blank pattern of Braille, a joiner, fillers
		return true
	}
	return unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
