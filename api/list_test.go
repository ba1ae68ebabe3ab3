package api

import (
	"strings"
	"testing"

	"parley/desk"
)

// TestListBytesCoverTheJSON: ListBytes says how many bytes a record counts for in a page.
// So the JSON of a record must not have more bytes.
func TestListBytesCoverTheJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "plain", strings.Repeat("\x01", 5000), strings.Repeat("\"\\\n\t\r\b\f", 999), strings.Repeat("😀é", 5000)} {
		m := &desk.Member{ID: desk.ID{1}, Name: text, Email: text, Role: desk.RoleAdmin}
		c := &desk.Contact{
			ExternalID: text, Name: text, Email: text, Phone: "123456789012345", Note: text, Owner: m,
			CreatedAt: 1, UpdatedAt: 1, Attributes: desk.StoredAttributes(`{"a":` + string(desk.AppendJSONString(nil, text)) + `}`),
		}
		v := &desk.Conversation{Preview: text, Status: desk.StatusArchived, AssignedMember: desk.ID{1}, AssignedVia: desk.ViaMember}
		message := &desk.Message{ExternalID: text, Text: text, Delivery: desk.Delivered, Direction: desk.Outbound, Failure: &desk.Failure{Code: -1 << 62, Title: text, Fix: text},
			Kind: desk.KindUnsupported, Author: desk.Author{Type: desk.AuthorMember, ID: desk.ID{1}, Name: text}, ReplyTo: desk.ID{1},
			Extra: &desk.Extra{Location: &desk.Location{Latitude: -89.1234567890123, Longitude: -179.1234567890123, Name: text, Address: text}}}
		links := *message
		links.Extra = &desk.Extra{Links: []desk.Link{{Title: text, URL: text}}}
		for what, sizes := range map[string][2]int{
			"contact":      {len(appendContact(nil, c)), c.ListBytes()},
			"conversation": {len(appendConversation(nil, v, desk.WhatsAppChannel)), v.ListBytes()},
			"message":      {len(appendMessage(nil, message, &desk.Settings{})), message.ListBytes()},
			"with links":   {len(appendMessage(nil, &links, &desk.Settings{})), links.ListBytes()},
			"member":       {len(appendMember(nil, m)), m.ListBytes()},
		} {
			if sizes[0] > sizes[1] || sizes[1] > sizes[0]+1000 {
				t.Errorf("a %s of %d-byte texts has %d bytes as JSON, and is counted as %d", what, len(text), sizes[0], sizes[1])
			}
		}
	}
}
