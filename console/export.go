package console

import (
	"cmp"
	"io"
	"mime"
	"net/http"
	"slices"

	"parley/desk"
	"parley/transfer"
)

// An exportFormat is a kind of file in which contacts are exported.
type exportFormat struct {
	Word, Name, Hint string
	kind             string // of the answer
	format           transfer.Format
}

var exportFormats = []exportFormat{
	{"csv", "CSV", "For other programs: UTF-8, with commas.", "text/csv; charset=utf-8", transfer.CSV},
	{"excel", "CSV for Excel", "Spreadsheet programs open it with the right characters and columns.", "text/csv; charset=utf-16le", transfer.Excel},
	{"jsonl", "JSON Lines", "For programs: one contact a line.", "application/x-ndjson", transfer.JSONL},
}

func (s *Server) exports(c *call) error {
	return c.show("export", view{Title: "Export contacts", Data: exportFormats})
}

// exportFile sends all contacts as a file.
func (s *Server) exportFile(c *call) error {
	n := slices.IndexFunc(exportFormats, func(f exportFormat) bool { return f.Word == cmp.Or(c.query("format"), "csv") })
	if n < 0 {
		return desk.NotFoundf("there is no such format")
	}
	chosen := exportFormats[n]
	return c.sendFile("contacts", chosen, desk.Administer, func(to io.Writer, still func() error) error {
		out, err := transfer.NewContacts(to, chosen.format, c.p.Settings.Attributes)
		if err != nil {
			return err
		}
		err = s.app.Exports.Contacts(c.r.Context(), c.p, func(page []*desk.Contact) error {
			if err := still(); err != nil {
				return err
			}
			for _, contact := range page {
				if err := out.Contact(contact); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return out.Flush()
	})
}

// sendFile sends a file that write writes page by page. Before each page, write calls still: the
// file ends when the member is signed out or may not see it any more. It also ends when the
// browser does not read.
func (c *call) sendFile(name string, f exportFormat, needs desk.Permission, write func(to io.Writer, still func() error) error) error {
	end, err := c.s.app.Exports.BeginAll(c.p.Workspace())
	if err != nil {
		return err
	}
	defer end()
	may := func() bool {
		p, err := c.s.signedIn(c)
		return err == nil && p.Allow(needs) == nil
	}
	c.w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name + f.format.Extension()}))
	if err := c.w.Stream(f.kind); err != nil || c.r.Method == http.MethodHead {
		return nil // the browser has left
	}
	parts := &parts{c: c, still: may}
	err = write(parts, func() error {
		if !may() {
			return desk.ErrSignedOut
		}
		return nil
	})
	if parts.left {
		return nil // the connection is closed already
	}
	return err // it cuts the answer off, so that nobody takes the file for whole
}

// parts writes the parts of a stream.
type parts struct {
	c     *call
	still func() bool
	left  bool // the browser has left, or does not read
}

func (p *parts) Write(b []byte) (int, error) {
	if err := p.c.w.Part(b, p.still); err != nil {
		p.left = true
		return 0, err
	}
	return len(b), nil
}
