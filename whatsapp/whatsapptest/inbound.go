package whatsapptest

import (
	"fmt"
	"maps"
	"time"
)

// An Inbound is a message from a person.
type Inbound struct {
	From     string `json:"from,omitempty"`     // digits; default: 905321112233, unless there is a username
	UserID   string `json:"user_id,omitempty"`  // default: the usual id of the person
	Username string `json:"username,omitempty"` // if it is set without From, the webhook has no number
	Name     string `json:"name,omitempty"`     // of the profile
	ID       string `json:"id,omitempty"`       // the wamid; by default a new one
	ReplyTo  string `json:"reply_to,omitempty"` // a wamid
	Twice    bool   `json:"twice,omitempty"`    // post it twice, with the same wamid

	// Type is text, image, video, audio, document, sticker, location, contacts, button,
	// button_reply, list_reply, nfm_reply, reaction, order, unsupported, request_welcome
	// or any other word; default: text.
	Type string `json:"type,omitempty"`

	// Text is the text that people see: the body, the caption, the label, the emoji.
	Text string `json:"text,omitempty"`

	// Content replaces keys in the object of this type.
	Content map[string]any `json:"content,omitempty"`

	// At is when the message was sent; default: now.
	At time.Time `json:"at,omitzero"`

	// File is the content of an image, video, audio, document or sticker; default: a small
	// one. Fault is what goes wrong when it is fetched. The first N tries fail (fail:N),
	// are cut short (truncate:N), get wrong bytes (corrupt:N) or an expired address
	// (expired:N). Or the file does not exist (gone), has another size (size:BYTES), comes
	// late (slow:10s), or is elsewhere (redirect:URL, url:URL).
	File     []byte `json:"file,omitempty"`
	MIME     string `json:"mime,omitempty"`
	Filename string `json:"filename,omitempty"`
	Fault    string `json:"fault,omitempty"`

	media string // the id of its file
}

// Inbound posts a message from a person, which opens the customer service window. It
// panics if the fault is unknown.
func (s *Simulator) Inbound(in Inbound) *Delivery {
	s.mu.Lock()
	d := s.inbound(&in)
	signing := s.set.Signing
	s.mu.Unlock()
	if in.Twice {
		s.deliver(&Delivery{ID: d.ID, Body: d.Body}, signing)
	}
	return s.deliver(d, signing)
}

// inbound sets the defaults and returns the webhook. The caller holds s.mu.
func (s *Simulator) inbound(in *Inbound) *Delivery {
	if in.From == "" && in.UserID == "" && in.Username == "" {
		in.From = "905321112233"
	}
	if in.UserID == "" {
		in.UserID = s.userID(in.From)
		orElse(&in.UserID, "TR.9000000000000001")
	} else if in.From != "" {
		s.userIDs[in.From] = in.UserID
	}
	orElse(&in.Type, "text")
	orElse(&in.At, s.c.Now())
	if in.ID == "" {
		in.ID = s.wamid()
	}
	for _, who := range []string{in.From, in.UserID} {
		if s.lastInbound[who].Before(in.At) {
			s.lastInbound[who] = in.At
		}
		if in.Name != "" {
			s.names[who] = in.Name
		}
	}
	value := s.value()
	contact := s.contact(in.From, in.UserID)
	if in.Username != "" {
		profile := map[string]any{"username": in.Username}
		if in.Name != "" {
			profile["name"] = in.Name
		}
		contact["profile"] = profile
	}
	value["contacts"] = []any{contact}
	value["messages"] = []any{s.inboundMessage(in)}
	return &Delivery{ID: in.ID, Media: in.media, Body: envelope(s.entry(change("messages", value)))}
}

