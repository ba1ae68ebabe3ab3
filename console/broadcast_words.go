package console

import (
	"strconv"
	"strings"
	"time"

	"parley/desk"
)

// broadcastStates are the words for the states of broadcasts.
var broadcastStates = map[desk.BroadcastState]pill{
	desk.BroadcastDraft:     {"Draft", ""},
	desk.BroadcastScheduled: {"Scheduled", ""},
	desk.BroadcastRunning:   {"Running", "good"},
	desk.BroadcastPaused:    {"Paused", "warn"},
	desk.BroadcastDone:      {"Done", "good"},
	desk.BroadcastCancelled: {"Cancelled", ""},
}

// noBroadcasts are the texts of empty lists.
var noBroadcasts = map[desk.BroadcastState]nothing{
	"":                      {Title: "No broadcasts yet", Text: "A broadcast sends one template to many people, each at most once. It will be here, with what came of it."},
	desk.BroadcastDraft:     {"No drafts", "Broadcasts that nobody has started will be here.", "/broadcasts", "See all"},
	desk.BroadcastScheduled: {"Nothing is scheduled", "Broadcasts that begin later will be here.", "/broadcasts", "See all"},
	desk.BroadcastRunning:   {"Nothing is running", "Broadcasts that are sent now will be here.", "/broadcasts", "See all"},
	desk.BroadcastPaused:    {"Nothing is paused", "Broadcasts that somebody paused, or that paused because something is wrong, will be here.", "/broadcasts", "See all"},
	desk.BroadcastDone:      {"Nothing is done yet", "Broadcasts that were sent to everybody will be here.", "/broadcasts", "See all"},
	desk.BroadcastCancelled: {"Nothing was cancelled", "Broadcasts that somebody ended early will be here.", "/broadcasts", "See all"},
}

// rowStates are the words for the statuses of people of a broadcast.
var rowStates = map[desk.RowStatus]pill{
	desk.RowPending:   {"To do", ""},
	desk.RowSending:   {"On its way", ""},
	desk.RowSent:      {"Sent", "good"},
	desk.RowDelivered: {"Delivered", "good"},
	desk.RowRead:      {"Read", "good"},
	desk.RowFailed:    {"Not delivered", "bad"},
	desk.RowRefused:   {"Not sent", "bad"},
	desk.RowInDoubt:   {"In doubt", "warn"},
	desk.RowSkipped:   {"Passed over", ""},
	desk.RowCancelled: {"Cancelled", ""},
}

// rowReasons are the words for the reasons of people of a broadcast.
var rowReasons = map[desk.RowReason]string{
	desk.SkipLate:           "Too late: it had to stop before",
	desk.SkipDeleted:        "The contact was deleted",
	desk.SkipDuplicate:      "Somebody with the same number or contact was before",
	desk.SkipUnreachable:    "No number and no chat account",
	desk.SkipNoConsent:      "Has not agreed to be written to",
	desk.SkipOptedOut:       "Opted out of marketing",
	desk.SkipInConversation: "Was in an open conversation",
	desk.SkipVariables:      "A value is missing or can't be sent",
	desk.RowReleased:        "Settled as not sent",
}

// waitWords say what a running broadcast waits for.
var waitWords = map[desk.BroadcastReason]string{
	desk.WaitsForHours:    "It waits for its hours",
	desk.WaitsForPace:     "It waits, as it may not go faster",
	desk.WaitsForPeople:   "It writes down who fits, before it sends",
	desk.WaitsForProvider: "It waits for the provider, which takes nothing for now",
}

// pauses say why a broadcast is paused.
var pauses = map[desk.BroadcastReason]string{
	desk.PausedAsked:    "Somebody paused it.",
	desk.PausedStarter:  "Whoever started it may not send any more: the key has ended, or the member is gone or no admin now. Whoever resumes it sends in their own name.",
	desk.PausedTemplate: "The template can't be sent any more, or it says something else than at the start.",
	desk.PausedFile:     "The provider refuses the file in the template's title.",
	desk.PausedChannel:  "The channel is turned off or blocked, or the provider wants less to be sent.",
	desk.PausedStopped:  "No server has sent it for 15 minutes, or the data came from a backup or another database. Look at what was sent since, before you resume it.",
}

// standing says why a broadcast waits or is paused; "" if it does neither.
func (c *call) standing(b *desk.Broadcast) string {
	switch {
	case b.State == desk.BroadcastScheduled:
		return "It begins " + c.timeWords(b.SendAt) + "."
	case b.State == desk.BroadcastPaused && b.Reason == desk.PausedFailures:
		return "More than " + strconv.Itoa(b.MaxFailed) + " % of the newest messages failed."
	case b.State == desk.BroadcastPaused && b.Reason == desk.PausedTooMany:
		return "More than " + peopleWords(b.AtMost) + " fit. Nobody was added after them. Change the greatest number, and resume it."
	case b.State == desk.BroadcastPaused:
		return pauses[b.Reason]
	case b.State == desk.BroadcastRunning && b.Reason != "":
		words := waitWords[b.Reason]
		if b.ResumesAt != 0 {
			words += ", until " + c.timeWords(b.ResumesAt)
		}
		return words + "."
	}
	return ""
}

// timeWords writes a time within a sentence: Thu 12 Mar 2026 14:05 (UTC).
func (c *call) timeWords(t desk.Time) string {
	return time.UnixMilli(int64(t)).In(c.zone).Format("Mon 2 Jan 2006 15:04 (MST)")
}

