package console

import (
	"cmp"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"parley/app/imports"
	"parley/desk"
	"parley/transfer"
)

// importsPath is the page with all imports.
const importsPath = "/contacts/import"

// importsOf is the page with the imports of people of a broadcast; nil: with all imports.
func importsOf(b *desk.Broadcast) string {
	if b == nil {
		return importsPath
	}
	return filesPath(b.ID)
}

// cast returns the broadcast in the path; nil if the path has none.
func (c *call) cast() (*desk.Broadcast, error) {
	if c.r.PathValue("id") == "" {
		return nil, nil //nolint:nilnil // contacts are imported
	}
	return c.s.app.Broadcasts.Get(c.r.Context(), c.p, c.id("id"))
}

// castOf returns a broadcast; nil if the id is zero.
func (c *call) castOf(id desk.ID) (*desk.Broadcast, error) {
	if id.IsZero() {
		return nil, nil //nolint:nilnil // contacts are imported
	}
	return c.s.app.Broadcasts.Get(c.r.Context(), c.p, id)
}

func importPath(id desk.ID) string { return importsPath + "/" + id.String() + "/" }

// An importList is the data of the page with all imports, or with those of a broadcast.
type importList struct {
	Href  string
	Cast  *desk.Broadcast // nil: contacts are imported
	Back  string
	Lead  string
	Tabs  []tab
	File  *field
	Size  string
	Full  bool // no more files can be uploaded now
	Rows  []importRow
	Every bool // it renews itself
}

// An importRow is an import in the list.
type importRow struct {
	ID         desk.ID
	Href, Name string
	People     bool // of a broadcast, in the list of all
	State      pill
	Result     string
	By         string
	At         moment
}

// importStates are the words for states of imports.
var importStates = map[desk.UploadState]pill{
	desk.UploadOpen:      {Text: "To be started"},
	desk.UploadChecking:  {Text: "Being checked"},
	desk.UploadImporting: {Text: "At work"},
	desk.UploadDone:      {Text: "Imported", Kind: "good"},
	desk.UploadStopped:   {Text: "Stopped", Kind: "warn"},
	desk.UploadFull:      {Text: "Stopped: too many rejected rows", Kind: "bad"},
	desk.UploadFailed:    {Text: "Failed", Kind: "bad"},
}

// importsView reads the page with the imports of people of a broadcast; nil: with all imports.
func (c *call) importsView(b *desk.Broadcast) (view, error) {
	d := importList{Href: importsOf(b), Cast: b, Back: "/contacts", Lead: "From a spreadsheet, a shop or another product. You see what happens before anything is stored.", Size: strconv.Itoa(desk.MaxUpload)}
	title, hint := "Import contacts", "CSV, as any spreadsheet saves it, or JSON Lines. The first row names the columns."
	if b != nil {
		columns, err := c.columnsOf(b)
		if err != nil {
			return view{}, err
		}
		title, hint = "People of "+b.Name, "CSV, as any spreadsheet saves it: one person a line, by phone, e-mail or own id"
		if len(columns) > 0 {
			hint += ", with " + valueNames(columns)
		}
		hint += ". The first row names the columns."
		d.Back, d.Lead, d.Tabs = broadcastPath(b.ID), peopleWords(b.Rows)+" so far", peopleTabs(b, fromFile)
	}
	d.File = c.form.Field("people", "File", hint+" Up to "+bytesOf(desk.MaxUpload)+".", "")
	list, err := c.s.app.Imports.List(c.r.Context(), c.p)
	files := 0
	for _, u := range list {
		if u.Slot > 0 {
			files++
		}
		if b != nil && u.Broadcast != b.ID {
			continue
		}
		row := importRow{ID: u.ID, Href: importPath(u.ID), Name: importName(u), State: importStates[u.State], By: c.memberName(u.MemberID), At: c.when(u.CreatedAt), People: b == nil && !u.Broadcast.IsZero()}
		if u.State != desk.UploadOpen && u.Run.Rows > 0 {
			row.Result = fmt.Sprintf("%s, %s rejected", several(int(u.Run.Rows), "row"), count(int(u.Run.Rejected)))
		}
		d.Rows, d.Every = append(d.Rows, row), d.Every || u.QueuedAt != 0
	}
	d.Full = files >= desk.MaxUploads
	return view{Title: title, Data: d, Refresh: d.Every}, err
}

