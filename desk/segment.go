package desk

// A Segment is a filter with a name (contract-broadcast §6).
type Segment struct {
	Key       string // [a-z][a-z0-9_-]{0,31}
	Name      string
	Filter    Filter // canonical
	UpdatedAt Time
}

// The limits of segments.
const (
	MaxSegments     = 200
	MaxSegmentName  = 100
	MaxSegmentsJSON = 4 << 20 // bytes of an answer with all of them
)

// NewSegment checks a segment. It returns InvalidRequest.
func NewSegment(s *Settings, key, name string, filter Filter, at Time) (Segment, error) {
	if !IsSegmentKey(key) {
		return Segment{}, InvalidAt("/key", "a key is 1 to 32 characters: a letter a-z, then letters a-z, digits, _ and -")
	}
	name, err := parseText(name, "a name", 1, MaxSegmentName)
	if err != nil {
		return Segment{}, InvalidAt("/name", "%v", err)
	}
	m, err := filter.Matcher(s)
	if err != nil {
		return Segment{}, Within("/filter", err)
	}
	return Segment{key, name, m.Filter, at}, nil
}

// IsSegmentKey tells whether a segment can have a key.
func IsSegmentKey(key string) bool { return shortcut.MatchString(key) }

// Changes are the names of the fields in which two segments differ.
func (s *Segment) Changes(old *Segment) []string {
	var f fields
	f.add("filter", string(s.Filter.AppendJSON(nil)) != string(old.Filter.AppendJSON(nil)))
	f.add("name", s.Name != old.Name)
	return f
}

// RoomForSegment refuses a segment for which the workspace has no room. segments are all that
// it has.
func RoomForSegment(segments []Segment, next *Segment) error {
	before, total, found := 0, len(`{"data":[]}`)+next.ListBytes(), false
	for i := range segments {
		if s := &segments[i]; s.Key == next.Key {
			before, found = s.ListBytes(), true
		} else {
			total += s.ListBytes()
		}
	}
	switch {
	case !found && len(segments) >= MaxSegments:
		return Invalidf("the workspace has %d segments, and no more are possible: delete one first", MaxSegments)
	case total > MaxSegmentsJSON && next.ListBytes() > before:
		return InvalidAt("/filter", "with this one the workspace's segments would take more than the 4 MiB that all of them may: send fewer or shorter values")
	}
	return nil
}

// ListBytes is the segment's size in a page.
func (s *Segment) ListBytes() int {
	return recordRoom + jsonBytes(s.Name) + len(s.Filter.AppendJSON(nil))
}

// NoSegment is the answer for a key that no segment of the workspace has.
func NoSegment() *Error { return NotFoundf("no segment has this key") }
