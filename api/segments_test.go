package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestSegments(t *testing.T) {
	s := newServer(t)
	s.want(201, "POST /v1/attributes", `{"key":"spent","type":"number"}`)
	s.want(201, "POST /v1/attributes", `{"key":"gone","type":"text"}`)
	s.want(200, "DELETE /v1/attributes/gone", "")
	for i := range 5 {
		s.want(201, "POST /v1/contacts", fmt.Sprintf(`{"external_id":"c%d","name":"C %d","attributes":{"spent":%d}}`, i, i, 100*i))
	}
	const lapsed = `{"all":[{"field":"owner","is":"absent"},{"any":[{"field":"wrote_at","is":"older","days":90},{"field":"wrote_at","is":"absent"}]}]}`
	put := func(filter string) string { return `{"name":"Lapsed","filter":` + filter + `}` }
	one := func(condition string) string { return put(`{"all":[{` + condition + `}]}`) }
	for _, c := range []struct {
		call, body string
		status     int
		want       string
	}{
		{"GET /v1/segments", "", 200, `{"data":[]}`},
		{"PUT /v1/segments/lapsed", put(lapsed), 201, `{"data":{"key":"lapsed","name":"Lapsed","filter":` + lapsed + `,"updated_at":"`},
		{"PUT /v1/segments/lapsed", put(lapsed), 200, `"key":"lapsed"`},
		{"PUT /v1/segments/big", one(`"field":"attributes.spent","is":"at_least","value":2e2`), 201, `{"field":"attributes.spent","is":"at_least","value":200}`},
		{"GET /v1/segments", "", 200, `{"data":[{"key":"big","name":"Lapsed",`},
		{"GET /v1/segments?limit=5", "", 200, ""},
		{"GET /v1/contacts?segment=lapsed", "", 200, `"external_id":"c4"`},
		{"GET /v1/contacts?segment=big&limit=2", "", 200, `"next_cursor":`},
		{"GET /v1/contacts?segment=none", "", 400, `"segment: there is no segment with the key \"none\""`},
		{"GET /v1/contacts?segment=a%00", "", 400, "segment: "},
		{"GET /v1/contacts?segment=", "", 400, "segment: "},
		{"GET /v1/contacts?segment=big&owner=grace@example.com", "", 400, "owner: segment can only be combined with limit and cursor"},
		{"GET /v1/contacts?segment=big&q=a", "", 400, "q: segment can only be combined"},
		{"GET /v1/contacts?segment=big&cursor=x", "", 400, "cursor"},
		{"PUT /v1/segments/Lapsed", put(lapsed), 400, "/key"},
		{"PUT /v1/segments/" + strings.Repeat("k", 33), put(lapsed), 400, "/key"},
		{"PUT /v1/segments/a%00", put(lapsed), 400, "/key"},
		{"PUT /v1/segments/x", `{"filter":` + lapsed + `}`, 400, "/name: missing"},
		{"PUT /v1/segments/x", `{"name":" ","filter":` + lapsed + `}`, 400, "/name: a name has 1 to 100 characters"},
		{"PUT /v1/segments/x", `{"name":"` + strings.Repeat("x", 101) + `","filter":` + lapsed + `}`, 400, "/name"},
		{"PUT /v1/segments/x", `{"name":null,"filter":` + lapsed + `}`, 400, "/name: expected a string"},
		{"PUT /v1/segments/x", `{"name":"x"}`, 400, "/filter: missing"},
		{"PUT /v1/segments/x", `{"name":"x","filters":{}}`, 400, "did you mean filter?"},
		{"PUT /v1/segments/x", put(`null`), 400, "/filter: expected an object"},
		{"PUT /v1/segments/x", put(`{}`), 400, "/filter/all: send 1 to 20 conditions"},
		{"PUT /v1/segments/x", put(`{"any":[]}`), 400, "/filter/any: unknown field"},
		{"PUT /v1/segments/x", put(`{"all":[{"any":[{"any":[]}]}]}`), 400, "/filter/all/0/any/0/any: any can't be inside any"},
		{"PUT /v1/segments/x", put(`{"all":[{"any":[]}]}`), 400, "/filter/all/0/any: send at least one"},
		{"PUT /v1/segments/x", put(`{"all":[` + strings.Repeat(`{"field":"name","is":"present"},`, 20) + `{}]}`), 400, "/filter/all/20: send at most 20 conditions"},
		{"PUT /v1/segments/x", one(`"field":"attributes.none","is":"present"`), 400, `/filter/all/0/field: there is no attribute with the key \"none\"; GET /attributes?archived=all lists them`},
		{"PUT /v1/segments/x", one(`"field":"attributes.gone","is":"present"`), 400, "/filter/all/0/field: the attribute gone is archived"},
		{"PUT /v1/segments/x", one(`"field":"attributes.spent","is":"in","values":[5]`), 400, "/filter/all/0/is: attributes.spent takes present, absent, at_least or below"},
		{"PUT /v1/segments/x", one(`"field":"attributes.spent","is":"below","value":null`), 400, "/filter/all/0/value: null is no value"},
		{"PUT /v1/segments/x", one(`"field":"attributes.spent","is":"below","value":"5"`), 400, "/filter/all/0/value: send a number"},
		{"PUT /v1/segments/x", one(`"field":"country","is":"in","values":["TR",5]`), 400, "/filter/all/0/values/1"},
		{"PUT /v1/segments/x", one(`"field":"country","is":"in","values":[` + strings.Repeat(`"TR",`, 100) + `"TR"]`), 400, "/filter/all/0/values/100: send at most 100 values"},
		{"PUT /v1/segments/x", one(`"field":"country","is":"in","values":["a\u0000"]`), 400, "/filter/all/0/values/0"},
		{"PUT /v1/segments/x", one(`"field":"wrote_at","is":"within","days":1.5`), 400, "/filter/all/0/days: expected a whole number"},
		{"PUT /v1/segments/x", one(`"field":"wrote_at","is":"within","days":3651`), 400, "/filter/all/0/days: send a whole number from 0 to 3650"},
		{"DELETE /v1/segments/lapsed", "", 204, ""},
		{"DELETE /v1/segments/lapsed", "", 404, "no segment has this key"},
		{"DELETE /v1/segments/B%20", "", 404, "not_found"},
		{"GET /v1/contacts?segment=lapsed", "", 400, "there is no segment"},
	} {
		r := s.do(c.call, c.body)
		if r.status != c.status || !strings.Contains(string(r.body), c.want) {
			t.Errorf("%s %.200s: %d %s", c.call, c.body, r.status, r.body)
		}
	}
	var got []string
	for path := "GET /v1/contacts?segment=big&limit=2"; path != ""; {
		var page struct {
			Data []struct {
				ExternalID string `json:"external_id"`
			}
			Next string `json:"next_cursor"`
		}
		if err := json.Unmarshal(s.do(path, "").body, &page); err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Data {
			got = append(got, c.ExternalID)
		}
		if path = ""; page.Next != "" {
			path = "GET /v1/contacts?segment=big&limit=2&cursor=" + page.Next
		}
	}
	if fmt.Sprint(got) != "[c2 c3 c4]" {
		t.Errorf("the pages have %v", got)
	}

	// A filter about an attribute that is archived later says so.
	s.want(200, "DELETE /v1/attributes/spent", "")
	if r := s.do("GET /v1/contacts?segment=big", ""); r.status != 400 || !strings.Contains(string(r.body), "segment: its filter is not valid any more: /all/0/field: the attribute spent is archived") {
		t.Errorf("an archived attribute: %d %s", r.status, r.body)
	}
	for i := range 199 {
		s.want(201, fmt.Sprintf("PUT /v1/segments/s%d", i), one(`"field":"name","is":"present"`))
	}
	if r := s.do("PUT /v1/segments/more", one(`"field":"name","is":"present"`)); r.status != 400 || !strings.Contains(string(r.body), "200 segments") {
		t.Errorf("the 201st: %d %s", r.status, r.body)
	}
	s.want(200, "PUT /v1/segments/s7", one(`"field":"name","is":"absent"`))
}
