package desk

// This file decides what the reply policy does with an inbound message (contract-talk §5):
// which member gets the conversation, and which text is sent automatically.

// A Load is the data about a member by which an assignee is chosen.
type Load struct {
	Away   bool
	Open   int   // open conversations that they hold, on all channels
	Chosen int64 // the number of the policy's last choice of this member, unique in the workspace; 0: never chosen
}

// maxLoad limits the count of a member's open conversations. Members with more than this
// count as equally loaded, and take turns.
const maxLoad = 1000

// Counted returns the number up to which the open conversations of each member are counted
// for a choice.
func (a *Assign) Counted() int {
	switch {
	case a.MaxOpen > 0:
		return a.MaxOpen
	case a.Mode == AssignLeastOpen:
		return maxLoad
	}
	return 0
}

// Here returns the listed members who are available, in the order of the list.
func (a *Assign) Here(s *Settings) []ID {
	var here []ID
	if a != nil && a.Mode != AssignNone {
		for _, id := range a.Members {
			if m := s.Member(id); m != nil && !m.Away {
				here = append(here, id)
			}
		}
	}
	return here
}

// Choose returns the member who gets the next conversation, or false if no member is
// eligible: listed, available, and below the limit. loads has the data of the workspace's
// members.
func (a *Assign) Choose(loads map[ID]Load) (ID, bool) {
	if a == nil || a.Mode == AssignNone {
		return ID{}, false
	}
	last := -1 // the place of the member whom the policy chose last
	for i, id := range a.Members {
		if l := loads[id]; l.Chosen > 0 && (last < 0 || l.Chosen > loads[a.Members[last]].Chosen) {
			last = i
		}
	}
	best, found := ID{}, false
	for i := range a.Members {
		id := a.Members[(last+1+i)%len(a.Members)]
		if a.Mode == AssignLeastOpen {
			id = a.Members[i]
		}
		l, member := loads[id]
		if !member || l.Away || a.MaxOpen > 0 && l.Open >= a.MaxOpen {
			continue
		}
		if a.Mode == AssignRoundRobin {
			return id, true
		}
		if b := loads[best]; !found || l.Open < b.Open || l.Open == b.Open && l.Chosen < b.Chosen {
			best, found = id, true
		}
	}
	return best, found
}

// An Arrival describes an inbound message to the policy. The message is stored, and its
// conversation is open.
type Arrival struct {
	Known    bool // the message was stored before
	Reaction bool
	Held     bool // an owner or a member holds the conversation
	Absent   bool // see Conversation.Absent
	Open     bool // the message came within the hours
}

// Receives tells whether a contact's owner gets a new conversation of the contact under
// this policy. Under the nil Policy, every owner does.
func (p *Policy) Receives(owner *Member) bool {
	return p == nil || p.OwnerAway != OwnerPool || owner == nil || !owner.Away
}

// Absent tells whether the conversation was assigned to a member because the member owns
// the contact, and this owner is away.
func (c *Conversation) Absent(contact *Contact) bool {
	owner := contact.Owner
	return owner != nil && c.AssignedVia == ViaOwner && c.AssignedMember == owner.ID && owner.Away
}

// Free tells whether the policy looks for a member to assign the conversation to.
func (m Arrival) Free() bool { return !m.Known && !m.Reaction && !m.Held && m.Open }

// An AutoKind is a kind of automatic reply; "" means that there is no reply.
type AutoKind string

// The kinds.
const (
	AutoAway   AutoKind = "away"
	AutoQueued AutoKind = "queued"
)

// A Decision is the policy's action on a message.
type Decision struct {
	Assign bool     // assign the conversation to the chosen member
	Reply  AutoKind // the automatic reply to send, unless a Silence forbids it
}

// Answer is the table of the reply policy: it returns the decision on a message. chosen
// tells whether a member was chosen for its conversation. The nil Policy does nothing.
func (p *Policy) Answer(m Arrival, chosen bool) Decision {
	switch {
	case p == nil || m.Known || m.Reaction:
		return Decision{}
	case m.Absent && m.Open:
		return Decision{Reply: AutoQueued}
	case m.Absent:
		return Decision{Reply: AutoAway}
	case m.Held:
		if !m.Open && p.AutoReply != nil && p.AutoReply.WhenHeld {
			return Decision{Reply: AutoAway}
		}
		return Decision{}
	case !m.Open:
		return Decision{Reply: AutoAway}
	case chosen:
		return Decision{Assign: true}
	}
	return Decision{Reply: AutoQueued}
}

