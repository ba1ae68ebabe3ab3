package api

import (
	"strconv"

	"parley/desk"
)

// The JSON of records is written by hand. Every field is present, and null if it is empty.
// The order is that of the specification's tables.

func appendArray[T any](b []byte, list []T, one func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, v)
	}
	return append(b, ']')
}

// appendText appends a string, or null when it is empty.
func appendText(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return desk.AppendJSONString(b, s)
}

// appendID appends an id, or null when there is none.
func appendID(b []byte, id desk.ID) []byte {
	if id.IsZero() {
		return append(b, "null"...)
	}
	return append(id.Append(append(b, '"')), '"')
}

// appendTime appends a time, or null when there is none.
func appendTime(b []byte, t desk.Time) []byte {
	if t == 0 {
		return append(b, "null"...)
	}
	return append(t.Append(append(b, '"')), '"')
}

func appendContact(b []byte, c *desk.Contact) []byte {
	b = appendID(append(b, `{"id":`...), c.ID)
	b = appendText(append(b, `,"external_id":`...), c.ExternalID)
	b = appendText(append(b, `,"name":`...), c.Name)
	b = appendText(append(b, `,"email":`...), c.Email)
	b = append(b, `,"phone":`...)
	if c.Phone == "" {
		b = append(b, "null"...)
	} else {
		b = append(append(append(b, `"+`...), c.Phone...), '"')
	}
	b = appendText(append(b, `,"note":`...), c.Note)
	b = append(append(b, `,"attributes":`...), c.Attributes.JSON()...)
	b = appendOwner(append(b, `,"owner":`...), c.Owner)
	b = appendTime(append(b, `,"created_at":`...), c.CreatedAt)
	b = appendTime(append(b, `,"updated_at":`...), c.UpdatedAt)
	return append(b, '}')
}

// appendOwner appends the owner of a contact, or null when there is none.
func appendOwner(b []byte, m *desk.Member) []byte {
	if m == nil {
		return append(b, "null"...)
	}
	return append(appendMemberFields(b, m), '}')
}

// appendMemberFields appends the fields that an owner object and a member record share,
// without the closing brace.
func appendMemberFields(b []byte, m *desk.Member) []byte {
	b = appendID(append(b, `{"member_id":`...), m.ID)
	b = desk.AppendJSONString(append(b, `,"name":`...), m.Name)
	return desk.AppendJSONString(append(b, `,"email":`...), m.Email)
}

func appendMember(b []byte, m *desk.Member) []byte {
	b = append(appendMemberFields(b, m), `,"role":"`...)
	return append(strconv.AppendBool(append(append(b, m.Role...), `","available":`...), !m.Away), '}')
}

func appendIdentities(b []byte, list []desk.Identity) []byte {
	return appendArray(b, list, func(b []byte, i desk.Identity) []byte {
		b = desk.AppendJSONString(append(b, `{"kind":`...), i.Kind)
		b = desk.AppendJSONString(append(b, `,"value":`...), i.Value)
		return append(b, '}')
	})
}

func appendAttribute(b []byte, a *desk.Attribute) []byte {
	b = desk.AppendJSONString(append(b, `{"key":`...), a.Key)
	b = desk.AppendJSONString(append(b, `,"label":`...), a.Label)
	b = desk.AppendJSONString(append(b, `,"description":`...), a.Description)
	b = desk.AppendJSONString(append(b, `,"type":`...), string(a.Type))
	b = appendArray(append(b, `,"options":`...), a.Options, desk.AppendJSONString)
	b = strconv.AppendInt(append(b, `,"position":`...), int64(a.Position), 10)
	b = strconv.AppendBool(append(b, `,"archived":`...), a.Archived)
	return append(b, '}')
}

func appendChannel(b []byte, c *desk.Channel) []byte {
	b = strconv.AppendBool(append(appendChannelFields(b, c), `,"enabled":`...), c.Enabled)
	b = strconv.AppendBool(append(b, `,"supports_templates":`...), c.SupportsTemplates())
	return append(appendTime(append(b, `,"created_at":`...), c.CreatedAt), '}')
}

