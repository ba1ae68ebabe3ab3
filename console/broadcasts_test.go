package console

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

func answers(reply desk.RowReply) func(*desk.BroadcastRow) {
	return func(r *desk.BroadcastRow) { r.Data.Reply = reply }
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
	w.becomes(b, w.started(desk.BroadcastRunning, desk.WaitsForPace), answers(desk.RowReply{At: 1, Choice: "Yes, please", ChosenAt: 1}), answers(desk.RowReply{At: 1, OptedOut: true}))
	nora.get(at+"?answer=yes").want(200, "What they tapped", "Yes, please", "34 612 34 57 01", at+"/people/file?answer=yes&amp;format=csv").lacks("34 612 34 57 02").golden("broadcasts/answered")
	nora.get(at+"?answer=no&status=sent").want(200, "34 612 34 57 02").lacks("34 612 34 57 01")
	nora.get(at+"?after=nonsense&status=x&reason=y").want(200, "Lucía")
	nora.get("/broadcasts?state=running&after=nonsense").want(200, "Spring", `data-l="Passed over">2<`).golden("broadcasts/list")

	for reason := range pauses {
		w.becomes(b, w.started(desk.BroadcastPaused, reason))
		nora.get(at).want(200, strings.ReplaceAll(pauses[reason], "'", "&#39;"), at+"/resume", "data-every", `http-equiv="refresh"`).lacks(`class="reach"`)
	}
	w.becomes(b, w.started(desk.BroadcastPaused, desk.PausedFailures))
	nora.get(at).want(200, "More than 20 % of the newest messages failed.").golden("broadcasts/paused")
	nora.get(at+"/resume").want(200, "Not sent to yet: 1 person", "It was paused for a reason").golden("broadcasts/resume")
	nora.get(at+"/cancel").want(200, "There is no undo.").golden("broadcasts/cancel")
	w.becomes(b, w.started(desk.BroadcastCancelled, ""))
	nora.get(at).want(200, "Cancelled", at+"/delete").lacks(at + "/resume").golden("broadcasts/cancelled")
	w.becomes(b, w.started(desk.BroadcastDone, ""))
	nora.get(at).want(200, "data-every", `http-equiv="refresh"`)
	w.clock.Add(2 * time.Hour.Milliseconds())
	nora.get(at).want(200, "Done").lacks("data-every", `http-equiv="refresh"`)
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
	planned := broadcastPath(w.drafted("Later", func(in *desk.BroadcastInput) { in.SendAt = given(later) }, numbers(2)...).ID)
	for range 2 { // a double click
		nora.post(planned+"/start", "number", "2").sends(planned + "?done=scheduled")
	}
	nora.get(planned+"?done=scheduled").want(200, "Scheduled. It begins at its time.")
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
	// The page renews itself without script, but not while it says why something was refused.
	nora.get(at).want(200, `http-equiv="refresh"`)
	nora.post(at+"/unschedule").want(409, "the broadcast is running").lacks(`http-equiv="refresh"`)
	nora.post(at + "/cancel").sends(at + "?done=ended")
	nora.post(at+"/resume").want(409, "the broadcast is cancelled", "Resume Spring?").golden("broadcasts/resume-refused")
	nora.post(at + "/delete").sends("/broadcasts?done=deleted")
	nora.get(at).want(404)
	nora.post(at + "/delete").want(404)
	nora.get("/broadcasts/nonsense").want(404)

	chosen := w.drafted("Chosen", func(in *desk.BroadcastInput) {
		in.Audience, in.AtMost = given(desk.Audience{Segment: "s"}), given(int64(5))
	})
	nora.get(nora.post(broadcastPath(chosen.ID)+"/copy").want(303).header.Get("Location")).want(200, "Its people are chosen in the same way").lacks("It has no people yet")
}