// Text returns the text of a kind of automatic reply; "" if there is none.
func (p *Policy) Text(kind AutoKind) string {
	switch {
	case p == nil || p.AutoReply == nil:
		return ""
	case kind == AutoAway:
		return p.AutoReply.Away
	case kind == AutoQueued:
		return p.AutoReply.Queued
	}
	return ""
}

// An AutoReplyJob is an automatic reply that is to be sent.
type AutoReplyJob struct {
	Message      ID // the message that the reply answers
	Channel      ID
	Contact      ID
	Conversation ID
	Kind         AutoKind
	Text         string
	DecidedAt    Time
	Due          Time // while a process has the job, the end of its lease
	Tries        int
}

// Key is the Idempotency-Key of the reply. Callers can't use it: they may not send a key
// with an arrow.
func (j *AutoReplyJob) Key() string { return "automatic reply → " + j.Message.String() }

// autoReplyWaits are the waits after a temporary refusal.
var autoReplyWaits = []Time{5_000, 30_000}

// Again schedules the next try after a temporary refusal. It returns false if the reply is
// given up.
func (j *AutoReplyJob) Again(now Time) bool {
	if j.Tries >= len(autoReplyWaits) || j.Late(now) {
		return false
	}
	j.Due = now + autoReplyWaits[j.Tries]
	j.Tries++
	return true
}

// Late tells whether it is too late for the reply.
func (j *AutoReplyJob) Late(now Time) bool { return !near(now, j.DecidedAt, autoReplyAge+1) }

// near tells whether two times, in any order, differ by less than the limit most. A time
// that was stored while the clock was far ahead must not stop replies until that time
// comes.
func near(a, b, most Time) bool { return a-b < most && b-a < most }

// Limits of automatic replies.
const (
	autoReplyAge   = Time(10 * 60 * 1000) // an older message gets no automatic reply
	afterReply     = Time(15 * 60 * 1000) // no automatic reply is sent for this time after a person's reply
	maxAutoReplies = 3                    // in a row, without a person's reply between them
	hour           = Time(60 * 60 * 1000)
)

// A Moment holds the facts that decide whether an automatic reply to a message may be sent.
type Moment struct {
	Now         Time
	TS          Time // of the message
	Text        string
	Unsupported bool
	OptedOut    bool
	Unusable    bool // the channel is disabled, or is blocked also for replies
	Window      Window
}

// JustReplied tells whether a person has replied so lately that no automatic reply is sent.
func (w *Window) JustReplied(now Time) bool {
	return w.RepliedAt > 0 && near(now, w.RepliedAt, afterReply)
}

// A Silence is the reason why no automatic reply is sent; "" if one is sent.
type Silence string

// The causes, in the order in which they are checked.
const (
	SilentNoText      Silence = "no_text"
	SilentChoice      Silence = "choice" // a stop or start word
	SilentOptedOut    Silence = "opted_out"
	SilentUnsupported Silence = "unsupported"
	SilentChannel     Silence = "channel"
	SilentWindow      Silence = "window"
	SilentTooOld      Silence = "too_old"
	SilentReplied     Silence = "recent_reply"
	SilentEveryHours  Silence = "every_hours"
	SilentInARow      Silence = "in_a_row"
)

// Silent returns the reason why an automatic reply of a kind is not sent; "" if it is sent.
func (p *Policy) Silent(kind AutoKind, m Moment) Silence {
	switch {
	case p.Text(kind) == "":
		return SilentNoText
	case OptWord(m.Text) != OptNone:
		return SilentChoice
	case m.OptedOut:
		return SilentOptedOut
	case m.Unsupported:
		return SilentUnsupported
	case m.Unusable:
		return SilentChannel
	case !m.Window.State(m.Now).Open:
		return SilentWindow
	case m.Now-m.TS > autoReplyAge:
		return SilentTooOld
	case m.Window.JustReplied(m.Now):
		return SilentReplied
	case m.Window.AutoReplyAt > 0 && near(m.Now, m.Window.AutoReplyAt, Time(p.AutoReply.EveryHours)*hour):
		return SilentEveryHours
	case m.Window.AutoReplies >= maxAutoReplies:
		return SilentInARow
	}
	return ""
}
