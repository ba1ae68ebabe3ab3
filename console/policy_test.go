package console

import (
	"regexp"
	"strings"
	"testing"

	"parley/desk"
)

// policy returns the own policy of a channel, or the policy of the workspace.
func (w *world) policy(channel desk.ID) *desk.Policy {
	w.t.Helper()
	return w.operator().Settings.OwnPolicy(channel)
}

// seenIn returns the fingerprint of a part from the part's form.
func seenIn(g got, part string) string {
	g.t.Helper()
	found := regexp.MustCompile(`name="part" value="` + part + `"><input type="hidden" name="seen" value="([^"]*)"`).FindStringSubmatch(g.body)
	if found == nil {
		g.t.Fatalf("no form of %s in %s", part, g.body)
	}
	return found[1]
}

var zoneOptions = regexp.MustCompile(`(?s)<datalist id="zones">.*</datalist>`)

// short returns the page without the list of time zones.
func (g got) short() got {
	g.body = zoneOptions.ReplaceAllString(g.body, `<datalist id="zones"></datalist>`)
	return g
}

func TestPolicy_assign(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.as(w.nora)
	g := v.get("/settings/policy").want(200, "Nothing is set up yet", "You are always open.", "Nothing is answered by itself.").short().golden("policy/none")
	seen := seenIn(g, "assign")
	send := func(pairs ...string) got {
		return v.post("/settings/policy", append([]string{"part", "assign", "seen", seen}, pairs...)...)
	}
	nora, mei, tomas := w.nora.ID.String(), w.mei.ID.String(), w.tomas.ID.String()
	send("mode", "round_robin", "max_open", "").want(422, "Error: ", "Tick at least one member", `href="#f-members"`).short().golden("policy/assign-error")
	send("mode", "least_open", "members", mei, "max_open", "x").want(422, "Give a whole number from 1 to 1,000", `value="x"`)
	send("mode", "least_open", "members", mei, "max_open", "1001").want(422, "Give a whole number from 1 to 1,000")
	send("mode", "all", "members", mei).want(422)
	if w.policy(desk.ID{}) != nil {
		t.Error("a refused form stores a policy")
	}
	send("mode", "none").sends("/settings/policy?done=saved#assign")
	send("mode", "round_robin", "members", tomas, "members", mei, "max_open", "20").sends("/settings/policy?done=saved#assign")
	members := func() string {
		var names []string
		for _, id := range w.policy(desk.ID{}).Assign.Members {
			names = append(names, w.operator().Settings.Member(id).Name)
		}
		return strings.Join(names, ", ")
	}
	if a := w.policy(desk.ID{}).Assign; a.Mode != desk.AssignRoundRobin || a.MaxOpen != 20 || members() != "Tomás Rivera, Mei Tanaka" {
		t.Errorf("%+v", a)
	}
	if _, err := w.app.SetAvailable(t.Context(), w.operator(), w.mei.ID, false); err != nil {
		t.Fatal(err)
	}
	g = v.get("/settings/policy").want(200, "\u2068Tomás Rivera\u2069 and Mei Tanaka get new conversations in turn, up to 20 open ones each.", "Away").lacks("Nothing is set up").short().golden("policy/assign")

	// A button moves a member up or down. The new order is saved.
	seen = seenIn(g, "assign")
	send("mode", "least_open", "members", tomas, "members", mei, "members", nora, "max_open", "", "up", nora).sends("/settings/policy?done=saved#assign")
	if a := w.policy(desk.ID{}).Assign; a.Mode != desk.AssignLeastOpen || a.MaxOpen != 0 || members() != "Tomás Rivera, Nora Lindqvist, Mei Tanaka" {
		t.Errorf("%+v: %s", a, members())
	}
	// Conversations of an owner who is away can go to others.
	seen = seenIn(v.get("/settings/policy").want(200, `<option value="keep" selected>`), "assign")
	send("mode", "round_robin", "members", mei, "owner_away", "nobody").want(422)
	send("mode", "round_robin", "members", mei, "owner_away", "pool").sends("/settings/policy?done=saved#assign")
	if p := w.policy(desk.ID{}); p.OwnerAway != desk.OwnerPool {
		t.Errorf("%+v", p)
	}
	seen = seenIn(v.get("/settings/policy").want(200, `<option value="pool" selected>`, "So it is for customers whose owner is away."), "assign")
	send("mode", "least_open", "members", tomas, "members", nora, "members", mei, "owner_away", "keep").sends("/settings/policy?done=saved#assign")

	// Another admin has saved first.
	g = send("mode", "none").want(409, "changed this meanwhile", "whichever of", "Save anyway").short().golden("policy/changed")
	seen = seenIn(g, "assign")
	send("mode", "none").sends("/settings/policy?done=saved#assign")
	if p := w.policy(desk.ID{}); p.Assign != nil || p.Hours != nil || p.AutoReply != nil {
		t.Errorf("%+v", p)
	}
	w.as(w.mei).get("/settings/policy").want(403, "An admin can do it")
	v.post("/settings/policy", "part", "all").want(404)
	v.get("/settings/events").want(200, "of the workspace")
}

