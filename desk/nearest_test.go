package desk_test

import (
	"strings"
	"testing"

	"parley/desk"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"external_id", "name", "email", "phone", "note", "owner", "identities", "attributes"}
	for name, want := range map[string]string{
		"Name": "name", "externalId": "external_id", "external-id": "external_id", "emial": "email", "mail": "email",
		"attribute": "attributes", "identites": "identities", "onwer": "owner", "": "",
		"address": "", "x": "", "ß": "", strings.Repeat("name", 1000): "",
	} {
		if got := desk.Nearest(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
