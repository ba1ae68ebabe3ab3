package desk_test

import (
	"testing"

	"parley/desk"
)

func TestDialledNumber(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{
		"5511987654321":  "5511987654321", // Brazil, mobile
		"551187654321":   "5511987654321",
		"551134567890":   "551134567890",   // a landline
		"5511934567890":  "5511934567890",  // no landline gets a 9
		"55118765432":    "55118765432",    // too short
		"55119876543210": "55119876543210", // too long
		"5215512345678":  "525512345678",   // Mexico
		"525512345678":   "525512345678",
		"5491123456789":  "541123456789", // Argentina
		"541123456789":   "541123456789",
		"905321112233":   "905321112233",
		"52":             "52",
		"":               "",
	} {
		if got := desk.DialledNumber(number); got != want {
			t.Errorf("dialled number of %s: %s, want %s", number, got, want)
		}
	}
}