// appendChannelFields appends the fields that a channel record and a choice of channels
// share, without the closing brace.
func appendChannelFields(b []byte, c *desk.Channel) []byte {
	b = appendID(append(b, `{"id":`...), c.ID)
	b = append(append(b, `,"kind":"`...), c.Kind...)
	return desk.AppendJSONString(append(b, `","external_id":`...), c.ExternalID)
}

// appendConversation appends a conversation on a channel of some kind.
func appendConversation(b []byte, c *desk.Conversation, kind desk.ChannelKind) []byte {
	b = appendID(append(appendConversationFields(b, c), `,"contact_id":`...), c.ContactID)
	return append(append(append(b, `,"source_type":"`...), kind...), `"}`...)
}

// appendContactConversation appends a conversation in its contact's list.
func appendContactConversation(b []byte, c *desk.Conversation) []byte {
	return append(appendConversationFields(b, c), '}')
}

// appendConversationFields appends the fields that both forms share, without the
// closing brace.
func appendConversationFields(b []byte, c *desk.Conversation) []byte {
	b = appendID(append(b, `{"id":`...), c.ID)
	b = appendID(append(b, `,"channel_id":`...), c.ChannelID)
	b = append(append(b, `,"status":"`...), c.Status...)
	b = appendTime(append(b, `","created_at":`...), c.CreatedAt)
	b = appendID(append(b, `,"assigned_member_id":`...), c.AssignedMember)
	b = appendText(append(b, `,"assigned_via":`...), string(c.AssignedVia))
	b = appendText(append(b, `,"last_message_preview":`...), c.Preview)
	return appendTime(append(b, `,"last_message_at":`...), c.LastMessageAt)
}

// messagesOf returns a function that appends a message of a workspace in its
// conversation's list.
func messagesOf(s *desk.Settings) func([]byte, *desk.Message) []byte {
	return func(b []byte, m *desk.Message) []byte { return appendMessage(b, m, s) }
}

func appendMessage(b []byte, m *desk.Message, s *desk.Settings) []byte {
	b = append(append(appendMessageFields(b, m), `,"direction":"`...), m.Direction...)
	b = append(b, `","failure":`...)
	if m.Failure == nil {
		b = append(b, "null"...)
	} else {
		b = appendFailure(b, m.Failure)
	}
	b = append(append(b, `,"kind":"`...), m.Kind...)
	b = appendAuthor(append(b, `","author":`...), s.Named(m.Author))
	b = appendID(append(b, `,"reply_to":`...), m.ReplyTo)
	b = append(b, `,"attachments":[`...)
	if m.Attachment != nil {
		b = appendAttachment(b, m.Attachment)
	}
	b = append(b, `],"content":`...)
	return append(appendExtra(b, m.Extra), '}')
}

func appendExtra(b []byte, c *desk.Extra) []byte {
	switch {
	case c == nil:
	case c.Buttons != nil:
		return append(appendArray(append(b, `{"buttons":`...), c.Buttons, appendButton), '}')
	case c.Links != nil:
		return append(appendArray(append(b, `{"links":`...), c.Links, appendLink), '}')
	case c.Choice != nil:
		return append(appendButton(append(b, `{"choice":`...), *c.Choice), '}')
	case c.Location != nil:
		b = appendNumber(append(b, `{"location":{"latitude":`...), c.Location.Latitude)
		b = appendNumber(append(b, `,"longitude":`...), c.Location.Longitude)
		b = appendText(append(b, `,"name":`...), c.Location.Name)
		return append(appendText(append(b, `,"address":`...), c.Location.Address), `}}`...)
	case c.Reaction != nil:
		return append(appendText(append(b, `{"reaction":{"emoji":`...), c.Reaction.Emoji), `}}`...)
	}
	return append(b, "null"...)
}

