package console

import (
	"cmp"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/desk"
	"parley/web"
)

// statuses are the statuses that differ from the API's: 422 for input that a person can
// correct, and something other than 503 where a proxy would try again.
var statuses = map[desk.ErrorType]int{
	desk.InvalidRequest:      http.StatusUnprocessableEntity,
	desk.TooManyOperations:   http.StatusUnprocessableEntity,
	desk.AmbiguousChannel:    http.StatusUnprocessableEntity,
	desk.ProviderUnavailable: http.StatusServiceUnavailable,
	desk.SendInProgress:      http.StatusConflict,
	desk.SendOutcomeUnknown:  http.StatusConflict,
	desk.CursorExpired:       http.StatusNotFound,
	desk.Changed:             http.StatusConflict,
	desk.OtherMember:         http.StatusConflict,
}

func statusOf(e *desk.Error) int { return cmp.Or(statuses[e.Type], web.Status(e.Type)) }

// headings are the headings of the error page.
var headings = map[int]string{
	http.StatusUnauthorized:        "Signed out",
	http.StatusForbidden:           "Not allowed",
	http.StatusNotFound:            "Not here",
	http.StatusMethodNotAllowed:    "Not here",
	http.StatusConflict:            "Something changed",
	http.StatusTooManyRequests:     "Too many tries",
	http.StatusServiceUnavailable:  "Not saved",
	http.StatusInternalServerError: "Something went wrong",
}

func heading(status int) string {
	if h := headings[status]; h != "" {
		return h
	}
	return "That did not work"
}

// messages replaces the messages of errors that pages word differently. All missing
// records have the same page, so that it tells nothing about other workspaces.
var messages = map[desk.ErrorType]string{
	desk.Unauthorized:     "You are signed out.",
	desk.NotFound:         "There is no such page, or what it showed was deleted.",
	desk.MethodNotAllowed: "There is no such page, or what it showed was deleted.",
	desk.Internal:         "Something went wrong on the server.",
	desk.Forbidden:        "Your role does not allow this.",
	desk.UndoBlocked:      "A later merge of this contact comes first: undo that one, then this one.",
	desk.UndoExpired:      "A merge can be undone for 30 days, and these are over. Both stay one contact.",
	desk.ConflictClosed:   "Somebody has decided about this conflict already. See below how.",
	desk.CursorExpired:    "This part of the log is no longer kept.",
}

// message returns the text of an error for pages.
func message(e *desk.Error) string {
	if text := messages[e.Type]; text != "" && e != errCrossSite {
		return text
	}
	return sentence(e.Message)
}

// advices say what a member can do. Pages name neither commands nor routes of the API.
var advices = map[desk.AdviceKind]string{
	desk.SeeDetails:       "See below.",
	desk.SeeFirstDetails:  "See below: %s.",
	desk.ListMembers:      "Choose one of the members.",
	desk.ListChannels:     "Choose one of the channels.",
	desk.ListTemplates:    "The templates page lists them.",
	desk.ListAttributes:   "The attributes in the settings list them.",
	desk.ListIdentities:   "The contact's page lists those it holds.",
	desk.ListWorkspaces:   "Ask whoever runs this server.",
	desk.ListKeys:         "The keys in the settings list them.",
	desk.ListAttempts:     "The sends page lists them.",
	desk.ClearField:       "Empty the field %s instead.",
	desk.ClearOwner:       "Choose no owner instead.",
	desk.RemoveIdentities: "Remove some of the contact's addresses first.",
	desk.AddChannel:       "An admin adds one in the settings.",
	desk.EnableChannel:    "An admin enables it in the settings of the channel.",
	desk.CheckChannel:     "The settings of the channel say what is wrong.",
	desk.SyncChannel:      "An admin can fetch the templates now.",
	desk.EditKey:          "An admin can add it in the settings of the key.",
	desk.RevokeKey:        "Revoke the key to end it now.",
	desk.ReleaseAttempt:   "An admin can settle it on the sends page, once it is known whether the message arrived.",
	desk.FinishMigration:  "The server is being moved to another database. Try again later.",
	desk.StoreToken:       "An admin stores a new access token in the settings of the channel.",
	desk.StoreAppSecret:   "An admin stores the right app secret in the settings of the channel.",
	desk.ListWebhooks:     "The webhooks in the settings list them.",
	desk.RemoveWebhook:    "Remove one first.",
	desk.AllowAddress:     "Whoever runs this server can allow addresses of its own network.",
	desk.EnableWebhook:    "Enable it first.",
	desk.ListBroadcasts:   "The list of broadcasts shows them.",
	desk.ReplaceFile:      "Choose another file under Change. A broadcast that was started takes no other file: copy it instead.",
}

