package whatsapptest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// A Failure is a refusal of a call.
type Failure struct {
	Code      int    `json:"code"`
	Subcode   int    `json:"subcode,omitempty"`
	HTTP      int    `json:"http,omitempty"`    // default: the code's usual status
	Message   string `json:"message,omitempty"` // default: "(#code) Title"
	Details   string `json:"details,omitempty"`
	Transient bool   `json:"transient,omitempty"`
	Bare      bool   `json:"bare,omitempty"` // error_data is only the details, as a string
}

// A known has the values that a code usually has.
type known struct {
	http    int
	title   string
	details string
}

// codes are the codes that Meta documents. Where Meta gives no status, it is 400.
var codes = map[int]known{
	0:      {401, "AuthException", ""},
	1:      {400, "An unknown error occurred", ""},
	2:      {503, "An unexpected error has occurred. Please retry your request later.", ""},
	3:      {500, "API Method", ""},
	4:      {429, "Application request limit reached", ""},
	10:     {403, "Application does not have permission for this action", ""},
	17:     {429, "User request limit reached", ""},
	33:     {400, "Parameter value is not valid", "The business phone number has been deleted."},
	100:    {400, "Invalid parameter", ""},
	102:    {401, "Session key invalid or no longer valid", ""},
	104:    {401, "Incorrect signature", ""},
	190:    {401, "Error validating access token: Session has expired.", ""},
	200:    {403, "Permissions error", ""},
	470:    {400, "Message failed to send because more than 24 hours have passed since the customer last replied to this number", ""},
	341:    {400, "Feature limit reached", ""},
	368:    {403, "Temporarily blocked for policies violations", ""},
	506:    {400, "Duplicate post", ""},
	613:    {400, "Calls to this api have exceeded the rate limit", ""},
	803:    {404, "Some of the aliases you requested do not exist", ""},
	2500:   {400, "Unknown path components", ""},
	80007:  {400, "Rate limit issues", ""},
	80008:  {400, "There have been too many calls to this WhatsApp Business account", ""},
	130403: {400, "User is blocked by the business", ""},
	130429: {429, "Rate limit hit", "Cloud API message throughput has been reached."},
	130472: {400, "User's number is part of an experiment", ""},
	130497: {403, "Business account is restricted from messaging users in this country", ""},
	131000: {500, "Something went wrong", ""},
	131005: {403, "Access denied", ""},
	131008: {400, "Required parameter is missing", ""},
	131009: {400, "Parameter value is not valid", ""},
	131016: {500, "Service unavailable", ""},
	131021: {400, "Recipient cannot be sender", "Recipient cannot be sender"},
	131026: {400, "Message undeliverable", "Message undeliverable."},
	131030: {400, "Recipient phone number not in allowed list", "Recipient phone number not in allowed list"},
	131031: {403, "Business Account locked", ""},
	131037: {400, "Display name is not approved", ""},
	131042: {400, "Business eligibility payment issue", ""},
	131044: {400, "Payment issue", ""},
	131045: {500, "Incorrect certificate", ""},
	131047: {400, "Re-engagement message", "Message failed to send because more than 24 hours have passed since the customer last replied to this number."},
	131048: {400, "Spam rate limit hit", ""},
	131049: {400, "This message was not delivered to maintain healthy ecosystem engagement.", ""},
	131050: {400, "User has stopped marketing messages from this business", ""},
	131051: {400, "Message type unknown", "Message type is currently not supported."},
	131052: {400, "Media download error", ""},
	131053: {400, "Media upload error", ""},
	131055: {400, "Method not allowed", ""},
	131056: {400, "(Business Account, Consumer Account) pair rate limit hit", "Too many messages were sent from this number to the same recipient in a short time."},
	131057: {500, "Account in maintenance mode", ""},
	131062: {400, "This message needs a phone number", ""},
	131063: {400, "Marketing templates are switched off", ""},
	131064: {400, "Messaging is limited after template misclassification", ""},
	132000: {400, "Number of parameters does not match the expected number of params", ""},
	132001: {404, "Template name does not exist in the translation", ""},
	132005: {400, "Translated text too long", ""},
	132007: {400, "Template format character policy violated", ""},
	132008: {400, "Parameter value invalid", ""},
	132012: {400, "Parameter format does not match format in the created template", ""},
	132015: {400, "Template is paused", ""},
	132016: {400, "Template is disabled", ""},
	132018: {400, "Template validation error", ""},
	132068: {400, "Flow is blocked", ""},
	132069: {400, "Flow is throttled", ""},
	133000: {500, "Incomplete deregistration", ""},
	133004: {503, "Server temporarily unavailable", ""},
	133005: {400, "Two-step verification PIN mismatch", ""},
	133006: {400, "Phone number re-verification needed", ""},
	133008: {400, "Too many two-step verification PIN guesses", ""},
	133009: {400, "Two-step verification PIN guessed too fast", ""},
	133010: {400, "Phone number not registered", ""},
	133015: {400, "Please wait a few minutes before attempting to register this phone number", ""},
	133016: {400, "Account register deregister rate limit exceeded", ""},
	134011: {400, "Payments terms not accepted", ""},
	134100: {400, "Only marketing messages are supported", ""},
	134101: {400, "Template is still syncing", ""},
	134102: {500, "Template is not available", ""},
	135000: {400, "Generic user error", ""},
	137000: {400, "Recipient identity key hash mismatch", ""},
}

