package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// members returns n members of an object, each with another name.
func members(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"m%d":0`, i)
	}
	return b.String()
}

// TestTwiceTheSameName: a duplicate name is found wherever it is and however it is spelled,
// also inside a value that is skipped.
func TestTwiceTheSameName(t *testing.T) {
	s := newServer(t)
	for _, n := range []int{1, 11, 12, 13, 192, 193, 5000} {
		for _, again := range []string{`"m0"`, `"\u006d0"`, fmt.Sprintf(`"m%d"`, n-1), fmt.Sprintf(`"m%d"`, n/2)} {
			list := members(n) + "," + again + ":1"
			name := strings.ReplaceAll(strings.Trim(again, `"`), `\u006d`, "m")
			for body, at := range map[string]string{
				`{"external_id":"a","attributes":{` + list + `}}`:             "/attributes/" + name,
				`{"external_id":"a","attributes":{"x":[{` + list + `}]}}`:     "/attributes/x/0/" + name,
				`{"external_id":"a","attributes":{"x":{"y":{` + list + `}}}}`: "/attributes/x/y/" + name,
			} {
				r := s.do("POST /v1/contacts", body)
				if r.status != 400 || !bytes.Contains(r.body, []byte(at+`: this member is there twice`)) {
					t.Errorf("%d members, %s: %d %.300s", n, at, r.status, r.body)
				}
			}
			for _, row := range []string{
				`{"op":"upsert","data":{"external_id":"a","attributes":{` + list + `}}}`,
				`{"op":"upsert","data":{"external_id":7,"attributes":{` + list + `}}}`,
				`{"op":"upsert","data":{"external_id":"a","nonsense":{` + list + `}}}`,
				`{"op":"upsert","nonsense":[{"a":0,"b":{` + list + `}}]}`,
				`{"op":7,"data":[{` + list + `}]}`,
				`[{` + list + `}]`,
			} {
				r := s.do("POST /v1/contacts/batch", `{"operations":[{"op":"delete","id":"x"},`+row+`]}`)
				if r.status != 400 || !bytes.Contains(r.body, []byte(`this member is there twice`)) {
					t.Errorf("%d members, %.60s: %d %.300s", n, row, r.status, r.body)
				}
			}
		}
	}
	// The same names in objects that stand side by side or inside each other.
	body := `{"external_id":"a","attributes":{` + members(300) + `,"x":{` + members(300) + `},"y":[{` + members(300) + `},{` + members(300) + `}],"z":0}}`
	if r := s.do("POST /v1/contacts", body); r.status != 422 {
		t.Errorf("%d %.300s", r.status, r.body)
	}
	if r := s.do("POST /v1/contacts", `{"external_id":"a","attributes":{"`+strings.Repeat("ü", 10_000)+`":{"a":0,"a":1}}}`); r.status != 400 || len(r.body) > 1200 {
		t.Errorf("a long name is not cut: %d, %d bytes", r.status, len(r.body))
	}
}

// TestManyUnknownAttributes: an error counts the unknown attributes for whose names it has
// no space.
func TestManyUnknownAttributes(t *testing.T) {
	s := newServer(t)
	s.want(201, "POST /v1/attributes", `{"key":"plan","type":"select","options":["free","pro"]}`)
	for n, named := range map[int]int{99: 100, 100: 100, 30_000: 100} {
		r := s.do("POST /v1/contacts", `{"external_id":"a","attributes":{`+members(n)+`,"plan":"gold"}}`)
		var e struct {
			Error struct {
				Message string
				Details []struct{ Key, Message string }
			}
		}
		if err := json.Unmarshal(r.body, &e); err != nil || r.status != 422 || len(e.Error.Details) != named || !strings.HasPrefix(e.Error.Message, fmt.Sprint(n+1, " of the attributes")) {
			t.Errorf("%d: %d %v, %d named: %s", n, r.status, err, len(e.Error.Details), e.Error.Message)
		}
	}
	r := s.do("POST /v1/contacts", `{"external_id":"a","attributes":{"`+strings.Repeat("x", 100_000)+`":1,"plan":"gold"}}`)
	if r.status != 422 || len(r.body) > 1500 {
		t.Errorf("a name of 100,000 characters: %d, %d bytes", r.status, len(r.body))
	}
}

// TestBatchOfMistakes: the size of a batch's answer is limited, whatever the reasons in it
// are.
func TestBatchOfMistakes(t *testing.T) {
	s := newServer(t)
	var options []string
	for n := range 500 {
		options = append(options, fmt.Sprintf(`"%03d%s"`, n, strings.Repeat("\U0001F600", 252)))
	}
	s.want(201, "POST /v1/attributes", `{"key":"plan","type":"select","options":[`+strings.Join(options, ",")+`]}`)
	row := `{"op":"upsert","data":{"external_id":"a","attributes":{"plan":"x"}}}`
	r := s.do("POST /v1/contacts/batch", `{"operations":[`+strings.TrimSuffix(strings.Repeat(row+",", 1000), ",")+`]}`)
	if r.status != 200 || len(r.body) > 6<<20 || bytes.Count(r.body, []byte("and 497 more")) != 1000 {
		t.Errorf("%d, %d bytes: %.300s", r.status, len(r.body), r.body)
	}
	row = `{"op":"upsert","data":{"external_id":"a","attributes":{` + members(100) + `}}}`
	r = s.do("POST /v1/contacts/batch", `{"operations":[`+strings.TrimSuffix(strings.Repeat(row+",", 1000), ",")+`]}`)
	if r.status != 200 || len(r.body) > 5<<20 || bytes.Count(r.body, []byte("100 of the attributes")) != 1000 || bytes.Count(r.body, []byte(`"key":"m9"`)) != 1000 {
		t.Errorf("%d, %d bytes: %.300s", r.status, len(r.body), r.body)
	}
}
