package whatsapp

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"parley/desk"
	"parley/provider"
)

// An inbound is a message from a person, or one that the business typed in the phone
// app. Unused fields are left out. Only the part that Type names is set.
type inbound struct {
	ID        text `json:"id"`
	From      text `json:"from"`
	To        text `json:"to"` // only if the business typed the message
	UserID    text `json:"from_user_id"`
	ToUserID  text `json:"to_user_id"`
	Timestamp text `json:"timestamp"`
	Type      text `json:"type"`
	Context   struct {
		ID text `json:"id"`
	} `json:"context"`
	Errors json.RawMessage `json:"errors"`

	Text struct {
		Body text `json:"body"`
	} `json:"text"`
	Image    media `json:"image"`
	Video    media `json:"video"`
	Audio    media `json:"audio"`
	Voice    media `json:"voice"`
	Document media `json:"document"`
	Sticker  media `json:"sticker"`
	Location struct {
		Latitude  text `json:"latitude"`
		Longitude text `json:"longitude"`
		Name      text `json:"name"`
		Address   text `json:"address"`
	} `json:"location"`
	Contacts json.RawMessage `json:"contacts"`
	Button   struct {
		Text    text `json:"text"`
		Payload text `json:"payload"`
	} `json:"button"`
	Interactive interactive `json:"interactive"`
	Reaction    struct {
		MessageID text `json:"message_id"`
		Emoji     text `json:"emoji"`
	} `json:"reaction"`
	Order struct {
		Text     text            `json:"text"`
		Products json.RawMessage `json:"product_items"`
	} `json:"order"`
	System      system `json:"system"`
	Unsupported struct {
		Type text `json:"type"`
	} `json:"unsupported"`
}

type media struct {
	ID       text      `json:"id"`
	MIME     text      `json:"mime_type"`
	SHA256   text      `json:"sha256"`
	Size     text      `json:"file_size"`
	Caption  text      `json:"caption"`
	Filename text      `json:"filename"`
	Voice    looseBool `json:"voice"`
}

type interactive struct {
	Type        text  `json:"type"`
	ButtonReply reply `json:"button_reply"`
	ListReply   reply `json:"list_reply"`
	FormReply   struct {
		Body text `json:"body"`
	} `json:"nfm_reply"`
	CallPermission struct {
		Response text `json:"response"`
	} `json:"call_permission_reply"`

	// These belong to a question with buttons, which the business asked.
	Body struct {
		Text text `json:"text"`
	} `json:"body"`
	Action struct {
		Buttons json.RawMessage `json:"buttons"`
	} `json:"action"`
}

type reply struct {
	ID    text `json:"id"`
	Title text `json:"title"`
}

// system is a report about the person, not a message from the person.
type system struct {
	Type    text `json:"type"`
	WaID    text `json:"wa_id"`
	OldWaID text `json:"customer"`
	NewWaID text `json:"new_wa_id"` // the same as wa_id, in older versions
	UserID  text `json:"user_id"`
}

// inbound returns the update for one message from a person.
func (r *reader) inbound(v *personal, m *inbound) (h provider.Update, ok bool) {
	in := &provider.InboundMessage{
		ExternalID: externalIDOf(m.ID), Number: numberOf(m.From), UserID: cmp.Or(userIDOf(m.UserID), userIDOf(m.From)), At: r.at(m.Timestamp),
	}
	switch m.Type {
	case "request_welcome":
		return h, false
	case "system":
		h.Move = m.System.move(in)
		return h, h.Move != nil
	}
	h.Message = in
	return h, m.complete(v, in)
}

// echo returns the update for one message that the business typed in the phone app.
func (r *reader) echo(v *personal, m *inbound) (h provider.Update, ok bool) {
	switch m.Type {
	case "request_welcome", "system", "edit", "revoke":
		return h, false
	}
	in := &provider.InboundMessage{
		ExternalID: externalIDOf(m.ID), Number: numberOf(m.To), UserID: userIDOf(m.To), At: r.at(m.Timestamp), Echo: true,
	}
	if in.Number == "" && in.UserID == "" {
		return h, false
	}
	in.UserID = cmp.Or(in.UserID, userIDOf(m.ToUserID))
	h.Message = in
	return h, m.complete(v, in)
}

// complete sets the content of a message, and the values of its person that the contacts
// have. It returns false if the message or its person can't be identified.
func (m *inbound) complete(v *personal, in *provider.InboundMessage) bool {
	who := v.find(in.Number, in.UserID)
	in.Number = cmp.Or(in.Number, numberOf(who.WaID))
	in.UserID = cmp.Or(in.UserID, userIDOf(who.UserID))
	if in.ExternalID == "" || in.Number == "" && in.UserID == "" {
		return false
	}
	in.Name = name(string(who.Profile.Name))
	in.ReplyTo = externalIDOf(m.Context.ID)
	text := m.content(in)
	in.Text = storable(text)
	return true
}

