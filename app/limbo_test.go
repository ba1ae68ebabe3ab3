package app_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/store"
)

var (
	waitingWorkspaces = flag.Int("waiting-workspaces", 60, "in how many workspaces of TestLimbo somebody waits outside of the hours, or while all have enough. Long run: -waiting-workspaces 1000 -free-rounds 100 -idle-for 30s -timeout 40m")
	freeRounds        = flag.Int("free-rounds", 4, "how often somebody becomes free beside the workspaces of TestLimbo; see -waiting-workspaces")
	idleFor           = flag.Duration("idle-for", 0, "for how long TestLimbo measures the process's use of the processor while nothing changes; see -waiting-workspaces")
)

// contract-talk §5 promises an assignment within this time.
const assignedWithin = 10 * time.Second

// A lookedAt is a store that counts the looks at each workspace.
type lookedAt struct {
	store.Store
	mu    sync.Mutex
	looks map[desk.ID]int
}

func (l *lookedAt) count(ws desk.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks[ws]++
}

func (l *lookedAt) Settings(ctx context.Context, ws desk.ID) (*desk.Settings, error) {
	l.count(ws)
	return l.Store.Settings(ctx, ws)
}

func (l *lookedAt) at(ws desk.ID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.looks[ws]
}

// TestLimbo: many workspaces wait for their hours or for capacity. A conversation that waits
// in another workspace is assigned soon after a member is eligible there, for any reason, and
// even if another node made the change. The many workspaces are not looked at repeatedly.
func TestLimbo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, s, newID := t.Context(), w.file, w.clock.newID
	seen := &lookedAt{Store: s, looks: map[desk.ID]int{}}
	node, other := w.node(seen, app.Bounds{}), w.node(s, app.Bounds{})
	var made int

	// assigns makes a workspace whose policy gives conversations to its member.
	assigns := func(most int, hours *desk.Hours) (desk.ID, *desk.Member, *desk.Channel) {
		made++
		ws := newID()
		ada := &desk.Member{ID: newID(), Name: "Ada", Email: fmt.Sprintf("ada%d@example.com", made), Role: desk.RoleAdmin}
		channel := &desk.Channel{ID: newID(), Kind: desk.SandboxChannel, ExternalID: newID().String(), Enabled: true}
		policy := &desk.Policy{Assign: &desk.Assign{Mode: desk.AssignRoundRobin, Members: []desk.ID{ada.ID}, MaxOpen: most}, Hours: hours}
		must(t, s.CreateWorkspace(ctx, desk.Workspace{ID: ws, Name: "Acme", Country: "TR"}))
		for _, change := range []desk.Change{{Member: ada}, {Channel: channel}, {Policies: []*desk.Policy{policy}}} {
			must(t, s.UpdateSettings(ctx, ws, func(*desk.Settings) (desk.Change, error) { return change, nil }))
		}
		return ws, ada, channel
	}
	puts := func(ws desk.ID, channel *desk.Channel, change func(*desk.Conversation)) desk.ID {
		c := &desk.Conversation{ID: newID(), ChannelID: channel.ID, ContactID: newID(), Status: desk.StatusOpen, CreatedAt: w.at(), LastMessageAt: w.at()}
		change(c)
		must(t, s.InTx(ctx, ws, func(tx store.Tx) error {
			if err := tx.PutConversation(c); err != nil {
				return err
			}
			return tx.Append(desk.Event{Type: desk.ConversationCreated, Subject: c.ID, Conversation: c.ID, Contact: c.ContactID, At: w.at()})
		}))
		return c.ID
	}
	waits := func(ws desk.ID, channel *desk.Channel) desk.ID {
		return puts(ws, channel, func(c *desk.Conversation) { c.Talk.WaitingSince = w.at() })
	}
	holds := func(ws desk.ID, channel *desk.Channel, member desk.ID) desk.ID {
		return puts(ws, channel, func(c *desk.Conversation) { c.AssignByRule(member) })
	}
	closed := &desk.Hours{TimeZone: "UTC", Week: map[string][]desk.Span{}}
	var inVain []desk.ID
	for i := range *waitingWorkspaces {
		ws, ada, channel := assigns(1, []*desk.Hours{closed, nil}[i%2])
		if i%2 == 1 {
			holds(ws, channel, ada.ID)
		}
		waits(ws, channel)
		inVain = append(inVain, ws)
	}
	ws, ada, channel := assigns(1, nil)
	operator := func() desk.Principal {
		p, err := other.Operator(ctx, ws)
		must(t, err)
		return p
	}
	available := func(is bool) {
		_, err := other.SetAvailable(ctx, operator(), ada.ID, is)
		must(t, err)
	}
	closes := func(c desk.ID) {
		_, err := other.SetStatus(ctx, operator(), c, desk.StatusClosed, nil)
		must(t, err)
	}
	policy := func(week map[string][][]string) {
		mode, one, utc := string(desk.AssignLeastOpen), int64(1), "UTC"
		in := desk.PolicyInput{Assign: &desk.AssignInput{Mode: &mode, Members: []desk.Reference{desk.ReferTo(ada.ID.String())}, MaxOpen: &one}, Hours: &desk.HoursInput{TimeZone: &utc, Week: week}}
		if _, err := other.SetPolicy(ctx, operator(), desk.ID{}, in); err != nil {
			t.Fatal(err)
		}
	}
	always := map[string][][]string{}
	for _, day := range desk.Weekdays {
		always[day] = [][]string{{"00:00", "24:00"}}
	}

	running, stop := context.WithCancel(ctx)
	var crew sync.WaitGroup
	crew.Go(func() { node.AssignWaiting(running) })
	crew.Go(func() { looksForEvents(running, node) })
	defer crew.Wait()
	defer stop()
	until := func(what string, most time.Duration, is func() bool) time.Duration {
		t.Helper()
		for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			switch took := time.Since(began); {
			case is():
				return took
			case took > most:
				t.Fatalf("%s: not within %v", what, most)
			}
		}
	}
	for _, ws := range inVain {
		until("the first looks", time.Minute, func() bool { return seen.at(ws) > 0 })
	}
	if *idleFor > 0 {
		before, began := cpu(), time.Now()
		time.Sleep(*idleFor)
		used, took := cpu()-before, time.Since(began)
		t.Logf("with %d workspaces that wait: %.2f %% of a core, over %v", *waitingWorkspaces, 100*used.Seconds()/took.Seconds(), took.Round(time.Second))
		if used.Seconds() > 0.02*took.Seconds() {
			t.Errorf("it used the processor for %v of %v", used, took)
		}
	}
	longest := time.Duration(0)
	for round := range *freeRounds {
		var cause string
		var free func()
		var held, waiting desk.ID
		switch round % 4 {
		case 0:
			cause, free = "a member is back", func() { available(true) }
			available(false)
		case 1:
			cause = "capacity was freed"
			held = holds(ws, channel, ada.ID)
			free = func() { closes(held) }
		case 2:
			cause, free = "the hours were changed", func() { policy(always) }
			policy(nil)
		case 3:
			cause = "a conversation was unassigned and closed"
			held = holds(ws, channel, ada.ID)
			free = func() {
				_, err := other.Unassign(ctx, operator(), held, nil)
				must(t, err)
				closes(held)
			}
		}
		from := seen.at(ws)
		waiting = waits(ws, channel)
		until("a look in vain", assignedWithin, func() bool { return seen.at(ws) > from })
		assigned := func() bool {
			c, err := s.Conversation(ctx, ws, waiting)
			must(t, err)
			return c.AssignedMember == ada.ID
		}
		if assigned() {
			t.Fatalf("%s: it was assigned before", cause)
		}
		free()
		longest = max(longest, until(cause, assignedWithin, assigned))
		closes(waiting)
	}
	t.Logf("%d rounds beside %d workspaces: the longest wait was %v", *freeRounds, *waitingWorkspaces, longest.Round(time.Millisecond))
	for _, ws := range inVain {
		if n := seen.at(ws); n != 1 {
			t.Fatalf("a workspace in which nothing changed was looked at %d times", n)
		}
	}
}