func TestPolicy_hours(t *testing.T) {
	t.Parallel()
	w := newWorld(t) // the time is Thursday 12 March 2026, 09:30 UTC
	v := w.as(w.nora)
	v.header.Set("Cookie", "tz=Europe/Madrid")
	g := v.get("/settings/policy").want(200, `value="Europe/Madrid"`, `name="mon.0.from" value="09:00"`, `name="sat.0.from" value=""`, "<option value=\"Europe/Istanbul\">").lacks("Dates with other hours")
	if len(g.body) > 60<<10 {
		t.Errorf("the page has %d bytes", len(g.body))
	}
	seen := seenIn(g, "hours")
	send := func(pairs ...string) got {
		return v.post("/settings/policy", append([]string{"part", "hours", "seen", seen, "open", "hours"}, pairs...)...)
	}
	send("time_zone", "Europe/Madrit").want(422, "Give the name of a time zone", `value="Europe/Madrit"`)
	send("time_zone", "Europe/Madrid", "mon.0.from", "09:00", "tue.1.to", "10:00").want(422, "Give both times of each span", `href="#f-day-monday"`, `href="#f-day-tuesday"`).short().golden("policy/hours-error")
	send("time_zone", "Europe/Madrid", "wed.2.from", "18:00", "wed.2.to", "09:00").want(422, "A span must end after it begins", `href="#f-day-wednesday"`)
	send("time_zone", "Europe/Madrid", "wed.0.from", "09:00", "wed.0.to", "12:00", "wed.1.from", "11:00", "wed.1.to", "13:00").want(422, "in order, and so that they do not overlap")
	send("time_zone", "Europe/Madrid", "wed.0.from", "nine", "wed.0.to", "12:00").want(422, "Give times such as 09:00.")
	send("time_zone", "Europe/Madrid", "thu.0.from", "09:00", "thu.0.to", "12:30", "thu.3.from", "13:30", "thu.3.to", "00:00", "fri.0.from", "09:00", "fri.0.to", "18:00").sends("/settings/policy?done=saved#hours")
	h := w.policy(desk.ID{}).Hours
	if h.TimeZone != "Europe/Madrid" || len(h.Week) != 2 || h.Week["thu"][1] != (desk.Span{13*60 + 30, 24 * 60}) {
		t.Errorf("%+v", h)
	}
	g = v.get("/settings/policy").want(200, "Open now, until 12:30 (Europe/Madrid).", `name="thu.1.to" value="00:00"`, `name="mon.0.from" value=""`).short().golden("policy/hours")
	seen = seenIn(g, "hours")

	// Dates with their own hours are added and removed one by one.
	date := func(pairs ...string) got {
		return v.post("/settings/policy", append([]string{"part", "dates"}, pairs...)...)
	}
	date("date", "").want(422, "Give a date")
	date("date", "2026-13-01").want(422, "Give a date")
	date("date", "2026-12-24", "at.0.from", "09:00").want(422, "Give both times of each span")
	date("date", "2026-12-24", "at.0.from", "09:00", "at.0.to", "08:00").want(422, "A span must end after it begins", `value="2026-12-24"`)
	date("date", "2026-12-24", "at.0.from", "09:00", "at.0.to", "12:00").sends("/settings/policy?done=saved#dates")
	date("date", "2026-03-12").sends("/settings/policy?done=saved#dates")
	date("date", "2025-12-24").sends("/settings/policy?done=saved#dates")
	v.get("/settings/policy").want(200, "Closed now, until Fri 13 Mar 09:00 (Europe/Madrid).", "Thu 24 Dec 2026", "09:00–12:00", "All dates, also 1").lacks("24 Dec 2025").short().golden("policy/dates")
	v.get("/settings/policy?dates=all").want(200, "Wed 24 Dec 2025")
	// If the browser's zone is not known, times are in the team's zone.
	w.writes("+34 612 34 56 70", "Sofia", "Hello")
	w.as(w.mei).get("/inbox?view=unassigned").want(200, "12 Mar 2026 10:30", "CET")
	date("date", "2026-12-24").sends("/settings/policy?done=saved#dates")
	if n := len(w.policy(desk.ID{}).Hours.Exceptions); n != 3 {
		t.Errorf("%d dates", n)
	}
	date("remove", "2026-03-12").sends("/settings/policy?done=removed#dates")
	// The dates stay when the week changes, and a change of dates does not conflict with
	// the form of the week.
	send("time_zone", "Europe/Madrid", "fri.0.from", "10:00", "fri.0.to", "18:00").sends("/settings/policy?done=saved#hours")
	if h := w.policy(desk.ID{}).Hours; len(h.Exceptions) != 2 || len(h.Week) != 1 {
		t.Errorf("%+v", h)
	}
	send("open", "hours").want(409, "changed this meanwhile")
	seen = seenIn(v.get("/settings/policy"), "hours")
	// One button copies Monday's hours to the days until Friday, without script.
	send("time_zone", "Europe/Madrid", "mon.0.from", "09:00", "mon.0.to", "14:00", "mon.1.from", "16:00", "wed.0.from", "10:00", "weekdays", "yes").want(422, `href="#f-day-friday"`)
	send("time_zone", "Europe/Madrid", "mon.0.from", "09:00", "mon.0.to", "14:00", "wed.0.from", "10:00", "wed.1.to", "12:00", "sat.0.from", "10:00", "sat.0.to", "13:00", "weekdays", "yes").sends("/settings/policy?done=saved#hours")
	if h := w.policy(desk.ID{}).Hours; len(h.Week) != 6 || h.Week["wed"][0] != (desk.Span{9 * 60, 14 * 60}) || len(h.Week["fri"]) != 1 || h.Week["sat"][0] != (desk.Span{10 * 60, 13 * 60}) {
		t.Errorf("%+v", h.Week)
	}
	seen = seenIn(v.get("/settings/policy").want(200, "until Friday"), "hours")
	v.post("/settings/policy", "part", "hours", "seen", seen, "open", "always", "mon.0.from", "hidden").sends("/settings/policy?done=saved#hours")
	if p := w.policy(desk.ID{}); p.Hours != nil {
		t.Errorf("%+v", p.Hours)
	}
	date("date", "2026-12-24").want(409)
}

