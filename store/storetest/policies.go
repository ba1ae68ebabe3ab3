package storetest

import (
	"reflect"
	"testing"

	"parley/desk"
	"parley/store"
)

func policySettings(t *testing.T, s store.Store) {
	ws, ada := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	general := &desk.Policy{
		Assign: &desk.Assign{Mode: desk.AssignLeastOpen, Members: []desk.ID{ada.ID, newID()}, MaxOpen: 20},
		Hours: &desk.Hours{
			TimeZone: "Europe/Istanbul", Week: map[string][]desk.Span{"mon": {{540, 750}, {810, 1440}}, "tue": {}},
			Exceptions: []desk.Exception{{Date: "2026-12-31", Open: []desk.Span{}}, {Date: "2026-01-01", Open: []desk.Span{{0, 1}}}},
		},
		OwnerAway: desk.OwnerPool,
		AutoReply: &desk.AutoReply{Away: "We're \"away\"\n🎈", EveryHours: 12, WhenHeld: true},
		UpdatedAt: 7,
	}
	own := &desk.Policy{Channel: newID(), Assign: &desk.Assign{Mode: desk.AssignNone, Members: []desk.ID{}}, OwnerAway: desk.OwnerKeeps, UpdatedAt: 8}
	settings := edit(t, s, ws, desk.Change{Policies: []*desk.Policy{general, own}})
	check := func(settings *desk.Settings, channel desk.ID, want *desk.Policy) {
		t.Helper()
		if got := settings.OwnPolicy(channel); !reflect.DeepEqual(got, want) {
			t.Errorf("policy = %+v, want %+v", got, want)
		}
	}
	check(settings, desk.ID{}, general)
	check(settings, own.Channel, own)
	replaced := &desk.Policy{OwnerAway: desk.OwnerKeeps, UpdatedAt: 9}
	settings = edit(t, s, ws, desk.Change{Policies: []*desk.Policy{replaced}, RemovePolicy: own})
	check(settings, desk.ID{}, replaced)
	check(settings, own.Channel, nil)
	settings = edit(t, s, ws, desk.Change{RemovePolicy: replaced})
	check(settings, desk.ID{}, nil)
	settings, err := s.Settings(t.Context(), other)
	must(t, err)
	check(settings, desk.ID{}, nil)
}
