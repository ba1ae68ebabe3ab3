package main

import (
	"strings"
	"testing"
)

// TestSecretFrom: an error names the flag and the variable. It does not show a value that
// may be the secret itself, if it was given instead of the variable's name.
func TestSecretFrom(t *testing.T) {
	t.Setenv("WA_EMPTY", "")
	t.Setenv("WA_BROKEN", "EAAG\nsecret")
	t.Setenv("WA_TOKEN", " EAAGsecret\n")
	for name, says := range map[string][]string{
		"WA_EMPTY":   {"WA_EMPTY", "--token-env", "is empty or not set"},
		"WA_NOT_SET": {"WA_NOT_SET", "--token-env", "is empty or not set"},
		"WA_BROKEN":  {"WA_BROKEN", "--token-env", "holds a line break"},
	} {
		_, err := secretFrom(name).read("--token-env")
		for _, part := range says {
			if err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "EAAG") {
				t.Errorf("%s: %v, want it to say %q", name, err, part)
			}
		}
	}
	for _, pasted := range []string{"EAAGm0PX4ZCpsBO1234567890", "0123456789abcdef0123456789abcdef", "A=b c"} {
		_, err := secretFrom(pasted).read("--token-env")
		if err == nil || strings.Contains(err.Error(), pasted) || !strings.Contains(err.Error(), "--token-env") {
			t.Errorf("a pasted secret: %v", err)
		}
	}
	if s, err := secretFrom("WA_TOKEN").read("--token-env"); err != nil || s.Reveal() != "EAAGsecret" {
		t.Errorf("read %q, %v", s.Reveal(), err)
	}
	if s, err := secretFrom("").read("--token-env"); err != nil || s.Reveal() != "" {
		t.Errorf("no flag: %q, %v", s.Reveal(), err)
	}
}
