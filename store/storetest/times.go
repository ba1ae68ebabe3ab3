package storetest

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
)

var listTimes = flag.Bool("list-times", false, "let TestListTimes judge how long pages of lists take, and what clients that search in vain cost others, and measure them long enough for that. Long run: -listed 200000 -list-times")

// JudgesTimes tells whether ListTimes checks times. Then no other test may run at the
// same time.
func JudgesTimes() bool { return *listTimes }

// maxPageTime is the longest time that reading a page may take, once caches are warm. One
// of 100 pages may take longer.
const maxPageTime = 20 * time.Millisecond

// Listed is a workspace with many contacts and conversations for ListTimes. Their times
// are 1 to Count.
type Listed struct {
	Workspace             desk.ID
	Count                 int
	Most, Little, Nothing desk.ID // members and channels: nearly everything is of Most, one thing of Little, nothing of Nothing
	Channel               desk.ID // the channel of nearly all conversations
	Contacts              []desk.ID
	Conversation          desk.ID // the conversation of all messages
}

// A page reads one page of a list.
type page struct {
	name string
	read func() error
}

func (l Listed) pages(t *testing.T, s store.Store) (pages []page) {
	ctx, ws, limit := t.Context(), l.Workspace, desk.DefaultLimit
	last := desk.ID([]byte(strings.Repeat("\xff", 16)))
	for name, f := range map[string]desk.ContactFilter{
		"all": {}, "owner": {Owner: l.Most}, "owner of one": {Owner: l.Little}, "owner of none": {Owner: l.Nothing},
		"since": {UpdatedSince: desk.Time(l.Count / 2)}, "since and owner": {UpdatedSince: desk.Time(l.Count / 2), Owner: l.Most},
		"since and owner of none": {UpdatedSince: 5, Owner: l.Nothing},
	} {
		for place, after := range map[string]desk.ContactPlace{"first": {UpdatedAt: f.UpdatedSince - 1, ID: last}, "deep": {UpdatedAt: desk.Time(l.Count * 9 / 10), ID: l.Most}} {
			pages = append(pages, page{"contacts: " + name + ", " + place, func() error {
				_, _, err := s.Contacts(ctx, ws, f, after, limit)
				return err
			}})
		}
	}
	for name, owner := range map[string]desk.ID{"all": {}, "owner": l.Most, "owner of one": l.Little, "owner of none": l.Nothing} {
		for place, before := range map[string]*desk.ContactPlace{"first": nil, "deep": {UpdatedAt: desk.Time(l.Count / 10), ID: l.Most}} {
			pages = append(pages, page{"newest contacts: " + name + ", " + place, func() error {
				_, _, err := s.NewestContacts(ctx, ws, owner, before, limit)
				return err
			}})
		}
	}
	for name, channel := range map[string]desk.ID{"all": {}, "a channel": l.Channel, "a channel of one": l.Little} {
		pages = append(pages, page{"counts: " + name, func() error {
			_, err := s.CountConversations(ctx, ws, l.Most, channel)
			return err
		}})
	}
	pages = append(pages, page{"loads", func() error {
		_, _, err := s.Workloads(ctx, ws, []desk.ID{l.Most, l.Little, l.Nothing})
		return err
	}})
	for _, status := range []desk.ConversationStatus{"", desk.StatusOpen, desk.StatusArchived} {
		filters := map[string]desk.ConversationFilter{
			"all": {}, "none": {Unassigned: true}, "assignee": {Assignee: l.Most}, "assignee of one": {Assignee: l.Little}, "assignee of none": {Assignee: l.Nothing},
			"channel": {Channel: l.Channel}, "channel of one": {Channel: l.Little}, "channel of none": {Channel: l.Nothing},
			"none and channel of none": {Unassigned: true, Channel: l.Nothing}, "assignee and channel of one": {Assignee: l.Most, Channel: l.Little},
		}
		for n, contact := range append(l.Contacts, l.Nothing) {
			filters[fmt.Sprint("contact ", n)] = desk.ConversationFilter{Contact: contact}
			filters[fmt.Sprint("contact ", n, ", assignee and channel")] = desk.ConversationFilter{Contact: contact, Assignee: l.Most, Channel: l.Channel}
		}
		for name, f := range filters {
			f.Status = status
			for place, after := range map[string]*desk.ConversationPlace{"first": nil, "deep": {LastMessageAt: desk.Time(l.Count / 2)}} {
				pages = append(pages, page{fmt.Sprintf("conversations: status %q, %s, %s", status, name, place), func() error {
					_, _, err := s.Conversations(ctx, ws, f, after, limit)
					return err
				}})
			}
		}
	}
	for _, after := range []*desk.MessagePlace{nil, {TS: desk.Time(l.Count / 2)}} {
		pages = append(pages, page{"messages", func() error {
			_, _, err := s.Messages(ctx, ws, l.Conversation, after, limit)
			return err
		}})
	}
	return pages
}

