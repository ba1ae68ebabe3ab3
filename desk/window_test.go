package desk_test

import (
	"testing"

	"parley/desk"
)

// TestWindow_Replied: a reply ends the row of automatic replies, unless it is known late and was
// before the last of them. The times of a provider have whole seconds.
func TestWindow_Replied(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at           desk.Time
		row, replied desk.Time
	}{
		"after":              {9000, 0, 9000},
		"in the same second": {7000, 0, 7000},
		"before":             {6999, 3, 6999},
		"long before":        {1000, 3, 5000},
	} {
		w := desk.Window{RepliedAt: 5000, AutoReplyAt: 7500, AutoReplies: 3}
		w.Replied(c.at)
		if w.AutoReplies != int(c.row) || w.RepliedAt != c.replied {
			t.Errorf("%s: %+v", name, w)
		}
	}
}
