package api

import (
	"net/http"

	"parley/desk"
)

// status is the only place that knows both vocabularies (spec, Errors).
var status = map[desk.ErrorType]int{
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
}

// retryAfter is what Retry-After says, in seconds, of errors that pass by themselves.
const retryAfter = "1"

// errorHeaders sets what belongs beside an error's body.
func errorHeaders(h http.Header, t desk.ErrorType) {
	switch t {
	case desk.Unauthorized:
		h["Www-Authenticate"] = []string{"Bearer"}
	case desk.RateLimited, desk.Unavailable:
		h["Retry-After"] = []string{retryAfter}
	}
}

// appendError appends the object that stands under "error".
func appendError(b []byte, e *desk.Error) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, e.Type...)
	b = append(b, `","message":`...)
	b = desk.AppendJSONString(b, e.Message)
	switch details := e.Details.(type) {
	case []desk.Identity:
		b = append(b, `,"details":`...)
		b = appendIdentities(b, details)
	case []desk.AttributeProblem:
		b = append(b, `,"details":`...)
		b = appendArray(b, details, func(b []byte, p desk.AttributeProblem) []byte {
			b = append(b, `{"key":`...)
			b = desk.AppendJSONString(b, p.Key)
			b = append(b, `,"message":`...)
			return append(desk.AppendJSONString(b, p.Message), '}')
		})
	}
	return append(b, '}')
}

func errorBody(e *desk.Error) []byte {
	return append(appendError([]byte(`{"error":`), e), '}')
}
