package api

import (
	"net/http"
	"strings"

	"parley/desk"
)

// An input is where a request is read from: its body, or its query parameters.
type input bool

const (
	inBody  input = false
	inQuery input = true
)

// inputOf returns the input of a route's requests. No route has both.
func inputOf(pattern string) input {
	method, _, _ := strings.Cut(pattern, " ")
	return input(method == http.MethodGet || method == http.MethodDelete)
}

// place shows where an error is: as a JSON pointer into the body, or as the name of a
// query parameter or a header.
func place(at string, in input) string {
	switch {
	case at == desk.AtIdempotencyKey:
		return idempotencyKey
	case in == inQuery:
		return strings.TrimPrefix(at, "/")
	}
	return at
}

// advice has the words for each kind of advice: what a caller of the API, or the operator,
// can do.
var advice = map[desk.AdviceKind]string{
	desk.SeeDetails:       "see details",
	desk.SeeFirstDetails:  "see details, which name %s",
	desk.ListMembers:      "GET /members lists them",
	desk.ListChannels:     "GET /channels lists them",
	desk.ListTemplates:    "GET /templates?status=all lists those there are",
	desk.ListAttributes:   "GET /attributes?archived=all lists them",
	desk.ListIdentities:   "GET /contacts/{id}/identities lists those it holds",
	desk.ListWorkspaces:   "the command parley workspace list shows them",
	desk.ListKeys:         "they are in the console under Settings, Keys; the command parley key list shows them, too",
	desk.ListAttempts:     "GET /attempts lists them",
	desk.ClearField:       "clear it with PATCH /contacts/{id} and %s null",
	desk.ClearOwner:       "DELETE /contacts/{id}/owner clears the owner",
	desk.RemoveIdentities: "remove some with DELETE /contacts/{id}/identities",
	desk.AddChannel:       "an admin adds one in the console under Settings, Channels, or an operator with the command parley channel add",
	desk.EnableChannel:    "an admin turns it on in the console under Settings, Channels, or an operator with the command parley channel edit %s --enabled=true",
	desk.CheckChannel:     "its page in the console under Settings, Channels, says what is wrong, and so does the command parley channel check %s",
	desk.SyncChannel:      "fetch the library in the console under Templates, or with the command parley channel sync %s",
	desk.EditKey:          "an admin adds it in the console under Settings, Keys, or an operator with the command parley key edit %s --permissions %s, which replaces the whole list; or use another key",
	desk.RevokeKey:        "to end it now, revoke it in the console under Settings, Keys, or with the command parley key revoke",
	desk.ReleaseAttempt:   "or look at what the provider shows, and then settle it with POST /attempts/%s/release",
	desk.StoreToken:       "an admin stores it in the console under Settings, Channels, or an operator with the command parley channel edit %s --token-env VARIABLE",
	desk.StoreAppSecret:   "an admin stores it in the console under Settings, Channels, or an operator with the command parley channel edit %s --app-secret-env VARIABLE",
	desk.ListWebhooks:     "GET /webhooks lists them",
	desk.RemoveWebhook:    "remove one with DELETE /webhooks/{id}",
	desk.AllowAddress:     "an operator opens addresses of the own network with the flag --webhook-allow of parley serve",
	desk.ListBroadcasts:   "GET /broadcasts lists them",
	desk.ReplaceFile:      "upload a file with POST /media, and name it as header.media in the variables; a broadcast that was started takes no other file: make a new one",
	desk.EnableWebhook:    "PATCH /webhooks/%s with enabled true does it",
	desk.FinishMigration:  "wait for parley migrate to end; if it was interrupted, run it again",
}
