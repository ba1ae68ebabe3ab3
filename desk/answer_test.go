package desk_test

import (
	"testing"

	"parley/desk"
)

func TestAssign_Choose(t *testing.T) {
	t.Parallel()
	a, b, c := desk.ID{1}, desk.ID{2}, desk.ID{3}
	type loads = map[desk.ID]desk.Load
	for _, x := range []struct {
		name  string
		mode  desk.AssignMode
		most  int
		loads loads
		want  desk.ID // zero: nobody
	}{
		{"none", desk.AssignNone, 0, loads{a: {}, b: {}, c: {}}, desk.ID{}},
		{"the first, at first", desk.AssignRoundRobin, 0, loads{a: {Open: 9}, b: {}, c: {}}, a},
		{"the one after the last", desk.AssignRoundRobin, 0, loads{a: {Chosen: 4}, b: {Chosen: 5}, c: {Chosen: 3}}, c},
		{"after the end the first", desk.AssignRoundRobin, 0, loads{a: {Chosen: 1}, b: {Chosen: 2}, c: {Chosen: 3}}, a},
		{"who is away is passed over", desk.AssignRoundRobin, 0, loads{a: {Chosen: 1, Away: true}, b: {Chosen: 2}, c: {Chosen: 3}}, b},
		{"and is the last one still", desk.AssignRoundRobin, 0, loads{a: {Chosen: 9, Away: true}, b: {}, c: {}}, b},
		{"who has enough is passed over", desk.AssignRoundRobin, 2, loads{a: {Open: 2}, b: {Open: 3}, c: {Open: 1}}, c},
		{"who is no member any more", desk.AssignRoundRobin, 0, loads{c: {}}, c},
		{"one alone, again", desk.AssignRoundRobin, 0, loads{b: {Chosen: 7}}, b},
		{"all away", desk.AssignRoundRobin, 0, loads{a: {Away: true}, b: {Away: true}, c: {Away: true}}, desk.ID{}},
		{"all have enough", desk.AssignLeastOpen, 1, loads{a: {Open: 1}, b: {Open: 1}, c: {Open: 5}}, desk.ID{}},
		{"fewest open", desk.AssignLeastOpen, 0, loads{a: {Open: 3}, b: {Open: 1, Chosen: 9}, c: {Open: 2}}, b},
		{"a tie: chosen longest ago", desk.AssignLeastOpen, 0, loads{a: {Open: 1, Chosen: 3}, b: {Open: 1, Chosen: 2}, c: {Open: 2}}, b},
		{"a tie: never chosen", desk.AssignLeastOpen, 0, loads{a: {Chosen: 1}, b: {}, c: {Chosen: 2}}, b},
		{"a tie: the order of the list", desk.AssignLeastOpen, 0, loads{a: {}, b: {}, c: {}}, a},
		{"the fewest is away", desk.AssignLeastOpen, 0, loads{a: {Away: true}, b: {Open: 5}, c: {Open: 4}}, c},
	} {
		rule := &desk.Assign{Mode: x.mode, Members: []desk.ID{a, b, c}, MaxOpen: x.most}
		if got, ok := rule.Choose(x.loads); got != x.want || ok == x.want.IsZero() {
			t.Errorf("%s: %s, %v, want %s", x.name, got, ok, x.want)
		}
	}
	if _, ok := (*desk.Assign)(nil).Choose(loads{a: {}}); ok {
		t.Error("without a rule somebody was chosen")
	}
	if _, ok := (&desk.Assign{Mode: desk.AssignRoundRobin}).Choose(loads{a: {}}); ok {
		t.Error("of an empty list somebody was chosen")
	}
}

// TestAssign_Choose_fair: both modes give every member the same number of conversations.
func TestAssign_Choose_fair(t *testing.T) {
	t.Parallel()
	for _, mode := range []desk.AssignMode{desk.AssignRoundRobin, desk.AssignLeastOpen} {
		rule := &desk.Assign{Mode: mode, Members: []desk.ID{{1}, {2}, {3}, {4}, {5}}}
		loads := map[desk.ID]desk.Load{}
		for _, id := range rule.Members {
			loads[id] = desk.Load{}
		}
		for turn := range int64(1000) {
			id, _ := rule.Choose(loads)
			loads[id] = desk.Load{Open: loads[id].Open + 1, Chosen: turn + 1}
		}
		for id, l := range loads {
			if l.Open != 200 {
				t.Errorf("%s: %s got %d", mode, id, l.Open)
			}
		}
	}
}

