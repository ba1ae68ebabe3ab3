package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"parley/desk"
)

// ErrCommitLost is wrapped in Unavailable if the result of a commit is not known. The
// data may be stored, or may be stored later.
var ErrCommitLost = errors.New("it is unknown whether this was stored")

// ErrNoWorkspace is wrapped in NotFound if the workspace itself is not there, such as one
// that was deleted while a call was under way.
var ErrNoWorkspace = errors.New("the workspace does not exist")

// A Store is the database. Its methods are safe for concurrent use. In addition to the
// errors they name, any may return Unavailable if the database can't answer; then
// nothing is stored, unless the error is also ErrCommitLost. Any other error is a bug.
//
// No method reads or changes another workspace than the given one. A record of another
// workspace does not exist for it.
type Store interface {
	SettingsStore
	ContactStore
	ConversationStore
	TemplateStore
	SnippetStore
	AttemptStore
	OptOutStore
	InboundStore
	PaceStore
	LeaseStore
	ClockStore
	EventStore
	DeliveryStore
	AccessStore
	DailyStore
	MediaStore
	PolicyStore

	// Ready tells whether the database can answer now, and this process may write to it:
	// another process may have rebuilt the claims by newer rules (desk.IdentityRules).
	// Then every write to a workspace returns Unavailable.
	Ready(ctx context.Context) error

	// InTx runs f in a transaction on one workspace. It returns once the changes are
	// durable, or it returns f's error unchanged and nothing is stored. f may run more
	// than once, so it must assign its results anew each time. No other transaction
	// changes what f reads before the transaction ends. It returns NotFound if there is
	// no such workspace.
	InTx(ctx context.Context, ws desk.ID, f func(Tx) error) error
}

// A SettingsStore keeps workspaces and their configuration.
type SettingsStore interface {
	// Authenticate returns the settings of the workspace that has a key with this
	// public id, or NotFound. It does not check the secret.
	Authenticate(ctx context.Context, publicID string) (*desk.Settings, error)

	// Settings returns a workspace's configuration, or NotFound.
	Settings(ctx context.Context, ws desk.ID) (*desk.Settings, error)

	// UpdateSettings calls decide with the current configuration and stores the change
	// that it returns. If decide returns an error, UpdateSettings returns it unchanged.
	// No other edit happens in between. It returns NotFound if there is no such
	// workspace, and ErrOwns if a member to be removed still owns contacts or holds
	// open conversations.
	UpdateSettings(ctx context.Context, ws desk.ID, decide func(*desk.Settings) (desk.Change, error)) error

	// DeleteWorkspace marks a workspace as deleted. It first calls check with the
	// workspace's name; if check returns an error, it returns that error unchanged.
	// From the commit on, only this method and EraseWorkspace find the workspace, its
	// keys, members and channels. It returns NotFound if there is none; marking twice
	// changes nothing.
	DeleteWorkspace(ctx context.Context, ws desk.ID, check func(name string) error) error

	// EraseWorkspace deletes up to limit records of a workspace that is marked as
	// deleted, in one transaction, and returns how many. When it returns 0, the
	// workspace itself is deleted too.
	EraseWorkspace(ctx context.Context, ws desk.ID, limit int) (int, error)

	// CreateWorkspace stores a new, empty workspace.
	CreateWorkspace(ctx context.Context, w desk.Workspace) error

	// Shared lists the claims that contacts of a workspace share since an older
	// release, by kind and value, with the contacts by id.
	Shared(ctx context.Context, ws desk.ID) ([]desk.SharedClaim, error)

	// Workspaces lists all workspaces by id, so the oldest is first.
	Workspaces(ctx context.Context) ([]desk.Workspace, error)

	// Deleting returns the workspaces that are marked as deleted, and not erased yet, by
	// id.
	Deleting(ctx context.Context) ([]desk.Workspace, error)

	// ChannelsOfKind lists the channels of a kind in all workspaces.
	ChannelsOfKind(ctx context.Context, kind desk.ChannelKind) ([]ChannelRef, error)

	// Resealed tells whether the secrets of the first release were sealed again;
	// SetResealed stores that they were.
	Resealed(ctx context.Context) (bool, error)
	SetResealed(ctx context.Context) error

	// ChannelSigns returns the times at which a channel last worked, and the database's
	// clock.
	ChannelSigns(ctx context.Context, ws, channel desk.ID) (signs desk.ChannelSigns, now desk.Time, err error)

	// NoteChannel stores the database's current time for one of a channel's signs.
	NoteChannel(ctx context.Context, ws, channel desk.ID, sign ChannelSign) error

	// PutKeyUses stores when keys of a workspace were last used. It changes no version of
	// settings, and nothing for a key that is gone or was used later. KeyUses returns the
	// times of the keys that were used.
	PutKeyUses(ctx context.Context, ws desk.ID, uses map[desk.ID]desk.Time) error
	KeyUses(ctx context.Context, ws desk.ID) (map[desk.ID]desk.Time, error)

	// Gauges returns the values of /metrics that concern the whole database. A block of
	// a channel may have ended at now, the caller's time. It reads attempts in doubt and
	// waiting items, at most a hundred thousand of each, and each channel. It reads no
	// contacts, conversations or messages.
	Gauges(ctx context.Context, now desk.Time) (Gauges, error)

	// WorkspaceOf returns the workspace of the member, key, channel, webhook or unsettled
	// attempt with this id, or NotFound.
	WorkspaceOf(ctx context.Context, id desk.ID) (desk.ID, error)
}

// A ContactStore keeps contacts.
type ContactStore interface {
	// Contact returns a contact, or NotFound, together with the settings at the moment
	// of the read.
	Contact(ctx context.Context, ws, id desk.ID) (*desk.Contact, *desk.Settings, error)

	// Contacts returns up to limit contacts that match the filter and come after the
	// given position, in export order. It also returns the position after which the
	// list continues, nil at its end.
	//
	// This list and those of conversations and messages are read page by page: reading
	// stops at a desk.PageSize, and in a filtered list after desk.MaxLooked records, or
	// as many as the filter says. So
	// a page may be short, or even empty, although the list continues.
	Contacts(ctx context.Context, ws desk.ID, f desk.ContactFilter, after desk.ContactPlace, limit int) ([]*desk.Contact, *desk.ContactPlace, error)

	// NewestContacts returns up to limit contacts of an owner, or (zero) of all, that come
	// before the given position in export order (nil: from the end), newest change first,
	// and the position before which the list continues, nil at its end.
	NewestContacts(ctx context.Context, ws, owner desk.ID, before *desk.ContactPlace, limit int) ([]*desk.Contact, *desk.ContactPlace, error)

	// UpdateContacts loads all contacts that ops can change into a Book, calls apply
	// for it, and stores the changes, all or nothing. When it returns nil, they are
	// durable. If one Book is too small for them (Book.Full), it works in parts, in
	// order, in one transaction: each call of apply is for ops[from:to], on a Book that
	// includes what the earlier parts stored. After a call that ended the group
	// (Book.End), it stores what was applied and leaves out the later parts. It calls
	// apply at least once. Everything may run again, from the first operation on. It
	// returns NotFound if there is no such workspace. Of contacts that only brief
	// operations name, the Book may lack further identities (Book.ToRead).
	UpdateContacts(ctx context.Context, ws desk.ID, ops []*desk.Op, apply func(book *desk.Book, from, to int)) error

	// FlushesAbreast is how many calls of UpdateContacts for one workspace should run
	// at a time. More would not be faster.
	FlushesAbreast() int

	// Book loads the contacts of a look-up, for reading or to try operations. It stores
	// nothing and takes no lock.
	Book(ctx context.Context, ws desk.ID, l desk.Lookup) (*desk.Book, error)
}

