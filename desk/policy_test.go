package desk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/desk"
)

func some[T any](v T) *T { return &v }

func TestPolicyInput(t *testing.T) {
	t.Parallel()
	ada, bob := desk.Member{ID: desk.ID{7}, Email: "ada@example.com"}, desk.Member{ID: desk.ID{8}, Email: "Bob@example.com"}
	s := desk.NewSettings(desk.Workspace{ID: desk.ID{1}}, 1, nil, []desk.Member{ada, bob}, nil, nil)
	mode := func(m string, members ...string) *desk.AssignInput {
		in := &desk.AssignInput{Mode: &m}
		for _, member := range members {
			in.Members = append(in.Members, desk.ReferTo(member))
		}
		return in
	}
	most := func(n int64) *desk.AssignInput { in := mode("none"); in.MaxOpen = &n; return in }
	week := func(day string, spans ...[]string) *desk.HoursInput {
		return &desk.HoursInput{TimeZone: some("Asia/Tokyo"), Week: map[string][][]string{day: spans}}
	}
	dates := func(list ...desk.ExceptionInput) *desk.HoursInput {
		return &desk.HoursInput{TimeZone: some("Asia/Tokyo"), Exceptions: list}
	}
	many := func(n int) (list []desk.ExceptionInput) {
		for i := range n {
			list = append(list, desk.ExceptionInput{Date: some(fmt.Sprintf("%04d-02-28", 2000+i)), Open: [][]string{}})
		}
		return list
	}
	refs := make([]string, 201)
	for i := range refs {
		refs[i] = ada.ID.String()
	}
	for _, c := range []struct {
		in    desk.PolicyInput
		wrong string // the place
	}{
		{desk.PolicyInput{}, ""},
		{desk.PolicyInput{Assign: mode("none")}, ""},
		{desk.PolicyInput{Assign: mode("round_robin", "ADA@example.com", bob.ID.String())}, ""},
		{desk.PolicyInput{Assign: &desk.AssignInput{}}, "/assign/mode"},
		{desk.PolicyInput{Assign: mode("random", "ada@example.com")}, "/assign/mode"},
		{desk.PolicyInput{Assign: mode("least_open")}, "/assign/members"},
		{desk.PolicyInput{Assign: mode("none", refs...)}, "/assign/members"},
		{desk.PolicyInput{Assign: mode("none", refs[:2]...)}, "/assign/members/1"},
		{desk.PolicyInput{Assign: mode("least_open", "ada@example.com", ada.ID.String())}, "/assign/members/1"},
		{desk.PolicyInput{Assign: mode("least_open", "ada@example.com", "eve@example.com")}, "/assign/members/1"},
		{desk.PolicyInput{OwnerAway: some("keep")}, ""},
		{desk.PolicyInput{OwnerAway: some("pool")}, ""},
		{desk.PolicyInput{OwnerAway: some("Pool")}, "/owner_away"},
		{desk.PolicyInput{OwnerAway: some("")}, "/owner_away"},
		{desk.PolicyInput{Assign: most(1)}, ""},
		{desk.PolicyInput{Assign: most(1000)}, ""},
		{desk.PolicyInput{Assign: most(0)}, "/assign/max_open"},
		{desk.PolicyInput{Assign: most(1001)}, "/assign/max_open"},
		{desk.PolicyInput{Hours: &desk.HoursInput{}}, "/hours/time_zone"},
		{desk.PolicyInput{Hours: week("mon")}, ""},
		{desk.PolicyInput{Hours: week("sun", []string{"00:00", "06:00"}, []string{"06:00", "07:00"}, []string{"08:00", "09:00"}, []string{"23:59", "24:00"})}, ""},
		{desk.PolicyInput{Hours: week("Mon")}, "/hours/week"},
		{desk.PolicyInput{Hours: week("mon", []string{"00:00", "24:01"})}, "/hours/week/mon/0/1"},
		{desk.PolicyInput{Hours: week("mon", []string{"24:00", "24:00"})}, "/hours/week/mon/0/0"},
		{desk.PolicyInput{Hours: week("mon", []string{"9:00", "10:00"})}, "/hours/week/mon/0/0"},
		{desk.PolicyInput{Hours: week("mon", []string{"09:00", "10:60"})}, "/hours/week/mon/0/1"},
		{desk.PolicyInput{Hours: week("mon", []string{"09:00", "-1:00"})}, "/hours/week/mon/0/1"},
		{desk.PolicyInput{Hours: week("mon", []string{"09:00", "+1:00"})}, "/hours/week/mon/0/1"},
		{desk.PolicyInput{Hours: week("mon", []string{"09:00"})}, "/hours/week/mon/0"},
		{desk.PolicyInput{Hours: week("mon", []string{"09:00", "10:00", "11:00"})}, "/hours/week/mon/0"},
		{desk.PolicyInput{Hours: week("mon", []string{"09:00", "09:00"})}, "/hours/week/mon/0"},
		{desk.PolicyInput{Hours: week("mon", []string{"22:00", "02:00"})}, "/hours/week/mon/0"},
		{desk.PolicyInput{Hours: week("mon", []string{"09:00", "12:00"}, []string{"11:59", "13:00"})}, "/hours/week/mon/1"},
		{desk.PolicyInput{Hours: week("mon", []string{"13:00", "14:00"}, []string{"09:00", "10:00"})}, "/hours/week/mon/1"},
		{desk.PolicyInput{Hours: week("mon", slices.Repeat([][]string{{"09:00", "10:00"}}, 5)...)}, "/hours/week/mon"},
		{desk.PolicyInput{Hours: dates(many(366)...)}, ""},
		{desk.PolicyInput{Hours: dates(many(367)...)}, "/hours/exceptions"},
		{desk.PolicyInput{Hours: dates(desk.ExceptionInput{Open: [][]string{}})}, "/hours/exceptions/0/date"},
		{desk.PolicyInput{Hours: dates(desk.ExceptionInput{Date: some("2026-02-29"), Open: [][]string{}})}, "/hours/exceptions/0/date"},
		{desk.PolicyInput{Hours: dates(desk.ExceptionInput{Date: some("2028-02-29")})}, "/hours/exceptions/0/open"},
		{desk.PolicyInput{Hours: dates(append(many(2), many(1)...)...)}, "/hours/exceptions/2/date"},
		{desk.PolicyInput{Hours: dates(desk.ExceptionInput{Date: some("2026-01-01"), Open: [][]string{{"10:00", "09:00"}}})}, "/hours/exceptions/0/open/0"},
		{desk.PolicyInput{AutoReply: &desk.AutoReplyInput{}}, ""},
		{desk.PolicyInput{AutoReply: &desk.AutoReplyInput{Away: some(strings.Repeat("ü", 1024)), Queued: some(" x"), EveryHours: some(int64(168))}}, ""},
		{desk.PolicyInput{AutoReply: &desk.AutoReplyInput{Away: some(strings.Repeat("ü", 1025))}}, "/auto_reply/away"},
		{desk.PolicyInput{AutoReply: &desk.AutoReplyInput{Queued: some("")}}, "/auto_reply/queued"},
		{desk.PolicyInput{AutoReply: &desk.AutoReplyInput{Queued: some(" \n")}}, "/auto_reply/queued"},
		{desk.PolicyInput{AutoReply: &desk.AutoReplyInput{EveryHours: some(int64(0))}}, "/auto_reply/every_hours"},
		{desk.PolicyInput{AutoReply: &desk.AutoReplyInput{EveryHours: some(int64(169))}}, "/auto_reply/every_hours"},
	} {
		_, err := c.in.Policy(s, desk.ID{})
		at := ""
		if err != nil {
			at = desk.AsError(err).At
		}
		if at != c.wrong || err != nil && !desk.IsType(err, desk.InvalidRequest) {
			t.Errorf("%+v %+v %+v: %v, want one at %q", c.in.Assign, c.in.Hours, c.in.AutoReply, err, c.wrong)
		}
		// The method Check knows no members. It finds the same errors, except errors about
		// members.
		if err := c.in.Check(); (err != nil) != (c.wrong != "" && !strings.HasPrefix(c.wrong, "/assign/members/")) {
			t.Errorf("without members: %v, want one at %q", err, c.wrong)
		}
	}
	in := desk.PolicyInput{Assign: mode("round_robin", "bob@EXAMPLE.com", ada.ID.String()), AutoReply: &desk.AutoReplyInput{Away: some("Away")}}
	p, err := in.Policy(s, desk.ID{9})
	if err != nil || !slices.Equal(p.Assign.Members, []desk.ID{bob.ID, ada.ID}) || p.Channel != (desk.ID{9}) || *p.AutoReply != (desk.AutoReply{Away: "Away", EveryHours: 12}) {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestChange_policies(t *testing.T) {
	t.Parallel()
	by := desk.Actor{Kind: desk.ByCLI}
	ada, ws, channel := desk.Member{ID: desk.ID{7}}, desk.ID{1}, desk.Channel{ID: desk.ID{3}}
	general := desk.Policy{Assign: &desk.Assign{Mode: desk.AssignRoundRobin, Members: []desk.ID{{8}, {7}}}, UpdatedAt: 5}
	own := desk.Policy{Channel: channel.ID, Assign: &desk.Assign{Mode: desk.AssignNone, Members: []desk.ID{{7}}}, AutoReply: &desk.AutoReply{Away: "a", EveryHours: 1}, UpdatedAt: 6}
	s := desk.NewSettings(desk.Workspace{ID: ws}, 1, nil, []desk.Member{ada}, nil, []desk.Channel{channel}).WithPolicies([]desk.Policy{general, own})
	only := desk.NewSettings(desk.Workspace{ID: ws}, 1, nil, []desk.Member{ada}, nil, []desk.Channel{channel}).WithPolicies([]desk.Policy{general})
	if s.Policy(channel.ID).UpdatedAt != 6 || s.Policy(desk.ID{}).UpdatedAt != 5 || s.Policy(desk.ID{4}).UpdatedAt != 5 || s.OwnPolicy(desk.ID{4}) != nil || noSettings.Policy(desk.ID{}) != nil {
		t.Error("the wrong policy is in force")
	}
	moved := own
	moved.Channel = desk.ID{}
	same := general
	for name, c := range map[string]struct {
		s      *desk.Settings
		change desk.Change
		want   string // subjects and changed fields
		stored int
	}{
		"the same":        {s, desk.Change{Policies: []*desk.Policy{&same}}, "", 0},
		"another":         {s, desk.Change{Policies: []*desk.Policy{&moved}}, "01[assign auto_reply]", 1},
		"a first own":     {only, desk.Change{Policies: []*desk.Policy{{Channel: channel.ID, Assign: general.Assign}}}, "03[channel_id]", 1},
		"clear the own":   {s, desk.Change{RemovePolicy: s.OwnPolicy(channel.ID)}, "03[assign auto_reply channel_id]", 0},
		"clear":           {s, desk.Change{RemovePolicy: s.OwnPolicy(desk.ID{})}, "01[assign]", 0},
		"remove a member": {s, desk.Change{RemoveMember: &ada}, "01[assign]03[assign]07[]", 2},
	} {
		got := c.change.Against(c.s, by, 99)
		text := ""
		for _, e := range got.Events {
			text += fmt.Sprintf("%s%v", e.Subject.String()[:2], e.Changed)
		}
		if text != c.want || len(got.Policies) != c.stored {
			t.Errorf("%s: %s and %d policies, want %s and %d", name, text, len(got.Policies), c.want, c.stored)
		}
		for _, p := range got.Policies {
			if p.UpdatedAt != 99 || name == "remove a member" && slices.Contains(p.Assign.Members, ada.ID) {
				t.Errorf("%s: %+v", name, p)
			}
		}
	}
	if len(general.Assign.Members) != 2 || s.Policy(desk.ID{}).UpdatedAt != 5 {
		t.Error("the settings that others share were changed")
	}
}