// Echo posts a message that the business typed in the phone app, to the person in From.
// It does not open the window.
func (s *Simulator) Echo(in Inbound) *Delivery {
	s.mu.Lock()
	orElse(&in.Type, "text")
	orElse(&in.From, "905321112233")
	orElse(&in.At, s.c.Now())
	if in.ID == "" {
		in.ID = s.wamid()
	}
	m := map[string]any{"from": s.c.DisplayNumber, "to": in.From, "id": in.ID, "timestamp": seconds(in.At)}
	if in.ReplyTo != "" && in.Type != "reaction" {
		m["context"] = map[string]any{"from": in.From, "id": in.ReplyTo}
	}
	key, content := s.content(&in)
	if m["type"] = key; content != nil {
		m[key] = content
	}
	value := s.value()
	value["message_echoes"] = []any{m}
	d := &Delivery{ID: in.ID, Media: in.media, Body: envelope(s.entry(change("smb_message_echoes", value)))}
	signing := s.set.Signing
	s.mu.Unlock()
	if in.Twice {
		s.deliver(&Delivery{ID: d.ID, Body: d.Body}, signing)
	}
	return s.deliver(d, signing)
}

func (s *Simulator) inboundMessage(in *Inbound) map[string]any {
	m := map[string]any{"id": in.ID, "timestamp": seconds(in.At)}
	if in.From != "" {
		m["from"] = in.From
	}
	if !s.set.HideUserIDs {
		m["from_user_id"] = in.UserID
	}
	if in.ReplyTo != "" && in.Type != "reaction" {
		m["context"] = map[string]any{"from": s.c.DisplayNumber, "id": in.ReplyTo}
	}
	key, content := s.content(in)
	m["type"] = key
	if in.Type == "unsupported" {
		e := inWebhook(131051, "")
		delete(e, "href")
		m["errors"] = []any{e}
	}
	if content != nil {
		m[key] = content
	}
	return m
}

// value returns the common fields of a change of the field messages. It needs no lock on
// s.mu.
func (s *Simulator) value() map[string]any {
	return map[string]any{
		"messaging_product": "whatsapp",
		"metadata":          map[string]any{"display_phone_number": s.c.DisplayNumber, "phone_number_id": s.c.PhoneNumberID},
	}
}

// contact returns a person's element of contacts[]. It has a profile only if the name is
// known.
func (s *Simulator) contact(waID, userID string) map[string]any {
	c := map[string]any{}
	if waID != "" {
		c["wa_id"] = waID
	}
	if !s.set.HideUserIDs {
		c["user_id"] = userID
	}
	name := s.names[waID]
	orElse(&name, s.names[userID])
	if name != "" {
		c["profile"] = map[string]any{"name": name}
	}
	return c
}

// content returns the key of the message's content, and the content. The caller holds
// s.mu.
func (s *Simulator) content(in *Inbound) (key string, content any) {
	key = in.Type
	o := map[string]any{}
	text := func(key, byDefault string) {
		value := in.Text
		orElse(&value, byDefault)
		o[key] = value
	}
	file := func() {
		maps.Copy(o, s.attach(in))
		if in.Text != "" {
			o["caption"] = in.Text
		}
	}
	switch in.Type {
	case "text":
		text("body", "")
	case "image", "video":
		file()
	case "audio":
		file()
		o["voice"] = true
	case "document":
		orElse(&in.Filename, "document.pdf")
		file()
		o["filename"] = in.Filename
	case "sticker":
		file()
		o["animated"] = false
	case "location":
		o["latitude"], o["longitude"] = 41.0082, 28.9784
		text("name", "Galata")
		o["address"] = "Beyoğlu, İstanbul"
	case "contacts":
		text("formatted_name", "Ali Kaya")
		phones := []any{map[string]any{"phone": "+90 532 444 55 66", "wa_id": "905324445566", "type": "CELL"}}
		card := map[string]any{"name": o, "phones": phones}
		maps.Copy(card, in.Content)
		return key, []any{card}
	case "button":
		text("text", "Evet")
		o["payload"] = o["text"]
	case "button_reply", "list_reply":
		o["id"] = "opt_1"
		text("title", "Kargo")
		if in.Type == "list_reply" {
			o["description"] = "2 gün"
		}
	case "nfm_reply":
		o["name"], o["response_json"] = "flow", `{"flow_token":"unused"}`
		text("body", "Sent")
	case "call_permission_reply":
		o["response"] = "accept"
	case "reaction":
		o["message_id"] = in.ReplyTo
		if in.Text != "" {
			o["emoji"] = in.Text
		}
	case "order":
		o["catalog_id"] = "600700800900100"
		text("text", "")
		o["product_items"] = []any{map[string]any{"product_retailer_id": "A-17", "quantity": 1, "item_price": 12.5, "currency": "TRY"}}
	case "unsupported":
		o["type"] = "poll_creation"
	}
	maps.Copy(o, in.Content)
	switch in.Type {
	case "button_reply", "list_reply", "nfm_reply", "call_permission_reply":
		return "interactive", map[string]any{"type": in.Type, in.Type: o}
	}
	if len(o) == 0 {
		return key, nil
	}
	return key, o
}