func importName(u *desk.Upload) string { return cmp.Or(u.Name, "File without a name") }

// imports shows the page with all imports, or with those of the broadcast in the path.
func (s *Server) imports(c *call) error {
	b, err := c.cast()
	if err != nil {
		return err
	}
	if b != nil && b.Audience != nil {
		return c.see(audiencePath(b.ID), "")
	}
	v, err := c.importsView(b)
	if err != nil {
		return err
	}
	return c.show("imports", v)
}

// uploadImport stores a file, and leads to its page.
func (s *Server) uploadImport(c *call) error {
	b, err := c.cast()
	if err != nil {
		return c.leftOut(err)
	}
	u, err := c.newImport(b)
	if err != nil {
		e := desk.AsError(err)
		switch e.Type {
		case desk.PayloadTooLarge:
			err = desk.InvalidAt("/people", "the file has more than %s: split it", bytesOf(desk.MaxUpload))
		case desk.InvalidRequest:
			err = desk.InvalidAt("/people", "%s", e.Message)
		case desk.BroadcastInState:
			err = broadcastError(err)
		}
		c.form.values.Set("people", "")
		if e := desk.AsError(err); e.At == "/people" {
			c.form.wrong("people", message(e)) // before the field is made
		}
		v, readErr := c.importsView(b)
		if readErr != nil {
			return readErr
		}
		return c.again("imports", v, err)
	}
	return c.see(importPath(u.ID), "")
}

// newImport stores the file of the form, of people of a broadcast; nil: of contacts.
func (c *call) newImport(b *desk.Broadcast) (*desk.Upload, error) {
	f := c.form.file
	if f == nil || f.Name == "" {
		return nil, c.leftOut(desk.Invalidf("choose a file"))
	}
	ctx, a := c.r.Context(), c.s.app
	if err := a.Imports.Room(ctx, c.p, castID(b)); err != nil {
		return nil, c.leftOut(err)
	}
	if f.Size > desk.MaxUpload {
		return nil, c.leftOut(desk.Errorf(desk.PayloadTooLarge, "the file is too large"))
	}
	m, err := a.Media.Upload(ctx, c.p, desk.FileHead{Name: f.Name, Type: f.Type, Size: f.Size}, &bounded{f.Content, desk.MaxUpload})
	if err = c.uploaded(err); err != nil {
		return nil, err
	}
	u, err := c.addImport(m, b)
	if err != nil {
		// If this fails, the file is deleted a day later.
		_ = a.Media.Delete(ctx, c.p, m.ID)
	}
	return u, err
}

// leftOut ends a form whose file is refused before it is read.
func (c *call) leftOut(err error) error {
	if c.form.file == nil {
		return err
	}
	return c.uploaded(err)
}

// castID returns the id of a broadcast; nil: the zero id.
func castID(b *desk.Broadcast) (id desk.ID) {
	if b != nil {
		id = b.ID
	}
	return id
}

// addImport makes an import of a stored file, of people of a broadcast; nil: of contacts. How
// the file is read is guessed.
func (c *call) addImport(m *desk.Media, b *desk.Broadcast) (*desk.Upload, error) {
	if m.MIME != "text/plain" && m.MIME != "application/octet-stream" {
		return nil, desk.Invalidf("this is no CSV file: in the spreadsheet, save it as CSV (UTF-8), and choose that")
	}
	o := transfer.Options{Kind: desk.ImportContacts, JSONL: strings.EqualFold(path.Ext(m.Name), ".jsonl")}
	if b != nil {
		o.Kind = desk.ImportPeople
	}
	o, err := c.guessed(&desk.Upload{MediaID: m.ID}, b, o)
	if err != nil {
		return nil, err
	}
	return c.s.app.Imports.Add(c.r.Context(), c.p, m, castID(b), o)
}

