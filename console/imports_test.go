package console

import (
	"bytes"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/app"
	"parley/desk"
	"parley/store"
)

// imports sends the form of a page with a file to import. length is the size of the file.
func (b *browser) imports(page, name string, content io.Reader, length int64) got {
	b.w.t.Helper()
	var head bytes.Buffer
	m := multipart.NewWriter(&head)
	_ = m.WriteField("member", b.member.ID.String())
	if _, err := m.CreateFormFile("people", name); err != nil {
		b.w.t.Fatal(err)
	}
	end := "\r\n--" + m.Boundary() + "--\r\n"
	length += int64(head.Len()) + int64(len(end))
	r := httptest.NewRequest(http.MethodPost, page, io.MultiReader(&head, content, strings.NewReader(end)))
	r.ContentLength = length
	r.Header.Set("Content-Type", m.FormDataContentType())
	return b.do(r)
}

func (b *browser) importsText(name, text string) got {
	b.w.t.Helper()
	return b.imports("/contacts/import", name, strings.NewReader(text), int64(len(text)))
}

// works lets the process work on the next upload.
func (w *world) works() {
	w.t.Helper()
	if had, err := w.app.Imports.NextUpload(w.t.Context(), w.ws); !had || err != nil {
		w.t.Fatalf("there was work: %v, %v", had, err)
	}
}

const people = "Müşteri no;Ad;Soyad;Telefon;Tarif;Kayıt\r\nc-1;Ayşe;Yılmaz;0532 100 00 01;pro;31.12.2025\r\nc-2;Ali;Kaya;12;pro;1.2.2026\r\nc-3;Zoë;=1+1;0532 100 00 03;free;03.04.2026\r\n"

// chosenImport is how the form for people is filled in.
var chosenImport = []string{"columns.0", "external_id", "columns.1", "first_name", "columns.2", "last_name", "columns.3", "phone", "columns.4", "attributes.plan", "columns.5", "+", "dates", "DMY"}

