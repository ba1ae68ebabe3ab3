package desk

// An AuthorType says what kind of author wrote an outbound message.
type AuthorType string

// The types of authors.
const (
	AuthorKey    AuthorType = "key"
	AuthorMember AuthorType = "member"
	AuthorRule   AuthorType = "rule" // an automatic reply
)

// An Author is who wrote an outbound message, by the name of that time. A rule has no id,
// and is named away or queued. The name of an author whom the last release stored is "".
type Author struct {
	Type AuthorType `json:"type"`
	ID   ID         `json:"id,omitzero"`
	Name string     `json:"name"`
}

// AuthorOf is a key or a member as an author; zero for other actors.
func (s *Settings) AuthorOf(by Actor) Author {
	switch by.Kind {
	case ByKey:
		if k := s.Key(by.ID); k != nil {
			return Author{AuthorKey, by.ID, k.Name}
		}
		return Author{AuthorKey, by.ID, ""}
	case ByMember:
		if m := s.Member(by.ID); m != nil {
			return Author{AuthorMember, by.ID, m.Name}
		}
		return Author{AuthorMember, by.ID, ""}
	}
	return Author{}
}