// guessed returns the options with the delimiter and the columns that the file seems to have, of
// people of a broadcast; nil: of contacts.
func (c *call) guessed(u *desk.Upload, b *desk.Broadcast, o transfer.Options) (transfer.Options, error) {
	o.Fields = nil
	f, _, err := c.s.app.Imports.Peek(c.r.Context(), c.p, u, o)
	if _, _, wrong := imports.Problem(err); err != nil && !wrong {
		return o, err
	}
	if !o.JSONL && f.Delimiter != 0 {
		if o.Delimiter = string(f.Delimiter); f.Delimiter == '\t' {
			o.Delimiter = tabDelimiter
		}
	}
	variables, err := c.variablesOf(b)
	o.Fields = f.Guess(c.p.Settings.Attributes, variables...)
	return o, err
}

// variablesOf lists what columns of a file with people of a broadcast can fill; nil: nothing.
func (c *call) variablesOf(b *desk.Broadcast) (list []transfer.Variable, err error) {
	if b == nil {
		return nil, nil
	}
	columns, err := c.columnsOf(b)
	for _, address := range columns {
		list = append(list, transfer.Variable{Address: address, Label: valueName(address)})
	}
	return list, err
}

const tabDelimiter = "TAB"

// An importPage is the data of an import's page.
type importPage struct {
	Href, Name   string
	List         link // the page with all imports, or with those of the broadcast
	Home         link // where they are then
	State        pill
	Words        string
	Choosing     bool
	JSONL        bool
	Columns      []importColumn
	Options      []*field
	Boxes        []*field
	Headers      []string
	Rows         [][]string
	Checked      bool
	Every        bool // at work: the page renews itself
	Done, Total  int64
	Result       []importFact
	Rejected     []rejectedRow
	RejectedN    string // how many more there are
	Cut          bool   // the check ended early, because so many rows are rejected
	Undated      string // what to do about dates that the file's options do not say how to read
	Download     string
	Stop, Button string
	Problem      string
}

type importFact struct{ Name, Value string }

// An importColumn is a column of the file, and what it is taken for.
type importColumn struct {
	*field
	Header, Sample string
}

const (
	// mostColumns is how many columns a page offers to choose.
	mostColumns = transfer.MostPeeked

	// mostSample is how many characters of a cell are shown beside its column.
	mostSample = 40
)

var encodings = []choice{
	{"", "UTF-8, or as the file says", false}, {"windows-1252", "Western European (Windows-1252)", false}, {"windows-1254", "Turkish (Windows-1254)", false},
	{"windows-1250", "Central European (Windows-1250)", false}, {"windows-1251", "Cyrillic (Windows-1251)", false}, {"windows-1253", "Greek (Windows-1253)", false},
	{"windows-1255", "Hebrew (Windows-1255)", false}, {"windows-1256", "Arabic (Windows-1256)", false}, {"windows-1257", "Baltic (Windows-1257)", false},
	{"macintosh", "Mac OS Roman", false}, {"utf-16le", "UTF-16", false}, {"shift_jis", "Japanese (Shift JIS)", false}, {"gb18030", "Chinese (GB 18030)", false}, {"big5", "Chinese (Big5)", false}, {"euc-kr", "Korean (EUC-KR)", false},
}

var delimiters = []choice{{",", "Comma", false}, {";", "Semicolon", false}, {tabDelimiter, "Tab", false}, {"|", "Vertical bar", false}}

var dateOrders = []choice{{"", "2026-12-31 only", false}, {string(transfer.DayFirst), "Day first: 31.12.2026", false}, {string(transfer.MonthFirst), "Month first: 12/31/2026", false}}

