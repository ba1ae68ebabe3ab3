package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"parley/desk"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/simplifiedchinese"
)

// written returns the path of a file with this content.
func written(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var attributes = map[string]*desk.Attribute{
	"plan":   {Key: "plan", Label: "Tarif", Type: desk.SelectAttribute, Options: []string{"free", "pro"}},
	"topics": {Key: "topics", Label: "Topics", Type: desk.MultiselectAttribute, Options: []string{"a", "b"}},
	"vip":    {Key: "vip", Label: "VIP", Type: desk.BooleanAttribute},
	"born":   {Key: "born", Label: "Geburtstag", Type: desk.DateAttribute},
	"score":  {Key: "score", Label: "Score", Type: desk.NumberAttribute},
	"city":   {Key: "city", Label: "City", Type: desk.TextAttribute},
	"old":    {Key: "old", Label: "Gone", Type: desk.TextAttribute, Archived: true},
}

// bodies imports a text, and returns the bodies of its rows, or why they have none.
func bodies(t *testing.T, content []byte, o Options) (list []string, err error) {
	t.Helper()
	name := "f.csv"
	if o.JSONL {
		name = "f.jsonl"
	}
	if o.Kind == "" {
		o.Kind = desk.ImportContacts
	}
	f, err := Open(written(t, name, content), o)
	if err != nil {
		return nil, err
	}
	if err := f.Columns(attributes); err != nil {
		return nil, err
	}
	err = f.Each(0, func(r Row) error {
		text := string(r.Body)
		if r.Err != nil {
			text = "rejected: " + r.Err.Error()
		}
		list = append(list, fmt.Sprintf("%d %s", r.Line, text))
		return nil
	})
	if f.Rows != int64(len(list)) {
		t.Errorf("%d rows were counted, %d came", f.Rows, len(list))
	}
	return list, err
}

// TestCSV reads one table in each encoding, with each delimiter and each line end, under headers
// of several languages.
func TestCSV(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"external_id;name;note;email", "External-ID;Ad Soyad;Notes;E-Posta", "External ID;Vorname;NOTE;E-Mail", "external_id;Nombre;Notes;Mail"} {
		testCSV(t, header)
	}
}

