package api

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"parley/app/search"
	"parley/desk"
)

func (s *Server) upsertContact(c *call) (answer, error) {
	op := &desk.Op{Kind: desk.OpUpsert}
	dry, err := c.decodeContact(op)
	if err == nil {
		err = op.Check()
	}
	if err != nil {
		return answer{}, err
	}
	if dry {
		return s.try(c, op)
	}
	return s.write(c, op)
}

func (s *Server) patchContact(c *call) (answer, error) {
	op := &desk.Op{Kind: desk.OpPatch, ByID: true, Target: c.id()}
	dry, err := c.decodeContact(op)
	switch {
	case err != nil:
		return answer{}, err
	case dry:
		return s.try(c, op)
	}
	return s.write(c, op)
}

func (s *Server) setOwner(c *call) (answer, error) {
	op := &desk.Op{Kind: desk.OpAssign, ByID: true, Target: c.id()}
	err := c.decode(maxBody, func(d *decoder) error {
		return d.object(func(name string) (err error) {
			if name != "owner" {
				return d.unknown(name, "owner")
			}
			op.Owner.Set = true
			if d.PeekKind() == 'n' { // DELETE clears
				return desk.InvalidAt("/owner", "null does not name a member").Advise(desk.ClearOwner)
			}
			op.Owner.Value, err = d.member()
			return err
		})
	})
	if err == nil && !op.Owner.Set {
		err = desk.InvalidAt("/owner", "missing; give a member's id or e-mail").Advise(desk.ClearOwner)
	}
	if err != nil {
		return answer{}, err
	}
	return s.write(c, op)
}

func (s *Server) clearOwner(c *call) (answer, error) {
	return s.write(c, &desk.Op{Kind: desk.OpAssign, ByID: true, Target: c.id(), Owner: desk.Field[desk.Reference]{Set: true, Null: true}})
}

func (s *Server) deleteContact(c *call) (answer, error) {
	_, err := s.app.Write(c.r.Context(), c.principal, &desk.Op{Kind: desk.OpDelete, ByID: true, Target: c.id()})
	return answer{status: http.StatusNoContent}, err
}

// removeIdentity removes one further identity. A malformed identity is answered with 404,
// like one that the contact does not hold (contract §3). Digits are first read as GET lists
// them, then as a number that people write.
func (s *Server) removeIdentity(c *call) (answer, error) {
	q, err := query(c.r.URL.RawQuery, "kind", "value")
	if err != nil {
		return answer{}, err
	}
	if !q.Has("kind") || !q.Has("value") {
		return answer{}, desk.Invalidf("kind and value: send both as query parameters, such as ?kind=email&value=ada@example.com")
	}
	op := &desk.Op{Kind: desk.OpRemoveIdentity, ByID: true, Target: c.id()}
	kind, value := q.Get("kind"), q.Get("value")
	if desk.ParseKind(kind) == nil {
		op.Remove = append(op.Remove, desk.Identity{Kind: kind, Value: value})
		if normal, err := desk.ParseIdentity(kind, value, c.principal.Settings.Country); err == nil {
			op.Remove = append(op.Remove, normal)
		}
	}
	return s.write(c, op)
}

// write runs one operation and answers with the contact.
func (s *Server) write(c *call, op *desk.Op) (answer, error) {
	outcome, err := s.app.Write(c.r.Context(), c.principal, op)
	if err != nil {
		return answer{}, err
	}
	code := http.StatusOK
	if outcome.Status == desk.StatusCreated {
		code = http.StatusCreated
	}
	return answer{code, dataOf(c.out, outcome.Contact, appendContact)}, nil
}

// try is write without storing anything: it makes a dry run.
func (s *Server) try(c *call, op *desk.Op) (answer, error) {
	outcome, err := s.app.Try(c.r.Context(), c.principal, op)
	if err != nil {
		return answer{}, err
	}
	c.dryRun()
	return answer{http.StatusOK, dataOf(c.out, outcome.Contact, appendContact)}, nil
}

// dryRun marks the answer of a dry run (contract-data §1).
func (c *call) dryRun() { c.w.Header()["Dry-Run"] = []string{"true"} }

