package api

import (
	"cmp"
	"net/http"
	"strconv"

	"parley/desk"
)

// retryAfter is the Retry-After in seconds for temporary errors without a time of their
// own.
const retryAfter = 1

// errorHeaders sets the headers that belong to an error.
func errorHeaders(h http.Header, e *desk.Error) {
	switch e.Type {
	case desk.Unauthorized:
		h["Www-Authenticate"] = []string{"Bearer"}
	case desk.RateLimited, desk.Unavailable, desk.ProviderUnavailable, desk.SendInProgress, desk.SendOutcomeUnknown:
		h["Retry-After"] = []string{strconv.Itoa(cmp.Or(e.RetryAfter, retryAfter))}
	case desk.MediaUnavailable:
		if e.RetryAfter > 0 {
			h["Retry-After"] = []string{strconv.Itoa(e.RetryAfter)}
		}
	}
}

// appendError appends the object under "error".
func appendError(b []byte, e *desk.Error, in input) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, e.Type...)
	b = append(b, `","message":`...)
	b = desk.AppendJSONString(b, e.Worded(place(e.At, in), advice))
	if e.Details != nil {
		b = appendDetails(append(b, `,"details":`...), e.Details)
	}
	return append(b, '}')
}

// appendDetails appends the details of an error, null for an unknown type.
func appendDetails(b []byte, details any) []byte {
	switch details := details.(type) {
	case []desk.Identity:
		return appendIdentities(b, details)
	case []desk.AttributeProblem:
		return appendArray(b, details, func(b []byte, p desk.AttributeProblem) []byte {
			b = desk.AppendJSONString(append(b, `{"key":`...), p.Key)
			return append(desk.AppendJSONString(append(b, `,"message":`...), p.Message), '}')
		})
	case []desk.VariableProblem:
		return appendArray(b, details, func(b []byte, p desk.VariableProblem) []byte {
			b = desk.AppendJSONString(append(b, `{"address":`...), p.Address)
			return append(desk.AppendJSONString(append(b, `,"message":`...), p.Message), '}')
		})
	case []*desk.Channel:
		return appendArray(b, details, func(b []byte, c *desk.Channel) []byte {
			return append(appendChannelFields(b, c), '}')
		})
	case desk.Languages:
		return append(appendArray(append(b, `{"languages":`...), details.Languages, desk.AppendJSONString), '}')
	case desk.Unsendable:
		b = desk.AppendJSONString(append(b, `{"status":`...), details.Status)
		return append(appendArray(append(b, `,"reasons":`...), details.Reasons, desk.AppendJSONString), '}')
	case desk.OptedOut:
		return append(appendTime(append(b, `{"since":`...), details.Since), '}')
	case desk.Unusable:
		return append(desk.AppendJSONString(append(b, `{"reason":`...), details.Reason), '}')
	case desk.InDoubtAttempt:
		return append(appendID(append(b, `{"attempt_id":`...), details.AttemptID), '}')
	case desk.SettledAttempt:
		return append(append(append(b, `{"phase":"`...), details.Phase...), `"}`...)
	case desk.Failure:
		return appendFailure(b, &details)
	case desk.ExpiredCursor:
		b = desk.AppendJSONString(append(b, `{"reason":`...), details.Reason)
		b = desk.AppendJSONString(append(b, `,"oldest":`...), details.Oldest)
		return append(desk.AppendJSONString(append(b, `,"newest":`...), details.Newest), '}')
	case desk.WindowState:
		b = appendTime(append(b, `{"closed_at":`...), details.ClosesAt)
		return append(appendText(append(b, `,"reason":`...), string(details.Reason)), '}')
	case desk.UsedMedia:
		b = strconv.AppendInt(append(b, `{"limit":`...), details.Limit, 10)
		return append(strconv.AppendInt(append(b, `,"used":`...), details.Used, 10), '}')
	case desk.UnavailableMedia:
		b = desk.AppendJSONString(append(b, `{"status":`...), details.Status)
		return append(appendText(append(b, `,"reason":`...), details.Reason), '}')
	case desk.UnsendableMedia:
		b = desk.AppendJSONString(append(b, `{"reason":`...), details.Reason)
		b = desk.AppendJSONString(append(b, `,"mime_type":`...), details.MIME)
		b = strconv.AppendInt(append(b, `,"size":`...), details.Size, 10)
		if details.Max == 0 {
			return append(b, `,"max":null}`...)
		}
		return append(strconv.AppendInt(append(b, `,"max":`...), details.Max, 10), '}')
	case desk.NotOpen:
		b = append(append(append(b, `{"status":"`...), details.Status...), `","open_conversation_id":`...)
		return append(appendID(b, details.Open), '}')
	case desk.Merged:
		b = appendID(append(b, `{"merged_into":`...), details.Into)
		return append(appendID(append(b, `,"merge_id":`...), details.Merge), '}')
	case desk.BlockedUndo:
		return append(appendID(append(b, `{"merge_id":`...), details.Merge), '}')
	case desk.BroadcastIs:
		return append(append(append(b, `{"state":"`...), details.State...), `"}`...)
	case desk.ExistingWebhook:
		return append(appendID(append(b, `{"id":`...), details.ID), '}')
	}
	return append(b, "null"...)
}

func errorBody(e *desk.Error, in input) []byte {
	return append(appendError([]byte(`{"error":`), e, in), '}')
}