// TestBroadcast_elsewhere: the sends begin with those of no broadcast; a thread names the
// broadcast of a message; a key's and a member's last page names what it pauses; the archived
// list has dormant conversations only if asked.
func TestBroadcast_elsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	nora, mei := w.as(w.nora), w.as(w.mei)
	if _, _, err := w.app.PutAttribute(t.Context(), w.operator(), desk.AttributeInput{Key: "ok", Label: given("Newsletter"), Type: given("boolean")}); err != nil {
		t.Fatal(err)
	}
	b := w.drafted("Spring", func(in *desk.BroadcastInput) { in.Consent = given(desk.Consent{Attribute: "ok"}) }, numbers(3)...)
	w.doubtful(b, 2)
	at := broadcastPath(b.ID)
	const row = `id="s-`
	for path, want := range map[string]int{"/sends": 1, "/sends?doubt=yes": 1, "/sends?doubt=yes&broadcast=any": 3, "/sends?broadcast=any": 3, "/sends?doubt=yes&broadcast=" + b.ID.String(): 2, "/sends?failed=yes&broadcast=" + b.ID.String(): 0} {
		if got := strings.Count(mei.get(path).want(200).body, row); got != want {
			t.Errorf("%s has %d rows, want %d", path, got, want)
		}
	}
	mei.get("/sends?doubt=yes&broadcast="+b.ID.String()).want(200, "Only those of the broadcast", at).golden("broadcasts/sends")
	mei.get("/sends?broadcast=" + w.newID().String()).want(404)
	first := w.peopleOf(b.ID)[0]
	mei.get("/sends/"+first.Attempt.String()).want(200, "Open the broadcast", "a yes in <bdi>Newsletter</bdi>, and <bdi>").lacks("broadcast →", "Idempotency key")
	nora.get("/sends/"+first.Attempt.String()).want(200, "the broadcast does not send it again")
	nora.post(at + "/release?outcome=sent").sends(at + "?done=settled")

	first = w.peopleOf(b.ID)[0]
	mei.get("/inbox/"+first.Conversation.String()).want(200, `<a href="`+at+`"><bdi>Spring (broadcast)</bdi></a>`, `Opt-in confirmed by a yes in <bdi>Newsletter</bdi>, and <bdi>Mei Tanaka</bdi>`)
	talk := "c-" + first.Conversation.String()
	mei.get("/inbox?view=archived").want(200, "Also of broadcasts", "No archived conversations").lacks(talk).golden("broadcasts/archived")
	mei.get("/inbox?view=broadcasts").want(200, talk, "Also of broadcasts").golden("broadcasts/archived-all")

	name, all := "shop", "all"
	_, key, err := w.app.CreateKey(t.Context(), w.operator(), app.KeyEdit{Name: &name, Permissions: &all})
	if err != nil {
		t.Fatal(err)
	}
	revoke, remove := "/settings/keys/"+key.ID.String()+"/revoke", "/settings/members/"+w.nora.ID.String()+"/remove"
	nora.get(revoke).want(200).lacks("This pauses")
	w.becomes(b, func(b *desk.Broadcast) {
		b.State, b.StartedBy = desk.BroadcastScheduled, desk.Actor{Kind: desk.ByKey, ID: key.ID}
	})
	nora.get(revoke).want(200, "This pauses 1 broadcast: Spring.").golden("broadcasts/revoke")
	nora.get(remove).want(200).lacks("This pauses")
	w.becomes(b, w.started(desk.BroadcastRunning, ""))
	nora.get(remove).want(200, "This pauses 1 broadcast: Spring.")
}

