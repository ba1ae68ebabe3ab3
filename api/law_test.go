package api_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var sequences = flag.Int("sequences", 40, "how many random sequences TestLaw tries: one batch equals its operations one by one. Long run: -sequences 2000")

// TestLaw checks the law of the batch: n operations in one batch have the same effects and
// answers as the same n operations, sent one by one (an assign or a delete as a batch of
// one). Two workspaces begin with the same records. One gets batches, the other one single
// requests.
func TestLaw(t *testing.T) {
	s := newServer(t)
	for seq := range *sequences {
		if t.Failed() {
			return
		}
		r := rand.New(rand.NewPCG(uint64(seq), 42))
		whole, single := newTwin(s), newTwin(s)
		for range 1 + r.IntN(3) {
			rows := randomRows(r, len(whole.ids))
			a, b := whole.batch(whole.real(rows)), single.oneByOne(single.real(rows))
			for i := range rows {
				if a[i] != b[i] {
					t.Errorf("sequence %d, row %d %s:\nin a batch: %s\nalone:      %s", seq, i, rows[i], a[i], b[i])
				}
			}
		}
		if a, b := whole.state(), single.state(); a != b {
			t.Errorf("sequence %d ends in\n%s\nafter batches, and in\n%s\nafter single writes", seq, a, b)
		}
	}
}

// A twin is one of the two workspaces that get the same operations.
type twin struct {
	*server
	key string
	ids []string // of the contacts, in order of creation
}

func newTwin(s *server) *twin {
	s.t.Helper()
	ws, key := s.workspace("Twin", "US")
	for _, name := range []string{"Ada", "Grace"} {
		if _, err := s.app.AddMember(s.t.Context(), s.operator(ws), name, name+"@example.com", "agent"); err != nil {
			s.t.Fatal(err)
		}
	}
	w := &twin{server: s, key: key}
	for _, a := range []string{`{"key":"plan","type":"select","options":["free","pro"]}`, `{"key":"score","type":"number"}`, `{"key":"old","type":"text"}`} {
		s.as(key, "POST /v1/attributes", a)
	}
	s.as(key, "DELETE /v1/attributes/old", "")
	return w
}

// randomRows returns rows about a few people, so that several rows concern the same person.
// Some rows are wrong. "#3" stands for the id of the third contact.
func randomRows(r *rand.Rand, contacts int) []string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	who := func() string {
		n := r.IntN(4)
		return pick(fmt.Sprintf(`"external_id":"x%d"`, n), fmt.Sprintf(`"email":"P%d@example.com"`, n), fmt.Sprintf(`"email":"p%d@EXAMPLE.com"`, n),
			fmt.Sprintf(`"phone":"(202) 224-344%d"`, n), fmt.Sprintf(`"identities":[{"kind":"whatsapp","value":"1202224344%d"}]`, n),
			fmt.Sprintf(`"identities":[{"kind":"twitter","value":"t%d"},{"kind":"email","value":"p%d@example.com"}]`, n, r.IntN(4)))
	}
	id := func() string { return fmt.Sprintf(`"id":"#%d"`, r.IntN(contacts+1)) }
	fields := func() string {
		return pick(`"name":"A"`, `"name":"B"`, `"name":null`, `"note":""`, `"email":null`, `"phone":null`, `"external_id":null`, `"identities":null`,
			`"owner":"ada@example.com"`, `"owner":null`, `"owner":"nobody@example.com"`, `"attributes":null`, `"attributes":{"score":1}`,
			`"attributes":{"score":"1.50","plan":"pro"}`, `"attributes":{"plan":"gold","old":"x","none":null}`, `"phone":"12"`, `"nonsense":1`, `"name":7`)
	}
	var rows []string
	for range 1 + r.IntN(12) {
		switch r.IntN(10) {
		case 0:
			rows = append(rows, `{"op":"delete",`+pick(who(), id())+`}`)
		case 1, 2:
			rows = append(rows, `{"op":"assign",`+pick(who(), id(), who()+","+id())+`,"owner":`+pick(`"ada@example.com"`, `"GRACE@example.com"`, `null`, `"x"`)+`}`)
		case 3:
			rows = append(rows, pick(`{"op":"merge"}`, `7`, `{}`, `{"op":"assign"}`, `{"op":"delete","id":7}`))
		default:
			rows = append(rows, `{"op":"upsert","data":{`+unique(who(), who(), fields(), fields())+`}}`)
		}
	}
	return rows
}