// A ConversationStore keeps conversations, their messages and notes.
type ConversationStore interface {
	// Conversation returns a conversation, or NotFound.
	Conversation(ctx context.Context, ws, id desk.ID) (*desk.Conversation, error)

	// Conversations returns up to limit conversations that match the filter and come
	// after the given position (nil: from the start), newest first, and the position
	// after which the list continues, nil at its end.
	Conversations(ctx context.Context, ws desk.ID, f desk.ConversationFilter, after *desk.ConversationPlace, limit int) ([]*desk.Conversation, *desk.ConversationPlace, error)

	// Windows returns the windows that exist. There are up to desk.MaxLimit references, all
	// different.
	Windows(ctx context.Context, ws desk.ID, refs []desk.WindowRef) (map[desk.WindowRef]desk.Window, error)

	// CountConversations counts open conversations, of a channel or (zero) of all: those
	// that the member holds, the unassigned ones, all, and those that the member holds and
	// in which somebody waits. Each count ends at desk.MaxCount. The last, and the first two
	// of a channel, are counted among as many as the lists of the console look at for a page.
	CountConversations(ctx context.Context, ws, member, channel desk.ID) (desk.ConversationCounts, error)

	// Workloads returns what each of the members holds, and, under the zero id, what nobody
	// does. For the waits it looks at the desk.MaxMemberLooked longest ones. If there are
	// more, it returns when the last of these began: those of members without one began
	// later.
	Workloads(ctx context.Context, ws desk.ID, members []desk.ID) (loads map[desk.ID]desk.Workload, later desk.Time, err error)

	// Messages returns up to limit messages of a conversation that come after the given
	// position (nil: from the start), newest first, and the position after which the
	// list continues, nil at its end.
	Messages(ctx context.Context, ws, conversation desk.ID, after *desk.MessagePlace, limit int) ([]*desk.Message, *desk.MessagePlace, error)

	// Message returns a message of a conversation, or NotFound.
	Message(ctx context.Context, ws, conversation, id desk.ID) (*desk.Message, error)

	// Notes returns up to limit notes of a conversation with ids before the given one (nil:
	// from the newest), newest first by id, and the id before which the list continues, nil
	// at its end.
	Notes(ctx context.Context, ws, conversation desk.ID, before *desk.ID, limit int) ([]*desk.Note, *desk.ID, error)

	// MessagesBy returns those of the messages that exist, in no order. There are up to
	// desk.MaxLimit references, all different.
	MessagesBy(ctx context.Context, ws desk.ID, refs []desk.MessageRef) ([]*desk.Message, error)

	// ForgetErased deletes up to limit hashes of messages of deleted people that have been
	// kept for longer than age, by the database's clock. It returns how many.
	ForgetErased(ctx context.Context, ws desk.ID, age time.Duration, limit int) (int, error)
}

// A TemplateStore keeps copies of template libraries.
type TemplateStore interface {
	// Templates returns a channel's templates in no order, and the version of its
	// library at that moment, or NotFound.
	Templates(ctx context.Context, ws, channel desk.ID) (version int64, list []desk.TemplateSource, err error)
}

// A SnippetStore keeps snippets.
type SnippetStore interface {
	// Snippets lists the snippets of a workspace by shortcut.
	Snippets(ctx context.Context, ws desk.ID) ([]desk.Snippet, error)
}

// An AttemptStore keeps attempts and the keys that they hold.
type AttemptStore interface {
	// AttemptOfKey returns the attempt that holds an Idempotency-Key, or nil.
	AttemptOfKey(ctx context.Context, ws desk.ID, key string) (*desk.Attempt, error)

	// Attempt returns an attempt, or nil.
	Attempt(ctx context.Context, ws, id desk.ID) (*desk.Attempt, error)

	// Attempts returns up to limit attempts in a phase, "" for all, with ids before the given
	// one (nil: from the newest), newest first by id, and the id before which the list
	// continues, nil at its end. They lack what a list does not show: stored answers and
	// profiles.
	Attempts(ctx context.Context, ws desk.ID, phase desk.Phase, before *desk.ID, limit int) ([]*desk.Attempt, *desk.ID, error)

	// OldestInDoubt returns up to limit attempts in doubt with ids after the given one, oldest
	// first by id.
	OldestInDoubt(ctx context.Context, ws, after desk.ID, limit int) ([]AttemptRef, error)

	// Lapsed returns up to limit attempts of all workspaces that are still dispatching
	// although their lease has ended: more than margin milliseconds ago by the
	// database's clock, or it ends more than margin later than a lease of this length
	// that is given now.
	Lapsed(ctx context.Context, length, margin desk.Time, limit int) ([]LapsedAttempt, error)

	// ForgetAttempts deletes up to limit attempts of a workspace that have been settled
	// for this many hours of the counter, with the keys that they still hold, and
	// returns how many.
	ForgetAttempts(ctx context.Context, ws desk.ID, hours int64, limit int) (int, error)
}

// An OptOutStore keeps opt-outs.
type OptOutStore interface {
	// OptedOut returns since when holders of numbers have opted out of marketing, without
	// those who have not.
	OptedOut(ctx context.Context, ws desk.ID, numbers []NumberHash) (map[NumberHash]desk.Time, error)
}

// An InboundStore keeps inbound items and callbacks.
type InboundStore interface {
	// InboundItems returns up to limit inbound items of a workspace that are due by the
	// database's clock, oldest first, and how long to wait for the next one, less than
	// 0 if there is none. If an item is due later than longest from now, the clock was
	// set back after it was stored: it is due now, after the others.
	InboundItems(ctx context.Context, ws desk.ID, longest time.Duration, limit int) (list []InboundItem, next time.Duration, err error)

	// InboundDue returns the workspaces with inbound items, and how long to wait until
	// the first item of each is due, by the same rule; 0: it is due.
	InboundDue(ctx context.Context, longest time.Duration) (map[desk.ID]time.Duration, error)

	// NewestCallback returns when the newest callback of a channel came, even if it was
	// deleted; 0: none came yet.
	NewestCallback(ctx context.Context, ws, channel desk.ID) (desk.Time, error)

	// ForgetCallbacks deletes up to limit callbacks of a workspace that are older than
	// age, by the database's clock, with the list of the people whom they name, and
	// returns how many. It keeps every callback that is not processed yet.
	ForgetCallbacks(ctx context.Context, ws desk.ID, age time.Duration, limit int) (int, error)
}

