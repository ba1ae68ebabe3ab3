package whatsapp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/desk"
	"parley/whatsapp"
)

// classes lists every code by class. It does not use the program's own table.
var classes = map[byte][]int{
	'R': {130403, 130472, 130497, 131021, 131026, 131030, 131049, 131050},
	'F': {
		100, 470, 506, 131008, 131009, 131047, 131051, 131052, 131053, 131055, 131062, 131063, 132000, 132001, 132005, 132007, 132008,
		132012, 132015, 132016, 132018, 132068, 134100, 135000, 137000,
	},
	'A': {
		0, 3, 10, 33, 102, 104, 190, 368, 803, 131005, 131031, 131037, 131042, 131044, 131045, 133000, 133005, 133006, 133008,
		133009, 133010, 133015, 134011, 134102,
	},
	'T': {4, 17, 341, 613, 80007, 80008, 130429, 131048, 131056, 131064, 132069, 133016},
	'X': {1, 2, 131000, 131016, 131057, 133004, 134101, 2494100},
}

// shared lists codes in ranges, and some codes that are in no list.
var shared = map[byte][]int{'A': {200, 250, 299}, 'F': {138000, 138999, 139100, 139103, 2388001, 2593012, 300, 139104, 131999}}

func TestFailure_codes(t *testing.T) {
	t.Parallel()
	var listed []int
	for _, codes := range classes {
		listed = append(listed, codes...)
	}
	known := whatsapp.Codes()
	slices.Sort(listed)
	slices.Sort(known)
	if !slices.Equal(listed, known) {
		t.Errorf("known %v", known)
	}
	// The provider's texts may repeat values that were sent to it.
	for _, words := range []string{"Malformed access token EAATESTTOKEN", "proof 5e99d60d3ce490c0a8ed1012dfc890bd7a28314643d5e367ed47cb3918c39849 is wrong"} {
		f := refuse(t, fmt.Sprintf(`{"error":{"code":99999,"error_data":{"details":%q}}}`, words), 400, nil).Failure
		if shown := f.Title + f.Fix; strings.Contains(shown, "EAA") || strings.Contains(shown, "5e99") {
			t.Errorf("a secret is shown: %s", shown)
		}
	}
	for class, codes := range classes {
		for _, code := range slices.Concat(codes, shared[class]) {
			r := refuse(t, fmt.Sprintf(`{"error":{"message":"(#%d) Some title","code":%d}}`, code, code), 400, nil)
			want := map[byte]desk.Refusal{
				'R': {Type: desk.ProviderRejected}, 'F': {Type: desk.ProviderRejected},
				'A': {Type: desk.ProviderUnavailable, RetryAfter: 300}, 'T': {Type: desk.ProviderUnavailable, RetryAfter: 30},
				'X': {Type: desk.ProviderUnavailable, RetryAfter: 2},
			}[class]
			if code == 131056 {
				want.RetryAfter = 4
			}
			if code == 131048 {
				want.RetryAfter = 24 * 60 * 60
			}
			f := r.Failure
			if r.Type != want.Type || r.RetryAfter != want.RetryAfter || f.Code != code || f.Title == "" || !strings.HasSuffix(f.Fix, ".") {
				t.Errorf("%d, class %c: %+v %+v", code, class, r, f)
			}
			if (r.Account != nil) != (class == 'A') || r.Account != nil && (r.Account.Code != code || r.Account.Token != slices.Contains([]int{0, 102, 104, 190}, code)) {
				t.Errorf("%d, class %c: says of the account %+v", code, class, r.Account)
			}
		}
	}
}

func refuse(t *testing.T, body string, status int, header http.Header) *desk.Refusal {
	t.Helper()
	var r *desk.Refusal
	if err := whatsapp.Refuse(body, status, header, began); !errors.As(err, &r) {
		t.Fatal(err)
	}
	return r
}

