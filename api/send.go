package api

import (
	"cmp"
	"net/http"
	"strconv"

	"parley/app"
	"parley/desk"
)

const idempotencyKey = "Idempotency-Key"

// A sending is a kind of message that is sent once for each Idempotency-Key.
type sending struct {
	read func(d *decoder, dry *bool) error
	try  func() ([]byte, error)
	send func(key string, hash [32]byte, request desk.ID) (app.SendAnswer, error)
}

func (s *Server) send(c *call) (answer, error) {
	r := &desk.SendRequest{}
	return s.sendOnce(c, "", sending{
		read: func(d *decoder, dry *bool) error { return d.send(r, dry, c.principal.Settings.Country) },
		try:  func() ([]byte, error) { return s.app.TrySend(c.r.Context(), c.principal, r) },
		send: func(key string, hash [32]byte, request desk.ID) (app.SendAnswer, error) {
			r.Key, r.Hash = key, hash
			return s.app.Send(c.r.Context(), c.principal, r, request)
		},
	})
}

// reply sends a free message into a conversation.
func (s *Server) reply(c *call) (answer, error) {
	r := &desk.ReplyRequest{Conversation: c.id()}
	return s.sendOnce(c, "reply "+r.Conversation.String(), sending{
		read: func(d *decoder, dry *bool) error { return d.reply(r, dry) },
		try:  func() ([]byte, error) { return s.app.TryReply(c.r.Context(), c.principal, r) },
		send: func(key string, hash [32]byte, request desk.ID) (app.SendAnswer, error) {
			r.Key, r.Hash = key, hash
			return s.app.Reply(c.r.Context(), c.principal, r, request, nil)
		},
	})
}

// sendOnce reads a body and sends the message in it. to stands for the path, if messages of
// this kind are sent by requests of several paths.
func (s *Server) sendOnce(c *call, to string, m sending) (answer, error) {
	if n := len(c.r.Header[idempotencyKey]); n > 1 {
		return answer{}, desk.InvalidAt(desk.AtIdempotencyKey, "the header is there %d times; send it once", n)
	}
	key := c.r.Header.Get(idempotencyKey)
	badKey := desk.CheckIdempotencyKey(key)
	if badKey != nil && c.r.Header[idempotencyKey] != nil {
		return answer{}, badKey
	}
	dry := false
	err := c.decode(maxBody, func(d *decoder) error { return m.read(d, &dry) })
	if err != nil && !dry {
		dry = c.asksDryRun()
	}
	if badKey != nil && !dry { // only a dry run needs no key
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
		tried, err := m.try()
		if err == nil {
			c.dryRun()
		}
		return answer{http.StatusOK, append(c.out, tried...)}, err
	}
	hash := s.app.BodyHash(append([]byte(to), body...))
	sent, known := app.SendAnswer{}, false
	if err != nil { // the country may have been another one at the first call
		unread := err
		if sent, known, err = s.app.Repeat(c.r.Context(), c.principal, key, hash); !known && err == nil {
			err = unread
		}
	} else {
		request, _ := desk.ParseID(c.w.RequestID())
		sent, err = m.send(key, hash, request)
	}
	if err != nil {
		return answer{}, err
	}
	if sent.Replayed {
		c.w.Header()["Idempotent-Replayed"] = []string{"true"}
	}
	return answer{http.StatusCreated, append(c.out, sent.Body...)}, nil // calls of one key share these bytes
}

// asksDryRun tells whether the body asks for a dry run, even if something in it is wrong.
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
	if m.Reply {
		return append(appendMessage(append(b, `,"message":`...), &m.Message, &desk.Settings{}), "}}"...)
	}
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
			return field(d, &r.Assignee, d.member)
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

// reply reads the body of a reply. Null for an optional member counts as absent.
func (d *decoder) reply(r *desk.ReplyRequest, dry *bool) error {
	var text desk.Field[string]
	var file desk.Field[desk.SentAttachment]
	var buttons desk.Field[[]desk.Button]
	err := d.object(func(name string) (err error) {
		switch name {
		case dryRun:
			*dry, err = d.bool()
			return err
		case "text":
			if err = field(d, &text, d.text); err == nil {
				err = d.storable(text.Value)
			}
			return err
		case "attachment":
			return field(d, &file, d.attachment)
		case "buttons":
			return field(d, &buttons, d.buttons)
		case "reply_to":
			return field(d, &r.ReplyTo, d.id)
		case "member":
			return field(d, &r.Member, d.member)
		}
		return d.unknown(name, "text", "attachment", "buttons", "reply_to", "member", dryRun)
	})
	switch {
	case err != nil:
		return err
	case text.Has() && file.Has():
		return desk.InvalidAt("/attachment", "send a text or an attachment, which may have a caption")
	case !text.Has() && !file.Has():
		return desk.InvalidAt("/text", "missing; say something, or send an attachment")
	}
	if file.Has() {
		r.Attachment = &file.Value
	}
	r.Text, r.Buttons = text.Value, buttons.Value
	return r.Check()
}

// attachment reads the file of a reply.
func (d *decoder) attachment() (s desk.SentAttachment, err error) {
	there := false
	var caption desk.Field[string]
	err = d.object(func(name string) (err error) {
		switch name {
		case "media_id":
			there = true
			s.Media, err = d.id()
			return err
		case "caption":
			return field(d, &caption, func() (string, error) {
				text, err := d.text()
				if err == nil {
					err = d.storable(text)
				}
				if err == nil && text == "" {
					err = d.wrong("it is empty: leave it out")
				}
				return text, err
			})
		}
		return d.unknown(name, "media_id", "caption")
	})
	if err == nil && !there {
		err = d.wrong("give the media_id of an upload, or of a file that this person sent")
	}
	s.Caption = caption.Value
	return s, err
}

func (d *decoder) buttons() ([]desk.Button, error) {
	list := []desk.Button{}
	err := d.array(func(int) error {
		var b desk.Button
		var id, title bool
		err := d.object(func(name string) (err error) {
			switch name {
			case "id":
				id = true
				if b.ID, err = d.text(); err == nil {
					err = d.storable(b.ID)
				}
				return err
			case "title":
				title = true
				if b.Title, err = d.text(); err == nil {
					err = d.storable(b.Title)
				}
				return err
			}
			return d.unknown(name, "id", "title")
		})
		if err == nil && (!id || !title) {
			err = d.wrong("give the id and the title of each button")
		}
		list = append(list, b)
		return err
	})
	return list, err
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