// A PaceStore keeps the places within a provider's limits, which all nodes share.
type PaceStore interface {
	// Pace takes one place in each of the buckets, if none of them makes the caller
	// wait longer than most, and returns how long to wait before going on. Otherwise it
	// takes none, and returns false and how long it may take until there is a place. It
	// uses the database's clock. most is the same for all callers of a bucket, so
	// places further ahead than that are void.
	Pace(ctx context.Context, ws desk.ID, buckets []Bucket, most time.Duration) (wait time.Duration, ok bool, err error)

	// ForgetPace deletes the buckets of a workspace whose places have all passed, or
	// are further ahead than they can be.
	ForgetPace(ctx context.Context, ws desk.ID, longest time.Duration) error
}

// A LeaseStore decides which node runs a task that only one should run.
type LeaseStore interface {
	// Lease gives a task to the caller for some milliseconds of the database's clock
	// (always the same number for a task), and tells whether it did. It does not while
	// another caller has the task.
	Lease(ctx context.Context, ws desk.ID, task string, length desk.Time) (bool, error)
}

// An EventStore keeps the events of workspaces.
type EventStore interface {
	// Events returns a page of the feed. It reads everything in one snapshot: first the
	// settings, for which it calls which. It returns the error of which unchanged, and
	// otherwise the events of the types that which names, with their records as they
	// stand now. It returns NotFound if there is no such workspace.
	Events(ctx context.Context, ws desk.ID, q EventQuery, which func(*desk.Settings) ([]desk.EventType, error)) (*EventPage, error)

	// EventLog returns up to limit events of the types with numbers below before (0: from
	// the newest), newest first, and the number below which the list continues, 0 at its
	// end. It looks at up to MaxEventsLooked events, unless only types of the settings are
	// asked for (desk.EventType.OfSettings), which have an index: so a page may be short,
	// or even empty, although the list continues.
	EventLog(ctx context.Context, ws desk.ID, types []desk.EventType, before int64, limit int) ([]desk.FeedEvent, int64, error)

	// Heads returns how far each of the workspaces is. One that is deleted is missing.
	Heads(ctx context.Context, list []desk.ID) (map[desk.ID]Head, error)

	// WebhookStates returns the states of a workspace's webhooks.
	WebhookStates(ctx context.Context, ws desk.ID) (map[desk.ID]desk.WebhookState, error)

	// DropEvents drops the oldest events from the feed, up to limit, that Expired finds.
	// It returns how many it dropped.
	DropEvents(ctx context.Context, ws desk.ID, expired desk.Expired, limit int) (int, error)
}

// A DeliveryStore keeps deliveries of events to webhooks, and the leases of those who
// deliver.
type DeliveryStore interface {
	// EnabledWebhooks lists the enabled webhooks of all workspaces.
	EnabledWebhooks(ctx context.Context) ([]WebhookRef, error)

	// HoldLeases gives the tasks to a holder for some milliseconds of the database's
	// clock, or extends the holder's leases. It returns those that the holder now has,
	// each with the number of its calls (Tx.CallHolder). If another had the task before,
	// that counts as a call.
	HoldLeases(ctx context.Context, list []LeaseRef, holder desk.ID, length desk.Time) (map[LeaseRef]int64, error)

	// EndLease ends the holder's lease, so that another can have the task at once.
	EndLease(ctx context.Context, ref LeaseRef, holder desk.ID) error

	// Deliveries returns up to limit deliveries of a webhook that match the filter and
	// come after the given one (nil: from the start), newest first, and the one after
	// which the list continues, nil at its end. A page has at most a desk.PageSize.
	Deliveries(ctx context.Context, ws, webhook desk.ID, f desk.DeliveryFilter, after *desk.ID, limit int) ([]*desk.WebhookDelivery, *desk.ID, error)

	// Delivery returns a delivery of a webhook, nil if there is none.
	Delivery(ctx context.Context, ws, webhook, id desk.ID) (*desk.WebhookDelivery, error)

	// StoreDeliveries stores deliveries of a webhook, as DeliveryTx.PutDeliveries does, and
	// the webhook's state, all in one round trip. It returns false, and nothing is stored,
	// unless all is still as the hold says, and the feed has the state's cursor or had it
	// before it expired.
	StoreDeliveries(ctx context.Context, hold DeliveryHold, state desk.WebhookState, list []*desk.WebhookDelivery) (bool, error)

	// PendingDeliveries returns all pending deliveries of a webhook, without the responses
	// of their attempts.
	PendingDeliveries(ctx context.Context, ws, webhook desk.ID) ([]*desk.WebhookDelivery, error)

	// DeliveredWebhooks lists the webhooks that have deliveries, also those that were
	// removed.
	DeliveredWebhooks(ctx context.Context, ws desk.ID) ([]desk.ID, error)

	// ForgetDeliveries deletes up to limit deliveries of a webhook that were settled
	// before a time or are older than the newest keep; pending ones only if keep is 0.
	// It returns how many.
	ForgetDeliveries(ctx context.Context, ws, webhook desk.ID, before desk.Time, keep, limit int) (int, error)
}

// A WebhookRef identifies a webhook and its workspace.
type WebhookRef struct{ Workspace, ID desk.ID }

// A DeliveryHold is on what a process relies that knows the deliveries of a webhook without
// reading them.
type DeliveryHold struct {
	WebhookRef
	Task     string
	Holder   desk.ID // has the task
	Calls    int64   // and was called so often
	Settings int64   // version
}

// A LeaseRef identifies a task of a workspace.
type LeaseRef struct {
	Workspace desk.ID
	Task      string
}

// A Head says how far a workspace is: it differs after every event, and after every
// change of the settings.
type Head struct {
	Event    int64 // number of the newest event
	Settings int64 // version
}

// MaxEventsLooked is how many events are looked at for one page (contract-events §2).
const MaxEventsLooked = 10_000

// An EventQuery says where a page of the feed begins, and how many events it may have.
type EventQuery struct {
	From  EventStart
	After desk.EventPlace // for FromPlace
	Limit int             // 0: only the positions are asked for
	Bare  bool            // without the records

	// AtOnce asks for one round trip, for FromPlace and AtPlace with records: what was read
	// long ago is of no use to the caller. Otherwise the database is spared what may not be
	// needed.
	AtOnce bool
}

// An EventStart says where a page of the feed begins.
type EventStart uint8

// The starts.
const (
	FromOldest EventStart = iota
	FromNewest
	FromPlace
	AtPlace // only the event at After, of whatever type; none if it is gone
)

