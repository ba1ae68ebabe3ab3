package api

import (
	"cmp"
	"net/http"
	"strconv"

	"parley/app"
	"parley/desk"
)

const idempotencyKey = "Idempotency-Key"

func (s *Server) send(c *call) (answer, error) {
	if n := len(c.r.Header[idempotencyKey]); n > 1 {
		return answer{}, desk.InvalidAt(desk.AtIdempotencyKey, "the header is there %d times; send it once", n)
	}
	r := &desk.SendRequest{Key: c.r.Header.Get(idempotencyKey)}
	badKey := desk.CheckIdempotencyKey(r.Key)
	if badKey != nil && c.r.Header[idempotencyKey] != nil {
		return answer{}, badKey
	}
	dry := false
	err := c.decode(maxBody, func(d *decoder) error { return d.send(r, &dry, c.principal.Settings.Country) })
	if err != nil && !dry {
		dry = c.asksDryRun()
	}
	if badKey != nil && !dry { // only a dry run needs none
		return answer{}, badKey
	}
	if c.body == nil {
		return answer{}, err
	}
	body, malformed := canonical(c.body)
	if malformed != nil {
		return answer{}, cmp.Or(err, malformed)
	}
	if dry {
		if err != nil {
			return answer{}, err
		}
		tried, err := s.app.TrySend(c.r.Context(), c.principal, r)
		if err == nil {
			c.dryRun()
		}
		return answer{http.StatusOK, append(c.out, tried...)}, err
	}
	r.Hash = s.app.BodyHash(body)
	sent, known := app.SendAnswer{}, false
	if err != nil { // the country may have been another one at the first call
		unread := err
		if sent, known, err = s.app.Repeat(c.r.Context(), c.principal, r.Key, r.Hash); !known && err == nil {
			err = unread
		}
	} else {
		request, _ := desk.ParseID(c.w.RequestID())
		sent, err = s.app.Send(c.r.Context(), c.principal, r, request)
	}
	if err != nil {
		return answer{}, err
	}
	if sent.Replayed {
		c.w.Header()["Idempotent-Replayed"] = []string{"true"}
	}
	return answer{http.StatusCreated, append(c.out, sent.Body...)}, nil // calls of one key share these bytes
}

// asksDryRun tells whether a body, of which something may be wrong, asks for a dry run.
func (c *call) asksDryRun() (dry bool) {
	err := c.decode(maxBody, func(d *decoder) error {
		return d.object(func(name string) (err error) {
			if name == dryRun && d.PeekKind() == 't' {
				dry = true
			}
			return d.skip()
		})
	})
	return dry && err == nil
}

// SendAnswer renders the answer to a send that the provider accepted; app stores it.
func SendAnswer(m *desk.SentMessage) []byte {
	b := appendConversation([]byte(`{"data":{"conversation":`), &m.Conversation, m.Kind)
	b = strconv.AppendBool(append(b, `,"existing_conversation":`...), m.Existing)
	b = appendMessageFields(append(b, `,"message":`...), &m.Message)
	return append(b, "}}}"...)
}

// send reads the body of a send. Null for an optional member counts as absent
// (contract §5).
func (d *decoder) send(r *desk.SendRequest, dry *bool, country string) error {
	var to, template bool
	var optIn desk.Field[bool]
	var channel desk.Field[desk.ID]
	var profile desk.Field[desk.ContactWrite]
	err := d.object(func(name string) (err error) {
		switch name {
		case dryRun:
			*dry, err = d.bool()
			return err
		case "to":
			to = true
			return d.recipient(r, country)
		case "template":
			template = true
			return d.template(r)
		case "opt_in_confirmed":
			return field(d, &optIn, d.bool)
		case "assignee":
			return field(d, &r.Assignee, d.text)
		case "contact":
			return field(d, &profile, func() (w desk.ContactWrite, err error) {
				err = d.contact(&w, country, nil)
				return w, err
			})
		case "channel_id":
			return field(d, &channel, d.id)
		}
		return d.unknown(name, "to", "template", "opt_in_confirmed", "assignee", "contact", "channel_id", dryRun)
	})
	switch {
	case err != nil:
		return err
	case !to:
		return desk.InvalidAt("/to", "missing; name the recipient by phone or contact_id")
	case !template:
		return desk.InvalidAt("/template", "missing; give its name, language and variables")
	}
	r.OptInConfirmed = optIn.Value
	if channel.Has() {
		r.Channel = &channel.Value
	}
	if profile.Has() {
		r.Profile = &profile.Value
	}
	return contradiction(r)
}

// contradiction refuses a profile with another number than the recipient's.
func contradiction(r *desk.SendRequest) error {
	if r.Profile == nil || r.Contact != nil {
		return nil
	}
	other := r.Profile.Contradicts(r.Phone.Value)
	if other == nil {
		return nil
	}
	at := "/contact/identities"
	if other.Kind == desk.KindPhone && other.Value == r.Profile.Phone.Value {
		at = "/contact/phone"
	}
	return desk.InvalidAt(at, "this is another number than /to/phone; leave it out, or write to it instead")
}

// recipient reads "to".
func (d *decoder) recipient(r *desk.SendRequest, country string) error {
	var phone desk.Field[desk.Identity]
	var contact desk.Field[desk.ID]
	err := d.object(func(name string) error {
		switch name {
		case "phone":
			return field(d, &phone, func() (i desk.Identity, err error) {
				_, err = d.parsed(func(s string) (string, error) {
					i, err = desk.ParseIdentity(desk.KindPhone, s, country)
					return i.Value, err
				})
				return i, err
			})
		case "contact_id":
			return field(d, &contact, d.id)
		}
		return d.unknown(name, "phone", "contact_id")
	})
	if err != nil {
		return err
	}
	if phone.Has() == contact.Has() {
		return d.wrong("name the recipient by exactly one of phone and contact_id")
	}
	r.Phone = phone.Value
	if contact.Has() {
		r.Contact = &contact.Value
	}
	return nil
}

// template reads "template".
func (d *decoder) template(r *desk.SendRequest) error {
	var name, language bool
	var variables desk.Field[desk.TemplateValues]
	err := d.object(func(member string) (err error) {
		switch member {
		case "name":
			name = true
			r.Template, err = d.text()
			return err
		case "language":
			language = true
			r.Language, err = d.text()
			return err
		case "variables":
			return field(d, &variables, d.variables)
		}
		return d.unknown(member, "name", "language", "variables")
	})
	switch {
	case err != nil:
		return err
	case !name:
		return desk.InvalidAt("/template/name", "missing").Advise(desk.ListTemplates)
	case !language:
		return desk.InvalidAt("/template/language", "missing; send the template's language, such as en_US").Advise(desk.ListTemplates)
	}
	r.Variables = variables.Value
	return nil
}

// variables reads the values of a template's variables: an array of strings, or an
// object of strings by address.
func (d *decoder) variables() (v desk.TemplateValues, err error) {
	switch d.PeekKind() {
	case '[':
		v.List, err = d.texts()
	case '{':
		v.Object = true
		err = d.object(func(address string) error {
			if err := d.storable(address); err != nil {
				return err
			}
			value, err := d.text()
			v.Named = append(v.Named, desk.NamedValue{Address: address, Value: value})
			return err
		})
	default:
		err = d.refuse("expected an array or an object, of strings")
	}
	return v, err
}
