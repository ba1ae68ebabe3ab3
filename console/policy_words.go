package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/desk"
)

// dateWords writes a date: Fri 25 Dec 2026.
func dateWords(date string) string {
	at, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return date
	}
	return at.Format("Mon 2 Jan 2006")
}

// spanWords writes hours: 09:00–12:30, 13:30–18:00.
func spanWords(spans []desk.Span) string {
	if len(spans) == 0 {
		return "Closed"
	}
	words := make([]string, len(spans))
	for i, s := range spans {
		words[i] = s[0].String() + "–" + s[1].String()
	}
	return strings.Join(words, ", ")
}

// assignWords describe who gets conversations.
func (c *call) assignWords(p *desk.Policy) string {
	words := c.givenWords(p.Assign)
	if p.OwnerAway == desk.OwnerPool {
		words += " So it is for customers whose owner is away."
	}
	return words
}

// givenWords describe who gets unassigned conversations.
func (c *call) givenWords(a *desk.Assign) string {
	var names []string
	if a != nil {
		for _, id := range a.Members {
			if m := c.p.Settings.Member(id); m != nil {
				names = append(names, apart(m.Name))
			}
		}
	}
	if a == nil || a.Mode == desk.AssignNone || len(names) == 0 {
		return "Nobody gets conversations by themselves: they wait under Unassigned until somebody takes them."
	}
	most := ""
	if a.MaxOpen > 0 {
		most = ", up to " + count(a.MaxOpen) + " open ones each"
	}
	if len(names) == 1 {
		return names[0] + " gets new conversations" + strings.TrimSuffix(most, " each") + "."
	}
	who := together(names)
	if a.Mode == desk.AssignRoundRobin {
		return who + " get new conversations in turn" + most + "."
	}
	return "New conversations go to whichever of " + who + " has the fewest open" + most + "."
}

// together joins names: Ada, Bo and 3 others.
func together(names []string) string {
	const most = 3
	if len(names) > most+1 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("%d others", len(names)-most))
	}
	n := len(names)
	return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
}

// openWords say whether the team is available now, and until when.
func (c *call) openWords(channel desk.ID, h *desk.Hours) (string, error) {
	if h == nil {
		return "You are always open.", nil
	}
	open, until, changes, err := c.s.app.Hours(c.p, channel, nil)
	if err != nil {
		return "", err
	}
	words := "Closed now"
	if open {
		words = "Open now"
	}
	if !changes {
		return words + ", and for the next 15 days.", nil
	}
	zone, err := time.LoadLocation(h.TimeZone)
	if err != nil {
		zone = time.UTC
	}
	at, now := time.UnixMilli(int64(until)).In(zone), c.now.In(zone)
	layout := "Mon 2 Jan 15:04"
	if daysBetween(at, now) == 0 {
		layout = "15:04"
	}
	return words + ", until " + at.Format(layout) + " (" + zone.String() + ").", nil
}

// replyWords describe the automatic replies.
func replyWords(r *desk.AutoReply) string {
	switch {
	case r == nil || r.Away == "" && r.Queued == "":
		return "Nothing is answered by itself."
	case r.Queued == "":
		return "A text is sent while you are closed."
	case r.Away == "":
		return "A text is sent while you are open and nobody can take the conversation."
	}
	return "A text is sent while you are closed, and another while you are open and nobody can take the conversation."
}