// An EventPage is a page of the feed.
type EventPage struct {
	Settings *desk.Settings
	Oldest   desk.EventPlace // before the oldest event
	Newest   desk.EventPlace
	Expired  string // why there is nothing after the given place; "": there is
	Events   []desk.FeedEvent
	Start    desk.EventPlace // the page begins after it
	Next     desk.EventPlace // of the last event that was looked at
	More     bool            // there are events after Next

	// The records of the events by id; one that is gone is nil or missing.
	Contacts      map[desk.ID]*desk.Contact
	Conversations map[desk.ID]*desk.Conversation
	Messages      map[desk.ID]*desk.Message
	Notes         map[desk.ID]*desk.Note
	Attempts      map[desk.ID]*desk.Attempt // without stored answers and profiles
	Libraries     map[desk.ID]*desk.Library // of channels; App adds them
	Webhooks      map[desk.ID]*Webhook      // App adds them
	Snippets      map[string]*desk.Snippet  // by shortcut; App adds them

	types []desk.EventType // those that the reader gets
}

// Why a page of the feed has expired (contract-events §2).
const (
	ExpiredByRetention = "retention"
	ExpiredByHistory   = "history"
)

// Cut ends the page before an event that is not the first.
func (p *EventPage) Cut(i int) { p.Events, p.Next, p.More = p.Events[:i], p.Events[i-1].Place, true }

// Trim cuts the page to the size that a page may have.
func (p *EventPage) Trim() {
	size := desk.NewPageSize(len(p.Events))
	for i := range p.Events {
		if e := &p.Events[i]; !size.Add(e.EventBytes() + p.DataBytes(e)) {
			p.Cut(i)
			return
		}
	}
}

// Template returns the template that an event is about, with its channel; nil if it is
// gone or not read.
func (p *EventPage) Template(e *desk.FeedEvent) (*desk.Channel, *desk.Template) {
	channel, name, language := e.TemplateKey()
	c, l := p.Settings.Channel(channel), p.Libraries[channel]
	if c == nil || l == nil {
		return c, nil
	}
	return c, l.Find(name, language)
}

// DataBytes is about the size of an event's record as JSON, and never less.
func (p *EventPage) DataBytes(e *desk.FeedEvent) int {
	conversation, contact := e.Of()
	switch e.Type.Kind() {
	case "contact":
		if c := p.Contacts[contact]; c != nil {
			return c.ListBytes()
		}
	case "conversation":
		if c := p.Conversations[conversation]; c != nil {
			return c.ListBytes()
		}
	case "message":
		if m := p.Messages[e.Subject]; m != nil {
			return m.ListBytes()
		}
	case "send":
		if at := p.Attempts[e.Subject]; at != nil {
			return at.ListBytes()
		}
	case "note":
		if n := p.Notes[e.Subject]; n != nil {
			return n.ListBytes()
		}
	case "template":
		if _, t := p.Template(e); t != nil {
			return t.ListBytes()
		}
	case "snippet":
		if s := p.Snippets[e.Key]; s != nil {
			return s.ListBytes()
		}
	case "attribute":
		if a := p.Settings.Attributes[e.Key]; a != nil {
			return a.ListBytes()
		}
	case "policy":
		channel := e.Subject
		if channel == p.Settings.ID {
			channel = desk.ID{}
		}
		if policy := p.Settings.Policy(channel); policy != nil {
			return policy.ListBytes()
		}
	case "member":
		if m := p.Settings.Member(e.Subject); m != nil {
			return m.ListBytes()
		}
	case "webhook":
		if w := p.Settings.Webhook(e.Subject); w != nil {
			return w.ListBytes()
		}
	}
	return 0
}

// A ClockStore tells the database's time, and counts its hours.
type ClockStore interface {
	// Clock returns the database's clock, and its counter of hours. Keys, attempts and
	// early statuses age by the counter, because setting a clock does not change it.
	Clock(ctx context.Context) (now desk.Time, hour int64, err error)

	// RaiseHour raises the counter of hours by one, if it still has the value seen.
	RaiseHour(ctx context.Context, seen int64) error
}

// An AccessStore keeps what members sign in with. Sessions and links are found by hashes
// of what the browser has. Removing a member removes all of this, and storing a member
// whose SessionsFrom has grown removes all sessions and links of the member.
type AccessStore interface {
	// Session returns a session, also an expired one, and the settings of its workspace.
	// It returns nil if there is none.
	Session(ctx context.Context, hash string) (*Session, *desk.Settings, error)

	// LoginLink returns a link, also an expired one, and the settings of its workspace.
	// It returns nil if there is none.
	LoginLink(ctx context.Context, hash string) (*LoginLink, *desk.Settings, error)

	// MembersByEmail returns up to most members of all workspaces who have an e-mail,
	// given in its canonical form, by their ids, with what their passwords are proved by.
	// All is as it was at one moment.
	MembersByEmail(ctx context.Context, canonical string, most int) ([]MemberAccess, error)

	// MostRecipes returns how many different beginnings the hashes of passwords of one
	// e-mail have at most, without the last bytes of each, of which there are tail.
	MostRecipes(ctx context.Context, tail int) (int, error)

	// MovePassword stores another hash of the same password, unless it was replaced.
	MovePassword(ctx context.Context, ws, member desk.ID, from, to string) error

	// Password returns the hash of a member's password, "" if there is none.
	Password(ctx context.Context, ws, member desk.ID) (string, error)

	// LastSeen returns when members of a workspace were last seen (AccessTx.NoteSeen).
	LastSeen(ctx context.Context, ws desk.ID) (map[desk.ID]desk.Time, error)

	// Held counts what RemoveMember releases, each up to most.
	Held(ctx context.Context, ws, member desk.ID, most int) (contacts, conversations int, err error)

	// ForgetAccess deletes the sessions and links of a workspace that expired before a
	// time.
	ForgetAccess(ctx context.Context, ws desk.ID, before desk.Time) error
}

// A DailyStore keeps counts of messages by day.
type DailyStore interface {
	// DailyPlace returns up to where the events of a workspace are counted, the zero place
	// if none is.
	DailyPlace(ctx context.Context, ws desk.ID) (desk.EventPlace, error)

	// Daily returns the counts from a day on, by day, kind and key.
	Daily(ctx context.Context, ws desk.ID, from int64) ([]desk.DailyCount, error)
}