// move returns the change of number or of id that a report contains. It returns nil for
// any other report.
func (s *system) move(from *provider.InboundMessage) *provider.Move {
	switch s.Type {
	case "user_changed_number", "customer_changed_number", "user_changed_user_id":
		return moved(provider.Move{
			Number: cmp.Or(from.Number, numberOf(s.OldWaID)), UserID: from.UserID,
			NewNumber: cmp.Or(numberOf(s.WaID), numberOf(s.NewWaID)), NewUserID: userIDOf(s.UserID), At: from.At,
		})
	}
	return nil
}

// content sets the kind of a message and its content besides the text. It returns the
// message as a text, in which other content is named in brackets.
func (m *inbound) content(in *provider.InboundMessage) string {
	switch m.Type {
	case "text":
		in.Kind = desk.KindText
		return string(m.Text.Body)
	case "image":
		return m.file(in, desk.KindImage, &m.Image, named("image", m.Image.Caption))
	case "video":
		return m.file(in, desk.KindVideo, &m.Video, named("video", m.Video.Caption))
	case "sticker":
		return m.file(in, desk.KindSticker, &m.Sticker, "[sticker]")
	case "voice":
		return m.file(in, desk.KindAudio, &m.Voice, "[voice message]")
	case "audio":
		if m.Audio.Voice {
			return m.file(in, desk.KindAudio, &m.Audio, "[voice message]")
		}
		return m.file(in, desk.KindAudio, &m.Audio, "[audio]")
	case "document":
		return m.file(in, desk.KindDocument, &m.Document, named(with("document", m.Document.Filename), m.Document.Caption))
	case "location":
		in.Kind, in.Extra = desk.KindLocation, m.place()
		return m.location()
	case "contacts":
		in.Kind = desk.KindContacts
		return m.contacts()
	case "button":
		in.Kind, in.Extra = desk.KindChoice, choice(m.Button.Payload, m.Button.Text)
		return cmp.Or(string(m.Button.Text), string(m.Button.Payload), "[button]")
	case "interactive":
		return m.Interactive.content(in)
	case "reaction":
		in.Kind, in.ReplyTo = desk.KindReaction, externalIDOf(m.Reaction.MessageID)
		in.Extra = &desk.Extra{Reaction: &desk.Reaction{Emoji: oneLine(storedText(m.Reaction.Emoji), maxLabel)}}
		if m.Reaction.Emoji == "" {
			return "[reaction removed]"
		}
		return named("reaction", m.Reaction.Emoji)
	case "order":
		in.Kind = desk.KindOrder
		return m.order()
	}
	in.Kind = desk.KindUnsupported
	switch m.Type {
	case "edit":
		return "[message edited]"
	case "revoke":
		return "[message deleted]"
	case "unsupported", "unknown":
		return named(with("unsupported message", m.Unsupported.Type), "")
	}
	return named(with("unknown type", m.Type), "")
}

// file sets the file of a message, and returns its text. If the provider itself could
// not get the file, the reference is "".
func (m *inbound) file(in *provider.InboundMessage, kind desk.MessageKind, f *media, text string) string {
	in.Kind = kind
	ref := externalIDOf(f.ID)
	if ref == "" && firstFailure(m.Errors).Code != codeNoDownload {
		return text
	}
	in.Media = &provider.InboundMedia{Ref: ref, MIME: oneLine(storedText(f.MIME), desk.MaxName), Name: storedText(f.Filename), SHA256: hashOf(f.SHA256)}
	if size, ok := f.Size.number(); ok && size > 0 {
		in.Media.Size = size
	}
	return text
}

// codeNoDownload is the code for an inbound file that the provider could not get.
const codeNoDownload = 131052

// hashOf reads a SHA-256 in hex or in base64. It returns nil for any other text.
func hashOf(t text) []byte {
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString, base64.URLEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if sum, err := decode(string(t)); err == nil && len(sum) == sha256.Size {
			return sum
		}
	}
	return nil
}

// The greatest lengths of a button's id and title, in characters. The provider's own
// limits are lower.
const (
	maxButtonID = 1024
	maxLabel    = 255
)

// choice returns the button that a person tapped. If the button has no id, its label is
// used as the id.
func choice(id, title text) *desk.Extra {
	b := button(cmp.Or(id, title), cmp.Or(title, id))
	if b.ID == "" {
		return nil
	}
	return &desk.Extra{Choice: &b}
}

func button(id, title text) desk.Button {
	return desk.Button{ID: cut(storedText(id), maxButtonID), Title: oneLine(storedText(title), maxLabel)}
}

