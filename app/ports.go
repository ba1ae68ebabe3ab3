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

// ErrCommitLost comes wrapped in Unavailable when a commit was under way and its result
// is not known. What was to be stored may be there, or still come to be there.
var ErrCommitLost = errors.New("it is unknown whether this was stored")

// A Store is the database. Its methods are safe for concurrent use. Beside the
// errors they name, any may return Unavailable when the database can't answer now;
// nothing is stored then, unless it is ErrCommitLost too. Other errors are a bug's.
//
// No method sees past the workspace it is given: a record of another one does not
// exist for it.
type Store interface {
	// Authenticate returns the settings of the workspace that has a key with this
	// public id, or NotFound. It says nothing of the secret.
	Authenticate(ctx context.Context, publicID string) (*desk.Settings, error)

	// Contact returns a contact, or NotFound, and with a contact the settings of the
	// very moment at which it was read.
	Contact(ctx context.Context, ws, id desk.ID) (*desk.Contact, *desk.Settings, error)

	// Contacts returns up to limit contacts that pass the filter and stand after
	// the place given, in export order.
	Contacts(ctx context.Context, ws desk.ID, f desk.ContactFilter, after desk.ContactPlace, limit int) ([]*desk.Contact, error)

	// UpdateContacts loads all that ops can touch into a Book, calls apply, and
	// stores what it changed, all or nothing; when it returns nil, that is durable.
	// apply may run more than once, each time on a fresh Book. It returns NotFound
	// when there is no such workspace.
	UpdateContacts(ctx context.Context, ws desk.ID, ops []*desk.Op, apply func(*desk.Book)) error

	// FlushesAbreast is how many calls of UpdateContacts for one workspace are to be
	// under way at most, which is where more make it no faster.
	FlushesAbreast() int

	// Settings returns a workspace's configuration, or NotFound.
	Settings(ctx context.Context, ws desk.ID) (*desk.Settings, error)

	// UpdateSettings calls decide with the present configuration and stores the
	// change it returns, unless that is an error, which it returns as it is. No
	// other edit comes in between. It returns NotFound when there is no such
	// workspace, and ErrOwns when a member to be removed still owns contacts or holds
	// open conversations.
	UpdateSettings(ctx context.Context, ws desk.ID, decide func(*desk.Settings) (desk.Change, error)) error

	// CreateWorkspace stores a new, empty workspace.
	CreateWorkspace(ctx context.Context, w desk.Workspace) error

	// Workspaces lists all workspaces by id, which is by age.
	Workspaces(ctx context.Context) ([]desk.Workspace, error)

	// ChannelsOfKind lists the channels of a kind in all workspaces.
	ChannelsOfKind(ctx context.Context, kind desk.ChannelKind) ([]ChannelRef, error)

	// WorkspaceOf returns the workspace that the member, key, channel or unsettled
	// attempt with this id belongs to, or NotFound.
	WorkspaceOf(ctx context.Context, id desk.ID) (desk.ID, error)

	// Ready tells whether the database can answer now.
	Ready(ctx context.Context) error

	// InTx runs f in a transaction on one workspace and returns once what it wrote is
	// durable, or with f's error, as it is, and nothing stored. f may run more than
	// once, so it assigns its results anew each time; what it reads no other
	// transaction changes before it ends. It returns NotFound when there is no such
	// workspace.
	InTx(ctx context.Context, ws desk.ID, f func(Tx) error) error

	// Book loads all that ops can touch, to try them out: nothing of it is stored.
	Book(ctx context.Context, ws desk.ID, ops []*desk.Op) (*desk.Book, error)

	// Conversation returns a conversation, or NotFound.
	Conversation(ctx context.Context, ws, id desk.ID) (*desk.Conversation, error)

	// Conversations returns up to limit conversations that pass the filter and stand
	// after the place given (nil: from the start), newest first.
	Conversations(ctx context.Context, ws desk.ID, f desk.ConversationFilter, after *desk.ConversationPlace, limit int) ([]*desk.Conversation, error)

	// Messages returns up to limit messages of a conversation that stand after the
	// place given (nil: from the start), newest first.
	Messages(ctx context.Context, ws, conversation desk.ID, after *desk.MessagePlace, limit int) ([]*desk.Message, error)

	// Templates returns a channel's templates in no order, and the version of its
	// library at that moment, or NotFound.
	Templates(ctx context.Context, ws, channel desk.ID) (version int64, list []desk.TemplateSource, err error)

	// AttemptOfKey returns the attempt that holds an Idempotency-Key, or nil.
	AttemptOfKey(ctx context.Context, ws desk.ID, key string) (*desk.Attempt, error)

	// Attempt returns an attempt, or nil.
	Attempt(ctx context.Context, ws, id desk.ID) (*desk.Attempt, error)

	// Attempts returns up to limit attempts, newest first by id; only those in doubt when
	// inDoubt is set.
	Attempts(ctx context.Context, ws desk.ID, inDoubt bool, limit int) ([]*desk.Attempt, error)

	// Lapsed returns up to limit attempts of all workspaces that are still dispatching
	// although their lease ended more than margin milliseconds ago, by the database's
	// clock.
	Lapsed(ctx context.Context, margin desk.Time, limit int) ([]LapsedAttempt, error)

	// ForgetAttempts deletes up to limit attempts of a workspace that were settled
	// before a time, with the keys that they still hold, and returns how many. An
	// attempt's id tells when it was made (UUIDv7), which is before it was settled.
	ForgetAttempts(ctx context.Context, ws desk.ID, before desk.Time, limit int) (int, error)

	// OptedOut returns since when the holder of a number takes no marketing, or 0.
	OptedOut(ctx context.Context, ws desk.ID, number NumberHash) (desk.Time, error)

	// PutNotice keeps a provider's notice until it is due and was taken.
	PutNotice(ctx context.Context, ws desk.ID, n Notice) error

	// Notices returns up to limit notices of a workspace that are due at now, oldest
	// first, and when the next one after them is due, 0 when there is none.
	Notices(ctx context.Context, ws desk.ID, now desk.Time, limit int) (list []Notice, next desk.Time, err error)

	// NewestWebhook returns when the newest webhook of a channel came that is still
	// kept, 0 for none.
	NewestWebhook(ctx context.Context, ws, channel desk.ID) (desk.Time, error)

	// ForgetWebhooks deletes up to limit webhooks of a workspace that came before a
	// time, with what is known of whom they tell, and returns how many.
	ForgetWebhooks(ctx context.Context, ws desk.ID, before desk.Time, limit int) (int, error)

	// Pace takes one place in each of the buckets, if none of them makes the caller wait
	// longer than most, and returns how long to wait before going on. Else it takes none,
	// and returns false and how long until it might.
	Pace(ctx context.Context, ws desk.ID, buckets []Bucket, most time.Duration) (wait time.Duration, ok bool, err error)

	// ForgetPace deletes the buckets of a workspace that hold nothing back any more.
	ForgetPace(ctx context.Context, ws desk.ID) error

	// NoticesDue returns the workspaces that notices are kept for, and when the first of
	// each is due.
	NoticesDue(ctx context.Context) (map[desk.ID]desk.Time, error)

	// Lease gives a task to the caller for some milliseconds of the database's clock,
	// and tells whether it did: not while another has it.
	Lease(ctx context.Context, ws desk.ID, task string, millis desk.Time) (bool, error)

	// LeaseOf returns until when a task was given last, 0 for never.
	LeaseOf(ctx context.Context, ws desk.ID, task string) (desk.Time, error)

	// SandboxTemplates returns the library of a sandbox channel, as the provider that
	// the sandbox plays holds it.
	SandboxTemplates(ctx context.Context, ws, channel desk.ID) ([]desk.TemplateSource, error)

	// PutSandboxTemplate puts a template there, replacing one of the same name and language.
	PutSandboxTemplate(ctx context.Context, ws, channel desk.ID, t desk.TemplateSource) error
}

