package api_test

import (
	"testing"

	"parley/api"
	"parley/desk"
)

// detailsOf has the details with which each error type is answered: "" for a type that has
// none.
var detailsOf = map[desk.ErrorType][]struct {
	details any
	want    string
}{
	desk.Unauthorized: nil, desk.Forbidden: nil, desk.InvalidRequest: nil, desk.TooManyOperations: nil, desk.MethodNotAllowed: nil,
	desk.TypeConflict: nil, desk.PayloadTooLarge: nil, desk.RateLimited: nil, desk.Unavailable: nil, desk.Internal: nil,
	desk.EndpointOff:      nil,
	desk.WebhookExists:    {{desk.ExistingWebhook{ID: desk.ID{15: 1}}, `{"id":"00000000-0000-0000-0000-000000000001"}`}},
	desk.CursorExpired:    {{desk.ExpiredCursor{Reason: "retention", Oldest: "evt_0", Newest: "evt_1"}, `{"reason":"retention","oldest":"evt_0","newest":"evt_1"}`}},
	desk.ConversationOpen: nil, desk.OptInRequired: nil, desk.RecipientUnreachable: nil, desk.IdempotencyKeyReused: nil, desk.SendInProgress: nil,
	desk.AttemptSettled: {{desk.SettledAttempt{Phase: desk.Done}, `{"phase":"done"}`}},
	desk.WindowClosed:   {{desk.WindowState{ClosesAt: 1, Reason: desk.WindowExpired}, `{"closed_at":"1970-01-01T00:00:00.001Z","reason":"expired"}`}, {desk.WindowState{Reason: desk.NeverWrote}, `{"closed_at":null,"reason":"never_wrote"}`}},
	desk.ConversationNotOpen: {
		{desk.NotOpen{Status: desk.StatusClosed}, `{"status":"closed","open_conversation_id":null}`},
		{desk.NotOpen{Status: desk.StatusArchived, Open: desk.ID{15: 1}}, `{"status":"archived","open_conversation_id":"00000000-0000-0000-0000-000000000001"}`},
	},
	desk.MediaInUse:       nil,
	desk.BroadcastEmpty:   nil,
	desk.BroadcastInState: {{desk.BroadcastIs{State: desk.BroadcastDone}, `{"state":"done"}`}},
	desk.MediaQuota:       {{desk.UsedMedia{Limit: 7, Used: 5}, `{"limit":7,"used":5}`}},
	desk.MediaUnavailable: {{desk.UnavailableMedia{Status: "pending"}, `{"status":"pending","reason":null}`}, {desk.UnavailableMedia{Status: "failed", Reason: "gone"}, `{"status":"failed","reason":"gone"}`}},
	desk.MediaNotSendable: {
		{desk.UnsendableMedia{Reason: "size", MIME: "image/png", Size: 6, Max: 5}, `{"reason":"size","mime_type":"image/png","size":6,"max":5}`},
		{desk.UnsendableMedia{Reason: "type", MIME: "image/gif", Size: 6}, `{"reason":"type","mime_type":"image/gif","size":6,"max":null}`},
	},
	desk.NotFound: {
		{desk.Languages{}, `{"languages":[]}`},
		{desk.Languages{Languages: []string{"en_US", "tr"}}, `{"languages":["en_US","tr"]}`},
		{desk.Merged{Into: desk.ID{15: 1}, Merge: desk.ID{15: 2}}, `{"merged_into":"00000000-0000-0000-0000-000000000001","merge_id":"00000000-0000-0000-0000-000000000002"}`},
	},
	desk.UndoExpired:         nil,
	desk.ConflictClosed:      nil,
	desk.UndoBlocked:         {{desk.BlockedUndo{Merge: desk.ID{15: 1}}, `{"merge_id":"00000000-0000-0000-0000-000000000001"}`}},
	desk.IdentityConflict:    {{[]desk.Identity{{Kind: "email", Value: "a@b.c"}}, `[{"kind":"email","value":"a@b.c"}]`}},
	desk.InvalidAttributes:   {{[]desk.AttributeProblem{{Key: "a", Message: "expected text"}}, `[{"key":"a","message":"expected text"}]`}},
	desk.RecipientOptedOut:   {{desk.OptedOut{Since: 1}, `{"since":"1970-01-01T00:00:00.001Z"}`}},
	desk.AmbiguousChannel:    {{[]*desk.Channel{{ID: desk.ID{15: 1}, Kind: "sandbox", ExternalID: `"`}}, `[{"id":"00000000-0000-0000-0000-000000000001","kind":"sandbox","external_id":"\""}]`}},
	desk.ChannelNotUsable:    {{desk.Unusable{Reason: "disabled"}, `{"reason":"disabled"}`}},
	desk.TemplateNotSendable: {{desk.Unsendable{Status: "approved", Reasons: []string{"carousel"}}, `{"status":"approved","reasons":["carousel"]}`}},
	desk.InvalidVariables:    {{[]desk.VariableProblem{{Address: "header.1", Message: "empty"}}, `[{"address":"header.1","message":"empty"}]`}},
	desk.ProviderRejected:    {{desk.Failure{Code: -1, Title: "t", Fix: "f"}, `{"code":-1,"title":"t","fix":"f"}`}},
	desk.ProviderUnavailable: {{desk.Failure{Code: 130429}, `{"code":130429,"title":"","fix":""}`}},
	desk.SendOutcomeUnknown:  {{desk.InDoubtAttempt{AttemptID: desk.ID{15: 1}}, `{"attempt_id":"00000000-0000-0000-0000-000000000001"}`}},
}

