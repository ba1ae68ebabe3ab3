package desk

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// An ErrorType is the stable machine name of a refusal, the "type" of an error
// body (spec, Errors). Clients branch on it, so the list only grows.
type ErrorType string

// The error types that callers get.
const (
	Unauthorized      ErrorType = "unauthorized"
	Forbidden         ErrorType = "forbidden"
	InvalidRequest    ErrorType = "invalid_request"
	TooManyOperations ErrorType = "too_many_operations"
	NotFound          ErrorType = "not_found"
	MethodNotAllowed  ErrorType = "method_not_allowed"
	IdentityConflict  ErrorType = "identity_conflict"
	TypeConflict      ErrorType = "type_conflict"
	InvalidAttributes ErrorType = "invalid_attributes"
	PayloadTooLarge   ErrorType = "payload_too_large"
	RateLimited       ErrorType = "rate_limited"
	Unavailable       ErrorType = "unavailable" // the database can't answer now; a retry may succeed
	Internal          ErrorType = "internal"
)

// The error types of conversations and sends (contract §5).
const (
	ConversationOpen     ErrorType = "conversation_open"
	OptInRequired        ErrorType = "opt_in_required"
	RecipientOptedOut    ErrorType = "recipient_opted_out"
	AmbiguousChannel     ErrorType = "ambiguous_channel"
	ChannelNotUsable     ErrorType = "channel_not_usable"
	RecipientUnreachable ErrorType = "recipient_unreachable"
	TemplateNotSendable  ErrorType = "template_not_sendable"
	InvalidVariables     ErrorType = "invalid_variables"
	IdempotencyKeyReused ErrorType = "idempotency_key_reused"
	ProviderRejected     ErrorType = "provider_rejected"    // the provider refuses the message; a retry does not help
	ProviderUnavailable  ErrorType = "provider_unavailable" // the provider can't take the message now
	SendInProgress       ErrorType = "send_in_progress"     // the key's send has no answer yet
	SendOutcomeUnknown   ErrorType = "send_outcome_unknown" // the provider may have accepted the message
)

// The error types of talk (contract-talk §2).
const (
	AttemptSettled ErrorType = "attempt_settled" // the attempt has ended already, and not in the way that the request names
)

// The error types of events and webhooks (contract-events).
const (
	CursorExpired ErrorType = "cursor_expired"   // the feed can't go on from there
	WebhookExists ErrorType = "webhook_exists"   // another endpoint has the URL
	EndpointOff   ErrorType = "webhook_disabled" // a disabled endpoint delivers nothing
)

// The error types of replies and media (contract-talk §2).
const (
	WindowClosed        ErrorType = "window_closed" // the person can't be answered freely now
	ConversationNotOpen ErrorType = "conversation_not_open"
	MediaUnavailable    ErrorType = "media_unavailable"  // the file is not fetched yet, could not be fetched, or was deleted
	MediaNotSendable    ErrorType = "media_not_sendable" // the provider does not accept the file's type or size
	MediaInUse          ErrorType = "media_in_use"       // a message has the file, or will have it
	MediaQuota          ErrorType = "media_quota"        // the workspace's files have reached their limit in bytes
)

// The error types of merges (contract-data).
const (
	ConflictClosed ErrorType = "conflict_closed" // somebody has decided otherwise about the conflict
	UndoBlocked    ErrorType = "undo_blocked"    // a newer merge of the contact comes first
	UndoExpired    ErrorType = "undo_expired"    // a merge can be undone for 30 days
)

// The error types of broadcasts (contract-broadcast §2).
const (
	BroadcastInState ErrorType = "broadcast_state" // not possible in the state that the broadcast has
	BroadcastEmpty   ErrorType = "broadcast_empty" // it has no rows
)

// Types that only pages of the console get.
const (
	// Changed refuses an action that a member chose while the page showed an old state of
	// the conversation. Its details are the conversation as it is now.
	Changed ErrorType = "changed"
	// OtherMember refuses a form whose page another member had opened.
	OtherMember ErrorType = "other_member"
)

// ErrorTypes lists every error type that callers get. With it, a test checks that each
// interface handles all of them.
var ErrorTypes = []ErrorType{
	Unauthorized, Forbidden, InvalidRequest, TooManyOperations, NotFound, MethodNotAllowed,
	IdentityConflict, TypeConflict, InvalidAttributes, PayloadTooLarge, RateLimited, Unavailable, Internal,
	ConversationOpen, OptInRequired, RecipientOptedOut, AmbiguousChannel, ChannelNotUsable, RecipientUnreachable,
	TemplateNotSendable, InvalidVariables, IdempotencyKeyReused, ProviderRejected, ProviderUnavailable,
	SendInProgress, SendOutcomeUnknown, AttemptSettled, CursorExpired, WebhookExists, EndpointOff,
	WindowClosed, ConversationNotOpen, MediaUnavailable, MediaNotSendable, MediaInUse, MediaQuota,
	ConflictClosed, UndoBlocked, UndoExpired, BroadcastInState, BroadcastEmpty,
}