// A Tx is a transaction on one workspace, see Store.InTx. What it returns is nil when
// there is none. Puts insert or replace by id (a notice: by due time and id). An error
// of a method ends the transaction: the closure returns it.
type Tx interface {
	// Settings are the workspace's at this moment.
	Settings() *desk.Settings

	// Now is the database's clock, by which leases are measured on all nodes.
	Now() desk.Time

	// Book loads all that ops can touch; Flush stores what changed on it.
	Book(ops ...*desk.Op) (*desk.Book, error)
	Flush(*desk.Book) error

	// Contact loads one contact.
	Contact(id desk.ID) (*desk.Contact, error)

	Conversation(id desk.ID) (*desk.Conversation, error)
	OpenConversation(channel, contact desk.ID) (*desk.Conversation, error)
	PutConversation(*desk.Conversation) error

	// Message finds a message in its conversation, MessageBy by the provider's id.
	Message(conversation, id desk.ID) (*desk.Message, error)
	MessageBy(channel desk.ID, externalID string) (*desk.Message, error)
	PutMessage(*desk.Message) error

	// AttemptOfKey returns the attempt that holds a key; TakeKey makes an attempt its
	// holder, and FreeKey nobody.
	AttemptOfKey(key string) (*desk.Attempt, error)
	TakeKey(key string, attempt desk.ID) error
	FreeKey(key string) error
	Attempt(id desk.ID) (*desk.Attempt, error)
	PutAttempt(*desk.Attempt) error

	// OptOut returns what is known of a number's wish, SetOptOut stores it.
	OptOut(NumberHash) (OptOut, error)
	SetOptOut(NumberHash, OptOut) error

	// KeepStatus keeps a status of a message that is not known yet; TakeStatuses
	// returns and drops those of one that now is; DropStatuses drops those that are
	// older than a time.
	KeepStatus(channel desk.ID, n desk.StatusNotice) error
	TakeStatuses(channel desk.ID, externalID string) ([]desk.StatusNotice, error)
	DropStatuses(before desk.Time) error

	PutNotice(Notice) error

	// PutWebhook keeps the body of a notice that has a Webhook time; Webhook returns it,
	// nil when it was forgotten; PutWebhookPeople says of whom it tells, by their
	// identities' values, so that it is forgotten with them.
	PutWebhook(Notice) error
	Webhook(Notice) ([]byte, error)
	PutWebhookPeople(n Notice, people []string) error

	// TakeNotices drops those of the notices that are still kept, and that no other
	// transaction is taking, and returns them.
	TakeNotices([]Notice) ([]Notice, error)

	// Append appends events to the workspace's.
	Append(events ...desk.Event) error
}