func TestErrorAnswers(t *testing.T) {
	for _, kind := range desk.ErrorTypes {
		cases, known := detailsOf[kind]
		if !known {
			t.Errorf("what are the details of %s?", kind)
		}
		e := desk.Errorf(kind, "m")
		if _, body := api.ErrorAnswer(e); string(body) != `{"error":{"type":"`+string(kind)+`","message":"m"}}` {
			t.Errorf("%s", body)
		}
		for _, c := range cases {
			e.Details = c.details
			if _, body := api.ErrorAnswer(e); string(body) != `{"error":{"type":"`+string(kind)+`","message":"m","details":`+c.want+`}}` {
				t.Errorf("%s\nwant %s", body, c.want)
			}
		}
	}
}

// TestWorded: a message shows the place as the caller wrote it, and says what to do.
func TestWorded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		route string
		e     *desk.Error
		want  string
	}{
		{"POST /v1/x", desk.InvalidAt("/identities/3/value", "wrong"), "/identities/3/value: wrong"},
		{"PUT /v1/x", desk.InvalidAt("/owner", "unknown").Advise(desk.ListMembers), "/owner: unknown; GET /members lists them"},
		{"GET /v1/x", desk.InvalidAt("/owner", "unknown"), "owner: unknown"},
		{"DELETE /v1/x", desk.InvalidAt("/value", "a field").Advise(desk.ClearField, "email"), "value: a field; clear it with PATCH /contacts/{id} and email null"},
		{"POST /v1/x", desk.InvalidAt(desk.AtIdempotencyKey, "missing"), "Idempotency-Key: missing"},
		{"GET /v1/x", desk.NotFoundf("100%% unknown"), "100% unknown"},
	} {
		if got := api.Worded(c.route, c.e); got != c.want {
			t.Errorf("%s: %q, want %q", c.route, got, c.want)
		}
	}
	for kind := desk.NoAdvice + 1; kind < desk.EndOfAdvice; kind++ {
		e := desk.Invalidf("m").Advise(kind, "ARG")
		if got := api.Worded("POST /v1/x", e); len(got) < len("m; x") {
			t.Errorf("no words for the advice %d", kind)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	passes := map[desk.ErrorType]bool{
		desk.RateLimited: true, desk.Unavailable: true, desk.ProviderUnavailable: true, desk.SendInProgress: true, desk.SendOutcomeUnknown: true,
	}
	for _, kind := range desk.ErrorTypes {
		for after, want := range map[int]string{0: "1", 30: "30"} {
			if !passes[kind] && (kind != desk.MediaUnavailable || after == 0) { // a file may come later
				want = ""
			}
			e := desk.Errorf(kind, "m")
			e.RetryAfter = after
			if header, _ := api.ErrorAnswer(e); header.Get("Retry-After") != want {
				t.Errorf("%s with %d: Retry-After %q, want %q", kind, after, header.Get("Retry-After"), want)
			}
		}
	}
}
