package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/api"
	"parley/app"
	"parley/app/feed"
	"parley/desk"
)

type eventsCmd struct {
	Tail eventsTailCmd `cmd:"" help:"Print the events of a workspace, and go on as they come."`
}

type eventsTailCmd struct {
	Workspace string     `help:"The workspace's id." required:"" placeholder:"ID"`
	Cursor    string     `help:"Begin after this place: an event's id, oldest or latest; by default latest, with --no-follow oldest." placeholder:"CURSOR"`
	Types     eventTypes `help:"Only these types, separated by commas: a type, KIND.*, or *." placeholder:"T,U"`
	NoFollow  bool       `help:"End at the newest event."`
}

// eventTypes is the value of a flag: a list of event types, separated by commas.
type eventTypes struct {
	words  []string
	filter desk.EventFilter
}

func (t *eventTypes) UnmarshalText(text []byte) (err error) {
	t.words = strings.Split(string(text), ",")
	for i := range t.words {
		t.words[i] = strings.TrimSpace(t.words[i])
	}
	t.filter, err = desk.ParseEventFilter(t.words)
	return err
}

// Help says what is printed, and shows examples.
func (*eventsTailCmd) Help() string {
	return paragraphs("Without --json, each event is a line: its id, time, type and subject, who did it, and the fields that changed. With --json, each line is a JSON object, "+
		"as GET /events has it, with the record as it is now.",
		"The id of the last event is the cursor with which to go on. The command ends at Ctrl-C, with exit code 0.", typesHelp(), examples(
			`parley events tail --workspace 01980000-0000-7000-8000-000000000001`,
			`parley events tail --workspace 01980000-0000-7000-8000-000000000001 --types 'message.received,conversation.*' --json`,
			`parley events tail --workspace 01980000-0000-7000-8000-000000000001 --no-follow --json > events.jsonl`,
		))
}

// Validate refuses an empty cursor.
func (c *eventsTailCmd) Validate() error {
	if c.Cursor != "" && c.Cursor != "oldest" && c.Cursor != "latest" && !strings.HasPrefix(c.Cursor, "evt_") {
		return errors.New("--cursor: give the id of an event, oldest or latest")
	}
	return nil
}

// Run prints events until it is interrupted. With --no-follow, it stops after the newest
// event.
func (c *eventsTailCmd) Run(ctx context.Context, s *session) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		err := c.tail(ctx, s, a, p)
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
}

func (c *eventsTailCmd) tail(ctx context.Context, s *session, a *app.App, p desk.Principal) error {
	q := feed.Query{Cursor: c.Cursor, Types: c.Types.filter, Limit: desk.MaxLimit}
	if q.Cursor == "" && !c.NoFollow {
		q.Cursor = "latest"
	}
	for c.NoFollow {
		page, err := a.Feed.Page(ctx, p, q)
		if err == nil {
			err = s.printEvents(page)
		}
		if err != nil || !page.More {
			return err
		}
		q.Cursor = a.Feed.Cursor(page)
	}
	f, page, err := a.Feed.Follow(ctx, p, q)
	if err != nil {
		return err
	}
	defer f.Close()
	go look(ctx, a)
	for {
		if err := s.printEvents(page); err != nil {
			return err
		}
		if page, err = f.Next(ctx, time.Hour); err != nil {
			return err
		}
	}
}

// look checks each second for events of other processes. It need not return its error:
// the next read of the follower fails as well.
func look(ctx context.Context, a *app.App) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ctx.Err() == nil {
		_ = a.Feed.Look(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func (s *session) printEvents(page *feed.Page) error {
	for i := range page.Events {
		e := &page.Events[i]
		line := string(api.Event(page, e))
		if !s.flags.JSON {
			line = printable(eventLine(page, e))
		}
		if _, err := fmt.Fprintln(s.stdout, line); err != nil {
			return err
		}
	}
	return nil
}

// eventLine formats an event for people.
func eventLine(page *feed.Page, e *desk.FeedEvent) string {
	subject := e.Key
	if subject == "" {
		subject = e.Subject.String()
	}
	actor := string(e.Actor.Kind)
	if name := api.ActorName(page.Settings, e.Actor); name != "" {
		actor += " " + name
	}
	line := fmt.Sprintf("%s  %s  %-20s  %s  by %s", e.ID, e.At, e.Type, subject, actor)
	if len(e.Changed) > 0 {
		line += "  " + strings.Join(e.Changed, ",")
	}
	return line
}

// typesHelp lists the types of events.
func typesHelp() string {
	names := make([]string, len(desk.EventTypes))
	for i, t := range desk.EventTypes {
		names[i] = string(t)
	}
	return "The types are " + strings.Join(names, ", ") + "."
}
