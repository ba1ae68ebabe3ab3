package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"parley/api"
	"parley/app"
	"parley/desk"
)

type broadcastCmd struct {
	List    broadcastListCmd    `cmd:"" help:"List the broadcasts of a workspace, newest first."`
	Show    broadcastShowCmd    `cmd:"" help:"Show a broadcast, with the numbers of its rows."`
	Pause   broadcastPauseCmd   `cmd:"" help:"Pause a broadcast, or all of a workspace."`
	Cancel  broadcastCancelCmd  `cmd:"" help:"End a broadcast; what is not sent yet is cancelled."`
	Release broadcastReleaseCmd `cmd:"" help:"Settle the rows of a broadcast whose outcome is unknown."`
}

// ofBroadcasts is the workspace whose broadcasts a command is about.
type ofBroadcasts struct {
	Workspace string `help:"The workspace's id." required:"" placeholder:"ID"`
}

// answerBroadcast prints the record of a broadcast as the API has it.
func answerBroadcast(s *session, b *desk.Broadcast, p desk.Principal, done string) error {
	counts := b.Counts.As(b.State)
	return s.answer(json.RawMessage(api.Broadcast(b, p.Settings)), "%s%s is %s%s: %d rows, %d sent or further, %d failed or refused, %d skipped, %d in doubt, %d pending; %d replied%s, %d opted out.\n",
		done, b.Name, b.State, why(b), counts.Total(), counts.ByStatus[desk.RowSent]+counts.ByStatus[desk.RowDelivered]+counts.ByStatus[desk.RowRead],
		counts.ByStatus[desk.RowFailed]+counts.ByStatus[desk.RowRefused], counts.ByStatus[desk.RowSkipped], counts.ByStatus[desk.RowInDoubt], counts.ByStatus[desk.RowPending]+counts.ByStatus[desk.RowSending],
		counts.Replied, taps(counts), counts.OptedOut)
}

// taps lists the buttons that people tapped.
func taps(counts *desk.BroadcastCounts) string {
	var list []string
	for _, c := range counts.Choices {
		list = append(list, fmt.Sprintf("%q %d", c.Title, c.N))
	}
	if list == nil {
		return ""
	}
	return " (" + strings.Join(list, ", ") + ")"
}

func why(b *desk.Broadcast) string {
	if b.Reason == "" {
		return ""
	}
	return " (" + string(b.Reason) + ")"
}

type broadcastListCmd struct {
	ofBroadcasts
	Limit most `help:"List N at most; by default ${default}." placeholder:"N" default:"1000"`
}

// Help shows examples.
func (*broadcastListCmd) Help() string {
	return examples(
		`parley broadcast list --workspace 01980000-0000-7000-8000-000000000001`,
		`parley broadcast list --workspace 01980000-0000-7000-8000-000000000001 --json`,
	)
}

// Run lists the broadcasts.
func (c *broadcastListCmd) Run(ctx context.Context, s *session) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		var list []*desk.Broadcast
		for cursor, more := "", true; more; more = cursor != "" && c.Limit.page(len(list)) > 0 {
			page, next, err := a.Broadcasts.List(ctx, p, "", cursor, c.Limit.page(len(list)))
			if err != nil {
				return err
			}
			list, cursor = append(list, page...), next
		}
		records := make([]json.RawMessage, len(list))
		for i, b := range list {
			records[i] = api.Broadcast(b, p.Settings)
		}
		i := -1
		return answerList(s, records, []string{"BROADCAST", "NAME", "STATE", "ROWS", "PENDING", "CREATED"}, func(json.RawMessage) []string {
			i++
			b := list[i]
			counts := b.Counts.As(b.State)
			return []string{b.ID.String(), b.Name, string(b.State) + why(b), strconv.FormatInt(counts.Total(), 10), strconv.FormatInt(counts.ByStatus[desk.RowPending], 10), b.CreatedAt.String()}
		})
	})
}

type broadcastShowCmd struct {
	ofBroadcasts
	ID string `arg:"" help:"The broadcast's id."`
}

// Help shows examples.
func (*broadcastShowCmd) Help() string {
	return examples(`parley broadcast show --workspace 01980000-0000-7000-8000-000000000001 01980000-0000-7000-8000-000000000009`)
}

// Run shows the broadcast.
func (c *broadcastShowCmd) Run(ctx context.Context, s *session) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		b, err := a.Broadcasts.Get(ctx, p, idOf(c.ID))
		if err != nil {
			return err
		}
		return answerBroadcast(s, b, p, "")
	})
}

type broadcastPauseCmd struct {
	ofBroadcasts
	ID string `arg:"" optional:"" help:"The broadcast's id; without it, all that run or are scheduled are paused."`
}

// Help shows examples.
func (*broadcastPauseCmd) Help() string {
	return examples(
		`parley broadcast pause --workspace 01980000-0000-7000-8000-000000000001 01980000-0000-7000-8000-000000000009`,
		`parley broadcast pause --workspace 01980000-0000-7000-8000-000000000001`,
	)
}

// Run pauses broadcasts. Once it has ended, nothing more of them is begun on any server.
func (c *broadcastPauseCmd) Run(ctx context.Context, s *session) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		if c.ID != "" {
			b, err := a.Broadcasts.Pause(ctx, p, idOf(c.ID))
			if err != nil {
				return err
			}
			return answerBroadcast(s, b, p, "Paused. ")
		}
		n, err := a.Broadcasts.PauseAll(ctx, p)
		if err != nil {
			return err
		}
		return s.answer(struct {
			Paused int `json:"paused"`
		}{n}, "%s\n", fmt.Sprintf("%d broadcasts were paused.", n))
	})
}

type broadcastCancelCmd struct {
	ofBroadcasts
	ID string `arg:"" help:"The broadcast's id."`
}

// Help shows examples.
func (*broadcastCancelCmd) Help() string {
	return examples(`parley broadcast cancel --workspace 01980000-0000-7000-8000-000000000001 01980000-0000-7000-8000-000000000009`)
}

// Run cancels the broadcast.
func (c *broadcastCancelCmd) Run(ctx context.Context, s *session) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		b, err := a.Broadcasts.Cancel(ctx, p, idOf(c.ID))
		if err != nil {
			return err
		}
		return answerBroadcast(s, b, p, "Cancelled. ")
	})
}

type broadcastReleaseCmd struct {
	ofBroadcasts
	ID      string `arg:"" help:"The broadcast's id."`
	Sent    bool   `help:"The provider has the messages." xor:"sent" required:""`
	NotSent bool   `help:"The provider does not have the messages." xor:"sent" required:""`
}

// Help shows examples.
func (*broadcastReleaseCmd) Help() string {
	return examples(
		`parley broadcast release --workspace 01980000-0000-7000-8000-000000000001 01980000-0000-7000-8000-000000000009 --sent`,
		`parley broadcast release --workspace 01980000-0000-7000-8000-000000000001 01980000-0000-7000-8000-000000000009 --not-sent`,
	)
}

// Run settles the rows in doubt.
func (c *broadcastReleaseCmd) Run(ctx context.Context, s *session) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		total := int64(0)
		for {
			r, err := a.Broadcasts.Release(ctx, p, idOf(c.ID), c.Sent)
			if err != nil {
				return err
			}
			if total += r.Released; r.Left > 0 && r.Released > 0 {
				continue
			}
			return s.answer(struct {
				Released int64 `json:"released"`
				Left     int64 `json:"left"`
			}{total, r.Left}, "%d rows were settled, and %d are left, whose messages may still be under way.\n", total, r.Left)
		}
	})
}