// An Error is a refusal that a caller can act on. Any other error is Internal, and its
// text never reaches a caller.
//
// At, Message and Advice name no HTTP call, command or flag. Each interface (the API, the
// console, the command line) shows the place in its own form (a JSON pointer, a flag, a
// field of a form), then the message, then its own words for the advice.
type Error struct {
	Type       ErrorType
	At         string // the path of the wrong part of the input, such as /identities/3/value; "": the error is not about one part
	Message    string // what is wrong, in one sentence; may change
	Advice     Advice // what to do about it; each interface has its own words for it
	Details    any    // details of one of the types that the interfaces know; or nil
	RetryAfter int    // seconds to wait before trying again; 0: the interface's default, if it has one
	Err        error  // the cause: logged, never sent
	Between    []ID   // of IdentityConflict: the contacts, sorted
}

func (e *Error) Error() string {
	text := string(e.Type) + ": "
	if e.At != "" {
		text += e.At + ": "
	}
	text += e.Message
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives the cause, for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error of type t with a formatted message.
func Errorf(t ErrorType, format string, args ...any) *Error {
	return &Error{Type: t, Message: fmt.Sprintf(format, args...)}
}

// Invalidf returns an InvalidRequest error about the input as a whole.
func Invalidf(format string, args ...any) *Error { return Errorf(InvalidRequest, format, args...) }

// How many entries an error's details have at most (contract §2). The first entry is
// always included.
const (
	MaxDetails     = 100
	MaxDetailBytes = 16 << 10
)

// details keeps the entries that fit into an error, and counts all of them.
type details[T any] struct {
	list  []T
	total int
	bytes int
	room  int // for list, in bytes; 0: MaxDetailBytes
}

// add counts v, and includes it if there is space. texts are its fields.
func (d *details[T]) add(v T, texts ...string) {
	d.total++
	if d.total > len(d.list)+1 { // an earlier entry did not fit
		return
	}
	n := detailFrame
	for _, t := range texts {
		n += jsonLength(t)
	}
	if d.bytes += n; len(d.list) == 0 || len(d.list) < MaxDetails && d.bytes <= cmp.Or(d.room, MaxDetailBytes) {
		d.list = append(d.list, v)
	}
}

// detailFrame is the length of the field names and the punctuation of an entry.
const detailFrame = len(`{"address":,"message":},`)

// seen adds the details to an error, and the advice to look at them. If the details do not
// contain all entries, the advice says how many entries there are.
func (d *details[T]) seen(e *Error) *Error {
	e.Details = d.list
	if len(d.list) == d.total {
		return e.Advise(SeeDetails)
	}
	return e.Advise(SeeFirstDetails, fmt.Sprintf("the first %d of %d", len(d.list), d.total))
}

// InvalidAt returns an InvalidRequest error about one part of the input.
func InvalidAt(at, format string, args ...any) *Error {
	e := Invalidf(format, args...)
	e.At = at
	return e
}

// NotFoundf returns a NotFound error.
func NotFoundf(format string, args ...any) *Error { return Errorf(NotFound, format, args...) }

// Within returns err for an input that is part of a larger input: it puts at before the
// error's place. An error without a place does not change.
func Within(at string, err error) error {
	var e *Error
	if !errors.As(err, &e) || e.At == "" {
		return err
	}
	moved := *e
	moved.At = at + e.At
	return &moved
}

// AsError returns err as an Error. Any other error becomes Internal, with err as its
// cause and a message without details.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Type: Internal, Message: "the request failed; the log names the cause beside the request id", Err: err}
}

// IsType tells whether err is an Error of type t.
func IsType(err error, t ErrorType) bool {
	var e *Error
	return errors.As(err, &e) && e.Type == t
}

// Advise adds advice to a new error.
func (e *Error) Advise(kind AdviceKind, args ...string) *Error {
	e.Advice = Advice{Kind: kind, Arg: strings.Join(args, "\n")}
	return e
}

// Worded returns the error as one line of text: the place as an interface shows it, the
// message, and the interface's words for the advice. Each "%s" in words stands for an
// argument.
func (e *Error) Worded(place string, words map[AdviceKind]string) string {
	text := e.Message
	if place != "" {
		text = place + ": " + text
	}
	if advice := e.Advice.Worded(words); advice != "" {
		text += "; " + advice
	}
	return text
}

// Alternatives lists what may be sent: "a, b or c".
func Alternatives[T ~string](list []T) string {
	var b strings.Builder
	for i, one := range list {
		switch {
		case i == 0:
		case i == len(list)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(string(one))
	}
	return b.String()
}