// ListTimes reads pages of every list with every filter. Then it measures how long
// reading a contact takes while eight clients ask for lists in which nothing matches.
func ListTimes(t *testing.T, s store.Store, l Listed) {
	rounds, beside := 3, 50*time.Millisecond
	if *listTimes {
		rounds, beside = 200, 3*time.Second
	}
	type result struct {
		name     string
		p50, p99 time.Duration
	}
	var results []result
	for _, p := range l.pages(t, s) {
		must(t, p.read()) // warms the caches
		var r result
		for tries := 0; tries == 0 || *listTimes && tries < 5 && r.p99 > maxPageTime; tries++ { // tried again, because other processes may slow it down
			var took []time.Duration
			for range rounds {
				start := time.Now()
				must(t, p.read())
				took = append(took, time.Since(start))
			}
			r = result{p.name, percentile(took, 50), percentile(took, 99)}
		}
		if results = append(results, r); *listTimes && r.p99 > maxPageTime {
			t.Errorf("%s: p50 %v, p99 %v, want at most %v", r.name, r.p50, r.p99, maxPageTime)
		}
	}
	slices.SortFunc(results, func(a, b result) int { return int(b.p99 - a.p99) })
	for _, r := range results[:8] {
		t.Logf("of %d, %s: p50 %v, p99 %v", l.Count, r.name, r.p50, r.p99)
	}

	ws, _ := newWorkspace(t, s)
	neighbour := put(t, s, ws, upsert("neighbour@example.com", ""))
	wait := func() (took []time.Duration) {
		for end := time.Now().Add(beside); time.Now().Before(end); {
			start := time.Now()
			_, _, err := s.Contact(t.Context(), ws, neighbour.ID)
			must(t, err)
			took = append(took, time.Since(start))
		}
		return took
	}
	quiet := wait()
	t.Logf("a neighbour's reads alone: p50 %v, p99 %v", percentile(quiet, 50), percentile(quiet, 99))
	for name, read := range map[string]func() error{
		"contacts of an owner of none": func() error {
			_, _, err := s.Contacts(t.Context(), l.Workspace, desk.ContactFilter{Owner: l.Nothing}, desk.ContactPlace{}, desk.DefaultLimit)
			return err
		},
		"conversations of an unknown channel": func() error {
			_, _, err := s.Conversations(t.Context(), l.Workspace, desk.ConversationFilter{Channel: l.Nothing}, nil, desk.DefaultLimit)
			return err
		},
		"conversations of no assignee": func() error {
			_, _, err := s.Conversations(t.Context(), l.Workspace, desk.ConversationFilter{Unassigned: true}, nil, desk.DefaultLimit)
			return err
		},
	} {
		over := make(chan struct{})
		var clients sync.WaitGroup
		for range 8 {
			clients.Go(func() {
				for {
					select {
					case <-over:
						return
					default:
						if err := read(); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		took := wait()
		close(over)
		clients.Wait()
		t.Logf("beside eight clients that read %s: p50 %v, p99 %v, max %v", name, percentile(took, 50), percentile(took, 99), percentile(took, 100))
	}
}

// percentile returns the duration that p of 100 durations do not exceed. It sorts the
// durations.
func percentile(of []time.Duration, p int) time.Duration {
	slices.Sort(of)
	return of[min(len(of)*p/100, len(of)-1)]
}
