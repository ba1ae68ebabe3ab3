package whatsapp

import (
	"cmp"
	"encoding/json"
	"strings"

	"parley/app"
	"parley/desk"
)

// An inbound message, without the fields that are not shown. Only the part that Type
// names is set.
type inbound struct {
	ID        text `json:"id"`
	From      text `json:"from"`
	UserID    text `json:"from_user_id"`
	Timestamp text `json:"timestamp"`
	Type      text `json:"type"`

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
		Emoji text `json:"emoji"`
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
}

type reply struct {
	Title text `json:"title"`
}

// system is a report about the person, not a message of theirs.
type system struct {
	Type    text `json:"type"`
	WaID    text `json:"wa_id"`
	OldWaID text `json:"customer"`
	NewWaID text `json:"new_wa_id"` // as wa_id, in older versions
	UserID  text `json:"user_id"`
}

// inbound reads one message.
func (r *reader) inbound(v *personal, m *inbound) (h app.Update, ok bool) {
	in := &app.InboundMessage{
		ExternalID: externalIDOf(m.ID), Number: numberOf(m.From), UserID: cmp.Or(userIDOf(m.UserID), userIDOf(m.From)), At: r.at(m.Timestamp),
	}
	who := v.find(in.Number, in.UserID)
	switch m.Type {
	case "request_welcome":
		return h, false
	case "system":
		h.Move = m.System.move(in)
		return h, h.Move != nil
	}
	in.Number = cmp.Or(in.Number, numberOf(who.WaID))
	in.UserID = cmp.Or(in.UserID, userIDOf(who.UserID))
	if in.ExternalID == "" || in.Number == "" && in.UserID == "" {
		return h, false
	}
	in.Name = name(string(who.Profile.Name))
	in.Text = storable(m.text())
	h.Message = in
	return h, true
}

// move reads a change of number or of id. It returns nil for any other report.
func (s *system) move(from *app.InboundMessage) *app.Move {
	switch s.Type {
	case "user_changed_number", "customer_changed_number", "user_changed_user_id":
		return moved(app.Move{
			Number: cmp.Or(from.Number, numberOf(s.OldWaID)), UserID: from.UserID,
			NewNumber: cmp.Or(numberOf(s.WaID), numberOf(s.NewWaID)), NewUserID: userIDOf(s.UserID), At: from.At,
		})
	}
	return nil
}

// text is the message as text. It names content other than text in brackets.
func (m *inbound) text() string {
	switch m.Type {
	case "text":
		return string(m.Text.Body)
	case "image":
		return named("image", m.Image.Caption)
	case "video":
		return named("video", m.Video.Caption)
	case "sticker":
		return "[sticker]"
	case "voice":
		return "[voice message]"
	case "audio":
		if m.Audio.Voice {
			return "[voice message]"
		}
		return "[audio]"
	case "document":
		return named(with("document", m.Document.Filename), m.Document.Caption)
	case "location":
		return m.location()
	case "contacts":
		return m.contacts()
	case "button":
		return cmp.Or(string(m.Button.Text), string(m.Button.Payload), "[button]")
	case "interactive":
		return m.Interactive.text()
	case "reaction":
		if m.Reaction.Emoji == "" {
			return "[reaction removed]"
		}
		return named("reaction", m.Reaction.Emoji)
	case "order":
		return m.order()
	case "edit":
		return "[message edited]"
	case "revoke":
		return "[message deleted]"
	case "unsupported", "unknown":
		return named(with("unsupported message", m.Unsupported.Type), "")
	}
	return named(with("unknown type", m.Type), "")
}

// named returns the kind of content in brackets, followed by the text, if any.
func named(what string, words text) string {
	return strings.TrimSpace("[" + what + "] " + string(words))
}

// with adds a detail to the kind of content, if it is known.
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

func (i *interactive) text() string {
	switch i.Type {
	case "button_reply":
		return cmp.Or(string(i.ButtonReply.Title), "[button]")
	case "list_reply":
		return cmp.Or(string(i.ListReply.Title), "[list reply]")
	case "nfm_reply":
		return cmp.Or(string(i.FormReply.Body), "[form]")
	case "call_permission_reply":
		return named(with("call permission", i.CallPermission.Response), "")
	}
	return named(with("unknown reply", i.Type), "")
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
