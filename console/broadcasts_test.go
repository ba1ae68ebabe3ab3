package console

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"parley/app"
	"parley/desk"
	"parley/store"
)

// given is a field that was sent.
func given[T any](v T) desk.Field[T] { return desk.Field[T]{Set: true, Value: v} }

// drafted makes a draft of pickup_ready. change may change what is sent for it.
func (w *world) drafted(name string, change func(*desk.BroadcastInput), numbers ...string) *desk.Broadcast {
	w.t.Helper()
	boss, err := w.app.Access.Member(context.Background(), w.ws, w.nora.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	in := &desk.BroadcastInput{
		Name: given(name), Template: given(desk.TemplateName{Name: "pickup_ready", Language: "en"}), Consent: given(desk.Consent{Confirmed: true}),
		Values: given([]desk.BroadcastValue{
			{Address: "2", Value: "Nora"}, {Address: "1", From: string(desk.CustomerFirstName), Else: "dear reader"},
		}),
	}
	if change != nil {
		change(in)
	}
	b, err := w.app.Broadcasts.Create(context.Background(), boss, in)
	if err != nil {
		w.t.Fatal(err)
	}
	var rows []desk.RowInput
	for _, number := range numbers {
		rows = append(rows, desk.RowInput{Find: desk.Identity{Kind: desk.KindPhone, Value: number}, Values: []desk.NamedValue{{Address: "header.1", Value: "A-17"}}})
	}
	if len(rows) > 0 {
		if _, err := w.app.Broadcasts.Add(context.Background(), boss, b.ID, rows); err != nil {
			w.t.Fatal(err)
		}
	}
	return w.broadcastNow(b.ID)
}

func (w *world) broadcastNow(id desk.ID) *desk.Broadcast {
	w.t.Helper()
	b, err := w.app.Broadcasts.Get(context.Background(), w.operator(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

func (w *world) peopleOf(id desk.ID) []desk.BroadcastRow {
	w.t.Helper()
	rows, _, err := w.app.Broadcasts.Rows(context.Background(), w.operator(), id, desk.RowFilter{}, "", desk.MaxLimit)
	if err != nil {
		w.t.Fatal(err)
	}
	return rows
}

// becomes stores a broadcast and its people as if it had been sent so far.
func (w *world) becomes(b *desk.Broadcast, change func(*desk.Broadcast), rows ...func(*desk.BroadcastRow)) {
	w.t.Helper()
	list := w.peopleOf(b.ID)
	before := make([]store.RowChange, len(rows))
	for i, do := range rows {
		before[i] = store.Change(&list[i])
		do(&list[i])
	}
	if err := w.store.InTx(context.Background(), w.ws, func(tx store.Tx) error {
		stored, err := tx.Broadcast(b.ID)
		if err != nil {
			return err
		}
		change(stored)
		if err := tx.PutBroadcast(stored); err != nil {
			return err
		}
		return tx.PutRows(b.ID, before)
	}); err != nil {
		w.t.Fatal(err)
	}
}

// started makes a broadcast one that w.nora has started.
func (w *world) started(state desk.BroadcastState, reason desk.BroadcastReason) func(*desk.Broadcast) {
	return func(b *desk.Broadcast) {
		b.State, b.Reason, b.StartedBy, b.StartedAt, b.Channel = state, reason, desk.Actor{Kind: desk.ByMember, ID: w.nora.ID}, desk.Time(w.clock.Load()), w.channel
		if state.Ended() {
			b.EndedAt = b.StartedAt + 60_000
		}
	}
}

func status(s desk.RowStatus) func(*desk.BroadcastRow) {
	return func(r *desk.BroadcastRow) { r.Status = s }
}

func skipped(why desk.RowReason) func(*desk.BroadcastRow) {
	return func(r *desk.BroadcastRow) { r.Status, r.Reason = desk.RowSkipped, why }
}

func failed(s desk.RowStatus, f desk.Failure) func(*desk.BroadcastRow) {
	return func(r *desk.BroadcastRow) { r.Status, r.Failure = s, &f }
}

func numbers(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("346123457%02d", i))
	}
	return list
}

// TestBroadcasts: a member sees the broadcasts, and how far each got; an admin has buttons.
func TestBroadcasts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	nora, mei := w.as(w.nora), w.as(w.mei)
	mei.get("/broadcasts").want(200, "No broadcasts yet").lacks("/broadcasts/new").golden("broadcasts/none-agent")
	nora.get("/broadcasts").want(200, "No broadcasts yet").golden("broadcasts/none")
	nora.get("/broadcasts?state=paused").want(200, "Nothing is paused")
	w.person("34612345700", "Lucía", "")

	b := w.drafted("Spring", nil, numbers(9)...)
	at := broadcastPath(b.ID)
	nora.get(at).want(200, "Draft", "The contact&#39;s first name; if it is empty: dear reader", `href="`+at+`/delete"`).lacks(at+"/pause", at+"/cancel").golden("broadcasts/draft")
	mei.get(at).want(200, "Draft").lacks("<form method=\"post\" action=\"" + at).golden("broadcasts/draft-agent")

	fault := desk.Failure{Code: 131049, Title: "the provider holds it back", Fix: "try again later"}
	w.becomes(b, w.started(desk.BroadcastRunning, desk.WaitsForPace), status(desk.RowRead), status(desk.RowDelivered), status(desk.RowSent), failed(desk.RowFailed, fault),
		failed(desk.RowRefused, fault), status(desk.RowInDoubt), skipped(desk.SkipOptedOut), skipped(desk.SkipInConversation))
	nora.get(at).want(200, "It waits, as it may not go faster.", "8 of 9 people", "1 message in doubt", "Opted out of marketing", "131049", "The provider holds it back.", "Try again later.", `class="reach"`,
		"data-every", `data-live="broadcast:`+b.ID.String(), `<noscript><meta http-equiv="refresh" content="2"></noscript>`).lacks(at + "/delete").golden("broadcasts/running")
	mei.get(at).want(200, "8 of 9 people", "Lucía").lacks("<form method=\"post\" action=\""+at, at+"/cancel", at+"/release").golden("broadcasts/running-agent")
	nora.get(at+"?status=skipped&reason=opted_out").want(200, "Opted out of marketing", "34 612 34 57 06").lacks("34 612 34 57 07").golden("broadcasts/filtered")
	nora.get(at+"?status=cancelled").want(200, "Nobody fits")
	nora.get(at+"?after=nonsense&status=x&reason=y").want(200, "Lucía")
	nora.get("/broadcasts?state=running&after=nonsense").want(200, "Spring").golden("broadcasts/list")

	for reason := range pauses {
		w.becomes(b, w.started(desk.BroadcastPaused, reason))
		nora.get(at).want(200, strings.ReplaceAll(pauses[reason], "'", "&#39;"), at+"/resume").lacks(`class="reach"`, "data-every")
	}
	w.becomes(b, w.started(desk.BroadcastPaused, desk.PausedFailures))
	nora.get(at).want(200, "More than 20 % of the newest messages failed.").golden("broadcasts/paused")
	nora.get(at+"/resume").want(200, "Left are 1 person", "It was paused for a reason").golden("broadcasts/resume")
	nora.get(at+"/cancel").want(200, "There is no undo.").golden("broadcasts/cancel")
	w.becomes(b, w.started(desk.BroadcastCancelled, ""))
	nora.get(at).want(200, "Cancelled", at+"/delete").lacks(at + "/resume").golden("broadcasts/cancelled")
	w.becomes(b, w.started(desk.BroadcastDone, ""))
	nora.get(at+"/delete").want(200, "Messages that were sent stay").golden("broadcasts/delete")
}

// TestBroadcast_acts: what an admin does with a broadcast, and what is refused.
func TestBroadcast_acts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	nora, mei := w.as(w.nora), w.as(w.mei)
	later := desk.Time(w.clock.Load() + 3_600_000)
	b := w.drafted("Spring", func(in *desk.BroadcastInput) {
		in.SendAt, in.StopAt, in.SkipOpen = given(later), given(later+60_000), given(true)
		in.Pace, in.Channel = given(desk.BroadcastPace{People: 1600, Minutes: 1440}), given(w.channel)
		zone := "Europe/Madrid"
		in.Hours = given(desk.HoursInput{TimeZone: &zone, Week: map[string][][]string{"mon": {{"09:00", "13:00"}}}})
	}, numbers(2)...)
	at := broadcastPath(b.ID)
	nora.post(at+"/pause").want(409, "That is not possible now: the broadcast is draft").golden("broadcasts/refused")
	nora.post(at+"/cancel").want(409, "the broadcast is draft", "There is no undo.")
	w.becomes(b, w.started(desk.BroadcastScheduled, ""))
	nora.get(at).want(200, "It begins Thu 12 Mar 2026 10:30 (UTC).", "At most 1,600 people in a day", "Monday 09:00–13:00 (Europe/Madrid)", "Passed over").golden("broadcasts/scheduled")
	for _, act := range []string{"pause", "resume", "cancel", "unschedule", "copy", "delete", "release?outcome=sent"} {
		mei.post(at + "/" + act).want(403)
	}
	nora.post(at+"/delete").want(409, "the broadcast is scheduled")
	nora.post(at + "/unschedule").sends(at + "?done=unscheduled")
	if now := w.broadcastNow(b.ID); now.State != desk.BroadcastDraft {
		t.Errorf("it is %s", now.State)
	}
	copied := nora.post(at + "/copy").want(303).header.Get("Location")
	nora.get(copied).want(200, "Spring (copy)", "It has no people yet", "Nobody here")
	id, _ := desk.ParseID(strings.TrimSuffix(strings.TrimPrefix(copied, "/broadcasts/"), "?done=copied"))
	made := w.broadcastNow(id)
	if made.Rows != 0 || made.SendAt != b.SendAt || made.StopAt != b.StopAt || made.Pace == nil || *made.Pace != *b.Pace || made.Consent == nil || made.SkipOpen == nil || made.Channel != w.channel ||
		fmt.Sprint(made.Hours.Week) != fmt.Sprint(b.Hours.Week) || fmt.Sprint(made.Values) != fmt.Sprint(b.Values) {
		t.Errorf("the copy is %+v", made)
	}
	w.clock.Add(2 * 3_600_000)
	id, _ = desk.ParseID(strings.TrimSuffix(strings.TrimPrefix(nora.post(at+"/copy").want(303).header.Get("Location"), "/broadcasts/"), "?done=copied"))
	if made := w.broadcastNow(id); made.SendAt != 0 || made.StopAt != 0 {
		t.Errorf("the copy has times that are over: %+v", made)
	}
	w.becomes(b, w.started(desk.BroadcastRunning, ""))
	nora.post(at + "/pause").sends(at + "?done=paused")
	nora.post(at + "/pause").sends(at + "?done=paused") // twice is the same
	nora.get(at+"?done=paused").want(200, "Paused. Nothing more is begun", "Somebody paused it.")
	nora.post(at + "/resume").sends(at + "?done=resumed")
	nora.post(at + "/cancel").sends(at + "?done=ended")
	nora.post(at+"/resume").want(409, "the broadcast is cancelled", "Resume Spring?").golden("broadcasts/resume-refused")
	nora.post(at + "/delete").sends("/broadcasts?done=deleted")
	nora.get(at).want(404)
	nora.post(at + "/delete").want(404)
	nora.get("/broadcasts/nonsense").want(404)
}