func testCSV(t *testing.T, header string) {
	t.Helper()
	for _, encoding := range []string{"utf-8", "utf-8 mark", "utf-16le", "utf-16be", "windows-1252", "windows-1254", "iso-8859-9"} {
		for _, delimiter := range []string{",", ";", "\t", "|"} {
			for _, end := range []string{"\n", "\r\n", "\r"} {
				table := strings.Join([]string{
					header, `1;"Zoë ""Z"" Öztürk";"two` + end + `lines; here";z@x.example`, `;;;`, `2;O'Brien "the" one;short`, `3;a;b;c@x.example;;`, `4;a;b;c@x.example;more`,
				}, end)
				table = strings.ReplaceAll(table, "; here", "{semicolon} here")
				table = strings.ReplaceAll(strings.ReplaceAll(table, ";", delimiter), "{semicolon}", delimiter)
				var content []byte
				o := Options{}
				switch encoding {
				case "utf-8":
					content = []byte(table)
				case "utf-8 mark":
					content = []byte("\uFEFF" + table)
				case "utf-16le", "utf-16be":
					for _, u := range utf16.Encode([]rune("\uFEFF" + table)) {
						pair := []byte{byte(u), byte(u >> 8)}
						if encoding == "utf-16be" {
							pair[0], pair[1] = pair[1], pair[0]
						}
						content = append(content, pair...)
					}
				default:
					e, err := htmlindex.Get(encoding)
					if err != nil {
						t.Fatal(err)
					}
					if content, err = e.NewEncoder().Bytes([]byte(table)); err != nil {
						t.Fatal(err)
					}
					o.Encoding = encoding
				}
				got, err := bodies(t, content, o)
				for n, row := range got { // a name from a first name comes last
					if before, name, found := strings.Cut(row, `,"name":`); found && strings.Count(name, `":`) == 0 {
						id, rest, _ := strings.Cut(before, `,"`)
						got[n] = id + `,"name":` + strings.TrimSuffix(name, "}") + `,"` + rest + "}"
					}
				}
				want := []string{
					`2 {"external_id":"1","name":"Zoë \"Z\" Öztürk","note":` + quote("two"+end+"lines"+delimiter+" here") + `,"email":"z@x.example"}`,
					`5 {"external_id":"2","name":"O'Brien \"the\" one","note":"short"}`,
					`6 {"external_id":"3","name":"a","note":"b","email":"c@x.example"}`,
					`7 rejected: the row has 5 cells, and the header 4`,
				}
				if strings.Join(got, "\n") != strings.Join(want, "\n") || err != nil {
					t.Errorf("%s %s %q %q: %v\n%s\nwant\n%s", header, encoding, delimiter, end, err, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
		}
	}
}

func TestCSV_delimiter(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"sep=|\nname|phone\na,b|1\n":             `3 {"name":"a,b","phone":"1"}`,
		"name,phone\na;b,1\n":                    `2 {"name":"a;b","phone":"1"}`,
		"name;phone\n\"a,b,c\";1\nd;2,5\n":       `2 {"name":"a,b,c","phone":"1"}`,
		"\n;\nname;phone\na;1\n":                 `4 {"name":"a","phone":"1"}`,
		"name\nAda\n":                            `2 {"name":"Ada"}`,
		"'+name,phone\n\"'=1+1\",+90\n''-x,-5\n": `2 {"name":"=1+1","phone":"+90"}`,
	} {
		o := Options{}
		if strings.HasPrefix(content, "'+name") {
			o.Map = []string{"+name=name"}
		}
		got, err := bodies(t, []byte(content), o)
		if err != nil || len(got) == 0 || got[0] != want {
			t.Errorf("%q: %q, %v; want %s", content, got, err, want)
		}
	}
	for _, first := range []string{"sep=\r\n", "sep=\n", "sep=\r", "sep=\"\n"} { // no delimiter, so this is a header
		f, err := Open(written(t, "f.csv", []byte(first+"name,phone\nAda,1\n")), Options{})
		if err != nil || f.Delimiter != ',' || f.Headers[0] != strings.TrimSpace(first) {
			t.Errorf("%q: %q, %v", first, f.Headers, err)
		}
	}
	if got, err := bodies(t, []byte("name#phone\na,b#1\n"), Options{Delimiter: "#"}); err != nil || got[0] != `2 {"name":"a,b","phone":"1"}` {
		t.Errorf("%q, %v", got, err)
	}
}

// TestCSV_nul: U+0000 is a character like others, also where the reader looks ahead.
func TestCSV_nul(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"name\n\"abc\"\x00\n":       `2 {"name":"abc\u0000"}`,
		"name\r\x00abc\r":           `2 {"name":"\u0000abc"}`,
		"name\n\"abc\r\x00d\"\n":    `2 {"name":"abc\r\u0000d"}`,
		"name\n\x00\"abc\"\n":       `2 {"name":"\u0000\"abc\""}`,
		"name\r\n\"abc\"\x00\"\r\n": `2 {"name":"abc\u0000\""}`,
	} {
		if got, err := bodies(t, []byte(content), Options{}); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%q: %q, %v; want %s", content, got, err, want)
		}
	}
}

