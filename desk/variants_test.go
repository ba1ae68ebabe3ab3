package desk_test

import (
	"slices"
	"testing"

	"parley/desk"
)

func TestNumberVariants(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]struct {
		variants []string
		dialled  string
	}{
		"5511987654321":  {[]string{"551187654321"}, "5511987654321"}, // Brazil, mobile
		"551187654321":   {[]string{"5511987654321"}, "5511987654321"},
		"551134567890":   {nil, "551134567890"},                      // a landline
		"5511934567890":  {nil, "5511934567890"},                     // no landline gets a 9
		"55118765432":    {nil, "55118765432"},                       // too short
		"55119876543210": {nil, "55119876543210"},                    // too long
		"5215512345678":  {[]string{"525512345678"}, "525512345678"}, // Mexico
		"525512345678":   {[]string{"5215512345678"}, "525512345678"},
		"5491123456789":  {[]string{"541123456789"}, "541123456789"}, // Argentina: one way
		"541123456789":   {nil, "541123456789"},
		"905321112233":   {nil, "905321112233"},
		"52":             {nil, "52"},
		"":               {nil, ""},
	} {
		if got := desk.NumberVariants(number); !slices.Equal(got, want.variants) {
			t.Errorf("variants of %s: %v, want %v", number, got, want.variants)
		}
		if got := desk.DialledNumber(number); got != want.dialled {
			t.Errorf("dialled number of %s: %s, want %s", number, got, want.dialled)
		}
		for _, v := range want.variants {
			if got := desk.DialledNumber(v); got != want.dialled {
				t.Errorf("%s and its variant %s are dialled %s and %s", number, v, want.dialled, got)
			}
		}
	}
}
