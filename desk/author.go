package desk

// An AuthorType says what kind of author wrote an outbound message.
type AuthorType string

// The types of authors.
const (
	AuthorKey    AuthorType = "key"
	AuthorMember AuthorType = "member"
	AuthorRule   AuthorType = "rule" // an automatic reply

	AuthorBroadcast AuthorType = "broadcast"
)

// An Author says who wrote an outbound message, with the name that the author had then. A
// broadcast is the author of its messages. A
// rule has no id, and its name is away or queued. Authors stored by an earlier release have
// the name "".
type Author struct {
	Type AuthorType `json:"type"`
	ID   ID         `json:"id,omitzero"`
	Name string     `json:"name"`
}

// IsZero tells whether the Author is zero, so that there is no author.
func (a Author) IsZero() bool { return a.Type == "" }

// AuthorOf returns the author for a key or a member, and zero for other actors.
func (s *Settings) AuthorOf(by Actor) Author {
	switch by.Kind {
	case ByKey:
		return s.Named(Author{Type: AuthorKey, ID: by.ID})
	case ByMember:
		return s.Named(Author{Type: AuthorMember, ID: by.ID})
	}
	return Author{}
}

// Named gives an author without a name the current one. The name stays "" if the member or
// the key no longer exists.
func (s *Settings) Named(a Author) Author {
	if a.Name != "" {
		return a
	}
	if m := s.Member(a.ID); a.Type == AuthorMember && m != nil {
		a.Name = m.Name
	}
	if k := s.Key(a.ID); a.Type == AuthorKey && k != nil {
		a.Name = k.Name
	}
	return a
}
