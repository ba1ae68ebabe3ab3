package main

import (
	"testing"

	"parley/desk"
)

// What the help shows as a whole template is one, and can be sent.
func TestTemplateExample(t *testing.T) {
	t.Parallel()
	template, err := desk.ParseTemplate([]byte(templateExample))
	if err != nil || !template.Sendable() || len(template.Variables) != 2 {
		t.Errorf("%v, %+v", err, template)
	}
}
