package main

import (
	"testing"

	"parley/desk"
)

// TestTemplateExample: the template in the help is valid, and can be sent.
func TestTemplateExample(t *testing.T) {
	t.Parallel()
	template, err := desk.ParseTemplate([]byte(templateExample))
	if err != nil || !template.Sendable() || len(template.Variables) != 2 {
		t.Errorf("%v, %+v", err, template)
	}
}
