package desk

import (
	"strings"
	"unicode"
)

// An OptChange is how an inbound message changes the marketing choice.
type OptChange uint8

// The changes.
const (
	OptNone    OptChange = iota // no change
	OptOut                      // no marketing from now on
	OptInAgain                  // marketing allowed again
)

const longestOptWord = len("unsubscribe")

// OptWord recognises a message that is only a stop word or a start word (contract §5).
// Around the word it ignores everything except letters and digits: white space,
// punctuation, emoji. In the word it ignores letter case and accents, and reads dashes and
// white space as one space. If the word has any other sign, the result is OptNone. A longer
// message is for people to read, not a command.
func OptWord(text string) OptChange {
	text = strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	// Most messages are not such a word, and may be long. So the loop ends after a dozen
	// letters, and allocates nothing.
	word, gap := make([]byte, 0, longestOptWord+3), false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r) || unicode.Is(unicode.Dash, r):
			gap = true
			continue
		case unicode.IsMark(r): // an accent without a letter
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
