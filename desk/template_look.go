package desk

import (
	"slices"
	"strings"
	"unicode"
)

// A Piece is a part of a template's text: plain text, or one variable.
type Piece struct {
	Text    string // of a variable: its placeholder
	Address string // of a variable; "" for plain text
}

// Pieces splits the text of a part at its variables.
func (t *Template) Pieces(part Part) (list []Piece) {
	text := t.Body
	if part == PartHeader {
		text = t.Header
	}
	from := 0
	for _, at := range placeholder.FindAllStringIndex(text, -1) {
		if at[0] > from {
			list = append(list, Piece{Text: text[from:at[0]]})
		}
		match := text[at[0]:at[1]]
		list = append(list, Piece{Text: match, Address: Variable{part, placeholderKey(match)}.Address()})
		from = at[1]
	}
	if from < len(text) {
		list = append(list, Piece{Text: text[from:]})
	}
	return list
}

// MostAround is the greatest number of characters that the method Around returns on each
// side of a variable.
const MostAround = 32

// Around returns the words before and after the first place of a variable, so that people
// can tell the variables apart. The texts are short, on one line, and end at the next
// variable; … stands for omitted text.
func (t *Template) Around(v Variable) (before, after string) {
	pieces := t.Pieces(v.Part)
	at := slices.IndexFunc(pieces, func(p Piece) bool { return p.Address == v.Address() })
	if at < 0 {
		return "", ""
	}
	var head, tail []rune
	begins, ends := at == 0, at == len(pieces)-1 // whether before and after reach the ends of the part
	if at > 0 && pieces[at-1].Address == "" {
		head, begins = []rune(spaced(pieces[at-1].Text)), at == 1
	}
	if at+1 < len(pieces) && pieces[at+1].Address == "" {
		tail, ends = []rune(spaced(pieces[at+1].Text)), at+2 == len(pieces)
	}
	if from := len(head) - MostAround; from > 0 {
		for begins = false; from < len(head) && head[from] != ' '; from++ {
		}
		head = head[from:]
	}
	if end := MostAround; end < len(tail) {
		for ends = false; end > 0 && tail[end] != ' '; end-- {
		}
		tail = tail[:end]
	}
	before, after = string(head), string(tail)
	if begins {
		before = strings.TrimLeft(before, " ")
	} else {
		before = "…" + before
	}
	if ends {
		after = strings.TrimRight(after, " ")
	} else {
		after += "…"
	}
	return before, after
}

// spaced returns a text with one space in place of each run of white space.
func spaced(text string) string {
	var b strings.Builder
	space := false
	for _, r := range text {
		if unicode.IsSpace(r) {
			if !space {
				b.WriteByte(' ')
			}
			space = true
			continue
		}
		space = false
		b.WriteRune(r)
	}
	return b.String()
}

// The rest of a longer search for templates is ignored.
const (
	maxSearch      = 200 // bytes
	maxSearchWords = 10
)

// Search returns the templates that can be sent, perhaps with a file or links, and have all the words of a search, in any order
// and in any case. Templates that have all words in their name come first. Then come
// templates that have some of the words only in the text. A search without words returns
// all these templates.
func (l *Library) Search(find string) []*Template {
	words := strings.Fields(strings.ToLower(strings.ToValidUTF8(find[:min(len(find), maxSearch)], " ")))
	words = words[:min(len(words), maxSearchWords)]
	var named, others []*Template
	for _, t := range l.Templates {
		if !t.Sendable() && !t.Fillable() {
			continue
		}
		name := t.Name + " " + strings.ReplaceAll(t.Name, "_", " ") + " " + strings.ToLower(t.Language)
		if hasAll(name, words) {
			named = append(named, t)
		} else if hasAll(strings.Join([]string{name, strings.ToLower(t.Header), strings.ToLower(t.Body), strings.ToLower(t.Look.Footer)}, "\n"), words) {
			others = append(others, t)
		}
	}
	return append(named, others...)
}

func hasAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
