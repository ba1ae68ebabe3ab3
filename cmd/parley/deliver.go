package main

import (
	"context"
	"errors"
	"time"

	"parley/app/deliver"
	"parley/desk"
	"parley/poster"
)

// deliverFlags are the flags for the times of further attempts to deliver.
type deliverFlags struct {
	Schedule []time.Duration `help:"The pauses between the attempts of a delivery, separated by commas; by default 5s,30s,2m,10m,30m,2h,5h,10h,14h,20h." name:"webhook-schedule" placeholder:"TIME"`
	GiveUp   time.Duration   `help:"For how long an endpoint may fail before it is disabled; by default ${default}." name:"webhook-give-up" placeholder:"TIME" default:"72h"`
}

// check refuses negative times.
func (f *deliverFlags) check() error {
	for _, pause := range f.Schedule {
		if pause <= 0 {
			return errors.New("--webhook-schedule: give times above 0s, such as 5s,30s,2m")
		}
	}
	if f.GiveUp <= 0 {
		return errors.New("--webhook-give-up: give a time above 0s")
	}
	return nil
}

// rules returns the rules of deliveries as the flags give them.
func (f *deliverFlags) rules() desk.DeliveryRules {
	rules := desk.DefaultDeliveryRules()
	if f.Schedule != nil {
		rules.Schedule = f.Schedule
	}
	rules.GiveUp = f.GiveUp
	return rules
}

// An appPoster adapts a poster to the interface of app.
type appPoster struct{ *poster.Poster }

// Post makes one attempt.
func (p appPoster) Post(ctx context.Context, r deliver.Post) deliver.Posted {
	return deliver.Posted(p.Poster.Post(ctx, poster.Request(r)))
}