func appendNumber(b []byte, f float64) []byte { return strconv.AppendFloat(b, f, 'f', -1, 64) }

func appendButton(b []byte, v desk.Button) []byte {
	b = desk.AppendJSONString(append(b, `{"id":`...), v.ID)
	return append(desk.AppendJSONString(append(b, `,"title":`...), v.Title), '}')
}

func appendLink(b []byte, l desk.Link) []byte {
	b = desk.AppendJSONString(append(b, `{"title":`...), l.Title)
	return append(desk.AppendJSONString(append(b, `,"url":`...), l.URL), '}')
}

// appendState appends the state of a conversation.
func appendState(b []byte, s *desk.State) []byte {
	b = appendID(append(b, `{"conversation_id":`...), s.Conversation)
	b = strconv.AppendBool(append(b, `,"window":{"open":`...), s.Window.Open)
	b = appendTime(append(b, `,"closes_at":`...), s.Window.ClosesAt)
	b = appendText(append(b, `,"reason":`...), string(s.Window.Reason))
	b = strconv.AppendInt(append(b, `},"unread":`...), int64(s.Talk.Unread), 10)
	b = appendID(append(b, `,"read_up_to":`...), s.Talk.Read.ID)
	b = appendTime(append(b, `,"waiting_since":`...), s.Talk.WaitingSince)
	b = appendText(append(b, `,"last_direction":`...), string(s.Talk.LastDirection))
	return append(appendTime(append(b, `,"opted_out_since":`...), s.OptedOutSince), '}')
}

// appendMessageFields appends the fields that the answer to a send shows of a message,
// without the closing brace.
func appendMessageFields(b []byte, m *desk.Message) []byte {
	b = appendID(append(b, `{"id":`...), m.ID)
	b = appendText(append(b, `,"external_id":`...), m.ExternalID)
	b = desk.AppendJSONString(append(b, `,"text":`...), m.Text)
	b = appendText(append(b, `,"delivery_status":`...), string(m.Delivery))
	return appendTime(append(b, `,"ts":`...), m.TS)
}

func appendFailure(b []byte, f *desk.Failure) []byte {
	b = strconv.AppendInt(append(b, `{"code":`...), int64(f.Code), 10)
	b = desk.AppendJSONString(append(b, `,"title":`...), f.Title)
	return append(desk.AppendJSONString(append(b, `,"fix":`...), f.Fix), '}')
}

// dataOf wraps one record in the envelope.
func dataOf[T any](b []byte, v T, one func([]byte, T) []byte) []byte {
	return append(one(append(b, `{"data":`...), v), '}')
}

// listOf wraps a page of records in the envelope; next is the cursor of the next page, or
// "".
func listOf[T any](b []byte, list []T, one func([]byte, T) []byte, next string) []byte {
	b = appendArray(append(b, `{"data":`...), list, one)
	if next != "" {
		b = desk.AppendJSONString(append(b, `,"next_cursor":`...), next)
	}
	return append(b, '}')
}

// appendActor appends an actor, with the name that it has now.
func appendActor(b []byte, a desk.Actor, s *desk.Settings) []byte {
	b = append(append(b, `{"kind":"`...), a.Kind...)
	b = appendIDOrNull(append(b, `","id":`...), a.ID)
	return append(appendText(append(b, `,"name":`...), ActorName(s, a)), '}')
}

func appendIDOrNull(b []byte, id desk.ID) []byte {
	if id.IsZero() {
		return append(b, "null"...)
	}
	return appendID(b, id)
}

// ActorName is the name that an actor has now; "" if the actor has no name.
func ActorName(s *desk.Settings, a desk.Actor) string {
	switch a.Kind {
	case desk.ByKey:
		if k := s.Key(a.ID); k != nil {
			return k.Name
		}
	case desk.ByMember:
		if m := s.Member(a.ID); m != nil {
			return m.Name
		}
	case desk.ByProvider:
		if c := s.Channel(a.ID); c != nil {
			return string(c.Kind)
		}
	}
	return ""
}