// A MediaStore keeps files: their records, and their content, which is stored apart and
// once for all files of a workspace that have it.
type MediaStore interface {
	// Media returns the record of a file, or NotFound.
	Media(ctx context.Context, ws, id desk.ID) (*desk.Media, error)

	// MediaList returns up to limit records, of failed ones only or of all, with ids
	// before the given one (zero: from the newest), newest first by id.
	MediaList(ctx context.Context, ws desk.ID, failed bool, before desk.ID, limit int) ([]*desk.Media, error)

	// MediaUsed returns how many bytes of content a workspace has: equal content counts once.
	// CountMedia counts them anew.
	MediaUsed(ctx context.Context, ws desk.ID) (int64, error)
	CountMedia(ctx context.Context, ws desk.ID) error

	// Room returns the free bytes of the file system that has the content, and all of its
	// bytes; known is false if the database has the content.
	Room() (free, total int64, known bool, err error)

	// NewContent begins to store content. OpenContent opens content for reading; it
	// returns NotFound if it is not there.
	NewContent(ctx context.Context, ws desk.ID) (Draft, error)
	OpenContent(ctx context.Context, ws desk.ID, sha256 []byte) (io.ReadSeekCloser, error)

	// DropContents deletes up to limit contents, of any workspaces, that no file has any
	// more, and returns how many it has looked at.
	DropContents(ctx context.Context, limit int) (int, error)

	// DropDrafts deletes drafts that are older than this.
	DropDrafts(ctx context.Context, age time.Duration) error

	// MediaDue returns the workspaces with files to fetch, and how long to wait until
	// the first of each is due by the database's clock; 0: it is due. A file that is due
	// later than longest from now is due now: the clock was set back.
	MediaDue(ctx context.Context, longest time.Duration) (map[desk.ID]time.Duration, error)

	// TakeMediaJob gives the job of a workspace that has been due for the longest time
	// to a holder until a lease of this length ends. It returns nil if none is due.
	TakeMediaJob(ctx context.Context, ws, holder desk.ID, lease, longest time.Duration) (*MediaJob, error)

	// HoldMediaJob extends the holder's lease. It returns false if the holder does not
	// have the job any more.
	HoldMediaJob(ctx context.Context, ws, media, holder desk.ID, lease time.Duration) (bool, error)

	// MediaRef returns the id by which the provider of a channel knows a file, and when it
	// was handed over; "" if it was not.
	MediaRef(ctx context.Context, ws, media, channel desk.ID) (ref string, at desk.Time, err error)
	PutMediaRef(ctx context.Context, ws, media, channel desk.ID, ref string, at desk.Time) error
}

// A PolicyStore finds what the reply policy left for later.
type PolicyStore interface {
	// AutoRepliesDue returns the workspaces with automatic replies to send, and how long to
	// wait until the first of each is due by the database's clock; 0: it is due. One that is
	// due later than longest from now is due now: the clock was set back.
	AutoRepliesDue(ctx context.Context, longest time.Duration) (map[desk.ID]time.Duration, error)

	// TakeAutoReply gives the job of a workspace that has been due for the longest time to
	// the caller until a lease of this length ends. It returns nil if none is due.
	TakeAutoReply(ctx context.Context, ws desk.ID, lease, longest time.Duration) (*desk.AutoReplyJob, error)

	// Pools returns the workspaces that have a reply policy, and open conversations that
	// wait and that nobody holds. It is one statement over all workspaces.
	Pools(ctx context.Context) ([]Pool, error)
}

// A Pool is a workspace in which somebody waits whom nobody has. Whatever may make somebody
// eligible, but the time, changes one of the numbers.
type Pool struct {
	Workspace desk.ID
	Settings  int64 // their version
	Event     int64 // the number of the newest
}

// A Draft is content that is being stored. Its errors are Unavailable if the machine
// fails.
type Draft interface {
	// Write takes the next bytes.
	io.Writer

	// Keep makes the content durable. It is deleted after KeptContent, unless a Tx has
	// used it (UseContent). It returns MediaQuota if the workspace would then have more
	// bytes of content than most (0: no limit).
	Keep(ctx context.Context, most int64) (sha256 []byte, size int64, err error)

	// Drop deletes a draft that was not kept. It may always be called.
	Drop()
}

// KeptContent is how long content is kept without a file that has it.
const KeptContent = time.Hour

// A MediaJob is a file that is to be fetched from a provider.
type MediaJob struct {
	Media, Channel, Contact, Conversation, Message desk.ID

	TS     desk.Time // of the message
	Ref    string    // the provider's id of the file
	MIME   string    // this and the next two as the provider tells; "", 0 and nil: it does not
	Size   int64
	SHA256 []byte
	Tries  int
	Due    desk.Time // while a process has the job, the end of its lease
	Holder desk.ID   // zero: no process
	Ended  bool      // it has failed for good; it is kept to be begun again by hand
}

// A Tx is a transaction on one workspace, see Store.InTx. A method returns nil if there
// is no such record. Puts insert or replace by id (an inbound item: by due time and
// id). An error of a method ends the transaction: the closure must return it.
type Tx interface {
	ContactTx
	ConversationTx
	AttemptTx
	OptOutTx
	InboundTx
	WebhookTx
	DeliveryTx
	AccessTx
	DailyTx
	SnippetTx
	MediaTx
	PolicyTx

	// Settings are the workspace's settings at this moment.
	Settings() *desk.Settings

	// Now is the database's clock, by which leases are measured on all nodes.
	Now() desk.Time

	// Append appends events to the workspace's events.
	Append(events ...desk.Event) error
}

// A ContactTx reads and writes contacts.
type ContactTx interface {
	// Book loads the contacts of a look-up; Flush stores its changes.
	Book(l desk.Lookup) (*desk.Book, error)
	Flush(*desk.Book) error

	// Contact loads one contact.
	Contact(id desk.ID) (*desk.Contact, error)
}

// A ConversationTx reads and writes conversations, messages and notes.
type ConversationTx interface {
	Conversation(id desk.ID) (*desk.Conversation, error)
	OpenConversation(channel, contact desk.ID) (*desk.Conversation, error)
	PutConversation(...*desk.Conversation) error

	// HeldConversations returns up to limit open conversations that a member holds and
	// that come after the given position (nil: from the start), newest first.
	HeldConversations(member desk.ID, after *desk.ConversationPlace, limit int) ([]*desk.Conversation, error)

	// NewestConversation returns the newest conversation with a contact on a channel.
	NewestConversation(channel, contact desk.ID) (*desk.Conversation, error)

	// Message finds a message in its conversation, MessageBy by the provider's id.
	Message(conversation, id desk.ID) (*desk.Message, error)
	MessageBy(channel desk.ID, externalID string) (*desk.Message, error)

	// ReceivedMessage is MessageBy, and tells whether a message with this id was one of a
	// deleted person; then there is none. AnyErased tells whether any of the messages was.
	// Deleting a contact keeps hashes of the messages for that, see ForgetErased.
	ReceivedMessage(m desk.MessageRef) (known *desk.Message, erased bool, err error)
	AnyErased([]desk.MessageRef) (bool, error)
	PutMessage(*desk.Message) error

	// PutMessageDelivery stores how far a message is that is stored already: its delivery and its
	// failure. PutMessage would write its indexes too.
	PutMessageDelivery(*desk.Message) error

	// PutNote stores a new note. DeleteNote deletes one, and tells whether it existed.
	PutNote(*desk.Note) error
	DeleteNote(conversation, id desk.ID) (bool, error)
	// NewestInbound returns the newest inbound message of a conversation that is not after a
	// position and whose id at the provider is known.
	NewestInbound(conversation desk.ID, upTo desk.MessagePlace) (*desk.Message, error)

	// MarkRead marks those unread messages of a conversation as read that are not after a
	// position: up to most, the newest first. It returns how many.
	MarkRead(conversation desk.ID, upTo desk.MessagePlace, most int) (int, error)

	// Waiting finds by a conversation's messages what desk.Talk has as Answered and as
	// WaitingSince.
	Waiting(conversation desk.ID) (answered desk.ID, since desk.Time, err error)

	// Window returns the window of a contact on a channel, the zero Window if there is
	// none.
	Window(channel, contact desk.ID) (desk.Window, error)
	PutWindow(channel, contact desk.ID, w desk.Window) error

	// NewestMessage returns the position of the newest message of a conversation between
	// two times (the second excluded), the zero position for none.
	NewestMessage(conversation desk.ID, from, before desk.Time) (desk.MessagePlace, error)
}