// unique joins members. It leaves out a member if an earlier one has the same name.
func unique(members ...string) string {
	var kept []string
	for _, m := range members {
		name, _, _ := strings.Cut(m, ":")
		if !slices.ContainsFunc(kept, func(k string) bool { return strings.HasPrefix(k, name+":") }) {
			kept = append(kept, m)
		}
	}
	return strings.Join(kept, ",")
}

// real replaces a text such as "#3" by the id of the contact, if it exists now.
func (w *twin) real(rows []string) (real []string) {
	for _, row := range rows {
		for i, id := range w.ids {
			row = strings.ReplaceAll(row, fmt.Sprintf(`"#%d"`, i), `"`+id+`"`)
		}
		real = append(real, row)
	}
	return real
}

// place returns the number of a contact in the order of creation, which is the same for
// both twins.
func (w *twin) place(id string) int {
	i := slices.Index(w.ids, id)
	if i < 0 {
		w.ids, i = append(w.ids, id), len(w.ids)
	}
	return i
}

type rowError struct {
	Type    string
	Details json.RawMessage
}

func (e rowError) String() string { return "error " + e.Type + " " + string(e.Details) }

// batch sends all rows at once and returns the result of each.
func (w *twin) batch(rows []string) (results []string) {
	w.t.Helper()
	r := w.as(w.key, "POST /v1/contacts/batch", `{"operations":[`+strings.Join(rows, ",")+`]}`)
	var answer struct {
		Results []struct {
			Status, ID string
			Error      *rowError
		}
	}
	decodeJSON(w.t, r.body, &answer)
	for _, row := range answer.Results {
		if row.Error != nil {
			results = append(results, row.Error.String())
		} else {
			results = append(results, fmt.Sprint(row.Status, " ", w.place(row.ID)))
		}
	}
	return results
}

// oneByOne sends each row as a request of its own: upserts as POST /contacts.
func (w *twin) oneByOne(rows []string) (results []string) {
	w.t.Helper()
	for _, row := range rows {
		var op struct{ Data json.RawMessage }
		_ = json.Unmarshal([]byte(row), &op)
		if op.Data == nil {
			results = append(results, w.batch([]string{row})...)
			continue
		}
		r := w.as(w.key, "POST /v1/contacts", string(op.Data))
		var answer struct {
			Data  struct{ ID string }
			Error rowError
		}
		decodeJSON(w.t, r.body, &answer)
		switch r.status {
		case 200:
			results = append(results, fmt.Sprint("updated ", w.place(answer.Data.ID)))
		case 201:
			results = append(results, fmt.Sprint("created ", w.place(answer.Data.ID)))
		default:
			results = append(results, answer.Error.String())
		}
	}
	return results
}

// state returns the contacts with all their identities, without ids and times.
func (w *twin) state() string {
	var list struct{ Data []map[string]any }
	decodeJSON(w.t, w.as(w.key, "GET /v1/contacts?limit=200", "").body, &list)
	var lines []string
	for _, c := range list.Data {
		id := c["id"].(string)
		identities := w.as(w.key, "GET /v1/contacts/"+id+"/identities", "").body
		if owner, ok := c["owner"].(map[string]any); ok {
			delete(owner, "member_id")
		}
		delete(c, "id")
		delete(c, "created_at")
		delete(c, "updated_at")
		text, err := json.Marshal(c)
		if err != nil {
			w.t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%d %s %s", w.place(id), text, identities))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
