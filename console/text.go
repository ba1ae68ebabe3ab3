package console

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A run is a part of a message: plain text, a link, or text between marks. WhatsApp's
// marks make it *bold*, _italic_, ~struck out~ or monospaced.
type run struct {
	Text, Link string
	Mark       string // *, _, ~ or ```; "" for none
}

var (
	links  = regexp.MustCompile(`https?://[^\s<>"']+`)
	marked = regexp.MustCompile("```[^`]+```|\\*[^*\n]+\\*|_[^_\n]+_|~[^~\n]+~")
)

// runs splits a text into its parts. Punctuation after a link is not a part of it.
func runs(text string) (list []run) {
	for strings.Contains(text, "://") {
		at := links.FindStringIndex(text)
		if at == nil {
			break
		}
		link := strings.TrimRight(text[at[0]:at[1]], ".,;:!?)]}*_~")
		list = append(list, marks(text[:at[0]])...)
		list = append(list, run{Text: undirected(link), Link: link})
		text = text[at[0]+len(link):]
	}
	return append(list, marks(text)...)
}

// undirected returns the text that a link shows. It escapes characters that change the
// direction of text, as the address itself has them. Otherwise the link would seem to
// lead to another address.
func undirected(link string) string {
	if !strings.ContainsFunc(link, directs) {
		return link
	}
	var b strings.Builder
	for _, r := range link {
		if directs(r) {
			b.WriteString(url.PathEscape(string(r)))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// directs reports whether a character changes the direction of text.
func directs(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }

// marks splits a text without links at its marks. A mark counts only where a word begins
// or ends: 2*3*4 and snake_case_name stay as they are.
func marks(text string) (list []run) {
	if text != "" && !strings.ContainsAny(text, "*_~`") {
		return []run{{Text: text}} // the usual case
	}
	from := 0
	for _, at := range marked.FindAllStringIndex(text, -1) {
		mark := text[at[0] : at[0]+1]
		if mark == "`" {
			mark = "```"
		}
		inner := text[at[0]+len(mark) : at[1]-len(mark)]
		if inWord(text[:at[0]], true) || inWord(text[at[1]:], false) || mark != "```" && strings.TrimSpace(inner) != inner {
			continue
		}
		if at[0] > from {
			list = append(list, run{Text: text[from:at[0]]})
		}
		list = append(list, run{Text: inner, Mark: mark})
		from = at[1]
	}
	if from < len(text) {
		list = append(list, run{Text: text[from:]})
	}
	return list
}

// inWord reports whether a text ends (or, if ends is false, begins) with a letter or a
// digit.
func inWord(text string, ends bool) bool {
	r, _ := utf8.DecodeRuneInString(text)
	if ends {
		r, _ = utf8.DecodeLastRuneInString(text)
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// plain returns a text without its marks, for lists.
func plain(text string) string {
	var b strings.Builder
	for _, r := range runs(text) {
		b.WriteString(r.Text)
	}
	return b.String()
}

// bracketed has the words for lists instead of the text in brackets, which stands for a
// message without text.
var bracketed = map[string]string{"image": "Photo", "document": "Document", "video": "Video", "audio": "Audio", "voice message": "Voice message", "sticker": "Sticker", "location": "Place", "reaction": "Reacted"}

// glimpse returns a text for lists: without marks, on one line.
func glimpse(text string) string {
	text = plain(strings.Join(strings.Fields(text), " "))
	what, rest, ok := strings.Cut(strings.TrimPrefix(text, "["), "]")
	what, name, _ := strings.Cut(what, ": ") // the name of a document
	word := bracketed[what]
	if what == "document" {
		if rest == "" && name != "" {
			rest = " " + name
		} else if rest != "" && rest[0] != ' ' { // the name contains the bracket
			return text
		}
	} else if name != "" {
		return text
	}
	switch {
	case !ok || word == "" || text[0] != '[':
		return text
	case rest == "" || what == "reaction":
		return word + rest
	}
	return word + ":" + rest
}