// more is advice for types of errors whose own advice is empty, or does not fit a page.
var more = map[desk.ErrorType]string{
	desk.Internal:           "Try again. If it stays, give the request id to whoever runs this server.",
	desk.RateLimited:        "Wait a moment, then try again.",
	desk.SendInProgress:     "It is on its way. Look at the conversation in a moment.",
	desk.SendOutcomeUnknown: "Do not send it again: the person may have got it. The sends page shows how it ends.",
}

// answerLost is the text for a send with an unknown outcome. The API's text tells a
// program to try again.
const answerLost = "it is not known whether this was sent, as the provider's answer was lost"

// advise returns the advice about an error for pages.
func advise(e *desk.Error) string {
	if text := more[e.Type]; text != "" {
		return text
	}
	return e.Advice.Worded(advices)
}

// toasts say what an action has done. The URL after an action has only the key of a
// toast, so that a foreign link can't put its own text onto our page.
var toasts = map[string]string{
	"assigned":        "Assigned.",
	"given-back":      "Back to the pool.",
	"sent-and-closed": "Sent and closed.",
	"taken":           "It is yours.",
	"closed":          "Closed.",
	"opened":          "Open again.",
	"archived":        "Archived.",
	"written":         "The customer has written.",
	"noted":           "The note is added.",
	"saved":           "Saved.",

	"added":              "Added.",
	"removed":            "Removed.",
	"they-are-out":       "Signed out everywhere.",
	"revoked":            "Revoked.",
	"attribute-archived": "Archived.",
	"restored":           "Restored.",

	"out":        "You are signed out.",
	"everywhere": "You are signed out everywhere.",
	"password":   "Your password is set. You are signed out everywhere else.",
	"sent":       "Sent.",
	"sent-only":  "Sent. It is still open, because something came in between.",
	"fetched":    "The templates were fetched.",
	"created":    "Created.",
	"settled":    "Settled.",
	"decided":    "Decided.",
	"deleted":    "Deleted.",
	"merged":     "Merged. This can be undone for 30 days.",
	"turned-on":  "Turned on.",
	"turned-off": "Turned off.",
	"stopped":    "Stopped.",

	"paused":      "Paused. Nothing more is begun; what is on its way goes on.",
	"started":     "Started.",
	"scheduled":   "Scheduled. It begins at its time.",
	"resumed":     "It goes on.",
	"unscheduled": "It is a draft again.",
	"ended":       "Cancelled. Nothing more is sent.",
	"copied":      "This is the copy. It has no people yet.",
	"copied-all":  "This is the copy. Its people are chosen in the same way.",

	"note-deleted":  "The note is deleted.",
	"away":          "You are away: nothing new is given to you.",
	"here":          "You are here.",
	"they-are-away": "They are away: nothing new is given to them.",
	"they-are-here": "They are here.",

	"replaying":    "It goes on from there.",
	"redelivering": "It is being delivered again.",
}

// labels are the labels of fields whose names are not ordinary words.
var labels = map[string]string{
	"email":        "E-mail",
	"opt_in":       "Agreement",
	"people":       "File",
	"external_id":  "Own id",
	"external_ids": "Own ids",
	"key":          "Key",
	"label":        "Name",
	"old":          "Password now",
	"password":     "Password",
	"to":           "Person",
	"url":          "URL",
	"waba_id":      "WhatsApp Business Account ID",

	"phone_number_id": "Phone number ID",
	"graph_url":       "Address of the Graph API",
	"graph_version":   "Version of the Graph API",
	"per_second":      "Messages a second",

	"number":  "Number of people",
	"list":    "People",
	"send_at": "Begin at",
	"consent": "Agreement",

	"max_open":    "At most this many open conversations each",
	"time_zone":   "Time zone",
	"at":          "Open",
	"away":        "When you are closed",
	"queued":      "When nobody can take it",
	"every_hours": "At most once in so many hours",
}

func labelOf(name string) string {
	if text := labels[name]; text != "" {
		return text
	}
	_, last, found := strings.Cut(name, ".")
	if !found {
		last = name
	}
	return capital(strings.ReplaceAll(last, "_", " "))
}

// capital changes the first letter of a text to upper case.
func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// sentence turns a message into a sentence, with a capital letter and a full stop.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	s = capital(s)
	if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "?") && !strings.HasSuffix(s, "!") {
		s += "."
	}
	return s
}

// statusWords are the words for changes of the status.
var statusWords = map[desk.ConversationStatus]struct{ done, anyway string }{
	desk.StatusOpen:     {"opened", "Open it anyway"},
	desk.StatusClosed:   {"closed", "Close anyway"},
	desk.StatusArchived: {"archived", "Archive anyway"},
}

// errCrossSite is the error for a form of another site.
var errCrossSite = desk.Errorf(desk.Forbidden, "another site sent this form, so nothing was done")

// errOtherMember is the error for a form from a tab of an earlier sign-in.
var errOtherMember = desk.Errorf(desk.OtherMember, "you are signed in as somebody else than when this page was opened; nothing was done. Reload the page and try again")
