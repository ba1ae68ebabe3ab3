package console

import (
	"testing"

	"parley/app/segments"
	"parley/desk"
)

// TestBroadcast_audience: an admin chooses a segment, or people of an earlier broadcast, checks,
// and types at the start how many these may be.
func TestBroadcast_audience(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	nora, mei := w.as(w.nora), w.as(w.mei)
	w.person("34612345678", "Lucía Fernández", "")
	b := w.drafted("Spring", func(in *desk.BroadcastInput) {
		in.Values.Value[0].Address, in.Values.Value[1].Address = "header.1", "2"
	})
	at := broadcastPath(b.ID)
	nora.get(at+"/people").want(200, at+"/audience?from=segment", at+"/audience?from=broadcast")
	nora.get(at+"/audience?from=segment").want(200, "No segments yet").lacks(`name="segment"`)
	nora.get(at+"/audience?from=broadcast").want(200, "No broadcast has ended yet")
	boss, err := w.app.Access.Member(t.Context(), w.ws, w.nora.ID)
	if err != nil {
		t.Fatal(err)
	}
	named := desk.Filter{All: []desk.Clause{{Condition: desk.Condition{Field: "name", Is: desk.IsPresent}}}}
	if _, _, err := w.app.Segments.Put(t.Context(), boss, segments.Edit{Key: "named", Name: "With a name", Filter: named}); err != nil {
		t.Fatal(err)
	}
	nora.get(at+"/audience?from=segment").want(200, "With a name").golden("broadcasts/audience-segment")
	mei.post(at+"/audience", "from", "segment", "segment", "named").want(403)
	nora.post(at+"/audience", "from", "segment", "segment", "").want(422, "Choose a segment.")
	nora.post(at+"/audience", "from", "segment", "segment", "named").sends(at + "?done=saved")
	if now := w.broadcastNow(b.ID); now.Audience == nil || now.Audience.Segment != "named" {
		t.Fatalf("stored: %+v", now)
	}
	nora.get(at).want(200, "Send to its people…", "The segment With a name", "Change people").lacks("At most")
	nora.get(at + "/people").sends(at + "/audience")
	nora.get(at+"/audience").want(200, "Paste people instead", "The segment With a name").lacks("Paste people<").golden("broadcasts/audience-chosen")
	nora.post(at+"/people", "list", "+34 612 34 56 78").want(422, "it takes no rows")
	nora.get(at+"/check").want(200, at+"/start?people=1", "Send…").golden("broadcasts/check-audience")
	nora.get(at+"/start?people=1").want(200, "Send to its people", "The check found 1 person.").golden("broadcasts/start-audience")
	nora.get(at + "/start?people=-1").want(200).lacks("The check found")
	for _, wrong := range []string{"", "0", "1000001", "all"} {
		nora.post(at+"/start", "number", wrong).want(422, "Type a whole number from 1 to 1,000,000.")
	}
	nora.post(at+"/start", "number", "3").sends(at + "?done=started")
	now := w.broadcastNow(b.ID)
	if now.State != desk.BroadcastRunning || now.AtMost != 3 {
		t.Fatalf("started: %+v", now)
	}
	nora.get(at).want(200, "It writes down who fits, before it sends.", "At most", "3 people")
	w.becomes(b, func(b *desk.Broadcast) { b.Pause(desk.PausedTooMany) })
	nora.get(at).want(200, "More than 3 people fit.")
	seen := valueOf(nora.get(at+"/edit").want(200, `name="at_most"`).body, "seen")
	nora.post(at+"/edit", "name", "Spring", "max_failed_percent", "20", "open", "always", "at_most", "0", "seen", seen).want(422, "Send a whole number from 1 to 1000000")
	nora.post(at+"/edit", "name", "Spring", "max_failed_percent", "20", "open", "always", "at_most", "5", "seen", seen).sends(at + "?done=saved")
	w.becomes(b, w.started(desk.BroadcastCancelled, ""))

	// People of an earlier one.
	again := w.drafted("Again", nil)
	at = broadcastPath(again.ID)
	nora.get(at+"/audience?from=broadcast").want(200, "Spring, 0 people").golden("broadcasts/audience-broadcast")
	nora.post(at+"/audience", "from", "broadcast", "code", "0").want(422, "Choose a broadcast.", "Tick at least one.", "Give a whole number from 1").golden("broadcasts/audience-wrong")
	nora.post(at+"/audience", "from", "broadcast", "broadcast", b.ID.String(), "status", "failed", "status", "read", "code", "131049", "replied", "no").sends(at + "?done=saved")
	no := false
	want := desk.Audience{Broadcast: b.ID, Status: []desk.RowStatus{desk.RowFailed, desk.RowRead}, Code: 131049, Replied: &no}
	if now := w.broadcastNow(again.ID).Audience; now == nil || now.Broadcast != want.Broadcast || len(now.Status) != 2 || now.Code != want.Code || now.Replied == nil || *now.Replied {
		t.Errorf("stored: %+v", now)
	}
	nora.get(at).want(200, "People of Spring: not delivered, read; with the code 131049; who did not reply")
	nora.get(at+"/start").want(422, "Nobody is among its people: add some, or choose others")

	// Conditions.
	nora.get(at+"/audience?from=filter").want(200, "Add a condition about").lacks("Paste people<").golden("broadcasts/audience-conditions-none")
	line := []string{"from", "filter", "c.0.field", "name", "c.0.is", "present"}
	nora.post(at+"/audience", "from", "filter", "c.add", "name", "c.new", "yes").want(200, `name="c.0.field" value="name"`)
	nora.post(at+"/audience", append(line, "preview", "yes")...).want(200, "1 contact fits now.").golden("broadcasts/audience-conditions")
	nora.post(at+"/audience", "from", "filter").want(422, "Add at least one condition.")
	nora.post(at+"/audience", "from", "filter", "c.0.field", "wrote_at", "c.0.is", "older", "c.0.days", "3651").want(422, "3650")
	nora.post(at+"/audience", line...).sends(at + "?done=saved")
	nora.get(at).want(200, "Contacts with Name: known")
	nora.get(at+"/audience").want(200, `name="c.0.field" value="name"`, "1 contact fits now.")
	nora.post(at+"/audience", "from", "").sends(at + "/people?done=saved")
	if now := w.broadcastNow(again.ID); now.Audience != nil || now.AtMost != 0 {
		t.Errorf("stored: %+v", now)
	}
	nora.post(at+"/people", "list", "+34 612 34 56 78").sends(at + "/people?done=added")
	nora.get(at+"/audience?from=segment").want(200, "Take them out first.")
	nora.post(at+"/audience", "from", "segment", "segment", "named").want(422, "The broadcast has rows")
}