// peopleFields are the fields that a column of people of a broadcast can be.
func peopleFields(variables []transfer.Variable) []choice {
	list := []choice{
		{"", "Choose…", false}, {"-", "Leave out", false},
		{"phone", "The person, by phone", false}, {"email", "The person, by e-mail", false}, {"external_id", "The person, by own id", false}, {"contact_id", "The person, by contact", false}, {"name", "Name", false},
	}
	for _, v := range variables {
		list = append(list, choice{v.Field(), "Fills: " + v.Label, false})
	}
	return list
}

// importFields are the fields that a column of contacts can be.
func importFields(s *desk.Settings) []choice {
	list := []choice{
		{"", "Choose…", false}, {"-", "Leave out", false}, {transfer.NewAttribute, "Make an attribute of it", false},
		{"external_id", "Own id", false}, {"name", "Name", false}, {"first_name", "First name", false}, {"last_name", "Last name", false}, {"email", "E-mail", false}, {"phone", "Phone", false},
		{"note", "Note", false}, {"owner", "Owner (e-mail)", false}, {"identities", "Further addresses", false},
	}
	for _, a := range s.SortedAttributes() {
		if !a.Archived {
			list = append(list, choice{"attributes." + a.Key, "Attribute: " + a.Label, false})
		}
	}
	return list
}

// importView is the page of an import.
func (c *call) importView(u *desk.Upload, o transfer.Options) (view, error) {
	d := importPage{
		Href: importPath(u.ID), Name: importName(u), State: importStates[u.State], JSONL: o.JSONL, Checked: u.Checked(), Every: u.QueuedAt != 0,
		Done: u.Run.Rows, Total: max(u.Rows, u.Run.Rows, 1), Stop: importPath(u.ID) + "stop",
	}
	b, err := c.castOf(u.Broadcast)
	if err != nil && (u.State == desk.UploadOpen || !desk.IsType(err, desk.NotFound)) {
		return view{}, err
	}
	v := view{Title: "Import " + d.Name, Refresh: d.Every}
	switch d.List, d.Home = (link{"Imports", importsPath}), (link{"To the contacts", "/contacts"}); {
	case b != nil:
		v.In, d.List, d.Home = "broadcasts", link{b.Name, filesPath(b.ID)}, link{"To the broadcast", broadcastPath(b.ID)}
	case err != nil: // it was deleted
		v.In, d.Home = "broadcasts", link{"To the broadcasts", "/broadcasts"}
	}
	switch {
	case u.State == desk.UploadOpen:
		d.Choosing, d.Button = true, "Discard the file"
		if v.Form, err = c.choices(&d, u, b, o); err != nil {
			return v, err
		}
	case d.Every:
		d.Button = map[desk.UploadState]string{desk.UploadChecking: "Stop the check", desk.UploadImporting: "Stop the import"}[u.State]
		d.Words = "It waits for its turn."
		if u.Rows > 0 {
			d.Words = fmt.Sprintf("%s of %s, %s rejected.", count(int(u.Run.Rows)), several(int(u.Rows), "row"), count(int(u.Run.Rejected)))
		}
	default:
		d.Stop = ""
		d.Problem = sentence(u.Problem)
	}
	if d.Checked {
		d.State, d.Cut = pill{Text: "Checked"}, u.Run.Rows < u.Rows
	}
	if u.Run.EndedAt != 0 {
		if err := c.importResult(&d, u, o); err != nil {
			return v, err
		}
	}
	v.Data = d
	return v, nil
}