func (s *Server) getContact(c *call) (answer, error) {
	contact, err := s.app.Contact(c.r.Context(), c.principal, c.id())
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, contact, appendContact)}, nil
}

func (s *Server) listIdentities(c *call) (answer, error) {
	contact, err := s.app.Contact(c.r.Context(), c.principal, c.id())
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, contact.Identities(), appendIdentities)}, nil
}

func (s *Server) listContacts(c *call) (answer, error) {
	q, page, err := listQuery(c.r.URL.RawQuery, "external_id", "email", "phone", "owner", "updated_since", "q", "attribute", "segment")
	if err != nil {
		return answer{}, err
	}
	if q.Has("segment") {
		return s.segmentContacts(c, q, page)
	}
	if q.Has("q") || q.Has("attribute") {
		return s.searchContacts(c, q, page)
	}
	var f desk.ContactFilter
	for _, kind := range []string{desk.KindExternalID, desk.KindEmail, desk.KindPhone} {
		if q.Has(kind) {
			identity, err := desk.ParseIdentity(kind, q.Get(kind), c.principal.Settings.Country)
			if err != nil {
				return answer{}, desk.InvalidAt("/"+kind, "%v", err)
			}
			f.Held = append(f.Held, identity)
		}
	}
	if f.UpdatedSince, err = sinceFilter(q, "updated_since"); err != nil {
		return answer{}, err
	}
	if f.Owner, err = c.ownerFilter(q); err != nil {
		return answer{}, err
	}
	contacts, next, err := s.app.Contacts(c.r.Context(), c.principal, f, page.cursor, page.limit)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, contacts, appendContact, next)}, nil
}

// ownerFilter reads the member whose contacts are asked for; zero: anybody's.
func (c *call) ownerFilter(q url.Values) (desk.ID, error) {
	if !q.Has("owner") {
		return desk.ID{}, nil
	}
	owner := c.principal.Settings.ResolveMember(desk.ReferTo(q.Get("owner")))
	if owner == nil {
		return desk.ID{}, desk.InvalidAt("/owner", "no member of this workspace has this id or e-mail").Advise(desk.ListMembers)
	}
	return owner.ID, nil
}

// searchContacts answers a list of contacts by q or attribute (contract-data §5).
func (s *Server) searchContacts(c *call, q url.Values, page page) (answer, error) {
	for _, other := range []string{desk.KindExternalID, desk.KindEmail, desk.KindPhone, "updated_since"} {
		if q.Has(other) {
			return answer{}, desk.InvalidAt("/"+other, "q and attribute can only be combined with owner, limit and cursor")
		}
	}
	search := search.Query{Sought: q.Get("q"), Cursor: page.cursor, Limit: page.limit}
	var err error
	if q.Has("q") {
		if search.Text, err = desk.ParseSearch(search.Sought); err != nil {
			return answer{}, err
		}
	}
	if q.Has("attribute") {
		if search.Attribute, search.Value, err = c.principal.Settings.ParseAttributeFilter(q.Get("attribute")); err != nil {
			return answer{}, err
		}
	}
	if search.Owner, err = c.ownerFilter(q); err != nil {
		return answer{}, err
	}
	found, err := s.app.Search.Find(c.r.Context(), c.principal, search)
	if err != nil {
		return answer{}, err
	}
	if found.Behind > 0 {
		c.w.Header()["Search-Behind"] = []string{strconv.Itoa(found.Behind)}
	}
	return answer{http.StatusOK, listOf(c.out, found.Contacts, appendContact, found.Next)}, nil
}

// decodeContact reads a body of contact fields into op.Write. dry tells whether the body
// asks for a dry run.
func (c *call) decodeContact(op *desk.Op) (dry bool, err error) {
	err = c.decode(maxBody, func(d *decoder) error {
		return d.contact(&op.Write, c.principal.Settings.Country, &dry)
	})
	return dry, err
}

