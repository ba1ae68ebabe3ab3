package desk

import (
	"strings"
	"unicode"
)

// An OptChange is what an inbound message asks of marketing.
type OptChange uint8

// The changes.
const (
	OptNone    OptChange = iota // it asks nothing: what was so stays so
	OptOut                      // no marketing from now on
	OptInAgain                  // marketing as before
)

const longestOptWord = len("unsubscribe")

// OptWord reads a message that is only a stop word or a start word (contract §5).
// Around the word anything but letters and digits may stand: white space,
// punctuation, emoji. In it, letter case and accents do not matter, and dashes or
// white space count as one space; any other sign makes it OptNone. A person who
// writes more than the word is talking to people, who can read it.
func OptWord(text string) OptChange {
	text = strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	// A message may be long, and most are no such word: the first dozen letters
	// decide, and nothing is allocated for the rest.
	word, gap := make([]byte, 0, longestOptWord+3), false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r) || unicode.Is(unicode.Dash, r):
			gap = true
			continue
		case unicode.IsMark(r): // an accent that stands by itself
			continue
		case gap:
			word, gap = append(word, ' '), false
		}
		n := len(word)
		word = appendFolded(word, r)
		if len(word) == n || n > longestOptWord {
			return OptNone
		}
	}
	switch string(word) {
	case "stop", "unsubscribe", "opt out", "iptal", "dur", "ret", "baja", "parar", "sair", "stopp", "abmelden", "arret":
		return OptOut
	case "start", "subscribe", "devam", "onay", "alta", "voltar", "iniciar", "anmelden", "reprendre":
		return OptInAgain
	}
	return OptNone
}