// doubtful makes messages of a broadcast's first people whose outcome is unknown.
func (w *world) doubtful(b *desk.Broadcast, n int) {
	w.t.Helper()
	ctx := context.Background()
	if err := w.sending(w.mei, "lost", "34612340003"); !desk.IsType(err, desk.SendOutcomeUnknown) {
		w.t.Fatal(err)
	}
	list, _, err := w.app.Attempts(ctx, w.operator(), app.AttemptFilter{Phase: desk.InDoubt}, "", 1)
	if err != nil || len(list) != 1 {
		w.t.Fatal(list, err)
	}
	var rows []func(*desk.BroadcastRow)
	for range n {
		rows = append(rows, func(r *desk.BroadcastRow) {
			at := *list[0]
			at.ID, at.Key, at.Broadcast, at.Plan.Message, at.Plan.Conversation, at.Plan.Number = w.newID(), r.NextKey(), b.ID, w.newID(), w.newID(), r.To
			at.Plan.Sender = b.Name
			if err := w.store.InTx(ctx, w.ws, func(tx store.Tx) error { return tx.PutAttempt(&at) }); err != nil {
				w.t.Fatal(err)
			}
			r.Claimed(&at, at.CreatedAt)
			r.Status = desk.RowInDoubt
		})
	}
	w.becomes(b, w.started(desk.BroadcastDone, ""), rows...)
}

// TestBroadcast_release: the messages in doubt of a broadcast are settled together.
func TestBroadcast_release(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	nora, mei := w.as(w.nora), w.as(w.mei)
	b := w.drafted("Spring", nil, numbers(3)...)
	w.doubtful(b, 2)
	at := broadcastPath(b.ID)
	nora.get(at).want(200, "2 messages in doubt", at+"/release?outcome=sent")
	mei.get(at + "/release?outcome=sent").want(403)
	nora.get(at+"/release?outcome=sent").want(200, "Settle 2 messages as sent?", "Up to 1,000").golden("broadcasts/release-sent")
	nora.get(at+"/release?outcome=not-sent").want(200, "Settle 2 messages as not sent?").golden("broadcasts/release-not-sent")
	nora.post(at+"/release").want(422, "Choose whether the messages arrived")
	if n := w.broadcastNow(b.ID).Counts.ByStatus[desk.RowInDoubt]; n != 2 {
		t.Fatalf("%d are in doubt", n)
	}
	nora.post(at + "/release?outcome=not-sent").sends(at + "?done=settled")
	nora.get(at).want(200, "Settled as not sent").lacks("in doubt</h2>")
}