// consentWords say how the people of a broadcast agreed to be written to.
func (c *call) consentWords(v *desk.Consent) string {
	switch {
	case v == nil:
		return "Not said yet"
	case v.Confirmed:
		return "Whoever made it has the agreement of each of these people"
	}
	return "Only to people with a yes in " + c.attributeLabel(v.Attribute)
}

// broadcastFacts describe how a broadcast is sent.
func (c *call) broadcastFacts(b *desk.Broadcast) (list []fact) {
	add := func(label, value string) {
		if value != "" {
			list = append(list, fact{Label: label, Value: value})
		}
	}
	channel := "The only one"
	if v := c.p.Settings.Channel(b.Channel); v != nil {
		channel = channelName(c.p.Settings, v, true)
	} else if !b.Channel.IsZero() {
		channel = "Removed"
	}
	add("Channel", channel)
	add("Agreement", c.consentWords(b.Consent))
	open := "Sent to as well"
	if b.SkipsOpen() {
		open = "Passed over"
	}
	add("People in an open conversation", open)
	if b.SendAt != 0 {
		add("Begins", c.timeWords(b.SendAt))
	}
	if b.StopAt != 0 {
		add("Stops", c.timeWords(b.StopAt))
	}
	add("Hours", weekWords(b.Hours))
	if b.Pace != nil {
		add("Pace", "At most "+peopleWords(int64(b.Pace.People))+" in "+minutesWords(b.Pace.Minutes))
	}
	add("Pauses", "If more than "+strconv.Itoa(b.MaxFailed)+" % of the newest messages fail")
	add("Made", capital(c.actorName(b.CreatedBy))+", "+c.timeWords(b.CreatedAt))
	if b.StartedBy != (desk.Actor{}) {
		text := capital(c.actorName(b.StartedBy))
		if b.StartedAt != 0 {
			text += ", " + c.timeWords(b.StartedAt)
		}
		add("Started", text)
	}
	if b.EndedAt != 0 {
		add("Ended", c.timeWords(b.EndedAt))
	}
	return list
}

// weekWords write the hours of a week: Monday 09:00–18:00; Tuesday 09:00–18:00.
func weekWords(h *desk.Hours) string {
	if h == nil {
		return ""
	}
	var days []string
	for _, day := range desk.Weekdays {
		if spans := h.Week[day]; len(spans) > 0 {
			days = append(days, weekdayNames[day]+" "+spanWords(spans))
		}
	}
	text := strings.Join(days, "; ")
	if len(h.Exceptions) > 0 {
		text += "; " + several(len(h.Exceptions), "date") + " with other hours"
	}
	return text + " (" + h.TimeZone + ")"
}

// peopleWords writes a number of people.
func peopleWords(n int64) string {
	if n == 1 {
		return "1 person"
	}
	return count(int(n)) + " people"
}

// minutesWords write a span: a day, 3 hours, 90 minutes.
func minutesWords(n int) string {
	switch {
	case n == 24*60:
		return "a day"
	case n == 60:
		return "an hour"
	case n == 1:
		return "a minute"
	case n%60 == 0:
		return several(n/60, "hour")
	}
	return several(n, "minute")
}

// broadcastFrom are the words for what fills a variable of a broadcast. The agent of a
// broadcast is the owner of the contact.
var broadcastFrom = map[string]string{
	desk.FromRow:                   "Each line of the people",
	string(desk.AgentName):         "The name of the contact's owner",
	string(desk.AgentFirstName):    "The first name of the contact's owner",
	string(desk.AgentLastName):     "The last name of the contact's owner",
	string(desk.CustomerName):      bindingWords[desk.CustomerName],
	string(desk.CustomerFirstName): bindingWords[desk.CustomerFirstName],
	string(desk.CustomerLastName):  bindingWords[desk.CustomerLastName],
}

// broadcastValues say what fills the variables.
func (c *call) broadcastValues(b *desk.Broadcast) (list []fact) {
	for _, v := range b.Values {
		if v.Address == desk.MediaAddress { // it is shown
			continue
		}
		f := fact{Label: variableName(v.Address), Value: v.Value}
		key, attribute := strings.CutPrefix(v.From, "attributes.")
		switch {
		case attribute:
			f.Value = "The contact's " + c.attributeLabel(key)
		case v.From != "":
			f.Value = broadcastFrom[v.From]
		}
		if v.Else != "" {
			f.Value += "; if it is empty: " + apart(v.Else)
		}
		list = append(list, f)
	}
	return list
}

// audienceWords say who the people of a broadcast are.
func (c *call) audienceWords(a *desk.Audience) (string, error) {
	switch {
	case a.Segment != "":
		list, err := c.s.app.Segments.Segments(c.r.Context(), c.p)
		name := a.Segment
		for _, s := range list {
			if s.Key == a.Segment {
				name = s.Name
			}
		}
		return "The segment " + apart(name), err
	case a.Filter != nil:
		return "Contacts with " + firstOf(c.filterWords(a.Filter), shownFilter), nil
	}
	name := "a broadcast that was deleted"
	b, err := c.s.app.Broadcasts.Get(c.r.Context(), c.p, a.Broadcast)
	if err == nil {
		name = apart(b.Name)
	} else if !desk.IsType(err, desk.NotFound) {
		return "", err
	}
	var states []string
	for _, status := range a.Status {
		states = append(states, strings.ToLower(rowStates[status].Text))
	}
	text := "People of " + name + ": " + strings.Join(states, ", ")
	if a.Code != 0 {
		text += "; with the code " + strconv.Itoa(a.Code)
	}
	if a.Replied != nil {
		text += map[bool]string{true: "; who replied", false: "; who did not reply"}[*a.Replied]
	}
	return text, nil
}
