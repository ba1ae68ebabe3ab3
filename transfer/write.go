package transfer

import (
	"bufio"
	"cmp"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/desk"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// A Format is how a file is written.
type Format int

// The formats. Excel is CSV that spreadsheets open with all characters and columns right:
// UTF-16LE with a byte order mark, and TAB between the cells.
const (
	CSV Format = iota
	Excel
	JSONL
)

// Extension is the end of the names of such files.
func (f Format) Extension() string {
	if f == JSONL {
		return ".jsonl"
	}
	return ".csv"
}

// writeBuffer is how much is collected before it is written.
const writeBuffer = 16 << 10

// A Writer writes a file that can be imported again. It buffers: Flush writes the rest.
type Writer struct {
	format     Format
	to         *bufio.Writer
	attributes []*desk.Attribute // the columns, of contacts
	active     map[string]bool   // their keys
	row        strings.Builder
}

// NewContacts returns a writer of contacts with the attributes that are not archived.
func NewContacts(w io.Writer, format Format, attributes map[string]*desk.Attribute) (*Writer, error) {
	out := newWriter(w, format)
	out.active = map[string]bool{}
	for key, a := range attributes {
		if !a.Archived {
			out.attributes, out.active[key] = append(out.attributes, a), true
		}
	}
	slices.SortFunc(out.attributes, func(a, b *desk.Attribute) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Key, b.Key))
	})
	headers := []string{desk.KindExternalID, "name", desk.KindEmail, desk.KindPhone, "note", "owner", identities}
	for _, a := range out.attributes {
		headers = append(headers, field{attribute, a.Key}.String())
	}
	return out, out.headers(append(headers, ownID, ownCreated, ownUpdated)...)
}

// Columns of exported contacts that an import ignores.
const (
	ownID      = "parley_id"
	ownCreated = "parley_created_at"
	ownUpdated = "parley_updated_at"
)

// NewOptOuts returns a writer of opt-outs.
func NewOptOuts(w io.Writer, format Format) (*Writer, error) {
	out := newWriter(w, format)
	return out, out.headers(desk.KindPhone, since, optedOut)
}

// NewRows returns a writer of rows of broadcasts. Such a file is not imported.
func NewRows(w io.Writer, format Format) (*Writer, error) {
	out := newWriter(w, format)
	return out, out.headers("to", "status", "reason", "failure_code", "failure_title", "at", "replied_at", "choice", "contact_id", "conversation_id", "message_id", "attempt_id", "id")
}

// Row writes a row of a broadcast.
func (w *Writer) Row(r *desk.BroadcastRow) error {
	code, title := "", ""
	if r.Failure != nil {
		code, title = strconv.Itoa(r.Failure.Code), r.Failure.Title
	}
	cells := []string{plus(r.To), string(r.Status), string(r.Reason), code, title, r.At.String(), "", r.Data.Reply.Choice}
	if r.Data.Reply.At > 0 {
		cells[6] = r.Data.Reply.At.String()
	}
	for _, id := range []desk.ID{r.Contact, r.Conversation, r.Message, r.Attempt, r.ID} {
		cell := ""
		if !id.IsZero() {
			cell = id.String()
		}
		cells = append(cells, cell)
	}
	return w.cells(cells)
}

// NewLines returns a writer of JSON Lines.
func NewLines(w io.Writer) *Writer { return newWriter(w, JSONL) }

func newWriter(w io.Writer, format Format) *Writer {
	if format == Excel {
		w = transform.NewWriter(w, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder())
	}
	return &Writer{format: format, to: bufio.NewWriterSize(w, writeBuffer)}
}

func (w *Writer) headers(names ...string) error {
	if w.format == JSONL {
		return nil
	}
	return w.cells(names)
}

func (w *Writer) cells(list []string) error {
	delimiter := ','
	if w.format == Excel {
		delimiter = '\t'
	}
	w.row.Reset()
	appendRecord(&w.row, list, delimiter)
	_, err := w.to.WriteString(w.row.String())
	return err
}

