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
		return answer{}, desk.Invalidf("%s: the header is there %d times; send it once", idempotencyKey, n)
	}
	r := &desk.SendRequest{Key: c.r.Header.Get(idempotencyKey)}
	if err := desk.CheckIdempotencyKey(r.Key); err != nil {
		return answer{}, err
	}
	err := c.decode(maxBody, func(d *decoder) error { return d.send(r, c.principal.Settings.Country) })
	if c.body == nil {
		return answer{}, err
	}
	body, malformed := canonical(c.body.Bytes())
	if malformed != nil {
		return answer{}, cmp.Or(err, malformed)
	}
	r.Hash = s.app.BodyHash(body)
	sent, known := app.SendAnswer{}, false
	if err != nil { // which it may not have been, when the call was made first
		unread := err
		if sent, known, err = s.app.Repeat(c.r.Context(), c.principal, r.Key, r.Hash); !known && err == nil {
			err = unread
		}
	} else {
		request, _ := desk.ParseID(c.w.Header().Get("X-Request-Id"))
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

// SendAnswer renders the answer to a send that the provider took; app stores it.
func SendAnswer(m *desk.SentMessage) []byte {
	b := appendConversation([]byte(`{"data":{"conversation":`), &m.Conversation, m.Kind)
	b = strconv.AppendBool(append(b, `,"existing_conversation":`...), m.Existing)
	b = appendMessageFields(append(b, `,"message":`...), &m.Message)
	return append(b, "}}}"...)
}

// send reads the body of a send. Null for an optional member counts as absent
// (contract §5).
func (d *decoder) send(r *desk.SendRequest, country string) error {
	var to, template bool
	var optIn desk.Field[bool]
	var channel desk.Field[desk.ID]
	var profile desk.Field[desk.ContactWrite]
	err := d.object(func(name string) error {
		switch name {
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
				err = d.contact(&w, country)
				return w, err
			})
		case "channel_id":
			return field(d, &channel, d.id)
		}
		return d.unknown()
	})
	switch {
	case err != nil:
		return err
	case !to:
		return desk.Invalidf("/to is missing: name the recipient by phone or contact_id")
	case !template:
		return desk.Invalidf("/template is missing: give its name, language and variables")
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

// contradiction refuses a profile that names another number than the recipient's.
func contradiction(r *desk.SendRequest) error {
	if r.Profile == nil || r.Contact != nil {
		return nil
	}
	other := r.Profile.Contradicts(r.Phone)
	if other == nil {
		return nil
	}
	at := "/contact/identities"
	if other.Kind == desk.KindPhone && other.Value == r.Profile.Phone.Value {
		at = "/contact/phone"
	}
	return desk.Invalidf("%s: this is another number than /to/phone; leave it out, or write to it instead", at)
}

// recipient reads "to".
func (d *decoder) recipient(r *desk.SendRequest, country string) error {
	var phone desk.Field[string]
	var contact desk.Field[desk.ID]
	err := d.object(func(name string) error {
		switch name {
		case "phone":
			return field(d, &phone, func() (string, error) {
				return d.parsed(func(s string) (string, error) { return desk.ParsePhone(s, country) })
			})
		case "contact_id":
			return field(d, &contact, d.id)
		}
		return d.unknown()
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
		return d.unknown()
	})
	switch {
	case err != nil:
		return err
	case !name:
		return desk.Invalidf("/template/name is missing: GET /templates lists them")
	case !language:
		return desk.Invalidf("/template/language is missing: the code that GET /templates shows, such as en_US")
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
