package api

import (
	"net/http"

	"parley/desk"
)

func (s *Server) upsertContact(c *call) (answer, error) {
	op := &desk.Op{Kind: desk.OpUpsert}
	if err := c.decodeContact(op); err != nil {
		return answer{}, err
	}
	if err := op.Check(); err != nil {
		return answer{}, err
	}
	return s.write(c, op)
}

func (s *Server) patchContact(c *call) (answer, error) {
	op := &desk.Op{Kind: desk.OpPatch, ByID: true, Target: c.id()}
	if err := c.decodeContact(op); err != nil {
		return answer{}, err
	}
	return s.write(c, op)
}

func (s *Server) setOwner(c *call) (answer, error) {
	op := &desk.Op{Kind: desk.OpAssign, ByID: true, Target: c.id()}
	err := c.decode(maxBody, func(d *decoder) error {
		return d.object(func(name string) (err error) {
			if name != "owner" {
				return d.unknown()
			}
			op.Owner.Set = true
			op.Owner.Value, err = d.text() // null is refused: DELETE clears
			return err
		})
	})
	if err == nil && !op.Owner.Set {
		err = desk.Invalidf("/owner is missing: give a member's id or e-mail; DELETE clears the owner")
	}
	if err != nil {
		return answer{}, err
	}
	return s.write(c, op)
}

func (s *Server) clearOwner(c *call) (answer, error) {
	return s.write(c, &desk.Op{Kind: desk.OpAssign, ByID: true, Target: c.id(), Owner: desk.Field[string]{Set: true, Null: true}})
}

func (s *Server) deleteContact(c *call) (answer, error) {
	_, err := s.app.Write(c.r.Context(), c.principal, &desk.Op{Kind: desk.OpDelete, ByID: true, Target: c.id()})
	return answer{status: http.StatusNoContent}, err
}

// removeIdentity drops one further identity. A malformed one is one that no contact
// holds: 404, like any other that it does not hold (contract §3). Digits are first
// taken as GET lists them, then as a number that people write.
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
		if normal, err := desk.ParseHandle(kind, value, c.principal.Settings.Country); err == nil {
			op.Remove = append(op.Remove, desk.Identity{Kind: kind, Value: normal})
		}
	}
	return s.write(c, op)
}

// write carries out one operation and answers with the contact.
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
	q, page, err := listQuery(c.r.URL.RawQuery, "external_id", "email", "phone", "owner", "updated_since")
	if err != nil {
		return answer{}, err
	}
	var f desk.ContactFilter
	for _, kind := range []string{desk.KindExternalID, desk.KindEmail, desk.KindPhone} {
		if q.Has(kind) {
			value, err := desk.ParseHandle(kind, q.Get(kind), c.principal.Settings.Country)
			if err != nil {
				return answer{}, desk.Invalidf("%s: %v", kind, err)
			}
			f.Held = append(f.Held, desk.Identity{Kind: kind, Value: value})
		}
	}
	if q.Has("updated_since") {
		var ok bool
		if f.UpdatedSince, ok = desk.ParseTime(q.Get("updated_since")); !ok {
			return answer{}, desk.Invalidf("updated_since: send an RFC 3339 time, such as 2026-01-31T09:30:00Z (write + as %%2B)")
		}
	}
	if q.Has("owner") {
		owner := c.principal.Settings.ResolveMember(q.Get("owner"))
		if owner == nil {
			return answer{}, desk.Invalidf("owner: no member of this workspace has this id or e-mail; GET /members lists them")
		}
		f.Owner = owner.ID
	}
	contacts, next, err := s.app.Contacts(c.r.Context(), c.principal, f, page.cursor, page.limit)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, contacts, appendContact, next)}, nil
}

// decodeContact reads a body of contact fields into op.Write.
func (c *call) decodeContact(op *desk.Op) error {
	return c.decode(maxBody, func(d *decoder) error {
		return d.contact(&op.Write, c.principal.Settings.Country)
	})
}

// contact reads an object of contact fields in their normal forms.
func (d *decoder) contact(w *desk.ContactWrite, country string) error {
	return d.object(func(name string) error {
		switch name {
		case desk.KindExternalID:
			return d.handle(&w.ExternalID, &w.Sent, name, country)
		case desk.KindPhone:
			return d.handle(&w.Phone, &w.Sent, name, country)
		case desk.KindEmail:
			err := field(d, &w.Email, func() (string, error) { return d.parsed(desk.ParseEmail) })
			if err == nil && w.Email.Has() { // kept as sent, matched folded
				w.Sent = desk.AddIdentity(w.Sent, desk.Identity{Kind: name, Value: desk.FoldEmail(w.Email.Value)})
			}
			return err
		case "name":
			return d.clearable(&w.Name, desk.ParseName)
		case "note":
			return d.clearable(&w.Note, desk.ParseNote)
		case "owner":
			return field(d, &w.Owner, d.text)
		case "identities":
			err := field(d, &w.Identities, func() ([]desk.Identity, error) { return d.identities(country) })
			for _, i := range w.Identities.Value {
				w.Sent = desk.AddIdentity(w.Sent, i)
			}
			return err
		case "attributes":
			return field(d, &w.Attributes, d.attributes)
		}
		return d.unknown()
	})
}

// parsed reads a string in the normal form that parse gives it.
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

// clearable reads a string that clears its field when it is empty.
func (d *decoder) clearable(f *desk.Field[string], parse func(string) (string, error)) error {
	err := field(d, f, func() (string, error) { return d.parsed(parse) })
	f.Null = f.Null || f.Value == ""
	return err
}

// handle reads an identity that is a field of its own, and notes it in sent.
func (d *decoder) handle(f *desk.Field[string], sent *[]desk.Identity, kind, country string) error {
	err := field(d, f, func() (string, error) {
		return d.parsed(func(s string) (string, error) { return desk.ParseHandle(kind, s, country) })
	})
	if err == nil && f.Has() {
		*sent = desk.AddIdentity(*sent, desk.Identity{Kind: kind, Value: f.Value})
	}
	return err
}

// identities reads an array of {kind, value}.
func (d *decoder) identities(country string) (list []desk.Identity, err error) {
	err = d.array(func(n int) error {
		if n == desk.MaxIdentities {
			if err := d.skip(); err != nil {
				return err
			}
			return d.wrong("a write lists at most %d identities", desk.MaxIdentities)
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
		return d.unknown()
	})
	if err != nil {
		return i, err
	}
	if !kind.Set || !value.Set {
		return i, d.wrong("an identity has both kind and value, strings")
	}
	normal, err := desk.ParseHandle(kind.Value, value.Value, country)
	if err != nil {
		return i, d.wrong("value: %v", err)
	}
	return desk.Identity{Kind: kind.Value, Value: normal}, nil
}

func (d *decoder) attributes() (list []desk.AttributeWrite, err error) {
	err = d.object(func(name string) error {
		v, err := d.named(name)
		list = append(list, desk.AttributeWrite{Key: name, Value: v})
		return err
	})
	return list, err
}