// NumberChange posts the message that a person has another number, and so another user
// id. This message does not open the window.
func (s *Simulator) NumberChange(from, to string) *Delivery {
	s.mu.Lock()
	name := s.names[from]
	orElse(&name, from)
	system := map[string]any{
		"type": "user_changed_number", "wa_id": to, "user_id": s.userID(to),
		"body": fmt.Sprintf("User %s changed from %s to %s", name, from, to),
	}
	if s.set.HideUserIDs {
		delete(system, "user_id")
	}
	s.names[to] = s.names[from]
	m := map[string]any{"from": from, "id": s.wamid(), "timestamp": seconds(s.c.Now()), "type": "system", "system": system}
	value := s.value()
	s.mu.Unlock()
	value["messages"] = []any{m}
	return s.Change("messages", value)
}

// UserIDUpdate posts that a person has another user id now.
func (s *Simulator) UserIDUpdate(waID, userID string) *Delivery {
	s.mu.Lock()
	before := s.userID(waID)
	s.userIDs[waID] = userID
	value := s.value()
	contact := s.contact(waID, userID)
	delete(contact, "user_id")
	value["contacts"] = []any{contact}
	value["user_id_update"] = []any{map[string]any{
		"wa_id": waID, "detail": "User id has been updated.", "timestamp": seconds(s.c.Now()),
		"user_id": map[string]any{"previous": before, "current": userID},
	}}
	s.mu.Unlock()
	return s.Change("user_id_update", value)
}

// Preferences posts the choice of a person who does not want marketing messages (stop),
// or wants them again (resume).
func (s *Simulator) Preferences(waID, wish string) *Delivery {
	s.mu.Lock()
	value := s.value()
	value["contacts"] = []any{s.contact(waID, s.userID(waID))}
	preference := map[string]any{
		"wa_id": waID, "user_id": s.userID(waID), "detail": "User requested to " + wish + " marketing messages",
		"category": "marketing_messages", "value": wish, "timestamp": s.c.Now().Unix(),
	}
	if s.set.HideUserIDs {
		delete(preference, "user_id")
	}
	value["user_preferences"] = []any{preference}
	s.mu.Unlock()
	return s.Change("user_preferences", value)
}

// AccountRestriction posts that the account is restricted for a week. An example of a
// kind is RESTRICTED_BIZ_INITIATED_MESSAGING.
func (s *Simulator) AccountRestriction(kind string) *Delivery {
	return s.Change("account_update", map[string]any{"event": "ACCOUNT_RESTRICTION", "restriction_info": []any{
		map[string]any{"restriction_type": kind, "expiration": s.c.Now().AddDate(0, 0, 7).Unix()},
	}})
}

// AccountReconnected posts that the account is no longer restricted.
func (s *Simulator) AccountReconnected() *Delivery {
	return s.Change("account_update", map[string]any{"event": "ACCOUNT_RECONNECTED"})
}

// QualityUpdate posts an event of the number, such as THROUGHPUT_UPGRADE, with the
// messaging limit.
func (s *Simulator) QualityUpdate(event, limit string) *Delivery {
	return s.Change("phone_number_quality_update", map[string]any{
		"display_phone_number": s.c.DisplayNumber, "event": event, "max_daily_conversations_per_business": limit,
	})
}