// An AttemptTx reads and writes attempts and the keys that they hold.
type AttemptTx interface {
	// AttemptOfKey returns the attempt that holds a key. TakeKey makes an attempt the
	// key's holder, and FreeKey frees the key.
	AttemptOfKey(key string) (*desk.Attempt, error)
	TakeKey(key string, attempt desk.ID) error
	FreeKey(key string) error
	Attempt(id desk.ID) (*desk.Attempt, error)

	// Untouched tells whether an attempt is still as it was claimed: being sent, and not
	// erased. To read this is much cheaper than to read the attempt.
	Untouched(id desk.ID) (bool, error)

	// AttemptsTo returns the attempts to a contact that are not settled.
	AttemptsTo(contact desk.ID) ([]*desk.Attempt, error)

	// PutAttempt stores the hour of the counter in which the attempt was settled, if it
	// now is.
	PutAttempt(*desk.Attempt) error
}

// An OptOutTx reads and writes marketing choices.
type OptOutTx interface {
	// OptOut returns a number's newest marketing choice, SetOptOut stores it.
	OptOut(NumberHash) (OptOut, error)
	SetOptOut(NumberHash, OptOut) error
}

// An InboundTx reads and writes inbound items, callbacks and early statuses.
type InboundTx interface {
	// KeepStatus keeps a status of an unknown message. TakeStatuses returns and deletes
	// those of a message that is now known. DropStatuses deletes those that have been
	// kept for this many hours of the counter.
	KeepStatus(channel desk.ID, n desk.StatusUpdate) error
	TakeStatuses(channel desk.ID, externalID string) ([]desk.StatusUpdate, error)
	DropStatuses(hours int64) error

	PutInbound(InboundItem) error

	// PutCallback stores the body of an item that has a ReceivedAt. Callback returns
	// it, nil if it was deleted. PutCallbackPeople stores whom it names, by their
	// identities' values, so that it is erased with them.
	PutCallback(InboundItem) error
	Callback(InboundItem) ([]byte, error)
	PutCallbackPeople(n InboundItem, people []string) error

	// EraseCallback erases the body of a callback that tells of a deleted person again. Its
	// time stays.
	EraseCallback(InboundItem) error

	// TakeInbound deletes those of the items that are still stored and that no other
	// transaction is taking, and returns them.
	TakeInbound([]InboundItem) ([]InboundItem, error)
}

// A WebhookTx reads and writes states of webhooks. UpdateSettings stores a new webhook's
// state together with its webhook.created event, at whose place it begins, and deletes
// it with the webhook.
type WebhookTx interface {
	// WebhookState returns the zero state for a webhook that was removed.
	// PutWebhookState then does nothing.
	WebhookState(id desk.ID) (desk.WebhookState, error)
	PutWebhookState(id desk.ID, state desk.WebhookState) error
}

// A DeliveryTx reads and writes deliveries of events to webhooks.
type DeliveryTx interface {
	// Leased tells whether the holder still has a task, and how often it was called.
	// Nobody else gets the task before the transaction ends. CallHolder counts a call of
	// whoever has the task. It comes first in its transaction, so that it waits for those
	// of the holder.
	Leased(task string, holder desk.ID) (calls int64, ours bool, err error)
	CallHolder(task string) error

	// Passed tells whether the workspace's feed has the event of a place, or had it before
	// it expired. A database that has lost commits does not have all.
	Passed(place desk.EventPlace) (bool, error)

	// DeliveriesOf returns deliveries of a webhook by their ids, those that exist, with
	// attempts but without responses.
	DeliveriesOf(webhook desk.ID, ids []desk.ID) ([]*desk.WebhookDelivery, error)

	// PutDeliveries stores deliveries. It adds the responses of their attempts, unless
	// the contact is deleted.
	PutDeliveries(webhook desk.ID, list []*desk.WebhookDelivery) error

	// DropPending deletes the pending deliveries of a webhook whose events come after a
	// number. DuePending makes all pending ones due.
	DropPending(webhook desk.ID, after int64) error
	DuePending(webhook desk.ID, at desk.Time) error
}

// An AccessTx reads and writes what members sign in with. They must be members.
type AccessTx interface {
	// BeginSession stores a new session, and deletes the member's oldest ones beyond
	// most.
	BeginSession(hash string, s Session, most int) error

	// KeepSession stores the expiry and the data of a session. It returns false if there
	// is no such session.
	KeepSession(hash string, s Session) (bool, error)
	EndSession(hash string) error

	// PutLoginLink stores a new link. TakeLoginLink deletes a link and returns it, nil if
	// there is none; only one of several calls gets it.
	PutLoginLink(hash string, l LoginLink) error
	TakeLoginLink(hash string) (*LoginLink, error)

	// NoteSeen stores that a member was seen.
	NoteSeen(member desk.ID, at desk.Time) error
}

// A Session is a member's, in one browser.
type Session struct {
	Workspace, Member  desk.ID
	BegunAt, ExpiresAt desk.Time
	Data               []byte // of the console

	stored bool      // it comes from the store
	from   desk.Time // SessionsFrom of the member who proved to be it, if it does not
}

// A LoginLink lets a member sign in once.
type LoginLink struct {
	Workspace, Member desk.ID
	ExpiresAt         desk.Time
}

// A MemberRef identifies a member.
type MemberRef struct{ Workspace, ID desk.ID }

// A MemberAccess is what a member's password is proved by.
type MemberAccess struct {
	MemberRef
	SessionsFrom desk.Time
	Password     string // its hash; "": none
}

// A DailyTx writes the counts of messages by day.
type DailyTx interface {
	// CountDays adds to the counts, and moves the position up to which events are counted.
	// It does nothing if that is not from any more: another process has counted them.
	CountDays(from, to desk.EventPlace, counts []desk.DailyCount) error

	// DropDays deletes the counts of the days before one.
	DropDays(before int64) error
}