func TestPolicy_replies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.as(w.nora)
	seen := seenIn(v.get("/settings/policy"), "replies")
	send := func(pairs ...string) got {
		return v.post("/settings/policy", append([]string{"part", "replies", "seen", seen}, pairs...)...)
	}
	send("queued", "One moment, {{customer_first_name}}.", "every_hours", "12").want(422, "Leave {{customer_first_name}} out", `href="#f-queued"`)
	send("away", strings.Repeat("x", 1025), "every_hours", "12").want(422, "Give at most 1,024 characters", `href="#f-away"`)
	for _, every := range []string{"", "0", "169", "often"} {
		send("away", "We are back at nine <b>", "every_hours", every).want(422, "Give a whole number from 1 to 168", "at nine &lt;b&gt;")
	}
	send("away", "We are back at nine.\r\nUntil then", "queued", " ", "every_hours", "6", "when_held", "yes").sends("/settings/policy?done=saved#replies")
	if r := w.policy(desk.ID{}).AutoReply; *r != (desk.AutoReply{Away: "We are back at nine.\nUntil then", EveryHours: 6, WhenHeld: true}) {
		t.Errorf("%+v", r)
	}
	g := v.get("/settings/policy").want(200, "A text is sent while you are closed.").short().golden("policy/replies")
	send("away", "", "queued", "", "every_hours", "6").want(409, "changed this meanwhile")
	seen = seenIn(g, "replies")
	send("away", "", "queued", "", "every_hours", "6").sends("/settings/policy?done=saved#replies")
	if p := w.policy(desk.ID{}); p.AutoReply != nil {
		t.Errorf("%+v", p.AutoReply)
	}
}