// A NumberHash stands for a phone number that may outlive the contact who had it:
// a keyed hash, from which the number can't be had.
type NumberHash [32]byte

// An OptOut is what the holder of a number last said of marketing.
type OptOut struct {
	Since desk.Time // 0: takes it
	At    desk.Time // when that was said
}

// A LapsedAttempt is one whose process must have died.
type LapsedAttempt struct{ Workspace, ID desk.ID }

// A Notice is something that a provider says to a channel, kept until it was taken in.
type Notice struct {
	Channel desk.ID
	ID      desk.ID
	Due     desk.Time // when to take it in
	Body    []byte    // as the provider's Read understands it
	Webhook desk.Time // when it came as a webhook, whose body is kept apart and longer; 0: Body is all
	Skip    int       // of what it tells, so many happenings are taken in already
}

// A ChannelRef says where a channel is.
type ChannelRef struct{ Workspace, ID desk.ID }

// A Bucket holds back what comes too fast: one place every Interval, and up to Burst
// places at once.
type Bucket struct {
	Name     string
	Interval time.Duration
	Burst    int
}

// A Provider is what stands behind a kind of channel.
type Provider interface {
	// Send hands one message to the provider. It returns a Receipt when the provider
	// took it, a *desk.Refusal as its error when it certainly did not, and any other
	// error when nobody can tell.
	Send(ctx context.Context, d Dispatch) (Receipt, error)

	// Templates returns the channel's whole library, or an error: never a part of it.
	Templates(ctx context.Context, at Access) ([]desk.TemplateSource, error)

	// Read says what a notice means, in order, and the notice to keep in its place, nil
	// for none. What it does not understand it leaves out; its error is of the whole.
	Read(n Notice) ([]Happening, *Notice, error)

	// Check says what is wrong with a channel. Its error means that it could not find out.
	Check(ctx context.Context, at Access) ([]Problem, error)

	// Subscribe has the provider send webhooks, where there are any.
	Subscribe(ctx context.Context, at Access) error
}