// importResult adds what became of the rows.
func (c *call) importResult(d *importPage, u *desk.Upload, o transfer.Options) error {
	n, kind := u.Run.ImportCounts, "contacts"
	if o.Kind == desk.ImportPeople {
		kind = "people"
	}
	for _, f := range []struct {
		name string
		n    int64
	}{{"Rows read", n.Rows}, {"New " + kind, n.Created}, {"Changed " + kind, n.Updated}, {"Unchanged", n.Unchanged}, {"Rejected rows", n.Rejected}} {
		d.Result = append(d.Result, importFact{f.name, count(int(f.n))})
	}
	if n.Rejected == 0 {
		return nil
	}
	d.Download = d.Href + "rejected"
	list, err := c.s.app.Imports.FirstRejected(c.r.Context(), c.p, u, o)
	for _, r := range list {
		d.Rejected = append(d.Rejected, rejectedRow{strconv.Itoa(r.Line), r.Reason, strings.Join(slices.DeleteFunc(r.Cells, func(s string) bool { return s == "" }), " · ")})
	}
	if o.Kind == desk.ImportContacts && slices.ContainsFunc(list, func(r transfer.Rejected) bool { return o.Undated(r.Cells) }) {
		d.Undated = "Some dates are written like 31.12.2026. "
		if d.Choosing {
			d.Undated += "Choose below how dates are written, and check again."
		} else {
			d.Undated += "When you upload the mended file, choose how dates are written."
		}
	}
	if more := int(n.Rejected) - len(list); more > 0 {
		d.RejectedN = several(more, "more row")
	}
	return err
}

// choices adds the columns and options of a file that is not imported yet.
func (c *call) choices(d *importPage, u *desk.Upload, b *desk.Broadcast, o transfer.Options) (*form, error) {
	f := c.form
	if f.values == nil {
		f = &form{}
	}
	file, rows, err := c.s.app.Imports.Peek(c.r.Context(), c.p, u, o)
	text, at, wrong := imports.Problem(err)
	switch {
	case err != nil && !wrong:
		return nil, err
	case !wrong && u.Problem != "" && !f.Refused():
		text, at, wrong = u.Problem, u.ProblemAt, true
	}
	if wrong && !f.Refused() {
		if text = sentence(text); at == "" {
			f.Message = text
		} else {
			if at == "encoding" {
				text += " Choose the one in which the spreadsheet has saved it, and read it again."
			}
			f.wrong(at, text)
		}
	}
	if !o.JSONL && len(file.Headers) > mostColumns {
		f.Message = fmt.Sprintf("The file has %s columns, and this page shows up to %d. Take out those that you do not need, and upload it again.", count(len(file.Headers)), mostColumns)
		file.Headers = nil
	}
	d.Headers, d.Rows = file.Headers, rows
	fields := importFields(c.p.Settings)
	if o.Kind == desk.ImportPeople {
		variables, err := c.variablesOf(b)
		if err != nil {
			return nil, err
		}
		fields = peopleFields(variables)
	}
	for i, header := range file.Headers {
		name, value := "columns."+strconv.Itoa(i), ""
		if i < len(o.Fields) {
			value = o.Fields[i]
		}
		offered := fields
		if !slices.ContainsFunc(fields, func(c choice) bool { return c.Value == value }) { // identity.KIND
			offered = append(slices.Clip(fields), choice{value, value, false})
		}
		label := cmp.Or(header, "Column "+strconv.Itoa(i+1))
		f.call(name, label)
		column := importColumn{f.Field(name, label, "", value).Of(offered), label, ""}
		column.Value = value
		var samples []string
		for _, row := range rows {
			if i < len(row) && strings.TrimSpace(row[i]) != "" && len(samples) < 3 {
				samples = append(samples, shortSample(row[i]))
			}
		}
		column.Sample = strings.Join(samples, " · ")
		d.Columns = append(d.Columns, column)
	}
	d.Options = []*field{f.Field("encoding", "Encoding", "If letters look wrong below, it is another one.", o.Encoding).Of(encodings)}
	if !o.JSONL {
		d.Options = append(d.Options, f.Field("delimiter", "Cells are separated by", "", o.Delimiter).Of(offered(o.Delimiter)))
	}
	if !o.JSONL && o.Kind == desk.ImportContacts {
		d.Options = append(d.Options, f.Field("dates", "Dates are written", "", string(o.Dates)).Of(dateOrders))
		d.Boxes = []*field{
			f.Box("decimal_comma", "Numbers are written like 1.234,5", "", o.DecimalComma),
			f.Box("clear_blank", "A blank cell clears the field", "Otherwise it changes nothing.", o.ClearBlank),
		}
	}
	return f, nil
}