func TestFailure_words(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code           int
		title, details string
		want           string // title
	}{
		{131026, "whatever", "", "Message undeliverable"},
		{131026, "", "Message undeliverable.", "Message undeliverable"},
		{132000, "", "body: number of localizable_params (2) does not match the expected number of params (3)",
			"Number of parameters does not match: body: number of localizable_params (2) does not match the expected number of params (3)"},
		{131009, "", "to 905321112233 is wrong", "Parameter value is not valid"},
		{131009, "", "to +90 (532) 111-22-33 is wrong", "Parameter value is not valid"},
		{131009, "", "two\n lines \x00", "Parameter value is not valid: two lines"},
		{131009, "", strings.Repeat("ş", 400), "Parameter value is not valid: " + strings.Repeat("ş", 299) + "…"},
		{999999, "New trouble", "It is new", "New trouble: It is new"},
		{999999, "Trouble with 905321112233", "", "Unknown error"},
	} {
		if got := whatsapp.Failure(c.code, c.title, c.details); got.Title != c.want || got.Code != c.code {
			t.Errorf("%d %q %q: %+v", c.code, c.title, c.details, got)
		}
	}
	if f := whatsapp.Failure(999999, "New trouble", "It is new"); !strings.Contains(f.Fix, "999999") || !strings.Contains(f.Fix, "It is new") {
		t.Errorf("%+v", f)
	}
}

// TestFailure_shapes reads errors in all their forms.
func TestFailure_shapes(t *testing.T) {
	t.Parallel()
	var bodies map[string]json.RawMessage
	if err := json.Unmarshal(fixture(t, "graph_errors"), &bodies); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]desk.ErrorType{
		"param_count": desk.ProviderRejected, "template_missing": desk.ProviderRejected, "header_format": desk.ProviderRejected,
		"param_text": desk.ProviderRejected, "param_name_missing": desk.ProviderRejected, "url_button_param": desk.ProviderRejected,
		"token_expired": desk.ProviderUnavailable, "permission": desk.ProviderUnavailable, "object_missing": desk.ProviderUnavailable,
		"throughput": desk.ProviderUnavailable, "pair_rate": desk.ProviderUnavailable, "recipient_not_allowed": desk.ProviderRejected,
	} {
		if r := refuse(t, string(bodies[name]), 400, nil); r.Type != want || strings.Contains(r.Failure.Title, "(#") {
			t.Errorf("%s: %+v %+v", name, r, r.Failure)
		}
	}
	for body, want := range map[string]string{
		`{"error":{"code":"132000","error_data":"as a string"}}`:                                   "Number of parameters does not match: as a string",
		`{"error":{"code":132000,"error_data":{"details":["odd"]},"message":7}}`:                   "Number of parameters does not match",
		`{"error":{"code":132000,"error_data":[1],"error_user_msg":"for people"}}`:                 "Number of parameters does not match: for people",
		`{"error":{"code":777777,"message":"(#777777) A new title","is_transient":true}}`:          "A new title",
		`{"error":{"code":100,"error_subcode":33,"message":"Object with ID '200300400500600' x"}}`: "The id does not exist, or the token may not use it",
	} {
		r := refuse(t, body, 400, nil)
		if r.Failure.Title != want {
			t.Errorf("%s: %+v", body, r.Failure)
		}
		if strings.Contains(body, "is_transient") && (r.Type != desk.ProviderUnavailable || r.RetryAfter != 2) {
			t.Errorf("%s: %+v", body, r)
		}
	}
}

func TestRefusal_retryAfter(t *testing.T) {
	t.Parallel()
	usage := func(minutes string) http.Header {
		return http.Header{"X-Business-Use-Case-Usage": {`{"1":"odd","2":[{"call_count":12.5,"estimated_time_to_regain_access":` + minutes + `}]}`}}
	}
	for _, c := range []struct {
		code   int
		header http.Header
		want   int
	}{
		{131056, nil, 4},
		{131056, usage("2"), 120},
		{131056, http.Header{"Retry-After": {"9"}}, 9},
		{130429, http.Header{"Retry-After": {"9"}}, 30},
		{130429, http.Header{"Retry-After": {began.Add(time.Minute).UTC().Format(http.TimeFormat)}}, 60},
		{80007, usage("1e99"), 86400},
		{80007, usage("-5"), 30},
		{80007, usage(`"5"`), 30},
		{80007, http.Header{"X-Business-Use-Case-Usage": {"{"}, "X-App-Usage": {"7"}, "Retry-After": {"soon"}}, 30},
		{190, nil, 300},
	} {
		if r := refuse(t, fmt.Sprintf(`{"error":{"code":%d}}`, c.code), 400, c.header); r.RetryAfter != c.want {
			t.Errorf("%d %v: %d", c.code, c.header, r.RetryAfter)
		}
	}
}