// TestGuard: no cell is computed, and each comes back as it was.
func TestGuard(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"": "", "a": "a", "'a": "'a", "=1+1": "'=1+1", "'=1": "''=1", "+90532": "+90532", "-5.5": "-5.5", "-5.": "'-5.", "@x": "'@x", "\tx": "'\tx", "＝1": "'＝1", "--1": "'--1", "'": "'",
	} {
		if got := guard(cell); got != want || unguard(got) != cell {
			t.Errorf("%q: %q, and back %q; want %q", cell, got, unguard(got), want)
		}
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"E-Mail,Ad,SOYAD,Telefon,Notes\na@x.example,Ayşe,Yılmaz,1,n\n":                                    `{"email":"a@x.example","phone":"1","note":"n","name":"Ayşe Yılmaz"}`,
		"First Name,Attributes.Plan,IDENTITY.CRM\nA,pro,7\n":                                              `{"name":"A","attributes":{"plan":"pro"},"identities":[{"kind":"crm","value":"7"}]}`,
		"First Name,Tarif,identity.crm,identity.crm,Owner\nA,pro,7,8,g@x.example\n":                       `{"owner":"g@x.example","name":"A","attributes":{"plan":"pro"},"identities":[{"kind":"crm","value":"7"},{"kind":"crm","value":"8"}]}`,
		"name,identities,parley_id,_line\nA,\"[{\"\"kind\"\":\"\"a\"\",\"\"value\"\":\"\"b\"\"}]\",x,3\n": `{"name":"A","identities":[{"kind":"a","value":"b"}]}`,
		"name,identities\nA,a:b|c:d\n":                                                                    `{"name":"A","identities":[{"kind":"a","value":"b"},{"kind":"c","value":"d"}]}`,
		"name,vip,vip2\nA,yes,x\n":                                                                        "nobody knows the columns",
		"foo,bar\n1,2\n":                                                                                  "no column is known",
		"phone,Telefon\n1,2\n":                                                                            "are both the field phone: leave one out with --map 'Telefon=-'",
		"phone,phone\n1,2\n":                                                                              "are both the field phone: rename one of them in the file",
		"phone,,\n1, ,\n":                                                                                 `{"phone":"1"}`,
		"phone,\n1,\n2,VIP\n":                                                                             "column 2 has no header, and line 3 has \"VIP\" in it: give it one, or leave it out with --ignore-unknown",
		"name,Vorname\nA,B\n":                                                                             "are both the field name",
		"name,Gone\nA,B\n":                                                                                "nobody knows the columns",
		"name,attributes.nope\nA,B\n":                                                                     `nobody knows the columns "attributes.nope": say what each is with --map`,
	} {
		got, err := bodies(t, []byte(content), Options{})
		if err != nil {
			got = []string{"2 " + err.Error()}
		}
		if len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%q: %q, want %s", content, got, want)
		}
	}
	for _, text := range []string{"name,foo\nA,B\n", "name,\nA,B\n"} {
		if got, err := bodies(t, []byte(text), Options{IgnoreUnknown: true}); err != nil || got[0] != `2 {"name":"A"}` {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for kind, advised := range map[desk.ImportKind]bool{desk.ImportContacts: true, desk.ImportOptOuts: false} {
		if _, err := bodies(t, []byte("phone,foo\n1,2\n"), Options{Kind: kind}); err == nil || strings.Contains(err.Error(), "--create-attributes") != advised {
			t.Errorf("%s: %v", kind, err)
		}
	}
	got, err := bodies(t, []byte("name,attributes.nope,attributes.city\nA,B,C\n"), Options{IgnoreUnknown: true})
	if want := `2 {"name":"A","attributes":{"city":"C"}}`; err != nil || got[0] != want {
		t.Errorf("an attribute that is not there: %q, %v; want %s", got, err, want)
	}
	if got, err := bodies(t, []byte("name,foo\nA,B\n"), Options{Map: []string{"foo=attributes.city"}}); err != nil || got[0] != `2 {"name":"A","attributes":{"city":"B"}}` {
		t.Errorf("%q, %v", got, err)
	}
	for _, m := range []string{"foo", "foo=x", "foo=attributes.", "bar=name", "foo=attributes.none"} {
		if _, err := bodies(t, []byte("name,foo\nA,B\n"), Options{Map: []string{m}}); err == nil {
			t.Errorf("--map %s is taken", m)
		}
	}
}

func TestCells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		header, cell string
		o            Options
		want         string
	}{
		{"phone", "905321234567.0", Options{}, `{"phone":"905321234567"}`},
		{"phone", "9.05E+11", Options{}, "rejected: phone: a spreadsheet has rounded"},
		{"vip", "1", Options{}, `{"attributes":{"vip":true}}`},
		{"vip", "NO", Options{}, `{"attributes":{"vip":false}}`},
		{"vip", "maybe", Options{}, `{"attributes":{"vip":"maybe"}}`},
		{"born", "31.12.2026", Options{Dates: DayFirst}, `{"attributes":{"born":"2026-12-31"}}`},
		{"born", "1/2/2026", Options{Dates: MonthFirst}, `{"attributes":{"born":"2026-01-02"}}`},
		{"born", "31.12.2026", Options{}, `{"attributes":{"born":"31.12.2026"}}`},
		{"born", "31.02.1980", Options{Dates: DayFirst}, `{"attributes":{"born":"31.02.1980"}}`},
		{"score", "1.234,5", Options{DecimalComma: true}, `{"attributes":{"score":"1234.5"}}`},
		{"score", "1.234", Options{}, `{"attributes":{"score":"1.234"}}`},
		{"topics", "a | b", Options{}, `{"attributes":{"topics":["a","b"]}}`},
		{"topics", "a; b", Options{}, `{"attributes":{"topics":["a","b"]}}`},
		{"topics", `["a","b"]`, Options{}, `{"attributes":{"topics":["a","b"]}}`},
		{"topics", `[x]|b`, Options{}, `{"attributes":{"topics":["[x]","b"]}}`},
		{"topics", `["a",7]`, Options{}, "rejected: attributes.topics: this is no JSON list of texts"},
		{"topics", ` [ ] `, Options{}, `{"attributes":{"topics":[]}}`},
		{"topics", ` | `, Options{}, `{}`},
		{"topics", ` | `, Options{ClearBlank: true}, `{"attributes":{"topics":[]}}`},
		{"identities", `[]`, Options{}, `{}`},
		{"city", " ", Options{}, `{"attributes":{"city":" "}}`},
		{"score", " ", Options{}, `{}`},
		{"score", " ", Options{ClearBlank: true}, `{"attributes":{"score":null}}`},
		{"email", "", Options{ClearBlank: true}, `{"email":null}`},
		{"first_name", "", Options{ClearBlank: true}, `{"name":null}`},
		{"first_name", "", Options{}, `{}`},
		{"identities", "crm", Options{}, "rejected: identities: write KIND:VALUE"},
	} {
		content := "external_id;" + c.header + "\n9;\"" + strings.ReplaceAll(c.cell, `"`, `""`) + "\"\n"
		got, err := bodies(t, []byte(content), c.o)
		want := strings.Replace(c.want, "{", `{"external_id":"9",`, 1)
		want = strings.Replace(want, ",}", "}", 1)
		if err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "2 "+want) {
			t.Errorf("%s %q: %q, %v; want %s", c.header, c.cell, got, err, want)
		}
	}
}