// A SnippetTx reads and writes snippets.
type SnippetTx interface {
	// Snippet returns the snippet with a shortcut, and how many the workspace has.
	Snippet(shortcut string) (s *desk.Snippet, count int, err error)
	PutSnippet(desk.Snippet) error
	DropSnippet(shortcut string) error
}

// A MediaTx reads and writes records of files. Deleting a contact deletes the files that
// the person sent, and the uploads that no other person's message has; PutMessage makes
// an upload belong to its message.
type MediaTx interface {
	Media(id desk.ID) (*desk.Media, error)
	PutMedia(*desk.Media) error

	// MediaInUse tells whether a message has a file, or a reply that is being sent or whose
	// outcome is unknown. DropMedia deletes the record, with what belongs to it.
	MediaInUse(id desk.ID) (bool, error)
	DropMedia(id desk.ID) error

	// UseContent tells that a file which the transaction stores has kept content. It
	// returns Unavailable if the content was kept too long ago.
	UseContent(sha256 []byte) error

	// PutMediaJob inserts or replaces a job. MediaJob returns it, and DropMediaJob
	// deletes it.
	PutMediaJob(MediaJob) error
	MediaJob(media desk.ID) (*MediaJob, error)
	DropMediaJob(media desk.ID) error

	// OldMedia returns up to limit ready files that were stored before a time, oldest
	// first. DropUploads deletes up to limit uploads from before a time that are in no
	// message, and returns how many it has looked at.
	OldMedia(before desk.Time, limit int) ([]*desk.Media, error)
	DropUploads(before desk.Time, limit int) (int, error)

	// ReleaseContent tells that a file may have been the last with this content, after
	// its record was stored without it.
	ReleaseContent(sha256 []byte) error

	// MessagesOf returns up to limit messages that have a file.
	MessagesOf(media desk.ID, limit int) ([]*desk.Message, error)
}

// A PolicyTx reads and writes what the reply policy needs.
type PolicyTx interface {
	// LockAssignment makes the transaction the only one that assigns by policy in the
	// workspace, until it ends.
	LockAssignment() error

	// Loads returns what a choice knows of members, after LockAssignment: how many open
	// conversations each holds, up to most, and the number of the last choice of them by
	// the policy of a channel, or (zero) the workspace's. PutTurn gives a member the next
	// number.
	Loads(policy desk.ID, members []desk.ID, most int) (map[desk.ID]desk.Load, error)
	PutTurn(policy, member desk.ID) error

	// Pool returns up to limit open conversations of a channel that wait and that nobody
	// holds, longest wait first.
	Pool(channel desk.ID, limit int) ([]*desk.Conversation, error)

	// PutAutoReply inserts or replaces an automatic reply to be sent, by the contact and the
	// message that it answers. AutoReply returns it, and DropAutoReply deletes it.
	PutAutoReply(desk.AutoReplyJob) error
	AutoReply(contact, message desk.ID) (*desk.AutoReplyJob, error)
	DropAutoReply(contact, message desk.ID) error
}

// A NumberHash is a keyed hash of a phone number. It may be kept longer than the
// contact, because the number can't be computed from it.
type NumberHash [32]byte

// An OptOut is the newest marketing choice of a number's holder.
type OptOut struct {
	Since desk.Time // 0: not opted out
	At    desk.Time // when the choice was made
}

// An AttemptRef identifies an attempt, and says when it was made.
type AttemptRef struct {
	ID        desk.ID
	CreatedAt desk.Time
}

// A LapsedAttempt is an attempt whose process must have died.
type LapsedAttempt struct{ Workspace, ID desk.ID }

// An InboundItem is one report of a provider on a channel, kept until it is processed.
type InboundItem struct {
	Channel    desk.ID
	ID         desk.ID
	Due        desk.Time // when to process it, by the database's clock
	Body       []byte    // in a form that the provider's Read understands
	ReceivedAt desk.Time // of the callback with the body, which is stored separately and longer; 0: Body has everything
	Skip       int       // how many of its updates are processed already
}

// A Later is an update that the provider itself creates after a wait, because nobody
// will send it.
type Later struct {
	Wait time.Duration
	Body []byte // of the inbound item that it becomes
}

// item is the inbound item that it becomes, if the wait begins at the given time of the
// database's clock.
func (l Later) item(channel, id desk.ID, from desk.Time) InboundItem {
	return InboundItem{Channel: channel, ID: id, Due: from + desk.Time(l.Wait.Milliseconds()), Body: l.Body}
}

// A ChannelSign names one of the times of desk.ChannelSigns.
type ChannelSign string

// The signs of a channel.
const (
	SignSynced ChannelSign = "synced"
	SignAsked  ChannelSign = "asked"
)

// A ChannelRef identifies a channel and its workspace.
type ChannelRef struct{ Workspace, ID desk.ID }

// A Bucket limits the rate of messages: one place every Interval, and up to Burst
// places at once.
type Bucket struct {
	Name     string
	Interval time.Duration
	Burst    int
}

// A Provider implements a kind of channel.
type Provider interface {
	// Send hands one message to the provider. It returns a Receipt if the provider
	// accepted it, a *desk.Refusal as its error if it certainly was not sent, and any
	// other error if the outcome is unknown.
	Send(ctx context.Context, d Dispatch) (Receipt, error)

	// Templates returns the channel's whole library, or an error, but never a part of
	// it.
	Templates(ctx context.Context, at Access) ([]desk.TemplateSource, error)

	// Read returns the updates of an inbound item, in order, and an item to store for
	// later, nil for none. It skips updates that it does not understand; its error
	// concerns the whole item.
	Read(n InboundItem) ([]Update, *Later, error)

	// Check returns the problems of a channel. An error means that it could not find
	// out.
	Check(ctx context.Context, at Access) ([]Problem, error)

	// CheckAccount refuses an external id, an account or secrets that the provider can't
	// have, without asking it: InvalidRequest. s is nil if the secrets do not change. If
	// the external id is "", it may choose one.
	CheckAccount(c *desk.Channel, s *Secrets) error

	// Identities returns the identities of a person whom the provider knows by a number,
	// by its own id, or by both, the most reliable first. "" is unknown.
	Identities(number, userID string) []desk.Identity

	// Limits returns the provider's limits for messages of a channel to a person.
	// person returns a text that stands for the person.
	Limits(c *desk.Channel, person func() string) Limits
}

// A CallbackProvider is a Provider that reports by callbacks: its requests to us.
type CallbackProvider interface {
	// Subscribe makes the provider send callbacks.
	Subscribe(ctx context.Context, at Access) error

	// ReportingAdvice says what the operator has to do at the provider so that it sends
	// callbacks to a path of this server.
	ReportingAdvice(path string) string

	// Handshake reads the request by which the provider verifies a callback URL. query
	// returns a parameter of that request. It returns the verify token and the answer
	// that the provider expects if the token is right; ok is false for another request.
	Handshake(query func(string) string) (token, answer string, ok bool)

	// Signed tells whether the provider signed a callback's body. header returns a
	// header of the callback.
	Signed(at Access, header func(string) string, body []byte) bool

	// People lists the people whom a callback's body names, so that the body can be
	// erased with them.
	People(body []byte) []desk.Identity
}