// TestPolicy_channel: a channel uses the workspace's policy until it has its own.
// TestPolicy_emptied: after the last member of a list was removed, the other parts can still be saved.
func TestPolicy_emptied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.as(w.nora)
	const path = "/settings/policy"
	part := func(path, part string, pairs ...string) got {
		pairs = append([]string{"part", part}, pairs...)
		if part != "own" {
			pairs = append(pairs, "seen", seenIn(v.get(path), part))
		}
		return v.post(path, pairs...)
	}
	part(path, "assign", "mode", "round_robin", "members", w.mei.ID.String()).sends(path + "?done=saved#assign")
	if err := w.app.RemoveMember(t.Context(), w.operator(), w.mei.ID); err != nil {
		t.Fatal(err)
	}
	v.get(path).want(200, "Nobody gets conversations by themselves", `<option value="round_robin" selected>`)
	part(path, "hours", "open", "hours", "time_zone", "Europe/Madrid", "mon.0.from", "09:00", "mon.0.to", "12:00").sends(path + "?done=saved#hours")
	part(path, "replies", "away", "We are closed", "every_hours", "12").sends(path + "?done=saved#replies")
	if p := w.policy(desk.ID{}); p.Hours == nil || p.AutoReply == nil || p.Assign.Mode != desk.AssignRoundRobin {
		t.Errorf("%+v", p)
	}
	channel := path + "/" + w.channel.String()
	part(channel, "own").sends(channel + "?done=saved")
	part(channel, "replies", "away", "Away", "every_hours", "12").sends(channel + "?done=saved#replies")
	part(path, "assign", "mode", "round_robin").want(422, "Tick at least one member")
	part(path, "assign", "mode", "least_open").want(422, "Tick at least one member")
	part(path, "assign", "mode", "round_robin", "members", w.tomas.ID.String()).sends(path + "?done=saved#assign")
}

func TestPolicy_channel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.as(w.nora)
	path := "/settings/policy/" + w.channel.String()
	v.get(path).want(200, "goes by the workspace", "Give it its own", "You are always open.").lacks("<textarea")
	seen := seenIn(v.get("/settings/policy"), "assign")
	v.post("/settings/policy", "part", "assign", "seen", seen, "mode", "round_robin", "members", w.mei.ID.String()).sends("/settings/policy?done=saved#assign")
	v.get(path).want(200, "Mei Tanaka gets new conversations.").short().golden("policy/channel")
	v.post(path, "part", "assign", "seen", seen, "mode", "none").want(409, "goes by the workspace")
	v.get(path+"/remove").want(200, "Remove the policy of Sandbox shop?")
	v.post(path, "part", "own").sends(path + "?done=saved")
	if p := w.policy(w.channel); p == nil || p.Assign.Mode != desk.AssignRoundRobin || p.Assign.Members[0] != w.mei.ID {
		t.Errorf("%+v", p)
	}
	g := v.get(path).want(200, "Remove its own policy", "Mei Tanaka gets new conversations.").short().golden("policy/own")
	v.post(path, "part", "own").sends(path + "?done=saved") // the channel already has its own policy: nothing changes
	v.post(path, "part", "assign", "seen", seenIn(g, "assign"), "mode", "none").sends(path + "?done=saved#assign")
	if p := w.policy(desk.ID{}); p.Assign.Mode != desk.AssignRoundRobin {
		t.Errorf("the workspace's: %+v", p)
	}
	v.get("/settings/events").want(200, "of Sandbox shop")
	v.get(path + "/remove").want(200).short().golden("policy/remove")
	v.post(path + "/remove").sends(path + "?done=removed")
	if w.policy(w.channel) != nil {
		t.Error("the channel has its own still")
	}
	v.get("/settings/policy/" + w.newID().String()).want(404)
	v.get("/settings/policy/nonsense").want(404)
	v.post("/settings/policy/nonsense", "part", "own").want(404)
}