// TestBroadcast_make: an admin chooses a template, fills the form, adds people, checks, and
// starts by typing how many these are.
func TestBroadcast_make(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	nora, mei := w.as(w.nora), w.as(w.mei)
	if _, _, err := w.app.PutAttribute(t.Context(), w.operator(), desk.AttributeInput{Key: "ok", Label: given("May be written to"), Type: given("boolean")}); err != nil {
		t.Fatal(err)
	}
	w.person("34612345678", "Lucía Fernández", "")
	mei.get("/broadcasts/new").want(403)
	nora.get("/broadcasts").want(200, `href="/broadcasts/new"`)
	nora.get("/broadcasts/new").want(200, "pickup_ready", "/broadcasts/new?channel="+w.channel.String()+"&amp;template=pickup_ready%2Fen").golden("broadcasts/choose")
	nora.get("/broadcasts/new?words=nothing").want(200, "No template has that")
	chosen := "/broadcasts/new?channel=" + w.channel.String() + "&template=pickup_ready/en"
	page := nora.get(chosen).want(200, `data-preview="preview"`, "I have the agreement of each of these people", "Only people with a yes in May be written to", "80 % of what WhatsApp lets your number write to").golden("broadcasts/new").body
	if len(page) > 60<<10 {
		t.Errorf("the page has %d bytes", len(page))
	}
	filled := func(pairs ...string) []string {
		usual := []string{"channel", w.channel.String(), "template", "pickup_ready/en", "name", "Spring", "from.header.1", "row", "value.header.1", "", "from.1", "customer_first_name", "value.1", "dear reader",
			"from.2", "text", "value.2", "Nora", "open", "always", "max_failed_percent", "20"}
		return append(pairs, usual...) // the first value of a field counts
	}
	nora.post("/broadcasts/new", "channel", w.channel.String(), "template", "pickup_ready/en", "name", " ", "from.2", "text", "value.2", " ", "send_at", "soon", "pace.people", "many", "max_failed_percent", "", "open", "hours", "mon.0.from", "09:00", "time_zone", "UTC").
		want(422, "Give it a name.", "Fill this in, or choose where it comes from.", "Give a date and a time.", "Give a whole number.", "Give both times of each span", `value="many"`).golden("broadcasts/new-wrong")
	nora.post("/broadcasts/new", filled("max_failed_percent", "101")...).want(422, "Send a whole number from 1 to 100.", `value="dear reader"`)
	nora.post("/broadcasts/new", filled("pace.people", "10", "pace.minutes", "0")...).want(422, "Send a whole number from 1 to 1440")
	nora.post("/broadcasts/new", filled("open", "hours", "time_zone", "Nowhere")...).want(422)
	nora.post("/broadcasts/new", "name", "x").want(422, "Choose a template")
	nora.post("/broadcasts/new", filled("preview", "yes")...).want(200, "Nora</mark>", "The contact&#39;s first name</mark>")
	at := strings.TrimSuffix(nora.post("/broadcasts/new", filled()...).want(303).header.Get("Location"), "/people?done=saved")
	id, _ := desk.ParseID(strings.TrimPrefix(at, "/broadcasts/"))
	nora.get(at).want(200, "Send to 0 people…", "Not said yet", `name="value.2" value="Nora"`)
	nora.get(at+"/start").want(422, "Say first how these people agreed to be written to").golden("broadcasts/start-refused")

	// Two admins: what was changed meanwhile is not overwritten unseen.
	form := nora.get(at+"/edit").want(200, `value="dear reader"`).golden("broadcasts/edit").body
	seen := valueOf(form, "seen")
	nora.post(at+"/edit", filled("consent", "attributes.ok", "skip_open", "yes", "send_at", "2026-03-14T10:00", "zone", "Europe/Madrid", "seen", seen)...).sends(at + "?done=saved")
	b := w.broadcastNow(id)
	if b.Consent == nil || b.Consent.Attribute != "ok" || b.SendAt != desk.TimeOf(time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)) || b.SkipOpen == nil || len(b.Values) != 3 {
		t.Errorf("stored: %+v", b)
	}
	nora.post(at+"/edit", filled("name", "Autumn", "seen", seen)...).want(409, "Somebody has changed this broadcast meanwhile", "Autumn")
	nora.get(at).want(200, "Only to people with a yes in May be written to", "Spring")
	seen = valueOf(nora.get(at+"/edit").body, "seen")
	nora.post(at+"/edit", filled("consent", "confirmed", "pace.people", "1,600", "pace.minutes", "1440", "seen", seen)...).sends(at + "?done=saved")

	// People, with a value each.
	nora.get(at+"/people").want(200, "0 people so far", "then Value 1 (title)").golden("broadcasts/people-none")
	nora.post(at+"/people", "list", " ").want(422, "Paste at least one line")
	nora.post(at+"/people", "list", "+34 612 34 56 78;A-17\n\n12\nnobody@example.com,A-1\n+34 612 34 56 79\tA-18\tB\n612 34 56 80\t\"A-19\"").
		want(422, "2 people added: 3 lines were refused", `<td class="num">3</td>`, "A phone number has 7 to 15 digits", "No contact has this e-mail.", "more values than the 1 value", "612 34 56 80").golden("broadcasts/people-refused")
	nora.post(at+"/people", "list", "+34 612 34 56 78;A-17\n12\n612 34 56 80;A-19").want(422, "0 people added: 1 line was refused") // both are there
	nora.post(at+"/people", "list", strings.Repeat("x\n", maxPasted+1)).want(422, "These are more than 10,000 lines")
	nora.post(at+"/people", "list", "+34 612 34 56 78;A-20").sends(at + "/people?done=added")
	if rows := w.peopleOf(id); len(rows) != 2 || rows[0].To != "34612345678" || rows[1].To != "34612345680" {
		t.Errorf("%+v", rows)
	}
	nora.get(at+"/people").want(200, "2 people so far", at+"/people/remove").golden("broadcasts/people")
	nora.get(at+"/people/remove").want(200, "Take all people out of Spring?").golden("broadcasts/people-remove")

	nora.get(at+"/check").want(200, "2 of 2 people", "Order A-20", "Lucía Fernández", "Somebody new").lacks(`name="cursor"`).golden("broadcasts/check")
	nora.post(at+"/check", "cursor", "nonsense").want(422)
	nora.get(at+"/start").want(200, "Send to 2 people", "At most 1,600 people in a day").golden("broadcasts/start")
	nora.post(at+"/start", "number", "3").want(422, "Type the number: 2.").golden("broadcasts/start-wrong")
	if b := w.broadcastNow(id); b.State != desk.BroadcastDraft {
		t.Fatalf("it is %s", b.State)
	}
	mei.post(at+"/start", "number", "2").want(403)
	nora.post(at+"/start", "number", "2").sends(at + "?done=started")
	nora.post(at+"/start", "number", "2").sends(at + "?done=started") // a double click
	nora.get(at + "/start").sends(at)
	if b := w.broadcastNow(id); b.State != desk.BroadcastRunning || b.StartedBy.ID != w.nora.ID {
		t.Errorf("started: %+v", b)
	}

	// Later, less can be changed.
	form = nora.get(at+"/edit").want(200, "Stop at").lacks("from.1", "send_at", "Another template").golden("broadcasts/edit-later").body
	nora.post(at+"/edit", "name", "Spring 2", "max_failed_percent", "30", "open", "always", "seen", valueOf(form, "seen")).sends(at + "?done=saved")
	if b := w.broadcastNow(id); b.Name != "Spring 2" || b.MaxFailed != 30 || b.Pace != nil {
		t.Errorf("changed: %+v", b)
	}
	nora.post(at+"/people", "list", "+34 612 34 56 99").want(409, "the broadcast is running", "612 34 56 99")
	nora.post(at+"/people/remove").want(409, "the broadcast is running")
	w.becomes(b, w.started(desk.BroadcastCancelled, ""))
	form = nora.get(at + "/edit").want(200).lacks("Stop at").body
	nora.post(at+"/edit", "name", "Spring 3", "seen", valueOf(form, "seen")).sends(at + "?done=saved")
}