// offered are the delimiters to choose from, with the one that the file has. It is not known yet
// if the file can't be read in its encoding.
func offered(delimiter string) []choice {
	if delimiter == "" {
		return append([]choice{{"", "As the file shows", false}}, delimiters...)
	}
	if !slices.ContainsFunc(delimiters, func(c choice) bool { return c.Value == delimiter }) {
		return append(slices.Clip(delimiters), choice{delimiter, delimiter, false})
	}
	return delimiters
}

// shortSample cuts a cell to what fits beside its column.
func shortSample(cell string) string {
	if r := []rune(cell); len(r) > mostSample {
		return string(r[:mostSample]) + "…"
	}
	return cell
}

func (s *Server) importPage(c *call) error {
	u, o, err := s.app.Imports.Upload(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return err
	}
	v, err := c.importView(u, o)
	if err != nil {
		return err
	}
	return c.show("import", v)
}

// chosenOptions returns how the form says that the file is read. anew: its columns may be others
// now, so they are to be looked at before anything starts.
func (c *call) chosenOptions(u *desk.Upload, was transfer.Options) (o transfer.Options, anew bool, err error) {
	o = transfer.Options{Kind: was.Kind, JSONL: was.JSONL, Encoding: c.form.text("encoding")}
	if o.JSONL {
		return o, o.Encoding != was.Encoding, nil
	}
	o.Delimiter, o.Dates = c.form.text("delimiter"), transfer.Dates(c.form.text("dates"))
	o.DecimalComma, o.ClearBlank = c.form.has("decimal_comma"), c.form.has("clear_blank")
	if o.Encoding != was.Encoding || o.Delimiter != was.Delimiter { // other columns
		if o.Delimiter == was.Delimiter {
			o.Delimiter = "" // it was found out, by text in the other encoding
		}
		b, err := c.castOf(u.Broadcast)
		if err == nil {
			o, err = c.guessed(u, b, o)
		}
		return o, true, err
	}
	for i := range min(len(was.Fields), mostColumns) {
		o.Fields = append(o.Fields, c.form.text("columns."+strconv.Itoa(i)))
	}
	return o, false, nil
}

// startImport stores what was chosen, and starts a check or the import.
func (s *Server) startImport(c *call) error {
	ctx, id := c.r.Context(), c.id("id")
	u, was, err := s.app.Imports.Upload(ctx, c.p, id)
	if err != nil {
		return err
	}
	o, anew, err := c.chosenOptions(u, was)
	if err != nil {
		return err
	}
	do := map[string]desk.UploadState{"check": desk.UploadChecking, "import": desk.UploadImporting}[c.form.text("do")]
	if anew {
		do = ""
	}
	if do != "" {
		err = c.readable(u, o)
	}
	if err == nil && do != "" {
		if err = s.app.Imports.Start(ctx, c.p, id, o, do); err == nil {
			return c.see(importPath(id), "")
		}
	} else if e := s.app.Imports.Choose(ctx, c.p, id, o); e != nil {
		err = e
	}
	if err == nil {
		return c.see(importPath(id), "")
	}
	if alone(err) || desk.IsType(err, desk.Changed) {
		return err
	}
	u.Problem = ""
	v, readErr := c.importView(u, o)
	if readErr != nil {
		return readErr
	}
	return c.again("import", v, err)
}