// storedText returns a text that can be stored.
func storedText(t text) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(t), "\uFFFD"), "\x00", "")
}

// place returns the location in a message, or nil if its numbers are missing.
func (m *inbound) place() *desk.Extra {
	latitude, err := strconv.ParseFloat(string(m.Location.Latitude), 64)
	longitude, err2 := strconv.ParseFloat(string(m.Location.Longitude), 64)
	onEarth := math.Abs(latitude) <= 90 && math.Abs(longitude) <= 180 // false for NaN
	if err != nil || err2 != nil || !onEarth {
		return nil
	}
	return &desk.Extra{Location: &desk.Location{
		Latitude: latitude, Longitude: longitude,
		Name: oneLine(storedText(m.Location.Name), desk.MaxName), Address: oneLine(storedText(m.Location.Address), maxAddress),
	}}
}

// maxAddress is how many characters of a place's address are kept.
const maxAddress = 1000

// named returns the kind of content in brackets, followed by the text, if any.
func named(what string, words text) string {
	return strings.TrimSpace("[" + what + "] " + string(words))
}

// with returns the kind of content, followed by a detail if the detail is known.
func with(what string, which text) string {
	if which == "" {
		return what
	}
	return what + ": " + oneLine(string(which), desk.MaxName)
}

func (m *inbound) location() string {
	l := m.Location
	place := ""
	for _, part := range []text{l.Name, l.Address} {
		if part != "" && place != "" {
			place += ", "
		}
		place += string(part)
	}
	where := ""
	if l.Latitude != "" && l.Longitude != "" {
		where = string(l.Latitude + ", " + l.Longitude)
		if place != "" {
			where = " (" + where + ")"
		}
	}
	return named("location", text(place+where))
}

// contacts returns the names on the contact cards that were sent.
func (m *inbound) contacts() string {
	var names []string
	for _, raw := range list(m.Contacts) {
		var c struct {
			Name struct {
				Formatted text `json:"formatted_name"`
				First     text `json:"first_name"`
			} `json:"name"`
		}
		decodeObject(raw, &c)
		if n := cmp.Or(c.Name.Formatted, c.Name.First); n != "" {
			names = append(names, string(n))
		}
	}
	return named("contacts", text(strings.Join(names, ", ")))
}

func (i *interactive) content(in *provider.InboundMessage) string {
	switch i.Type {
	case "button_reply":
		in.Kind, in.Extra = desk.KindChoice, choice(i.ButtonReply.ID, i.ButtonReply.Title)
		return cmp.Or(string(i.ButtonReply.Title), "[button]")
	case "list_reply":
		in.Kind, in.Extra = desk.KindChoice, choice(i.ListReply.ID, i.ListReply.Title)
		return cmp.Or(string(i.ListReply.Title), "[list reply]")
	case "button":
		in.Kind, in.Extra = desk.KindButtons, i.buttons()
		return cmp.Or(string(i.Body.Text), "[buttons]")
	}
	in.Kind = desk.KindUnsupported
	switch i.Type {
	case "nfm_reply":
		return cmp.Or(string(i.FormReply.Body), "[form]")
	case "call_permission_reply":
		return named(with("call permission", i.CallPermission.Response), "")
	}
	return named(with("unknown reply", i.Type), "")
}

// maxButtons is more than the provider allows.
const maxButtons = 10

// buttons returns the buttons under a question, or nil.
func (i *interactive) buttons() *desk.Extra {
	c := &desk.Extra{}
	for _, raw := range list(i.Action.Buttons) {
		var b struct {
			Reply reply `json:"reply"`
		}
		if decodeObject(raw, &b) && b.Reply.ID != "" && len(c.Buttons) < maxButtons {
			c.Buttons = append(c.Buttons, button(b.Reply.ID, b.Reply.Title))
		}
	}
	if c.Buttons == nil {
		return nil
	}
	return c
}

// order lists the items of an order.
func (m *inbound) order() string {
	var items []string
	for _, raw := range list(m.Order.Products) {
		var p struct {
			ID       text `json:"product_retailer_id"`
			Quantity text `json:"quantity"`
		}
		if decodeObject(raw, &p) && p.ID != "" {
			items = append(items, string(cmp.Or(p.Quantity, "1")+" × "+p.ID))
		}
	}
	order := named("order", text(strings.Join(items, ", ")))
	if m.Order.Text != "" {
		order += "\n" + string(m.Order.Text)
	}
	return order
}

// storable changes a text so that desk.ParseMessage accepts it.
func storable(s string) string {
	s = strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", ""))
	if s == "" {
		return "[empty message]"
	}
	return cut(s, desk.MaxMessage)
}

// name changes a name so that desk.ParseName accepts it.
func name(s string) string { return oneLine(strings.ToValidUTF8(s, ""), desk.MaxName) }