// TestOpen_refuses: a file that can't be imported as a whole is refused with its line, before
// any row is stored.
func TestOpen_refuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content []byte
		o       Options
		line    int
		words   string
	}{
		"another encoding":    {[]byte("name\nA\nB\xff\n"), Options{}, 3, "--encoding"},
		"half of a pair":      {[]byte("\xff\xfen\x00a\x00\x00\xd8x\x00"), Options{}, 1, "--encoding"},
		"a quote":             {[]byte("name\nA\n\"B\nC\n"), Options{}, 3, "nothing closes"},
		"a long row":          {[]byte("name\nA\n" + strings.Repeat("x", maxRecord+1) + "\n"), Options{Delimiter: ","}, 3, "begins a row of more than 4 MiB"},
		"a long last row":     {[]byte("name\nA\n" + strings.Repeat("x", maxRecord+1)), Options{Delimiter: ","}, 3, "MiB"},
		"a long header":       {[]byte(strings.Repeat("x", maxRecord+1) + "\nA\n"), Options{Delimiter: ","}, 1, "MiB"},
		"a long blank row":    {[]byte(strings.Repeat(" ", maxRecord+1) + "\nname\nA\n"), Options{Delimiter: ","}, 1, "MiB"},
		"a long rejected row": {[]byte("name,_line,_error,_reason\n" + strings.Repeat("x", maxRecord+slackRecord+1)), Options{Delimiter: ","}, 2, "MiB"},
		"a long quoted cell":  {[]byte("name\n\"" + strings.Repeat("x\n", maxRecord)), Options{}, 2, "MiB"},
		"many cells":          {[]byte("name\n" + strings.Repeat(",", maxCells)), Options{}, 2, "has more than 1000 cells"},
		"many columns":        {[]byte("name" + strings.Repeat(",x", maxCells) + "\n"), Options{}, 1, "cells"},
		"many rejected cells": {[]byte("_reason,_error,_line,name\n" + strings.Repeat(",", maxCells+slackCells)), Options{}, 2, "cells"},
		"two of the reasons":  {[]byte("_line,_error,name\n" + strings.Repeat(",", maxCells)), Options{}, 2, "cells"},
		"nothing":             {nil, Options{}, 0, "no row"},
		"a long line":         {[]byte("{}\n" + strings.Repeat("x", maxRecord+1)), Options{JSONL: true}, 2, "MiB"},
		"a long reason":       {[]byte("{}\n" + `{"_error":{},"a":"` + strings.Repeat("x", maxRecord+slackRecord) + `"}`), Options{JSONL: true}, 2, "MiB"},
		"a line that is none": {[]byte("{}\n\xff"), Options{JSONL: true}, 2, "--encoding"},
	} {
		_, err := bodies(t, c.content, c.o)
		if e := (*FileError)(nil); !errors.As(err, &e) || e.Line != c.line || !strings.Contains(e.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, label := range []string{"klingon", "replacement", "ISO-2022-KR"} {
		if _, err := bodies(t, []byte("name\n"), Options{Encoding: label}); !desk.IsType(err, desk.InvalidRequest) || !strings.Contains(err.Error(), "no encoding has the name") {
			t.Errorf("%s, which is no encoding: %v", label, err)
		}
	}
}

func TestJSONL(t *testing.T) {
	t.Parallel()
	got, err := bodies(t, []byte("\uFEFF{\"name\":\"A\",\"parley_id\":\"x\",\"_line\":3}\n\n[1]\n{\"a\":{\"_b\":1},\"_c\":[\"}\"]}\r\nnone"), Options{JSONL: true})
	want := []string{`1 {"name":"A"}`, `3 [1]`, `4 {"a":{"_b":1}}`, `5 none`}
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, %v", got, err)
	}
}

