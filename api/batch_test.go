package api_test

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestBatch(t *testing.T) {
	for name, tc := range map[string]struct {
		body   string
		status int
	}{
		"mixed": {`{"operations":[
			{"op":"upsert","data":{"external_id":"a","email":"a@x.y"}},
			{"op":"upsert","data":{"external_id":"a","name":"A"}},
			{"op":"assign","external_id":"a","owner":"ada@example.com"},
			{"op":"assign","email":"A@X.Y","external_id":"a","owner":null},
			{"op":"delete","external_id":"a"},
			{"op":"delete","external_id":"a"},
			{"op":"upsert","data":{"external_id":"a"}}]}`, 200},
		"bad_rows": {`{"operations":[
			7, null, [], {}, {"op":7}, {"op":"merge"}, {"op":"Upsert","data":{"email":"a@x.y"}},
			{"op":"upsert"}, {"op":"upsert","data":null}, {"op":"upsert","data":{}}, {"op":"upsert","data":{"emial":"x"}},
			{"op":"upsert","data":{"email":"a@x.y"},"id":"x"}, {"op":"upsert","data":{"email":"a@x.y"},"owner":null},
			{"op":"assign","external_id":"a"}, {"op":"assign","owner":"ada@example.com"}, {"op":"assign","id":"nonsense","owner":null},
			{"op":"assign","external_id":"a","owner":null,"data":{}}, {"op":"delete"}, {"op":"delete","id":null},
			{"op":"delete","id":"x","owner":null}, {"op":"delete","id":5}, {"data":{"x":[{"op":"deep"}]},"op":"upsert"},
			{"op":"upsert","data":{"email":"a\u0000@x.y"}}, {"op":"up\u0000sert"}, {"\u0000":1,"op":"assign"}, {"op":"upsert","data":{"email":"a@x.y","attributes":{"a\u0000":1}}}, {"op":"upsert","data":{"email":"a@x.y","attributes":{"no":1}}},
			{"op":"upsert","data":{"email":"good@x.y"}}]}`, 200},
		"conflicts": {`{"operations":[
			{"op":"upsert","data":{"external_id":"a"}}, {"op":"upsert","data":{"external_id":"b"}},
			{"op":"upsert","data":{"external_id":"a","identities":[{"kind":"external_id","value":"b"}]}},
			{"op":"assign","external_id":"a","identities":[{"kind":"external_id","value":"b"}],"owner":null},
			{"op":"delete","external_id":"a","email":"nobody@x.y"},
			{"op":"assign","external_id":"a","owner":"nobody"}]}`, 200},
		"empty":          {`{"operations":[]}`, 400},
		"missing":        {`{}`, 400},
		"no_array":       {`{"operations":{}}`, 400},
		"unknown_member": {`{"operations":[{"op":"delete","id":"x"}],"atomic":true}`, 400},
		"syntax_in_row":  {`{"operations":[{"op":"upsert","data":{"email":"good@x.y"}},{"op":}]}`, 400},
		"dup_in_row":     {`{"operations":[{"op":"upsert","op":"upsert"}]}`, 400},
		"dup_after_bad":  {`{"operations":[{"op":"upsert","data":{"bad":{"x":1,"x":2}}}]}`, 400},
		"surrogate":      {`{"operations":[{"op":"upsert","data":{"bad":"\ud800"}}]}`, 400},
		"deep_row":       {`{"operations":[{"op":"x","bad":` + strings.Repeat("[", 30) + strings.Repeat("]", 30) + `}]}`, 400},
		"deep_enough":    {`{"operations":[{"op":"x","bad":` + strings.Repeat("[", 29) + strings.Repeat("]", 29) + `}]}`, 200},
		"too_many":       {`{"operations":[` + strings.Repeat(`{"op":"x"},`, 2499) + `{"op":"x"}]}`, 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			r := s.do("POST /v1/contacts/batch", tc.body)
			if r.status != tc.status {
				t.Errorf("status = %d, want %d", r.status, tc.status)
			}
			golden(t, r)
			var list struct{ Data []any }
			decodeJSON(t, s.want(200, "GET /v1/contacts", ""), &list)
			if tc.status != 200 && len(list.Data) > 0 {
				t.Errorf("%d contacts were stored by a refused request", len(list.Data))
			}
		})
	}
}

func TestBatchOfAThousand(t *testing.T) {
	s := newServer(t)
	row := `{"op":"upsert","data":{"external_id":"x"}},`
	var answer struct {
		Summary struct{ Total, Created, Updated int }
	}
	body := s.want(200, "POST /v1/contacts/batch", `{"operations":[`+strings.TrimSuffix(strings.Repeat(row, 1000), ",")+`]}`)
	decodeJSON(t, body, &answer)
	if answer.Summary.Total != 1000 || answer.Summary.Created != 1 || answer.Summary.Updated != 999 {
		t.Errorf("summary = %+v", answer.Summary)
	}
}

func decodeJSON(t testing.TB, body []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
}
