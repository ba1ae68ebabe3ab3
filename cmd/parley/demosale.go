package main

import (
	"context"
	"errors"
	"fmt"

	"parley/app"
	"parley/desk"
)

// A demoBroadcast is a broadcast to some of the demo's people.
type demoBroadcast struct {
	name, template string
	values         []desk.BroadcastValue
	consent        desk.Consent
	from, to       int // its people: the sandbox refuses none of them for now
	starts         bool
}

// The fourth edition of the demo added them.
var demoBroadcasts = []demoBroadcast{
	{
		name: "Autumn sale", template: "autumn_sale",
		values:  []desk.BroadcastValue{{Address: "1", From: "customer_first_name", Else: "there"}, {Address: "2", Value: "20%"}},
		consent: desk.Consent{Attribute: "newsletter"}, from: 24, to: 49, starts: true,
	},
	{name: "Thanks to our visitors", template: "thank_you", consent: desk.Consent{Confirmed: true}, from: 70, to: 75},
}

// addDemoBroadcasts makes the broadcasts, in the name of the demo's admin, and starts the
// first one: the server sends it as soon as it runs. Those that an earlier run has left are
// completed. Without an admin, there are none.
func addDemoBroadcasts(ctx context.Context, a *app.App, ws, channel desk.ID) error {
	operator, err := a.Operator(ctx, ws)
	if err != nil {
		return err
	}
	admin, found := demoAdmin(operator)
	if !found {
		return nil
	}
	p, err := a.Access.Member(ctx, ws, admin)
	if err != nil {
		return err
	}
	there, _, err := a.Broadcasts.List(ctx, p, "", "", len(demoBroadcasts))
	if err != nil {
		return err
	}
	drafts := map[string]*desk.Broadcast{}
	for _, b := range there {
		drafts[b.Name] = b
	}
	for _, v := range demoBroadcasts {
		if err := v.add(ctx, a, p, channel, drafts[v.name]); err != nil {
			return fmt.Errorf("the broadcast %q: %w", v.name, err)
		}
	}
	return nil
}

// add makes the broadcast, or completes the draft b.
func (v *demoBroadcast) add(ctx context.Context, a *app.App, p desk.Principal, channel desk.ID, b *desk.Broadcast) (err error) {
	if b == nil {
		if b, err = a.Broadcasts.Create(ctx, p, &desk.BroadcastInput{
			Name: set(v.name), Channel: set(channel), Template: set(desk.TemplateName{Name: v.template, Language: "en_US"}), Values: set(v.values), Consent: set(v.consent),
		}); err != nil {
			return err
		}
	}
	if b.State != desk.BroadcastDraft {
		return nil
	}
	var rows []desk.RowInput
	for i := v.from; i < v.to; i++ {
		if phone := demoPerson(i).Write.Phone; phone.Set { // not everybody has one
			rows = append(rows, desk.RowInput{Find: desk.Identity{Kind: desk.KindPhone, Value: phone.Value}})
		}
	}
	added, err := a.Broadcasts.Add(ctx, p, b.ID, rows)
	if err != nil {
		return err
	}
	for _, r := range added {
		err = errors.Join(err, r.Err)
	}
	if err == nil && v.starts {
		_, err = a.Broadcasts.Start(ctx, p, b.ID)
	}
	return err
}