// refusal returns a failure with the usual texts of the code. If details is empty, it
// uses the usual details, too.
func refusal(code int, format string, args ...any) *Failure {
	details := fmt.Sprintf(format, args...)
	if details == "" {
		details = codes[code].details
	}
	return (&Failure{Code: code, Details: details}).filled()
}

// filled returns the failure with the defaults of its code.
func (f *Failure) filled() *Failure {
	full := *f
	usual, ok := codes[f.Code]
	if !ok {
		usual = known{400, "Unknown error", ""}
	}
	orElse(&full.HTTP, usual.http)
	if full.Message == "" {
		full.Message = usual.title
		if f.Code != 2 && f.Code != 190 { // as seen in real responses
			full.Message = fmt.Sprintf("(#%d) %s", f.Code, usual.title)
		}
	}
	if f.Code == 2 {
		full.Transient = true
	}
	return &full
}

// body returns the failure in the form of a Graph response.
func (f *Failure) body(trace string) map[string]any {
	e := map[string]any{"message": f.Message, "type": "OAuthException", "code": f.Code, "fbtrace_id": trace}
	if f.Subcode != 0 {
		e["error_subcode"] = f.Subcode
	}
	if f.Code == 100 && f.Subcode == 33 {
		e["type"] = "GraphMethodException"
	}
	if f.Transient {
		e["is_transient"] = true
	}
	switch {
	case f.Details != "" && f.Bare:
		e["error_data"] = f.Details
	case f.Details != "":
		e["error_data"] = map[string]any{"messaging_product": "whatsapp", "details": f.Details}
	}
	return map[string]any{"error": e}
}

// inWebhook returns the failure in the form of a webhook.
func inWebhook(code int, details string) map[string]any {
	f := refusal(code, "%s", details)
	title := codes[code].title
	orElse(&title, "Unknown error")
	orElse(&f.Details, title)
	return map[string]any{
		"code": code, "title": title, "message": title, "error_data": map[string]any{"details": f.Details},
		"href": "/documentation/business-messaging/whatsapp/support/error-codes",
	}
}

func missingObject(method, id string) *Failure {
	return &Failure{
		Code: 100, Subcode: 33, HTTP: http.StatusBadRequest,
		Message: fmt.Sprintf("Unsupported %s request. Object with ID '%s' does not exist, cannot be loaded due to missing permissions, or does not support this operation", method, id),
	}
}

func missingField(field, node string) *Failure {
	return &Failure{
		Code: 100, HTTP: http.StatusBadRequest,
		Message: fmt.Sprintf("(#100) Tried accessing nonexisting field (%s) on node type (%s)", field, node),
	}
}

// challenge returns the WWW-Authenticate header of a failure.
func (f *Failure) challenge() string {
	reason := "invalid_request"
	if f.HTTP == http.StatusUnauthorized {
		reason = "invalid_token"
	}
	return `OAuth "Facebook Platform" "` + reason + `" ` + strconv.QuoteToASCII(f.Message)
}

// compact encodes v like Meta.
func compact(v any) []byte {
	plain, err := json.Marshal(v)
	if err != nil {
		panic(err) // our values can always be encoded
	}
	return Escape(plain)
}