// A Problem is what is wrong with a channel, in a plain sentence that says what to do.
type Problem struct {
	Text     string
	Blocking bool // nothing can be sent, or nothing is heard, before it is mended
}

// An Access is a channel with what is needed to act for it.
type Access struct {
	Workspace desk.ID
	Channel   *desk.Channel
	Secrets   Secrets
}

// Secrets are what a provider trusts a channel by. A sandbox's are empty.
type Secrets struct {
	Token        Secret // of the API
	AppSecret    Secret // signs webhooks
	OldAppSecret Secret // the one before, which may sign too
	OldUntil     desk.Time
	VerifyToken  Secret // answers the handshake of a webhook
}

// A Secret is a text that is never shown: neither printed, nor logged, nor made into
// JSON.
type Secret struct{ text string }

// NewSecret hides a text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text, for whoever needs it on the wire.
func (s Secret) Reveal() string { return s.text }

const hidden = "(secret)"

// Format hides the text, whatever the verb; so do LogValue and MarshalText.
func (Secret) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText implements encoding.TextMarshaler.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// A Dispatch is a message on its way to a provider.
type Dispatch struct {
	Access
	Attempt    desk.ID   // travels along, and comes back with the statuses
	By         time.Time // the first byte must not leave later
	Number     string    // digits
	Template   *desk.Template
	Components []desk.Component
}

// A Receipt is a provider's word that it took a message.
type Receipt struct {
	ExternalID string
	Number     string   // digits under which the provider knows the person; "" when it does not say
	UserID     string   // the provider's id of the person; "" when it does not say
	Notices    []Notice // of what is to come, when nobody else will say; stored with the message
}

// A Happening is one thing that a notice tells: one of the pointers is set.
type Happening struct {
	Channel  string // the provider's handle of the channel that it concerns; "": the notice's own
	Business string // or the business account, all of whose channels it concerns

	Status   *desk.StatusNotice
	Message  *InboundMessage
	Wish     *Wish
	Move     *Move
	Template *TemplateNews
	Standing *Standing
}

// An InboundMessage is what a person wrote to a channel. The provider knows the person
// by a number, by an id of its own, or by both.
type InboundMessage struct {
	ExternalID string // the provider's id, by which a message that comes twice is known
	Number     string // digits; "" when it is hidden
	UserID     string // "" when the provider does not tell
	Name       string // as the provider knows the person; "" when it does not
	Text       string
	At         desk.Time
}

// A Wish is what a person told the provider of marketing.
type Wish struct {
	Number, UserID string // either may be ""
	Change         desk.OptChange
	At             desk.Time
}

// A Move is the news that a person is known by another number, or another id of the
// provider, than before. What is "" is not known, or has not changed.
type Move struct {
	Number, UserID       string // the old ones
	NewNumber, NewUserID string
	At                   desk.Time
}

// TemplateNews is that a template has changed at the provider.
type TemplateNews struct {
	Name, Language string
	Status         string // the new one, upper case as in the provider's JSON; "": read it anew
}

// A Standing is whether an account may send.
type Standing struct {
	Blocked string    // why not; "": it may
	Until   desk.Time // 0: until the provider says otherwise
	At      desk.Time // when that was said: what is older counts no more
}