// TestImports uploads a file, chooses its columns, checks it, imports it, and downloads its
// rejected rows.
func TestImports(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(d *app.Deps) { d.ReadContact = readRow })
	nora, mei := w.as(w.nora), w.as(w.mei)
	if _, _, err := w.app.PutAttribute(t.Context(), w.operator(), desk.AttributeInput{Key: "plan", Label: desk.Field[string]{Set: true, Value: "Plan"}, Type: desk.Field[string]{Set: true, Value: "text"}}); err != nil {
		t.Fatal(err)
	}
	nora.get("/contacts").want(200, `href="/contacts/import"`)
	mei.get("/contacts").want(200).lacks("/contacts/import")
	nora.get("/contacts/import").want(200, "None yet").golden("imports/none")
	nora.importsText("", "").want(422, "Choose a file", `<p class="error" id="f-people-error">Choose a file.</p>`)
	nora.importsText("people.csv", "").want(422, "The file is empty")
	nora.importsText("people.csv", "%PDF-1.7 people").want(422, "This is no CSV file").golden("imports/no-csv")

	at := nora.importsText("people.csv", people).want(303).header.Get("Location")
	page := nora.get(at).want(200, `<option value="first_name" selected>`, "31.12.2025", "Make an attribute of it", `<option value=";" selected>`).golden("imports/choose").body
	filled := func(pairs ...string) []string {
		return append([]string{"encoding", "", "delimiter", ";"}, append(slices.Clip(chosenImport), pairs...)...)
	}
	nora.post(at, choose(page, "do", "check")...).want(422, "Say what this column is, or leave it out.", "Some columns need another choice").golden("imports/unknown")
	nora.post(at, choose(page, append(chosenImport[:10:10], "columns.5", "first_name", "dates", "DMY", "do", "check")...)...).want(422, "are both the field first_name", `<option value="DMY" selected>`)
	nora.post(at, filled("do", "show")...).sends(at)
	nora.get(at).want(200, `<option value="DMY" selected>`, `<option value="&#43;" selected>`)

	nora.post(at, filled("do", "check")...).sends(at)
	nora.get(at).want(200, "It waits for its turn.", "Stop the check", `<noscript><meta http-equiv="refresh" content="2"></noscript>`).golden("imports/checking")
	nora.get("/contacts/import").want(200, "Being checked", `<noscript><meta`)
	nora.get(at+"stop").want(200, "Stop the check?").golden("imports/stop")
	w.works()
	nora.get(at).want(200, "What would happen", "Download rejected rows", ">Import</button>", "c-2 · Ali · Kaya · 12").lacks("noscript").golden("imports/checked")

	nora.post(at, filled("do", "import")...).sends(at)
	nora.post(at, filled("do", "import")...).want(409)
	nora.get(at).want(200, "Stop the import")
	w.works()
	nora.get(at).want(200, "What happened", "Imported").lacks("Discard", "data-every").golden("imports/done")
	nora.get("/contacts/import").want(200, "people.csv", "3 rows, 1 rejected").golden("imports/list")
	file := nora.get(at + "rejected").want(200)
	if want := "\uFEFFMüşteri no;Ad;Soyad;Telefon;Tarif;Kayıt;_line;_error;_reason\r\nc-2;Ali;Kaya;12;pro;1.2.2026;3;invalid_request;phone: no number\r\n"; file.body != want || file.header.Get("Content-Disposition") != `attachment; filename=people.errors.csv` {
		t.Errorf("%q, %v", file.body, file.header)
	}
	mei.get(at).want(403)
	nora.get("/contacts").want(200, "Ayşe Yılmaz", "Zoë =1")

	// A file of another encoding, which is then discarded.
	at = nora.importsText("kisiler.csv", "Ad;Telefon;Kayıt\r\nAy\xfee;12;1.2.2026\r\n").want(303).header.Get("Location")
	page = nora.get(at).want(200, "Line 2 is not utf-8.", `href="#f-encoding"`).golden("imports/encoding").body
	nora.post(at, choose(page, "encoding", "windows-1254", "do", "check")...).sends(at)
	nora.get(at).want(200, "Ayşe", `<option value="phone" selected>`, `<option value=";" selected>`).lacks("not utf-8")
	nora.get(at+"stop").want(200, "Discard the file?")
	nora.post(at + "stop?of=open").sends("/contacts/import?done=stopped")
	nora.get(at).want(200, "Stopped").golden("imports/stopped")
	nora.get(at + "rejected").want(404)

	at = nora.importsText("people.csv", people).want(303).header.Get("Location")
	nora.post(at, append([]string{"encoding", "", "delimiter", ";", "dates", "", "do", "check"}, chosenImport[:12]...)...).sends(at)
	w.works()
	nora.get(at).want(200, "Choose below how dates are written, and check again.", "Checked").lacks("stopped at row")
	nora.post(at + "stop?of=open").sends("/contacts/import?done=stopped")
	nora.get(at).want(200, "Stopped").lacks("happened") // only a check has been made
	nora.get(at + "rejected").want(404)

	at = nora.importsText("people.jsonl", `{"first_name":"Ada"}`+"\n").want(303).header.Get("Location")
	nora.get(at).want(200, "{&#34;first_name&#34;:&#34;Ada&#34;}").lacks("What the columns are").golden("imports/jsonl")

	// A file that says its delimiter itself: another choice changes nothing, but the columns are guessed
	// anew, so they are to be looked at before anything starts.
	at = nora.importsText("people.csv", "sep=^\r\nname^phone^note\r\nCaret^0532 100 00 09^secret\r\n").want(303).header.Get("Location")
	nora.get(at).want(200, `<option value="^" selected>`)
	nora.post(at, "encoding", "", "delimiter", ",", "dates", "", "columns.0", "name", "columns.1", "phone", "columns.2", "-", "do", "import").sends(at)
	nora.get(at).want(200, "To be started").lacks("Stop the import")
	nora.post(at + "stop?of=open").sends("/contacts/import?done=stopped")

	for range desk.MaxUploads - 1 {
		nora.importsText("people.csv", people).want(303)
	}
	nora.importsText("people.csv", people).want(422, "4 files are there already", `<a href="#f-people">`, `id="f-people"`)
	nora.get("/contacts/import").want(200, "Four files are there already").lacks("multipart")
}