// valueOf returns the value of a hidden field.
func valueOf(page, name string) string {
	_, rest, _ := strings.Cut(page, `name="`+name+`" value="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// TestBroadcast_others: a start counts only for the people that the page showed.
func TestBroadcast_others(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	b := w.drafted("Spring", nil, numbers(2)...)
	boss, err := w.app.Access.Member(t.Context(), w.ws, w.nora.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.app.Broadcasts.StartFor(t.Context(), boss, b.ID, 1); !desk.IsType(err, desk.Changed) {
		t.Fatal(err)
	}
	if _, err := w.app.Broadcasts.StartFor(t.Context(), boss, b.ID, 2); err != nil {
		t.Fatal(err)
	}
}

// TestBroadcast_check: the pages of a check add up.
func TestBroadcast_check(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	nora := w.as(w.nora)
	b := w.drafted("Spring", nil)
	at := broadcastPath(b.ID)
	var list strings.Builder
	for i := range 1003 {
		fmt.Fprintf(&list, "+3461234%04d;A-17\n", i)
	}
	nora.post(at+"/people", "list", list.String()).sends(at + "/people?done=added")
	page := nora.get(at+"/check").want(200, "1,000 of 1,003 people", `name="looked" value="1000"`, "Check the next 10,000").body
	nora.post(at+"/check", "cursor", valueOf(page, "cursor"), "looked", "1000", "sendable", "990", "skip.opted_out", "10", "skip.late", "-3").
		want(200, "1,003 of 1,003 people", "<b>993</b>", "Opted out of marketing").lacks("Too late", `name="cursor"`)
}

// TestBroadcast_file: the file of a template's title is kept while the form is corrected.
func TestBroadcast_file(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(`{"name":"poster","language":"en","status":"APPROVED","category":"MARKETING","components":[{"type":"HEADER","format":"IMAGE"},{"type":"BODY","text":"Look!"},
		{"type":"BUTTONS","buttons":[{"type":"URL","text":"Shop","url":"https://harbour.example/{{1}}"}]}]}`)
	nora := w.as(w.nora)
	m := w.uploads("poster.png", "image/png", picture)
	fields := []string{"channel", w.channel.String(), "template", "poster/en", "from.button.0", "text", "value.button.0", "new", "open", "always", "max_failed_percent", "20"}
	nora.post("/broadcasts/new", append(fields, "name", "Posters")...).want(422, "Choose a file.")
	nora.post("/broadcasts/new", append(fields, "name", "", "media", m.ID.String())...).want(422, `name="media" value="`+m.ID.String()+`"`, "/media/"+m.ID.String()).golden("broadcasts/new-file")
	at := strings.TrimSuffix(nora.post("/broadcasts/new", append(fields, "name", "Posters", "media", m.ID.String())...).want(303).header.Get("Location"), "/people?done=saved")
	nora.get(at+"/edit").want(200, `name="media" value="`+m.ID.String()+`"`)
	const shown = `<p class="title"><img src="/media/`
	file := m.ID.String()
	nora.get(at).want(200, "File in the title", shown+file+`" alt="poster.png">`).lacks(`name="value.header.media"`).golden("broadcasts/draft-file")
	nora.post("/broadcasts/new", append(fields, "preview", "yes", "media", file)...).want(200, shown+file)
	nora.post("/broadcasts/new", append(fields, "preview", "yes", "named", "spring.png")...).want(200, `<p class="title">`, "<bdi>spring.png</bdi>").lacks("<img src")

	// A test is a single send with the same file. The draft keeps it, whatever becomes of the test.
	nora.get(at).want(200, `<input type="hidden" name="media" value="`+file+`">`)
	lucia := w.contact("Lucía Fernández", "34612345678")
	w.indexed()
	nora.get("/send?channel="+w.channel.String()+"&template=poster/en&value.button.0=new&media="+file+"&find=612+34+56+78").
		want(200, "media="+file, `<input type="hidden" name="media" value="`+file+`">`)
	test := nora.get("/send?contact="+lucia.ID.String()+"&channel="+w.channel.String()+"&template=poster/en&value.button.0=new&media="+file).
		want(200, shown+file, `<input type="hidden" name="media" value="`+file+`">`)
	sends := []string{"contact", lucia.ID.String(), "channel", w.channel.String(), "template", "poster/en", "key", value(t, test.body, "key"), "value.button.0", "new", "media", file}
	nora.post("/send", sends...).want(422, "something is missing", shown+file)
	nora.get(nora.post("/send", append(sends, "opt_in", "yes")...).want(303).header.Get("Location")).want(200, "Look!", `<img src="/media/`+file+`"`)
	nora.get(at).want(200, shown+file)
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
			at.ID, at.Key, at.Broadcast, at.Plan.Message, at.Plan.Conversation, at.Plan.Contact, at.Plan.Number = w.newID(), r.NextKey(), b.ID, w.newID(), w.newID(), w.newID(), r.To
			at.Plan.Sender, at.Plan.OptIn.Attribute = b.Name, b.Consent.Attribute
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

// TestBroadcast_giveWay: broadcasts go slowly while somebody of the team writes something else.
func TestBroadcast_giveWay(t *testing.T) {
	t.Parallel()
	var uptime atomic.Int64
	w := newWorldWith(t, func(d *app.Deps) { d.Uptime = func() time.Duration { return time.Duration(uptime.Load()) } })
	nora := w.as(w.member("Nora Vidal", "nora@example.com", "admin"))
	for call, slow := range map[string]bool{"POST /contacts/new": true, "GET /contacts": false, "POST /broadcasts/new": false} {
		uptime.Add(int64(time.Hour))
		if path, ok := strings.CutPrefix(call, "POST "); ok {
			nora.post(path)
		} else {
			nora.get(strings.TrimPrefix(call, "GET "))
		}
		if w.app.Broadcasts.Slow() != slow {
			t.Errorf("%s: broadcasts go slowly: %v, want %v", call, !slow, slow)
		}
	}
}
