package desk

// WindowLength is for how long a person who wrote can be answered freely, in milliseconds:
// the provider's 24 hours, less five minutes (contract-talk §3).
const WindowLength Time = 86_100_000

// A WindowReason says why a window is closed.
type WindowReason string

// The reasons.
const (
	NeverWrote    WindowReason = "never_wrote"
	WindowExpired WindowReason = "expired"
	ByTheProvider WindowReason = "provider"       // it refused a message
	NumberChanged WindowReason = "number_changed" // the person has another number since
)

// A Window is the time in which a contact can be answered freely on a channel: a day from
// the newest message that the contact wrote.
type Window struct {
	OpenedAt Time   // of that message; 0: the contact never wrote
	Number   string // digits, from which it came; "" if that is not known
	UserID   string // the provider's id of the person; "" if that is not known

	ShutAt Time         // messages up to this time open nothing any more; 0: never shut
	ShutBy WindowReason // ByTheProvider or NumberChanged

	RepliedAt   Time // when a person last replied on the channel, templates aside; 0: never
	AutoReplyAt Time // when the last automatic reply was decided; 0: never
	AutoReplies int  // how many in a row, without a reply of a person
}

// Replied counts a reply of a person.
func (w *Window) Replied(at Time) { w.RepliedAt, w.AutoReplies = max(w.RepliedAt, at), 0 }

// AutoReplied counts an automatic reply.
func (w *Window) AutoReplied(at Time) {
	w.AutoReplyAt = at
	w.AutoReplies++
}

// Open counts a message that a person wrote at some time, from some address.
func (w *Window) Open(at Time, number, userID string) {
	if at >= w.OpenedAt {
		w.OpenedAt, w.Number, w.UserID = at, number, userID
	}
}

// Shut closes the window for what was written up to some time, unless it was shut later.
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

// State is the window at a moment.
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

// A State is how a conversation stands (contract-talk §3).
type State struct {
	Conversation  ID
	Window        WindowState
	Talk          Talk
	OptedOutSince Time // 0: not opted out
}
