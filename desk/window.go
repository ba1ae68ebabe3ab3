package desk

// WindowLength is how long a window is open, in milliseconds: the provider's 24 hours, less
// five minutes (contract-talk §3).
const WindowLength Time = 86_100_000

// A WindowReason says why a window is closed.
type WindowReason string

// The reasons.
const (
	NeverWrote    WindowReason = "never_wrote"
	WindowExpired WindowReason = "expired"
	ByTheProvider WindowReason = "provider"       // the provider refused a message
	NumberChanged WindowReason = "number_changed" // the person has changed the number
)

// A Window is the time in which a contact can be answered freely on a channel: a day from
// the newest message that the contact wrote.
type Window struct {
	OpenedAt Time   // the time of the newest message; 0: the contact never wrote
	Number   string // the sender's digits; "": not known
	UserID   string // the provider's id of the person; "": not known

	ShutAt Time         // messages up to this time do not open the window; 0: never shut
	ShutBy WindowReason // ByTheProvider or NumberChanged

	RepliedAt   Time // when a person last replied on the channel; templates do not count; 0: never
	AutoReplyAt Time // when the last automatic reply was decided; 0: never
	AutoReplies int  // automatic replies since a person last replied
}

// Replied records a reply that a person wrote. One that becomes known late ends no row of automatic
// replies that came after it. Providers tell whole seconds.
func (w *Window) Replied(at Time) {
	w.RepliedAt = max(w.RepliedAt, at)
	if at >= w.AutoReplyAt-w.AutoReplyAt%1000 {
		w.AutoReplies = 0
	}
}

// AutoReplied records an automatic reply.
func (w *Window) AutoReplied(at Time) {
	w.AutoReplyAt = at
	w.AutoReplies++
}

// Open records a message that the contact wrote at a time, from a number or a user id.
func (w *Window) Open(at Time, number, userID string) {
	if at >= w.OpenedAt {
		w.OpenedAt, w.Number, w.UserID = at, number, userID
	}
}

// Shut closes the window: messages up to a time no longer open it. It returns false if the
// window was already shut up to this time or a later one.
func (w *Window) Shut(at Time, by WindowReason) bool {
	if at <= w.ShutAt {
		return false
	}
	w.ShutAt, w.ShutBy = at, by
	return true
}

// A WindowState is a window at some moment.
type WindowState struct {
	Open     bool
	ClosesAt Time         // or when it closed; 0 if the contact never wrote
	Reason   WindowReason // why it is closed; "" while it is open
}

// State returns the state of the window at a moment.
func (w *Window) State(now Time) WindowState {
	end := w.OpenedAt + WindowLength
	switch {
	case w.OpenedAt == 0:
		return WindowState{Reason: NeverWrote}
	case w.OpenedAt <= w.ShutAt && (w.ShutAt < end || now < end):
		return WindowState{ClosesAt: w.ShutAt, Reason: w.ShutBy}
	case now >= end:
		return WindowState{ClosesAt: end, Reason: WindowExpired}
	}
	return WindowState{Open: true, ClosesAt: end}
}

// A WindowRef names a window.
type WindowRef struct{ Channel, Contact ID }

// A State has the current window, unread messages and opt-out of a conversation
// (contract-talk §3).
type State struct {
	Conversation  ID
	Window        WindowState
	Talk          Talk
	OptedOutSince Time // 0: not opted out
}
