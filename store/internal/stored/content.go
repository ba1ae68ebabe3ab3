package stored

import "parley/desk"

// A Content is the content of a message as it is stored. With it stands the attribute by which
// the contact had opted in, so that the message shows it however old it becomes.
type Content struct {
	*desk.Extra
	OptIn string `json:"opt_in,omitzero"`
}

// ContentOf returns what is stored of a message's content; nil: nothing.
func ContentOf(m *desk.Message) *Content {
	c := &Content{Extra: m.Extra}
	if m.OptIn != nil {
		c.OptIn = m.OptIn.Attribute
	}
	if c.Extra == nil && c.OptIn == "" {
		return nil
	}
	return c
}

// Into gives a message its stored content. The message has its opt-in already.
func (c *Content) Into(m *desk.Message) {
	if c == nil {
		return
	}
	if m.Extra = c.Extra; m.OptIn != nil {
		m.OptIn.Attribute = c.OptIn
	}
}