// ReadContact reads the body of POST /contacts, for an import: it may list more identities.
func ReadContact(body []byte, s *desk.Settings) (*desk.Op, error) {
	op := &desk.Op{Kind: desk.OpUpsert, Brief: true}
	err := decode(body, func(d *decoder) error {
		d.defined, d.most = s.Attributes, desk.MaxImportIdentities
		return d.contact(&op.Write, s.Country, nil)
	})
	if err == nil {
		err = op.Check()
	}
	return op, err
}

// ReadOptOut reads a row of a file of opt-outs, for an import.
func ReadOptOut(body []byte, s *desk.Settings) (*desk.OptOutRow, error) {
	row := &desk.OptOutRow{OptedOut: true}
	err := decode(body, func(d *decoder) error {
		err := d.object(func(name string) (err error) {
			switch name {
			case desk.KindPhone:
				row.Number, err = d.parsed(func(text string) (string, error) { return desk.ParsePhone(text, s.Country) })
				return err
			case "since":
				var since desk.Field[desk.Time]
				err = field(d, &since, d.since)
				row.Since = since.Value
				return err
			case "opted_out":
				row.OptedOut, err = d.optedOut()
				return err
			}
			return d.unknown(name, desk.KindPhone, "since", "opted_out")
		})
		if err == nil && row.Number == "" {
			err = desk.InvalidAt("/"+desk.KindPhone, "missing; send the person's number")
		}
		return err
	})
	return row, err
}

// since reads a time or a date; 0 for an empty text. A time before 1970, which some products write
// for one that they do not know, counts as the first after it: 0 would mean now, and a choice before
// it could never be stored.
func (d *decoder) since() (desk.Time, error) {
	text, err := d.text()
	if err != nil || text == "" {
		return 0, err
	}
	at, ok := desk.ParseTime(text)
	if !ok {
		at, ok = desk.ParseTime(text + "T00:00:00Z")
	}
	if !ok {
		return 0, d.wrong("send a time such as 2026-01-31T09:30:00Z, or a date")
	}
	return max(at, 1), nil
}

// optedOut reads a boolean, also one in words of a CSV file. The default is true.
func (d *decoder) optedOut() (bool, error) {
	v, err := d.value()
	if err != nil || v.Kind == desk.BoolValue {
		return v.Bool, err
	}
	if v.Kind == desk.NullValue || v.Kind == desk.StringValue {
		switch strings.ToLower(strings.TrimSpace(v.Text)) {
		case "", "true", "1", "yes":
			return true, nil
		case "false", "0", "no":
			return false, nil
		}
	}
	return false, d.wrong("write true or false")
}

// dryRun is the member by which a body asks for a dry run.
const dryRun = "dry_run"

// contact reads an object of contact fields in their normal forms. dry is nil for an
// object that is not the whole body: it has no dry_run.
func (d *decoder) contact(w *desk.ContactWrite, country string, dry *bool) error {
	return d.object(func(name string) (err error) {
		if name == dryRun && dry != nil {
			*dry, err = d.bool()
			return err
		}
		switch name {
		case desk.KindExternalID:
			return d.handle(&w.ExternalID, &w.Sent, name, country, true)
		case desk.KindPhone:
			return d.handle(&w.Phone, &w.Sent, name, country, true)
		case desk.KindEmail:
			err := field(d, &w.Email, func() (string, error) { return d.parsed(orClear(desk.ParseEmail)) })
			if err == nil && w.Email.Has() { // stored as sent, matched by its canonical form
				w.Sent = desk.AddIdentity(w.Sent, desk.EmailIdentity(w.Email.Value))
			}
			return err
		case "name":
			return d.clearable(&w.Name, desk.ParseName)
		case "note":
			return d.clearable(&w.Note, desk.ParseNote)
		case "owner":
			return field(d, &w.Owner, func() (desk.Reference, error) {
				text, err := d.parsed(orClear(func(s string) (string, error) { return s, nil }))
				return desk.ReferTo(text), err
			})
		case "identities":
			err := field(d, &w.Identities, func() ([]desk.Identity, error) { return d.identities(country) })
			for _, i := range w.Identities.Value {
				w.Sent = desk.AddIdentity(w.Sent, i)
			}
			return err
		case "attributes":
			return field(d, &w.Attributes, func() ([]desk.AttributeWrite, error) { return d.attributes(w) })
		}
		known := []string{"external_id", "name", "email", "phone", "note", "owner", "identities", "attributes", dryRun}
		if dry == nil {
			known = known[:len(known)-1]
		}
		return d.unknown(name, known...)
	})
}

