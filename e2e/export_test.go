package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	encoding "golang.org/x/text/encoding/unicode"
)

var exportCells = flag.Int("export-cells", 1500, "how many hostile cells TestExport exports and imports again. Long run: -export-cells 10000")

// hostileCells are parts of texts that files and spreadsheets get wrong.
var hostileCells = []string{
	"=1+1", "+", "-", "@SUM(A1)", "\t", "\r", "\n", "\r\n", "＝", "＋", "－", "＠", "'", "''", "5", "0123", ".5", "-5.5", `"`, `""`, ",", ";", "|", " ", "sep=;", "\uFEFF", "\u00A0", "\u2028", "\u202E",
	"null", "true", "[", "]", "{", `\`, `\u0041`, "\u0001", "9.05E+11", "31.12.2026", "1.234,5", "=cmd|' /C calc'!A0", "Ş", "मीना", "李雷", "👩‍👩‍👧", "\uFFFD", "\uFFFF", "a", "_line",
}

func hostileCell(r *rand.Rand) (cell string) {
	for range 1 + r.IntN(4) {
		cell += hostileCells[r.IntN(len(hostileCells))]
	}
	return cell
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// run runs a command of the installation, which must succeed.
func (d deployment) run(t testing.TB, args ...string) result {
	t.Helper()
	r := parley(t, nil, append(args, "--data", d.dir, "--database", d.database)...)
	if r.code != 0 {
		t.Fatalf("parley %s: exit %d: %s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r
}

// ownColumns match what an export says of parley's own, at the end of a row.
var ownColumns = regexp.MustCompile(`[,\t]("parley_id":)?"?[0-9a-f]{8}-[0-9a-f-]{27}"?[,\t]("parley_created_at":)?"?20[0-9TZ:.-]+"?[,\t]("parley_updated_at":)?"?20[0-9TZ:.-]+"?`)

// plainPhone is the number of the one contact of TestExport that is sure to be stored.
const plainPhone = "+493099999998"

// TestExport exports hostile contacts beside a server, imports the file into another workspace,
// and exports that: the same comes out, in each format.
func TestExport(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	visible := func(c rune) rune { // an external id may have no other characters
		if unicode.Is(unicode.Cf, c) {
			return -1
		}
		return c
	}
	bothStores(t, func(t *testing.T, d deployment) {
		ws, key := d.workspace(t)
		s := serve(t, d.dir, "--database", d.database)
		r := rand.New(rand.NewPCG(seed, 1))
		options := []string{" ", " x", "a;b", "=1", "'=1", "|", "[1]", "plain"}
		type place struct{ ws, key string }
		prepare := func(p place) {
			t.Helper()
			c := s.client(t, p.key, 1)
			for _, kind := range []string{"text", "number", "date", "boolean", "url", "datetime"} {
				c.must(t, 201, "POST", "/attributes", fmt.Sprintf(`{"key":"a_%s","type":"%s"}`, kind, kind))
			}
			for _, kind := range []string{"select", "multiselect"} {
				c.must(t, 201, "POST", "/attributes", fmt.Sprintf(`{"key":"a_%s","type":"%s","options":%s}`, kind, kind, jsonOf(options)))
			}
			d.run(t, "member", "add", "--workspace", p.ws, "--name", "=Ada", "--email", "+ada@example.com")
		}
		first := place{ws, key}
		prepare(first)
		var lines strings.Builder
		for n := range max(*exportCells/6, 1) {
			attributes := map[string]any{
				"a_text": hostileCell(r), "a_number": json.Number(fmt.Sprintf("-%d.5", n)), "a_date": "2026-12-31", "a_boolean": n%2 == 0, "a_url": "https://x.example/?=1,2;3",
				"a_datetime": "2026-01-31T10:00:00.123Z", "a_select": options[n%len(options)], "a_multiselect": options[:1+n%len(options)],
			}
			row := map[string]any{
				"external_id": fmt.Sprintf("%s-%d", strings.Trim(strings.Map(visible, hostileCell(r)), " \u2028"), n), "name": hostileCell(r), "note": hostileCell(r) + "\n" + hostileCell(r), "attributes": attributes,
				"identities": []map[string]string{{"kind": "crm", "value": fmt.Sprintf("%s%d", hostileCell(r), n)}, {"kind": "phone", "value": fmt.Sprintf("+4930%07d", n)}, {"kind": "whatsapp", "value": fmt.Sprintf("9053%08d", n)}},
			}
			if n%3 == 0 {
				row["owner"], row["phone"], row["email"] = "+ada@example.com", fmt.Sprintf("+90532%07d", n), fmt.Sprintf("+=%d@Example.com", n)
			}
			fmt.Fprintln(&lines, jsonOf(row))
		}
		fmt.Fprintf(&lines, `{"external_id":"plain","phone":"%s"}`+"\n", plainPhone)
		dir := t.TempDir()
		file := filepath.Join(dir, "hostile.jsonl")
		if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		result := parley(t, nil, "import", "contacts", "--workspace", ws, file, "--data", d.dir, "--database", d.database, "--json")
		var in imported
		if err := json.Unmarshal([]byte(result.stdout), &in); err != nil || in.Created < in.Rows*9/10 { // some texts are no external_id
			t.Fatalf("seed %d: %v, %s%s", seed, err, result.stdout, result.stderr)
		}
		export := func(p place, name string, flags ...string) string {
			t.Helper()
			out := filepath.Join(dir, name)
			got := d.run(t, append([]string{"export", "contacts", "--workspace", p.ws, "--out", out, "--json"}, flags...)...)
			if want := fmt.Sprintf(`{"file":%s,"rows":%d}`, jsonOf(out), in.Created); strings.TrimSpace(got.stdout) != want {
				t.Errorf("%s, want %s", got.stdout, want)
			}
			content, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if state, err := os.Stat(out); err != nil || state.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", state.Mode(), err)
			}
			if strings.HasPrefix(string(content), "\xFF\xFE") {
				if content, err = encoding.UTF16(encoding.LittleEndian, encoding.ExpectBOM).NewDecoder().Bytes(content); err != nil {
					t.Fatal(err)
				}
			}
			return ownColumns.ReplaceAllString(string(content), "")
		}
		for name, flags := range map[string][]string{"a.csv": nil, "b.csv": {"--excel"}, "c.jsonl": {"--format", "jsonl"}} {
			want := export(first, name, flags...)
			another := place{ws: d.must(t, "workspace", "create", "--name", "Again "+name, "--country", "DE")["workspace_id"].(string)}
			another.key = d.key(t, another.ws)["key"].(string)
			prepare(another)
			if got := d.imports(t, 0, another.ws, filepath.Join(dir, name)); got.Created != in.Created {
				t.Errorf("%s: %+v", name, got)
			}
			if got := export(another, "again-"+name, flags...); got != want {
				t.Errorf("seed %d: %s: what was exported is not what was imported: %s", seed, name, firstDifference(got, want))
			}
			if got := d.imports(t, 0, ws, filepath.Join(dir, name)); got.Unchanged != in.Created {
				t.Errorf("%s, again: %+v", name, got)
			}
		}
		if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
		if got := d.run(t, "export", "contacts", "--workspace", ws, "--format", "jsonl"); int64(strings.Count(got.stdout, "\n")) != in.Created {
			t.Errorf("%d lines on standard output", strings.Count(got.stdout, "\n"))
		}
		optOutsComeBack(t, d, ws, dir)
	})
}

// firstDifference shows where two texts differ.
func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for n := range min(len(a), len(b)) {
		if a[n] != b[n] {
			return fmt.Sprintf("line %d\n%q, want\n%q", n+1, a[n], b[n])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(a), len(b))
}

// optOutsComeBack exports opt-outs and imports them again.
func optOutsComeBack(t *testing.T, d deployment, ws, dir string) {
	t.Helper()
	file := filepath.Join(dir, "stop.csv")
	if err := os.WriteFile(file, []byte("phone,since\n"+plainPhone+",2026-01-31T10:00:00.123Z\n+49309999999,2026-01-31\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.run(t, "import", "opt-outs", "--workspace", ws, file)
	got := d.run(t, "export", "opt-outs", "--workspace", ws)
	if want := "phone,since,opted_out\r\n" + plainPhone + ",2026-01-31T10:00:00.123Z,true\r\n"; got.stdout != want || !strings.Contains(got.stderr, "1 other opt-outs") {
		t.Errorf("%q, want %q; %s", got.stdout, want, got.stderr)
	}
	if err := os.WriteFile(file, []byte(got.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := d.run(t, "import", "opt-outs", "--workspace", ws, file, "--json"); !strings.Contains(r.stdout, `"unchanged":1`) {
		t.Errorf("again: %s", r.stdout)
	}
}
