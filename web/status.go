package web

import (
	"net/http"

	"parley/desk"
)

// statuses maps error types to HTTP statuses (spec, Errors).
var statuses = map[desk.ErrorType]int{
	desk.Unauthorized:      http.StatusUnauthorized,
	desk.Forbidden:         http.StatusForbidden,
	desk.InvalidRequest:    http.StatusBadRequest,
	desk.TooManyOperations: http.StatusBadRequest,
	desk.NotFound:          http.StatusNotFound,
	desk.MethodNotAllowed:  http.StatusMethodNotAllowed,
	desk.IdentityConflict:  http.StatusConflict,
	desk.TypeConflict:      http.StatusConflict,
	desk.InvalidAttributes: http.StatusUnprocessableEntity,
	desk.PayloadTooLarge:   http.StatusRequestEntityTooLarge,
	desk.RateLimited:       http.StatusTooManyRequests,
	desk.Unavailable:       http.StatusServiceUnavailable,
	desk.Internal:          http.StatusInternalServerError,

	desk.ConversationOpen:     http.StatusConflict,
	desk.OptInRequired:        http.StatusUnprocessableEntity,
	desk.RecipientOptedOut:    http.StatusUnprocessableEntity,
	desk.AmbiguousChannel:     http.StatusBadRequest,
	desk.ChannelNotUsable:     http.StatusUnprocessableEntity,
	desk.RecipientUnreachable: http.StatusUnprocessableEntity,
	desk.TemplateNotSendable:  http.StatusUnprocessableEntity,
	desk.InvalidVariables:     http.StatusUnprocessableEntity,
	desk.IdempotencyKeyReused: http.StatusConflict,
	desk.ProviderRejected:     http.StatusUnprocessableEntity,
	desk.ProviderUnavailable:  http.StatusBadGateway,
	desk.SendInProgress:       http.StatusServiceUnavailable,
	desk.SendOutcomeUnknown:   http.StatusServiceUnavailable,
	desk.AttemptSettled:       http.StatusConflict,
	desk.ConflictClosed:       http.StatusConflict,
	desk.UndoBlocked:          http.StatusConflict,
	desk.UndoExpired:          http.StatusConflict,
	desk.CursorExpired:        http.StatusGone,
	desk.WebhookExists:        http.StatusConflict,
	desk.EndpointOff:          http.StatusConflict,

	desk.WindowClosed:        http.StatusUnprocessableEntity,
	desk.ConversationNotOpen: http.StatusConflict,
	desk.MediaUnavailable:    http.StatusConflict,
	desk.MediaNotSendable:    http.StatusUnprocessableEntity,
	desk.MediaInUse:          http.StatusConflict,
	desk.BroadcastInState:    http.StatusConflict,
	desk.BroadcastEmpty:      http.StatusUnprocessableEntity,
	desk.MediaQuota:          http.StatusRequestEntityTooLarge,
}

// Status is the HTTP status of an error; 0 for a type that no request to the API gets.
func Status(t desk.ErrorType) int { return statuses[t] }