// Line writes an object of JSON Lines.
func (w *Writer) Line(object []byte) error {
	_, err := w.to.Write(append(object, '\n'))
	return err
}

// Contact writes a contact.
func (w *Writer) Contact(c *desk.Contact) error {
	if w.format == JSONL {
		return w.Line(w.object(c))
	}
	owner := ""
	if c.Owner != nil {
		owner = c.Owner.Email
	}
	further := ""
	if list := c.FurtherIdentities(); len(list) > 0 {
		further = string(appendIdentities(nil, list))
	}
	cells := []string{c.ExternalID, c.Name, c.Email, plus(c.Phone), c.Note, owner, further}
	values := maps.Collect(c.Attributes.All())
	for _, a := range w.attributes {
		cells = append(cells, cellOf(values[a.Key]))
	}
	return w.cells(append(cells, c.ID.String(), c.CreatedAt.String(), c.UpdatedAt.String()))
}

// cellOf returns the cell of an attribute's value, which is JSON or "".
func cellOf(value string) string {
	if !strings.HasPrefix(value, `"`) {
		return value // a number, true, false, a list
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		panic(err) // desk has written it
	}
	return string(text)
}

// object returns a contact as a body of POST /contacts without nulls.
func (w *Writer) object(c *desk.Contact) []byte {
	b := []byte{'{'}
	add := func(name, text string) {
		if text != "" {
			b = desk.AppendJSONString(append(append(append(b, '"'), name...), `":`...), text)
			b = append(b, ',')
		}
	}
	add(desk.KindExternalID, c.ExternalID)
	add("name", c.Name)
	add(desk.KindEmail, c.Email)
	add(desk.KindPhone, plus(c.Phone))
	add("note", c.Note)
	if c.Owner != nil {
		add("owner", c.Owner.Email)
	}
	if list := c.FurtherIdentities(); len(list) > 0 {
		b = append(appendIdentities(append(b, `"identities":`...), list), ',')
	}
	if values := w.values(c); len(values) > 0 {
		b = append(append(b, `"attributes":{`...), values...)
		b = append(b, `},`...)
	}
	add(ownID, c.ID.String())
	add(ownCreated, c.CreatedAt.String())
	add(ownUpdated, c.UpdatedAt.String())
	b[len(b)-1] = '}'
	return b
}

// values returns the members of a contact's attributes that are not archived.
func (w *Writer) values(c *desk.Contact) (b []byte) {
	for key, value := range c.Attributes.All() {
		if !w.active[key] {
			continue
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = append(append(append(append(b, '"'), key...), `":`...), value...)
	}
	return b
}

// plus writes a number so that it is read as international in every workspace.
func plus(digits string) string {
	if digits == "" {
		return ""
	}
	return "+" + digits
}

func appendIdentities(b []byte, list []desk.Identity) []byte {
	for n, i := range list {
		sep := byte(',')
		if n == 0 {
			sep = '['
		}
		if i.Kind == desk.KindPhone {
			i.Value = plus(i.Value)
		}
		b = desk.AppendJSONString(append(append(b, sep), `{"kind":`...), i.Kind)
		b = append(desk.AppendJSONString(append(b, `,"value":`...), i.Value), '}')
	}
	return append(b, ']')
}

// OptOut writes an opt-out.
func (w *Writer) OptOut(o desk.OptOutRow) error {
	number, at := plus(o.Number), o.Since.String()
	if w.format != JSONL {
		return w.cells([]string{number, at, strconv.FormatBool(o.OptedOut)})
	}
	b := append(append(append([]byte(`{"phone":"`), number...), `","since":"`...), at...)
	return w.Line(append(strconv.AppendBool(append(b, `","opted_out":`...), o.OptedOut), '}'))
}

// Flush writes what is buffered.
func (w *Writer) Flush() error { return w.to.Flush() }