// TestImports_stopLate: a colleague, or the work itself, goes on while the question is open. Then
// nothing else is stopped than what was asked about.
func TestImports_stopLate(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(d *app.Deps) { d.ReadContact = readRow })
	nora := w.as(w.nora)
	stop := func(at string) (action string) {
		t.Helper()
		found := regexp.MustCompile(`<form method="post" action="([^"]*stop[^"]*)"`).FindStringSubmatch(nora.get(at + "stop").want(200).body)
		if found == nil {
			t.Fatal("no form")
		}
		return html.UnescapeString(found[1])
	}
	at := nora.importsText("people.csv", "Ad;Telefon\r\nAda;0532 100 00 01\r\n").want(303).header.Get("Location")
	filled := []string{"encoding", "", "delimiter", ";", "columns.0", "name", "columns.1", "phone", "dates", ""}
	nora.post(at, append(filled, "do", "check")...).sends(at)
	check := stop(at)
	w.works() // the check ends
	nora.post(check).want(409, ">Error: Discard the file?", "This import went on meanwhile, so nothing was stopped.")
	nora.get(at).want(200, "Checked")

	discard := stop(at)
	nora.post(at, append(filled, "do", "import")...).sends(at)
	nora.post(discard).want(409, ">Error: Stop the import?")
	nora.get(at).want(200, "At work")
	if err := w.store.InTx(t.Context(), w.ws, func(tx store.Tx) error {
		id, _ := desk.ParseID(path.Base(at))
		u, err := tx.Upload(id)
		if err == nil {
			err = tx.PutImport(desk.ImportRun{ID: u.RunID, ImportCounts: desk.ImportCounts{Rows: 10, Created: 1, Rejected: 9}})
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	nora.get(at+"stop").want(200, "What was imported so far stays: 1 row.")
	nora.post(at+"stop").want(409, "Stop the import?")

	stopImport := stop(at)
	w.works() // the import ends
	nora.post(stopImport).sends(at)
	nora.get(at + "stop").sends(at)
	nora.get(at).want(200, "Imported")
}

// TestImports_people gives people to a broadcast by a file: its columns, a check, rejected rows,
// which are mended.
func TestImports_people(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	nora, mei := w.as(w.nora), w.as(w.mei)
	b := w.drafted("Spring <sale>", nil)
	path := broadcastPath(b.ID) + "/import"
	uploads := func(name, text string) got {
		t.Helper()
		return nora.imports(path, name, strings.NewReader(text), int64(len(text)))
	}
	nora.get(broadcastPath(b.ID)+"/people").want(200, `href="`+path+`">A file</a>`)
	nora.get(path).want(200, "one person a line, by phone, e-mail or own id, with Value 1 (title).", "0 people so far", "None yet", `data-section="broadcasts"`).golden("imports/people-none")
	uploads("", "").want(422, "Choose a file")
	mei.get(path).want(403)
	mei.imports(path, "people.csv", strings.NewReader(people), int64(len(people))).want(403)

	const text = "Telefon;E-mail;Name;Code;Value 1 (title)\r\n+12025550161;lu@example.com;Lucia;x;A-17\r\n;ann@example.com;Ann;x;A-18\r\n+12025550163;;'=1+1;x;'=2+2\r\n+12025550161;;Lucia F.;x;" + "A-19\r\n"
	at := uploads("people.csv", text).want(303).header.Get("Location")
	page := nora.get(at).want(200, `<option value="phone" selected>`, `<option value="name" selected>`, `<option value="variables.header.1" selected>Fills: Value 1 (title)</option>`, `data-section="broadcasts"`, "=2&#43;2").lacks("Dates are written", "Make an attribute").golden("imports/people-choose").body
	if n := strings.Count(page, `<option value="-" selected>`); n != 2 {
		t.Errorf("%d columns are left out, want the e-mail and the code", n)
	}
	nora.post(at, choose(page, "columns.1", "email", "do", "check")...).want(422, "These columns all say who the person is. Choose something else, or leave one out.").golden("imports/people-two")
	nora.post(at, choose(page, "columns.3", "variables.header.1", "do", "check")...).want(422, "are both the field variables.header.1")
	nora.post(at, choose(page, "columns.0", "-", "do", "check")...).want(422, "No column says who the person is")
	nora.post(at, choose(page, "do", "check")...).sends(at)
	w.works()
	nora.get(at).want(200, "What would happen", "New people", "ann@example.com").golden("imports/people-checked")
	if rows := w.peopleOf(b.ID); len(rows) != 0 {
		t.Errorf("a check has added %d people", len(rows))
	}
	nora.get("/contacts/import").want(200, "people of a broadcast")
	nora.post(at, choose(page, "do", "import")...).sends(at)
	nora.post(at, choose(page, "do", "import")...).want(409) // a second click
	w.works()
	nora.get(at).want(200, "Imported", `href="`+broadcastPath(b.ID)+`">To the broadcast</a>`).golden("imports/people-done")
	rows := w.peopleOf(b.ID)
	if len(rows) != 2 || rows[0].Data.Values[0] != (desk.NamedValue{Address: "header.1", Value: "A-19"}) || rows[0].Data.Person.Name.Value != "Lucia F." || rows[1].Data.Values[0].Value != "=2+2" || rows[1].Data.Person.Name.Value != "=1+1" {
		t.Errorf("%+v", rows)
	}

	rejected := nora.get(at + "rejected").want(200).body
	if want := "\uFEFFTelefon;E-mail;Name;Code;Value 1 (title);_line;_error;_reason\r\n;ann@example.com;Ann;x;A-18;3;invalid_request;\"phone: "; !strings.HasPrefix(rejected, want) {
		t.Errorf("%q", rejected)
	}
	at = uploads("people.errors.csv", strings.Replace(rejected, "\n;ann", "\n+12025550162;ann", 1)).want(303).header.Get("Location")
	nora.post(at, choose(nora.get(at).body, "do", "import")...).sends(at)
	w.works()
	nora.get(path).want(200, "people.errors.csv", "1 row, 0 rejected", "3 people so far").golden("imports/people-list")

	// A broadcast that has begun, one with an audience, and one of another workspace.
	uploads("people.csv", text).want(303)
	w.becomes(b, func(b *desk.Broadcast) { b.Begin(desk.Actor{}, 1) })
	uploads("people.csv", text).want(409, "That is not possible now: the broadcast is running").golden("imports/people-begun")
	chosen := w.drafted("Chosen", func(in *desk.BroadcastInput) {
		in.Audience, in.AtMost = given(desk.Audience{Segment: "s"}), given(int64(5))
	})
	nora.get(broadcastPath(chosen.ID) + "/import").sends(audiencePath(chosen.ID))
	nora.imports(broadcastPath(chosen.ID)+"/import", "people.csv", strings.NewReader(text), int64(len(text))).want(422, "it takes no rows")
	for _, id := range []string{w.newID().String(), "none"} {
		nora.get("/broadcasts/" + id + "/import").want(404)
		nora.imports("/broadcasts/"+id+"/import", "people.csv", strings.NewReader(text), int64(len(text))).want(404)
	}
}

var aSelect = regexp.MustCompile(`(?s)<select [^>]*name="([^"]+)".*?</select>`)
var (
	selected    = regexp.MustCompile(`value="([^"]*)" selected`)
	firstOption = regexp.MustCompile(`<option value="([^"]*)"`)
)

// choose returns the form of a page, with some fields changed.
func choose(page string, pairs ...string) (list []string) {
	changed := map[string]bool{}
	for i := 0; i < len(pairs); i += 2 {
		changed[pairs[i]] = true
	}
	for _, field := range aSelect.FindAllStringSubmatch(page, -1) {
		value := selected.FindStringSubmatch(field[0])
		if value == nil { // a browser sends the first one
			value = firstOption.FindStringSubmatch(field[0])
		}
		if !changed[field[1]] {
			list = append(list, field[1], html.UnescapeString(value[1]))
		}
	}
	return append(list, pairs...)
}

// readRow reads a row of a test's file.
func readRow(body []byte, s *desk.Settings) (*desk.Op, error) {
	op := &desk.Op{Kind: desk.OpUpsert}
	of := func(name string) string {
		found := regexp.MustCompile(`"` + name + `":"([^"]*)"`).FindSubmatch(body)
		if found == nil {
			return ""
		}
		return string(found[1])
	}
	if of("phone") == "12" {
		return nil, desk.InvalidAt("/phone", "no number")
	}
	op.Write.Name = desk.Field[string]{Set: true, Value: of("name")}
	i, err := desk.ParseIdentity(desk.KindExternalID, of("external_id"), s.Country)
	op.Write.Sent, op.Write.ExternalID = append(op.Write.Sent, i), desk.Field[string]{Set: true, Value: of("external_id")}
	return op, err
}

// A paper is a reader without an end. It counts what was read.
type paper struct{ n int64 }

func (p *paper) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'a'
	}
	p.n += int64(len(b))
	return len(b), nil
}

// TestImports_size: a file of 64 MiB is taken. One with a byte more is refused, by the length
// of the form before the file is stored, and else while it is read.
func TestImports_size(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nora := w.as(w.nora)
	nora.imports("/contacts/import", "large.csv", io.LimitReader(new(paper), desk.MaxUpload), desk.MaxUpload).want(303)
	for _, length := range []int64{desk.MaxUpload + 1, -1 << 40} {
		nora.imports("/contacts/import", "large.csv", io.LimitReader(new(paper), desk.MaxUpload+1), length).want(422, "The file has more than 67.1 MB")
	}
	if used, err := w.store.MediaUsed(t.Context(), w.ws); err != nil || used != desk.MaxUpload {
		t.Errorf("%d bytes are stored, %v", used, err)
	}
	head := &formHead{}
	_, _ = head.Write([]byte("--b\r\nContent-Disposition: form-data; name=\"member\"\r\n\r\nx\r\n--b\r\nContent-Disposition: form-data; name=\"people\"; filename=\"a\"\r\n\r\nab\r\n\r\nc"))
	if n := head.end(int64(head.b.Len())+100, "b"); n != 7+100-int64(len("\r\n--b--\r\n")) {
		t.Errorf("the file has %d bytes", n)
	}
}