// TestErrorsFile: a row comes back from the file of rejected rows as it was read.
func TestErrorsFile(t *testing.T) {
	t.Parallel()
	content := "name;note\n\"'=1+1\";\"a;b\n\"\"c\"\"\"\n'x; y \nz;1;extra\n"
	f, err := Open(written(t, "f.csv", []byte(content)), Options{Kind: desk.ImportContacts})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Columns(attributes); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	e := f.NewErrorsFile(&b, 0)
	var before []string
	if err := f.Each(0, func(r Row) error {
		before = append(before, string(r.Body))
		return e.Reject(r, desk.InvalidRequest, "because; of", nil)
	}); err != nil {
		t.Fatal(err)
	}
	if n, err := e.Flush(); err != nil || n != int64(b.Len()) {
		t.Fatal(n, err)
	}
	again, err := bodies(t, b.Bytes(), Options{})
	if err != nil || len(again) != 3 || !strings.HasSuffix(again[0], before[0]) || !strings.HasSuffix(again[1], before[1]) {
		t.Errorf("%q, %v\nwas %q\nfrom %s", again, err, before, b.String())
	}
	var lines bytes.Buffer
	jsonl := (&File{Options: Options{JSONL: true}}).NewErrorsFile(&lines, 0)
	for range 2 {
		if err := jsonl.Reject(Row{Line: 4, Raw: []byte(`{"name":"é"}`)}, desk.InvalidRequest, "", []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	_, err = jsonl.Flush()
	if want := "\uFEFF" + strings.Repeat(`{"name":"é","_line":4,"_error":{}}`+"\n", 2); err != nil || lines.String() != want {
		t.Errorf("JSON Lines: %q, %v, want %q", lines.String(), err, want)
	}
	if got, err := bodies(t, lines.Bytes(), Options{JSONL: true, Encoding: "windows-1252"}); err != nil || got[0] != `1 {"name":"é"}` {
		t.Errorf("with the flags of a file of another encoding: %q, %v", got, err)
	}
	for row, want := range map[string]string{
		`{"name":1}`: `{"name":1,"_line":4,"_error":{}}`, `{}`: `{"_line":4,"_error":{}}`, `none "x"`: `{"_raw":"none \"x\"","_line":4,"_error":{}}`,
		`{"name":1,"parley_id":"x","_note":2,"_line":9,"_error":{"type":"y"}}`: `{"name":1,"parley_id":"x","_note":2,"_line":4,"_error":{}}`,
		`{"_raw":"x","_line":9,"_error":{}}`:                                   `{"_raw":"x","_line":4,"_error":{}}`,
	} {
		if got := string(rejectedLine(Row{Line: 4, Body: []byte(row), Raw: []byte(row)}, []byte("{}"))); got != want+"\n" {
			t.Errorf("%s: %s", row, got)
		}
	}
}

func TestNewAttributes(t *testing.T) {
	t.Parallel()
	f, err := Open(written(t, "f.csv", []byte("name,Joined at,2nd VIP?,Umsatz,PLZ,Leer\nA,2026-01-31,yes,1.5,01234,\nB,2026-02-01,0,7,99,\n")), Options{Kind: desk.ImportContacts, CreateAttributes: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Columns(attributes); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range f.Created {
		got = append(got, a.Key+" "+a.Label.Value+" "+a.Type.Value)
	}
	if got, want := strings.Join(f.Taken(), "; "), "name; attributes.joined_at, a new date; attributes.c_2nd_vip, a new boolean; attributes.umsatz, a new number; attributes.plz, a new text; attributes.leer, a new text"; got != want {
		t.Errorf("the columns are taken for %s, want %s", got, want)
	}
	want := "joined_at Joined at date, c_2nd_vip 2nd VIP? boolean, umsatz Umsatz number, plz PLZ text, leer Leer text"
	if strings.Join(got, ", ") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
}

// TestNewAttributes_exported: a column of an export to another workspace names the key of its
// attribute.
func TestNewAttributes_exported(t *testing.T) {
	t.Parallel()
	f, err := Open(written(t, "f.csv", []byte("name,attributes.no__pe_,attributes.No Key,attributes.city\nA,17,18,C\n")), Options{Kind: desk.ImportContacts, CreateAttributes: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Columns(attributes); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(f.Taken(), "; "), "name; attributes.no__pe_, a new number; attributes.attributes_no_key, a new number; attributes.city"; got != want {
		t.Errorf("the columns are taken for %s, want %s", got, want)
	}
	if label := f.Created[0].Label.Value; label != "no__pe_" {
		t.Errorf("the label is %s", label)
	}
	made := maps.Clone(attributes)
	for _, in := range f.Created {
		made[in.Key] = &desk.Attribute{Key: in.Key, Label: in.Label.Value, Type: desk.NumberAttribute}
	}
	f.Created = nil
	if err := f.Columns(made); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(f.Taken(), "; "), "name; attributes.no__pe_; attributes.attributes_no_key; attributes.city"; got != want {
		t.Errorf("the same command again takes the columns for %s, want %s", got, want)
	}
}

// TestFields: each column can be chosen by its place, also if two have one header.
func TestFields(t *testing.T) {
	t.Parallel()
	text := []byte("Name,Code,Code,Städte\nAda,a-1,b-2,Rom\n")
	want := []string{`2 {"name":"Ada","external_id":"a-1","attributes":{"city":"Rom"}}`}
	got, err := bodies(t, text, Options{Fields: []string{"", "external_id", "-", "attributes.city"}})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	want = []string{`2 {"name":"Ada","attributes":{"code":"b-2"}}`}
	got, err = bodies(t, text, Options{Fields: []string{"", "-", NewAttribute, "-"}})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("a new attribute: %q, %v", got, err)
	}
	for _, c := range []struct {
		fields  []string
		columns []int
		message string
	}{
		{nil, []int{1, 2, 3}, "nobody knows the columns"},
		{[]string{"", "email", "email", "-"}, []int{1, 2}, "both the field email"},
		{[]string{"", "-", "-", "attributes.nowhere"}, []int{3}, "which the workspace does not have"},
		{[]string{"-", "-", "-", "-"}, nil, "no column is known"},
		{[]string{"", NewAttribute, NewAttribute, "-"}, []int{2}, "is there already"},
	} {
		_, err := bodies(t, text, Options{Fields: c.fields})
		e, ok := errors.AsType[*ColumnError](err)
		if !ok || !slices.Equal(e.Columns, c.columns) || !strings.Contains(e.Message, c.message) || strings.Contains(e.Message, "--") {
			t.Errorf("%q: %v", c.fields, err)
		}
	}
}

// TestLimits: a record has up to 4 MiB and 1,000 cells, and in a file of rejected rows the reason
// besides.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a long row":             "name\n" + strings.Repeat("x", maxRecord) + "\r\n",
		"a long quoted row":      "name\n\"" + strings.Repeat("x", maxRecord-2) + "\"\n",
		"a long rejected row":    "name,_line,_error,_reason\n" + strings.Repeat("x", maxRecord+slackRecord) + "\n",
		"many cells":             "name" + strings.Repeat(",", maxCells-1) + "\nA" + strings.Repeat(",", maxCells-1) + "\n",
		"many cells of a reason": "name" + strings.Repeat(",", maxCells-1) + ",_line,_error,_reason\nA" + strings.Repeat(",", maxCells-1) + ",2,invalid_request,why\n",
	} {
		if rows, err := bodies(t, []byte(text), Options{Delimiter: ","}); err != nil || len(rows) != 1 {
			t.Errorf("%s: %d rows, %v", name, len(rows), err)
		}
	}
	line := `{"_error":{},"name":"` + strings.Repeat("x", maxRecord) + `"}`
	if rows, err := bodies(t, []byte(line), Options{JSONL: true}); err != nil || len(rows) != 1 {
		t.Errorf("a long rejected line: %d rows, %v", len(rows), err)
	}
}

// TestPeek reads the first rows, also of a file that is wrong further down.
func TestPeek(t *testing.T) {
	t.Parallel()
	of := func(text string) Source {
		return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
	}
	f, rows, err := Peek(of("Name;Born;Nobody\nAda;'=1;"+strings.Repeat("é", 300)+"\nBob\n\xff"), Options{Kind: desk.ImportContacts}, 2)
	want := [][]string{{"Ada", "=1", strings.Repeat("é", 200) + "…"}, {"Bob"}}
	if err != nil || f.Delimiter != ';' || !slices.EqualFunc(rows, want, slices.Equal) {
		t.Errorf("%c %q, %v", f.Delimiter, rows, err)
	}
	if guess := f.Guess(attributes); !slices.Equal(guess, []string{"name", "attributes.born", ""}) {
		t.Errorf("guessed %q", guess)
	}
	f, rows, err = Peek(of("Name;Tel\nAda;1\n\xff"), Options{}, 20)
	if e, ok := errors.AsType[*FileError](err); !ok || e.At != "encoding" || len(f.Headers) != 2 || len(rows) != 1 {
		t.Errorf("%q, %v", rows, err)
	}
	if _, _, err = Peek(of(""), Options{}, 20); !errors.Is(err, errNoRow) {
		t.Errorf("an empty file: %v", err)
	}
	if _, rows, err = Peek(of("{\"a\":1}\n\n{}\n"), Options{JSONL: true}, 20); err != nil || len(rows) != 2 {
		t.Errorf("%q, %v", rows, err)
	}
}

// TestPeek_bounded: of a file with long or with very many cells, only the beginning is read and
// returned, and one file is open at a time.
func TestPeek_bounded(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]string{
		"cells": strings.Repeat(strings.Repeat("+", 200)+",", 900),
		"bytes": strings.Repeat("x", 300<<10),
	} {
		text := "name,phone\n" + strings.Repeat(row+"\n", 20)
		opened, most := 0, 0
		open := func() (io.ReadCloser, error) {
			opened++
			most = max(most, opened)
			return closing{strings.NewReader(text), func() { opened-- }}, nil
		}
		_, rows, err := Peek(open, Options{Kind: desk.ImportContacts}, 20)
		size := 0
		for _, r := range rows {
			for _, cell := range r {
				size += len(cell)
			}
		}
		if err != nil || len(rows) == 0 || len(rows) == 20 || size > 1<<20 || most != 1 {
			t.Errorf("%s: %d rows of %d bytes, %d files open at once, %v", name, len(rows), size, most, err)
		}
	}
}

// A closing file calls closed at its end.
type closing struct {
	io.Reader
	closed func()
}

func (c closing) Close() error { c.closed(); return nil }

// TestFirstRejected reads what an ErrorsFile has written.
func TestFirstRejected(t *testing.T) {
	t.Parallel()
	for n, o := range []Options{{Delimiter: ";"}, {JSONL: true}, {Delimiter: ","}} {
		f, b := &File{Options: o, Headers: []string{"Name", "Tel"}, Delimiter: ';', named: n == 2}, new(bytes.Buffer)
		to := f.NewErrorsFile(b, 0)
		for n, row := range []Row{{Cells: []string{"=A;da", "12"}}, {Cells: []string{"Bob", "1", "more"}}, {Cells: []string{"Eve"}}} {
			row.Line = n + 2
			if o.JSONL {
				row.Raw = []byte(`{"name":"Ada"}`)
			}
			if err := to.Reject(row, desk.InvalidRequest, "phone: too short", []byte(`{"message":"phone: too short"}`)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := to.Flush(); err != nil {
			t.Fatal(err)
		}
		list, err := FirstRejected(b.Bytes(), o, 2)
		if err != nil || len(list) != 2 {
			t.Fatalf("%+v, %v", list, err)
		}
		want := []string{"=A;da", "12"}
		if o.JSONL {
			want = []string{`{"name":"Ada"}`}
		}
		if r := list[0]; r.Line != 2 || r.Reason != "phone: too short" || !slices.Equal(r.Cells, want) {
			t.Errorf("%+v", r)
		}
	}
}

// TestPeople: one column says who the person of a broadcast's row is, others fill variables.
func TestPeople(t *testing.T) {
	t.Parallel()
	variables := []Variable{{"1", "Value 1"}, {"code", "Code"}, {"button.0", "End of the link"}}
	of := func(text string, fields []string) (*File, []Row, error) {
		f, err := Read(func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }, Options{Kind: desk.ImportPeople, Fields: fields})
		if err != nil {
			t.Fatal(err)
		}
		var rows []Row
		if err = f.Columns(attributes); err == nil {
			err = f.Each(0, func(r Row) error { rows = append(rows, r); return nil })
		}
		return f, rows, err
	}
	for _, c := range []struct{ headers, want string }{
		{"Telefon,{{1}},CODE,End of the link,Plan", "phone,variables.1,variables.code,variables.button.0,-"},
		{"email,Phone,contact_id,external_id,Value 1", "-,phone,-,-,variables.1"}, // one of them only
		{"Mail,Ad Soyad,value1,code,Plan", "email,name,variables.1,variables.code,"},
		{"contact_id,_line,,parley_id", "contact_id,-,-,-"},
		{"Ad,Born,+", ",,"},
	} {
		f, _, _ := of(c.headers+"\n", nil)
		if got := strings.Join(f.Guess(attributes, variables...), ","); got != c.want {
			t.Errorf("%s is guessed as %s, want %s", c.headers, got, c.want)
		}
	}
	_, rows, err := of("a,b,c,d,e\n 905321234567.0 ,'=A-17, x ,Ada \"A\" L.,\n9.05E+11,,,,\n,,,,y\n", []string{"phone", "variables.1", "variables.button.0", "name", "-"})
	want := []string{
		`{"to":{"phone":"905321234567"},"variables":{"1":"=A-17","button.0":"x"},"contact":{"name":"Ada \"A\" L."}}`, "",
		`{"to":{"phone":""},"variables":{}}`,
	}
	if err != nil || len(rows) != len(want) {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, r := range rows {
		if string(r.Body) != want[i] || (r.Err != nil) != (want[i] == "") {
			t.Errorf("%s, %v, want %s", r.Body, r.Err, want[i])
		}
	}
	for _, c := range []struct {
		fields  []string
		columns []int
		message string
	}{
		{[]string{"phone", "email", "-", "-", "-"}, []int{0, 1}, "these columns all say who the person is"},
		{[]string{"phone", "phone", "-", "-", "-"}, []int{0, 1}, "both the field phone"},
		{[]string{"name", "variables.1", "-", "-", "-"}, nil, "no column says who the person is"},
		{[]string{"-", "-", "-", "-", "-"}, nil, "no column says who the person is"},
		{[]string{"phone", "variables.1", "variables.1", "-", "-"}, []int{1, 2}, "both the field variables.1"},
		{[]string{"phone", NewAttribute, "attributes.born", "note", "identity.crm"}, []int{1, 2, 3, 4}, "nobody knows the columns"},
	} {
		_, _, err := of("a,b,c,d,e\n", c.fields)
		if e, ok := errors.AsType[*ColumnError](err); !ok || !slices.Equal(e.Columns, c.columns) || !strings.Contains(e.Message, c.message) {
			t.Errorf("%q: %v", c.fields, err)
		}
	}
}

// TestNewAttributes_refused: a file whose new attributes can't all be made makes none.
func TestNewAttributes_refused(t *testing.T) {
	t.Parallel()
	large := maps.Clone(attributes)
	for n := range 32 {
		key := fmt.Sprint("large_", n)
		large[key] = &desk.Attribute{Key: key, Type: desk.SelectAttribute, Options: slices.Repeat([]string{strings.Repeat("x", desk.MaxOption)}, desk.MaxOptions)}
	}
	room := desk.MaxAttributesJSON - 32*desk.MaxOptions*(desk.MaxOption+3) - 10_000
	large["rest"] = &desk.Attribute{Key: "rest", Type: desk.SelectAttribute, Options: []string{strings.Repeat("x", room)}}
	var headers []string
	for n := range 50 {
		headers = append(headers, fmt.Sprint("New ", n))
	}
	for name, c := range map[string]struct {
		header     string
		attributes map[string]*desk.Attribute
		words      string
	}{
		"a long key":      {strings.Repeat("k", desk.MaxAttributeKey+1), attributes, "can't become an attribute: key: send a lower-case letter and up to 63"},
		"a long label":    {strings.Repeat("Ж", desk.MaxAttributeLabel+1), attributes, "can't become an attribute: label: a label has 1 to 140"},
		"the same header": {"Code,Code", attributes, "which is there already: rename one of them in the file"},
		"too large":       {strings.Join(headers, ","), large, "the workspace's attributes would take more than the 4 MiB that all of them may: leave columns out"},
	} {
		f, err := Open(written(t, "f.csv", []byte("name,"+c.header+"\n")), Options{Kind: desk.ImportContacts, CreateAttributes: true})
		if err != nil {
			t.Fatal(err)
		}
		err = f.Columns(c.attributes)
		if e, ok := errors.AsType[*ColumnError](err); !ok || !strings.Contains(err.Error(), c.words) || e.Flag == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGBK: the web reads gbk as gb18030.
func TestGBK(t *testing.T) {
	t.Parallel()
	text, err := simplifiedchinese.GB18030.NewEncoder().String("name\n李 €\n𠮷 é ß\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, label := range []string{"gbk", "gb2312", "gb18030"} {
		got, err := bodies(t, []byte(text), Options{Encoding: label})
		if want := []string{`2 {"name":"李 €"}`, `3 {"name":"𠮷 é ß"}`}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", label, got, err)
		}
	}
	if got, err := bodies(t, []byte("name\n\x80\n"), Options{Encoding: "gbk"}); err != nil || got[0] != `2 {"name":"€"}` {
		t.Errorf("the euro sign of code page 936: %q, %v", got, err)
	}
	if _, err := bodies(t, []byte("name\n\xff\n"), Options{Encoding: "gbk"}); err == nil {
		t.Error("a byte that means nothing is read")
	}
}
