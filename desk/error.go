package desk

import (
	"errors"
	"fmt"
)

// An ErrorType is the stable machine name of a refusal, the "type" of an error
// body (spec, Errors). Clients branch on it, so the list only grows.
type ErrorType string

// The error types of the wire.
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
	Unavailable       ErrorType = "unavailable" // the database can't answer now; a retry may
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
	ProviderRejected     ErrorType = "provider_rejected"    // for good
	ProviderUnavailable  ErrorType = "provider_unavailable" // for now
	SendInProgress       ErrorType = "send_in_progress"     // the key's send has no answer yet
	SendOutcomeUnknown   ErrorType = "send_outcome_unknown" // the provider may have taken it
)

// ErrorTypes lists every error type, so that a test can hold the edges to all of them.
var ErrorTypes = []ErrorType{
	Unauthorized, Forbidden, InvalidRequest, TooManyOperations, NotFound, MethodNotAllowed,
	IdentityConflict, TypeConflict, InvalidAttributes, PayloadTooLarge, RateLimited, Unavailable, Internal,
	ConversationOpen, OptInRequired, RecipientOptedOut, AmbiguousChannel, ChannelNotUsable, RecipientUnreachable,
	TemplateNotSendable, InvalidVariables, IdempotencyKeyReused, ProviderRejected, ProviderUnavailable,
	SendInProgress, SendOutcomeUnknown,
}

// An Error is a refusal that a caller can act on. Any other error is Internal,
// and its text never reaches a caller.
type Error struct {
	Type       ErrorType
	Message    string // one sentence for the caller; may change
	Details    any    // what can be named, as one of the types that the edges know; nil when nothing can
	RetryAfter int    // seconds to wait before trying again; 0: the edge's default, where there is one
	Err        error  // the cause: logged, never sent
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Type, e.Message, e.Err)
	}
	return string(e.Type) + ": " + e.Message
}

// Unwrap gives the cause, for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error of type t with a formatted message.
func Errorf(t ErrorType, format string, args ...any) *Error {
	return &Error{Type: t, Message: fmt.Sprintf(format, args...)}
}

// Invalidf returns an InvalidRequest error: what was sent is wrong, and where.
func Invalidf(format string, args ...any) *Error { return Errorf(InvalidRequest, format, args...) }

// NotFoundf returns a NotFound error.
func NotFoundf(format string, args ...any) *Error { return Errorf(NotFound, format, args...) }

// AsError returns err as an Error; one that is none becomes Internal, with err as
// its cause and a sentence that gives nothing away.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Type: Internal, Message: "parley failed to handle this request; the log names the cause beside the request id", Err: err}
}

// IsType tells whether err is an Error of type t.
func IsType(err error, t ErrorType) bool {
	var e *Error
	return errors.As(err, &e) && e.Type == t
}