// TestPolicy_Answer is the table of contract-talk §5.
func TestPolicy_Answer(t *testing.T) {
	t.Parallel()
	held := &desk.Policy{AutoReply: &desk.AutoReply{WhenHeld: true}}
	pool := &desk.Policy{AutoReply: &desk.AutoReply{}}
	for _, c := range []struct {
		name   string
		p      *desk.Policy
		m      desk.Arrival
		chosen bool
		want   desk.Decision
	}{
		{"no policy", nil, desk.Arrival{}, true, desk.Decision{}},
		{"known already", held, desk.Arrival{Known: true, Held: true}, true, desk.Decision{}},
		{"a reaction", held, desk.Arrival{Reaction: true}, true, desk.Decision{}},
		{"held, open", held, desk.Arrival{Held: true, Open: true}, false, desk.Decision{}},
		{"held, closed", pool, desk.Arrival{Held: true}, false, desk.Decision{}},
		{"held, closed, when held", held, desk.Arrival{Held: true}, false, desk.Decision{Reply: desk.AutoAway}},
		{"held, closed, no texts", &desk.Policy{}, desk.Arrival{Held: true}, false, desk.Decision{}},
		{"held by an owner who is away, open", held, desk.Arrival{Held: true, Absent: true, Open: true}, false, desk.Decision{Reply: desk.AutoQueued}},
		{"held by an owner who is away, closed", pool, desk.Arrival{Held: true, Absent: true}, false, desk.Decision{Reply: desk.AutoAway}},
		{"a reaction, to an owner who is away", pool, desk.Arrival{Reaction: true, Held: true, Absent: true}, false, desk.Decision{}},
		{"nobody, closed", pool, desk.Arrival{}, true, desk.Decision{Reply: desk.AutoAway}},
		{"nobody, open, somebody eligible", pool, desk.Arrival{Open: true}, true, desk.Decision{Assign: true}},
		{"nobody, open, nobody eligible", pool, desk.Arrival{Open: true}, false, desk.Decision{Reply: desk.AutoQueued}},
	} {
		if got := c.p.Answer(c.m, c.chosen); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	for _, m := range []desk.Arrival{{}, {Known: true, Open: true}, {Reaction: true, Open: true}, {Held: true, Open: true}} {
		if m.Free() {
			t.Errorf("%+v is free", m)
		}
	}
	if !(desk.Arrival{Open: true}).Free() {
		t.Error("what nobody holds is not free")
	}
}

// TestPolicy_Receives: only pool takes a new conversation from an owner, and only while the
// owner is away. A member who was assigned directly, or who was the owner before, does not
// count as absent.
func TestPolicy_Receives(t *testing.T) {
	t.Parallel()
	keep, pool := &desk.Policy{OwnerAway: desk.OwnerKeeps}, &desk.Policy{OwnerAway: desk.OwnerPool}
	here, away := &desk.Member{ID: desk.ID{1}}, &desk.Member{ID: desk.ID{2}, Away: true}
	for _, c := range []struct {
		p     *desk.Policy
		owner *desk.Member
		want  bool
	}{{nil, away, true}, {keep, away, true}, {keep, here, true}, {pool, here, true}, {pool, nil, true}, {pool, away, false}} {
		if got := c.p.Receives(c.owner); got != c.want {
			t.Errorf("%+v, owner %+v: %v", c.p, c.owner, got)
		}
	}
	for _, c := range []struct {
		owner  *desk.Member
		holder desk.ID
		via    desk.AssignedVia
		want   bool
	}{
		{away, away.ID, desk.ViaOwner, true}, {away, away.ID, desk.ViaMember, false}, {away, away.ID, desk.ViaRule, false},
		{here, here.ID, desk.ViaOwner, false}, {here, away.ID, desk.ViaOwner, false}, {nil, away.ID, desk.ViaOwner, false}, {away, desk.ID{}, "", false},
	} {
		v := &desk.Conversation{AssignedMember: c.holder, AssignedVia: c.via}
		if got := v.Absent(&desk.Contact{Owner: c.owner}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestPolicy_Silent(t *testing.T) {
	t.Parallel()
	const minute, hour = desk.Time(60_000), desk.Time(3_600_000)
	now := 1000 * hour
	p := &desk.Policy{AutoReply: &desk.AutoReply{Away: "away", EveryHours: 12}}
	for _, c := range []struct {
		name string
		p    *desk.Policy
		kind desk.AutoKind
		edit func(*desk.Moment)
		want desk.Silence
	}{
		{"sent", p, desk.AutoAway, func(*desk.Moment) {}, ""},
		{"no policy", nil, desk.AutoAway, func(*desk.Moment) {}, desk.SilentNoText},
		{"no automatic replies", &desk.Policy{}, desk.AutoAway, func(*desk.Moment) {}, desk.SilentNoText},
		{"no text", p, desk.AutoQueued, func(*desk.Moment) {}, desk.SilentNoText},
		{"no kind", p, "", func(*desk.Moment) {}, desk.SilentNoText},
		{"a stop word", p, desk.AutoAway, func(m *desk.Moment) { m.Text = "stop!" }, desk.SilentChoice},
		{"a start word", p, desk.AutoAway, func(m *desk.Moment) { m.Text = "Start" }, desk.SilentChoice},
		{"opted out", p, desk.AutoAway, func(m *desk.Moment) { m.OptedOut = true }, desk.SilentOptedOut},
		{"unsupported", p, desk.AutoAway, func(m *desk.Moment) { m.Unsupported = true }, desk.SilentUnsupported},
		{"a disabled channel", p, desk.AutoAway, func(m *desk.Moment) { m.Unusable = true }, desk.SilentChannel},
		{"a closed window", p, desk.AutoAway, func(m *desk.Moment) { m.Window.Shut(now, desk.ByTheProvider) }, desk.SilentWindow},
		{"ten minutes old", p, desk.AutoAway, func(m *desk.Moment) { m.TS = now - 10*minute }, ""},
		{"older", p, desk.AutoAway, func(m *desk.Moment) { m.TS = now - 10*minute - 1 }, desk.SilentTooOld},
		{"from the future", p, desk.AutoAway, func(m *desk.Moment) { m.TS = now + hour }, ""},
		{"a reply just now", p, desk.AutoAway, func(m *desk.Moment) { m.Window.RepliedAt = now - 15*minute + 1 }, desk.SilentReplied},
		{"a reply before", p, desk.AutoAway, func(m *desk.Moment) { m.Window.RepliedAt = now - 15*minute }, ""},
		{"an automatic one not long ago", p, desk.AutoAway, func(m *desk.Moment) { m.Window.AutoReplyAt = now - 12*hour + 1 }, desk.SilentEveryHours},
		{"an automatic one long ago", p, desk.AutoAway, func(m *desk.Moment) { m.Window.AutoReplyAt, m.Window.AutoReplies = now-12*hour, 2 }, ""},
		{"a reply when the clock was ahead", p, desk.AutoAway, func(m *desk.Moment) { m.Window.RepliedAt = now + 15*minute }, ""},
		{"an automatic one when it was ahead", p, desk.AutoAway, func(m *desk.Moment) { m.Window.AutoReplyAt = now + 12*hour }, ""},
		{"three in a row", p, desk.AutoAway, func(m *desk.Moment) { m.Window.AutoReplyAt, m.Window.AutoReplies = now-500*hour, 3 }, desk.SilentInARow},
	} {
		m := desk.Moment{Now: now, TS: now - minute, Text: "Hello", Window: desk.Window{OpenedAt: now - minute}}
		c.edit(&m)
		if got := c.p.Silent(c.kind, m); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAssign_Counted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a    desk.Assign
		want int
	}{
		{desk.Assign{Mode: desk.AssignRoundRobin}, 0},
		{desk.Assign{Mode: desk.AssignRoundRobin, MaxOpen: 7}, 7},
		{desk.Assign{Mode: desk.AssignLeastOpen, MaxOpen: 7}, 7},
		{desk.Assign{Mode: desk.AssignLeastOpen}, 1000},
	} {
		if got := c.a.Counted(); got != c.want {
			t.Errorf("%+v: %d, want %d", c.a, got, c.want)
		}
	}
}

func TestAutoReplyJob(t *testing.T) {
	t.Parallel()
	j := desk.AutoReplyJob{Message: desk.ID{1}, DecidedAt: 1_000_000}
	if err := desk.CheckIdempotencyKey(j.Key()); err == nil {
		t.Errorf("a caller may write %q", j.Key())
	}
	for i, want := range []desk.Time{1_005_000, 1_030_000} {
		if !j.Again(1_000_000) || j.Due != want {
			t.Errorf("try %d: due %d, want %d", i, j.Due, want)
		}
	}
	if j.Again(1_000_000) {
		t.Error("it is tried a fourth time")
	}
	if j = (desk.AutoReplyJob{DecidedAt: 1_000_000}); j.Late(1_600_000) || !j.Late(1_600_001) || !j.Late(0) || j.Again(1_600_001) {
		t.Error("a late job is not late")
	}
}
