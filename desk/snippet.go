package desk

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A Snippet is a saved reply: a text that members and clients use in replies
// (contract-talk §6).
type Snippet struct {
	Shortcut  string
	Text      string // as sent, with placeholders such as {{customer_first_name}}
	UpdatedAt Time
}

const (
	// MaxSnippets is the greatest number of saved replies of a workspace.
	MaxSnippets = 500
	// MaxSnippetText is the greatest number of characters in a saved reply, the same as in a
	// reply.
	MaxSnippetText = MaxReply
)

var (
	shortcut           = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)
	snippetPlaceholder = regexp.MustCompile(`\{\{([^{}]*)\}\}`)
)

// NewSnippet checks a snippet. It returns InvalidRequest.
func NewSnippet(name, text string, at Time) (Snippet, error) {
	if !shortcut.MatchString(name) {
		return Snippet{}, InvalidAt("/shortcut", "a shortcut is 1 to 32 characters: a letter a-z, then letters a-z, digits, _ and -")
	}
	if Blank(text) {
		return Snippet{}, InvalidAt("/text", "give a text of 1 to %d characters", MaxSnippetText)
	}
	if n := utf8.RuneCountInString(text); n > MaxSnippetText {
		return Snippet{}, InvalidAt("/text", "a text has at most %d characters, this one has %d", MaxSnippetText, n)
	}
	for _, found := range snippetPlaceholder.FindAllStringSubmatch(text, -1) {
		if !fillsSnippet(Binding(found[1])) {
			return Snippet{}, InvalidAt("/text", "%s is no placeholder: use %s", Quote(found[0]), snippetPlaceholders())
		}
	}
	if strings.Contains(snippetPlaceholder.ReplaceAllLiteralString(text, ""), "{{") {
		return Snippet{}, InvalidAt("/text", "a placeholder begins with {{ and ends with }}: use %s", snippetPlaceholders())
	}
	return Snippet{name, text, at}, nil
}

// fillsSnippet tells whether a snippet may contain the binding's placeholder. Only Free is
// not allowed, because a person types its value.
func fillsSnippet(b Binding) bool {
	for _, known := range Bindings {
		if known == b {
			return b != Free
		}
	}
	return false
}

func snippetPlaceholders() string {
	var list []string
	for _, b := range Bindings {
		if fillsSnippet(b) {
			list = append(list, fmt.Sprintf("{{%s}}", b))
		}
	}
	return Alternatives(list)
}

// Fill returns the text with values in place of its placeholders. A placeholder stays as it
// is written if it has no value, or if the text would become too long to be sent.
func (s *Snippet) Fill(values map[Binding]HintValue) string {
	n := utf8.RuneCountInString(s.Text)
	return snippetPlaceholder.ReplaceAllStringFunc(s.Text, func(found string) string {
		v := values[Binding(found[2:len(found)-2])].Value
		then := n + utf8.RuneCountInString(v) - utf8.RuneCountInString(found)
		if v == "" || then > MaxSnippetText {
			return found
		}
		n = then
		return v
	})
}

// ListBytes is the snippet's size in a page.
func (s *Snippet) ListBytes() int { return recordRoom + jsonBytes(s.Text) }

// NoSnippet is the answer for a shortcut that no snippet of the workspace has.
func NoSnippet() *Error { return NotFoundf("no saved reply has this shortcut") }