// readable returns an error if the beginning of a file can't be read as chosen. It notes the
// errors of columns in the form.
func (c *call) readable(u *desk.Upload, o transfer.Options) error {
	f, _, err := c.s.app.Imports.Peek(c.r.Context(), c.p, u, o)
	if err == nil && !o.JSONL {
		err = f.Columns(c.p.Settings.Attributes)
	}
	text, at, wrong := imports.Problem(err)
	if !wrong {
		return err
	}
	if e, is := errors.AsType[*transfer.ColumnError](err); is && len(e.Columns) > 0 {
		text = "Some columns need another choice"
		for _, i := range e.Columns {
			why := sentence(e.Message) + " Choose something else, or leave one out."
			if i < len(o.Fields) && o.Fields[i] == "" {
				why = "Say what this column is, or leave it out."
			}
			c.form.wrong("columns."+strconv.Itoa(i), why)
		}
		at = ""
	}
	if at != "" {
		at = "/" + at
	}
	return desk.InvalidAt(at, "%s", text)
}

// anImport returns the import in the path, and the page that asks before it is stopped. Its form
// says what was asked. The question has no heading if the import has ended.
func (c *call) anImport() (*desk.Upload, confirmation, error) {
	u, _, err := c.s.app.Imports.Upload(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return nil, confirmation{}, err
	}
	v := confirmation{Action: importPath(u.ID) + "stop?of=" + string(u.State), Back: importPath(u.ID)}
	switch u.State {
	case desk.UploadChecking:
		v.Heading, v.Button, v.Text = "Stop the check?", "Stop the check", []string{"The file stays, and you can check it again."}
	case desk.UploadImporting:
		v.Heading, v.Button = "Stop the import?", "Stop the import"
		v.Text = []string{"What was imported so far stays: " + several(int(u.Run.Rows-u.Run.Rejected), "row") + ". The file is deleted, so this import can't go on; if you upload the file again, the rows that are there already change nothing."}
	case desk.UploadOpen:
		v.Heading, v.Button, v.Text = "Discard the file?", "Discard the file", []string{importName(u) + " is deleted from the server. Nothing of it was imported."}
	}
	return u, v, nil
}

func (s *Server) askImportStop(c *call) error {
	u, v, err := c.anImport()
	if err != nil {
		return err
	}
	if v.Heading == "" {
		return c.see(importPath(u.ID), "")
	}
	return c.confirm(v)
}

// stopImport stops what the page has asked about. If something else is under way by now, it asks
// again; if the import has ended, it shows how.
func (s *Server) stopImport(c *call) error {
	of := desk.UploadState(c.query("of"))
	stopped := s.app.Imports.Stop(c.r.Context(), c.p, c.id("id"), of)
	u, v, err := c.anImport()
	switch {
	case err != nil:
		return err
	case stopped != nil && v.Heading == "":
		return c.see(importPath(u.ID), "")
	case stopped != nil:
		return c.confirmAgain(v, stopped)
	case of == desk.UploadChecking:
		return c.see(importPath(u.ID), "stopped")
	}
	b, err := c.castOf(u.Broadcast)
	if err != nil {
		return err
	}
	return c.see(importsOf(b), "stopped")
}

// rejectedRows sends the file of rejected rows.
func (s *Server) rejectedRows(c *call) error {
	u, o, err := s.app.Imports.Upload(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return err
	}
	if u.Run.ErrorBytes == 0 || u.Run.EndedAt == 0 {
		return desk.NotFoundf("no row was rejected")
	}
	if err := c.w.Patient(); err != nil {
		return err
	}
	kind, ending := "text/csv; charset=utf-8", ".errors.csv"
	if o.JSONL {
		kind, ending = "application/x-ndjson", ".errors.jsonl"
	}
	h := c.w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": strings.TrimSuffix(importName(u), path.Ext(u.Name)) + ending}))
	h.Set("Content-Length", strconv.FormatInt(u.Run.ErrorBytes, 10))
	c.w.WriteHeader(http.StatusOK)
	return s.app.Imports.Rejected(c.r.Context(), c.p, u, c.w)
}
