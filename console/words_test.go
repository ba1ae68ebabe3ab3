package console

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/desk"
)

// naming matches texts that a page must not have: commands, their flags, and routes of
// the API.
var naming = regexp.MustCompile(`\bparley (serve|demo|workspace|member|key|channel|template|attempt|webhook|events|delivery|login-link|sandbox|migrate|mcp)\b|--[a-z]|\b(GET|POST|PUT|PATCH|DELETE) /|/v1|\bAPI (call|endpoint)`)

func TestWords(t *testing.T) {
	t.Parallel()
	check := func(what, text string) {
		t.Helper()
		if at := naming.FindString(text); at != "" {
			t.Errorf("%s names %q: %s", what, at, text)
		}
	}
	for kind := desk.NoAdvice + 1; kind < desk.EndOfAdvice; kind++ {
		if advices[kind] == "" {
			t.Errorf("no words for advice %d", kind)
		}
		check("advice", advices[kind])
	}
	for _, e := range append(slices.Clone(desk.ErrorTypes), desk.Changed) {
		if statusOf(desk.Errorf(e, "")) == 0 {
			t.Errorf("no status for %s", e)
		}
		check("message", messages[e]+" "+more[e])
	}
	for name, text := range toasts {
		check(name, text)
	}
	for _, reason := range desk.TemplateReasons {
		if reasonWords[reason] == "" {
			t.Errorf("no words for %s", reason)
		}
	}
	for _, p := range desk.Permissions {
		if permissionWords[p] == "" {
			t.Errorf("no words for %s", p)
		}
	}
	for _, b := range desk.Bindings {
		if bindingWords[b] == "" {
			t.Errorf("no words for %s", b)
		}
	}
}

// laterParts matches words of features that do not exist yet.
var laterParts = regexp.MustCompile(`(?i)\bpalette\b`)

// TestTemplateFiles: templates put quotes around the values of attributes. They name no
// command, and do not mention later features.
func TestTemplateFiles(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile(`"[^"]*"|\{\{[^}]*\}\}`)
	unquoted := regexp.MustCompile(`<[a-z][^<>]*\s[a-z-]+=[^"\s>]`)
	for _, file := range files {
		body, err := fs.ReadFile(templates, file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(body)
		if at := unquoted.FindString(quoted.ReplaceAllString(text, `""`)); at != "" {
			t.Errorf("%s has an attribute without quotes: %s", file, at)
		}
		for _, wrong := range []*regexp.Regexp{naming, laterParts, regexp.MustCompile(`style="|\son[a-z]+="|<script[^>]*>[^<]|javascript:`)} {
			if at := wrong.FindString(text); at != "" {
				t.Errorf("%s has %q", file, at)
			}
		}
		if strings.Contains(text, "target=\"_blank\"") && !strings.Contains(text, "noopener noreferrer") {
			t.Errorf("%s opens a window that can reach ours", file)
		}
	}
}