// A Simulator is a Provider inside this process. Its templates and the messages of its
// customers come from the operator, so there is nothing to fetch.
type Simulator interface {
	// PutTemplate puts a template into a channel's library, replacing one with the same
	// name and language.
	PutTemplate(ctx context.Context, ws, channel desk.ID, t desk.TemplateSource) error

	// FileRef is the provider's id of a stored file with which something goes wrong when it
	// is fetched. It returns InvalidRequest if there is no such fault.
	FileRef(file desk.ID, fault string) (ref string, err error)
}

// Limits are the buckets in which a message takes a place before it is sent (none if
// the provider has no limits), and the refusal if there is no place in time. A bucket's
// Interval times its Burst is at most LongestBucket.
type Limits struct {
	Buckets  []Bucket
	HeldBack desk.Refusal
}

// LongestBucket is how far ahead the places of a bucket may be.
const LongestBucket = time.Minute

// A Problem is a problem of a channel, in a plain sentence.
type Problem struct {
	Text         string
	Blocking     bool        // until it is solved, nothing can be sent or received
	Unsubscribed bool        // the provider sends us no callbacks: Subscribe solves that
	Advice       desk.Advice // what to do, if the text does not say it
}

// An Access is a channel with its secrets.
type Access struct {
	Workspace desk.ID
	Channel   *desk.Channel
	Secrets   Secrets
}

// Secrets are the secrets of a channel at its provider, which says in CheckAccount which
// it needs.
type Secrets struct {
	Token        Secret // for the API
	AppSecret    Secret // signs callbacks
	OldAppSecret Secret // the previous one, which may still sign
	OldUntil     desk.Time
	VerifyToken  Secret // answers the handshake of the callback URL
}

// A Secret is a text that is never printed, logged or made into JSON.
type Secret struct{ text string }

// NewSecret hides a text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text, for sending it to the provider.
func (s Secret) Reveal() string { return s.text }

const hidden = "(secret)"

// Format hides the text for every verb; LogValue and MarshalText do the same.
func (Secret) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText implements encoding.TextMarshaler.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// A Dispatch is a message to be sent.
type Dispatch struct {
	Access
	Attempt    desk.ID   // sent along, and returned with the statuses
	By         time.Time // the first byte must not be sent later
	Number     string    // digits; "" if only UserID is known
	UserID     string    // the provider's id of the person, used if Number is ""
	Template   *desk.Template
	Components []desk.Component

	// A free message, if Template is nil.
	Text    string
	Buttons []desk.Button // under the text
	File    *SentFile     // instead of the text
	Quote   string        // the provider's id of the message that it quotes; "": none

	seen *Seen // by what its author decided; nil: by nothing
}

// A SentFile is a file in a free message.
type SentFile struct {
	Ref     string // the provider's id of the file, from Upload
	Kind    desk.MessageKind
	Name    string // of a document
	Caption string // "": none
}

// A Talker is a Provider through which people can be answered freely.
type Talker interface {
	// Upload hands over a file and returns the provider's id of it. Its errors are those of
	// Send.
	Upload(ctx context.Context, at Access, mime, name string, size int64, content io.Reader) (ref string, err error)

	// Fetch writes a file that a person sent to w, and returns what the provider tells of
	// it: told may be called with that before the first byte, and its error, as w's, ends
	// the call. It returns ErrMediaGone if the provider has it no more.
	Fetch(ctx context.Context, at Access, ref string, told func(FetchedMedia) error, w io.Writer) (FetchedMedia, error)

	// MarkRead tells the provider that a message was read.
	MarkRead(ctx context.Context, at Access, externalID string) error
}

// A FetchedMedia is what a provider tells of a file.
type FetchedMedia struct {
	MIME   string
	Size   int64  // 0: not told
	SHA256 []byte // nil: not told
}

// ErrMediaGone means that the provider has a file no more, and ErrMediaFailed that it could
// not get it from the person.
var (
	ErrMediaGone   = errors.New("the provider has this file no more")
	ErrMediaFailed = errors.New("the provider could not get this file from the person")
)

// A Receipt is the provider's acknowledgement.
type Receipt struct {
	ExternalID string
	Number     string  // digits by which the provider knows the person; "" if it does not say
	UserID     string  // the provider's id of the person; "" if it does not say
	Later      []Later // future updates; stored with the message
}

// An Update is one report in an inbound item: one of the pointers is set.
type Update struct {
	Channel  string // the provider's id of the channel concerned; "": the item's own channel
	Business string // or the business account, whose channels are all concerned

	Status   *desk.StatusUpdate
	Message  *InboundMessage
	Choice   *MarketingChoice
	Move     *Move
	Template *TemplateUpdate
	Account  *AccountStatus
}

// An InboundMessage is a message that a person wrote to a channel. The provider knows
// the person by a number, by its own id, or by both.
type InboundMessage struct {
	ExternalID string // the provider's id; a message that comes twice is recognised by it
	Number     string // digits; "" if hidden
	UserID     string // "" if the provider does not report it
	Name       string // the name of the person's profile; "" if there is none
	Text       string
	At         desk.Time
	Kind       desk.MessageKind // "": text
	Content    *desk.Content
	ReplyTo    string        // the provider's id of the message that it quotes or reacts to; "": none
	Media      *InboundMedia // nil: none
	Echo       bool          // the business typed it in the phone app; Number and UserID are the recipient's
}

// An InboundMedia is the file of an inbound message.
type InboundMedia struct {
	Ref    string  // the provider's id of it
	MIME   string  // as the provider claims it
	Name   string  // "" if there is none
	Size   int64   // 0: not told
	SHA256 []byte  // nil: not told
	Stored desk.ID // of a simulated file, which is stored already; otherwise zero
}

// A MarketingChoice is a person's marketing choice, as reported by the provider.
type MarketingChoice struct {
	Number, UserID string // either may be ""
	Change         desk.OptChange
	At             desk.Time
}

// A Move is the report that a person has another number, or another id at the provider.
// An empty string is unknown or unchanged.
type Move struct {
	Number, UserID       string // the old ones
	NewNumber, NewUserID string
	At                   desk.Time
}

// A TemplateUpdate is the report that a template has changed at the provider.
type TemplateUpdate struct {
	Name, Language string
	Status         string // the new one, in upper case as in the provider's JSON; "": fetch the template again
}

// An AccountStatus is a report whether an account may send.
type AccountStatus struct {
	Blocked string    // why not; "": it may
	Replies bool      // it may only not write first
	Until   desk.Time // 0: until the provider reports a change
	At      desk.Time // when it was reported: older reports do not count
}