// parsed reads a string and returns its normal form. The function parse makes this form.
func (d *decoder) parsed(parse func(string) (string, error)) (string, error) {
	s, err := d.text()
	if err != nil {
		return "", err
	}
	if s, err = parse(s); err != nil {
		return "", d.wrong("%v", err)
	}
	return s, nil
}

// member reads a reference to a member.
func (d *decoder) member() (desk.Reference, error) {
	text, err := d.text()
	return desk.ReferTo(text), err
}

// clearable reads a string; an empty one clears its field.
func (d *decoder) clearable(f *desk.Field[string], parse func(string) (string, error)) error {
	err := field(d, f, func() (string, error) { return d.parsed(parse) })
	f.Null = f.Null || f.Value == ""
	return err
}

// handle reads an identity that is a field, and adds it to sent. It refuses an empty
// string for a field that null clears, and says so.
func (d *decoder) handle(f *desk.Field[string], sent *[]desk.Identity, kind, country string, clearable bool) (err error) {
	f.Set = true
	if f.Null, err = d.null(); f.Null || err != nil {
		return err
	}
	text, err := d.text()
	if err != nil {
		return err
	}
	if clearable && strings.TrimSpace(text) == "" {
		return d.wrong("%v", errEmpty)
	}
	identity, err := desk.ParseIdentity(kind, text, country)
	if err != nil {
		return d.wrong("%v", err)
	}
	f.Value = identity.Value
	*sent = desk.AddIdentity(*sent, identity)
	return nil
}

// orClear refuses an empty string for a field that only null clears, and says so.
func orClear(parse func(string) (string, error)) func(string) (string, error) {
	return func(s string) (string, error) {
		if strings.TrimSpace(s) == "" {
			return "", errEmpty
		}
		return parse(s)
	}
}

var errEmpty = errors.New("empty; send null to clear")

// identities reads an array of {kind, value}.
func (d *decoder) identities(country string) (list []desk.Identity, err error) {
	err = d.array(func(n int) error {
		if n == d.most {
			if err := d.skip(); err != nil {
				return err
			}
			return d.wrong("a write lists at most %d identities", d.most)
		}
		identity, err := d.identity(country)
		if err == nil {
			list = desk.AddIdentity(list, identity)
		}
		return err
	})
	return list, err
}

func (d *decoder) identity(country string) (i desk.Identity, err error) {
	var kind, value desk.Field[string]
	err = d.object(func(name string) (err error) {
		switch name {
		case "kind":
			kind.Set = true
			kind.Value, err = d.text()
			if err == nil {
				if bad := desk.ParseKind(kind.Value); bad != nil {
					err = d.wrong("%v", bad)
				}
			}
			return err
		case "value":
			value.Set = true
			value.Value, err = d.text()
			return err
		}
		return d.unknown(name, "kind", "value")
	})
	if err != nil {
		return i, err
	}
	if !kind.Set || !value.Set {
		return i, d.wrong("an identity has both kind and value, strings")
	}
	if i, err = desk.ParseIdentity(kind.Value, value.Value, country); err != nil {
		return i, d.wrong("value: %v", err)
	}
	return i, nil
}

// attributes reads an object of attributes. It keeps as many unknown attributes as an
// error can name, and counts the others.
func (d *decoder) attributes(w *desk.ContactWrite) (list []desk.AttributeWrite, err error) {
	unknown, bytes := 0, 0
	err = d.object(func(name string) error {
		v, err := d.named(name)
		if d.defined[name] == nil {
			if name = cut(name); unknown == desk.MaxDetails || bytes > desk.MaxDetailBytes {
				w.MoreUnknown++
				return err
			}
			unknown++
			bytes += len(name)
		}
		list = append(list, desk.AttributeWrite{Key: name, Value: v})
		return err
	})
	return list, err
}
