package app_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/app"
	"parley/app/broadcast"
	"parley/app/merges"
	"parley/desk"
	"parley/provider"
	"parley/store"
	"parley/whatsapp"
)

// A limited provider has WhatsApp's codes, and limits the messages to one person: so the
// database is asked for a place between the look at a row and its claim.
type limited struct{ *scripted }

func (limited) Limits(_ *desk.Channel, person func() string) provider.Limits {
	return provider.Limits{Buckets: []desk.Bucket{{Name: "person " + person(), Person: true, Interval: time.Millisecond, Burst: 1}}}
}

func (limited) Effect(f *desk.Failure) desk.Effect { return (*whatsapp.Provider)(nil).Effect(f) }

// A narrow provider takes one message in each interval.
type narrow struct {
	*scripted
	interval time.Duration
}

func (n narrow) Limits(*desk.Channel, func() string) provider.Limits {
	return provider.Limits{Buckets: []desk.Bucket{{Name: "number", Interval: n.interval, Burst: 1}}}
}

// newBetween is like newWorld. between is called for each row of a broadcast, between the look
// at it and its claim. turn counts these moments.
func newBetween(t *testing.T, between func(w *world, turn int)) *world {
	t.Helper()
	w := newWorld(t)
	w.stop()
	w.others = map[desk.ChannelKind]provider.Provider{desk.SandboxChannel: limited{w.provider}}
	w.start(app.Bounds{})
	var turns atomic.Int64
	w.store.pace = func([]desk.Bucket, time.Duration) (time.Duration, bool, error) {
		if n := int(turns.Add(1)); between != nil {
			between(w, n)
		}
		return 0, true, nil
	}
	return w
}

// saysOK is a contact's consent to marketing, as an attribute.
func saysOK(ok bool) func(*desk.ContactWrite) {
	return func(wr *desk.ContactWrite) {
		wr.Attributes = desk.Field[[]desk.AttributeWrite]{Set: true, Value: []desk.AttributeWrite{{Key: "ok", Value: desk.Value{Kind: desk.BoolValue, Bool: ok}}}}
	}
}

// consented makes a broadcast of a template to contacts. It needs the attribute ok, and passes
// over open conversations.
func (w *world) consented(template desk.TemplateName, values []desk.BroadcastValue, contacts ...*desk.Contact) *desk.Broadcast {
	w.t.Helper()
	b, err := w.Broadcasts.Create(w.t.Context(), w.caller(), &desk.BroadcastInput{
		Name: text("Sale"), Template: desk.Field[desk.TemplateName]{Set: true, Value: template}, Values: desk.Field[[]desk.BroadcastValue]{Set: true, Value: values},
		Consent: desk.Field[desk.Consent]{Set: true, Value: desk.Consent{Attribute: "ok"}}, SkipOpen: desk.Field[bool]{Set: true, Value: true},
	})
	must(w.t, err)
	var rows []desk.RowInput
	for _, c := range contacts {
		rows = append(rows, desk.RowInput{Contact: &c.ID})
	}
	results, err := w.Broadcasts.Add(w.t.Context(), w.caller(), b.ID, rows)
	must(w.t, err)
	for _, r := range results {
		must(w.t, r.Err)
	}
	return b
}

// knowsOK defines the attribute ok.
func (w *world) knowsOK() {
	w.t.Helper()
	_, _, err := w.PutAttribute(w.t.Context(), w.caller(), desk.AttributeInput{Key: "ok", Type: text("boolean")})
	must(w.t, err)
}

// edits changes a contact, as another process would.
func (w *world) edits(c *desk.Contact, change desk.ContactWrite) {
	w.t.Helper()
	_, err := w.Write(context.Background(), w.caller(), &desk.Op{Kind: desk.OpPatch, ByID: true, Target: c.ID, Write: change})
	must(w.t, err)
}

// restsBroadcasts waits until no process drives the broadcasts: what it claims has ended.
func (w *world) restsBroadcasts() {
	w.t.Helper()
	ref, other := store.LeaseRef{Workspace: w.ws, Task: desk.BroadcastTask}, w.clock.newID()
	waitFor(w.t, "nobody to drive the broadcasts", func() bool {
		held, err := w.file.HoldLeases(context.Background(), []store.LeaseRef{ref}, other, 60_000)
		must(w.t, err)
		_, ours := held[ref]
		return ours
	})
	must(w.t, w.file.EndLease(context.Background(), ref, other))
}

// TestBroadcast_changed: what makes a row skipped is checked again by the claim, because it may
// happen after the look.
func TestBroadcast_changed(t *testing.T) {
	t.Parallel()
	phone := "905320000001"
	for reason, change := range map[desk.RowReason]func(w *world, b *desk.Broadcast, c *desk.Contact){
		desk.SkipLate: func(w *world, b *desk.Broadcast, _ *desk.Contact) {
			_, err := w.Broadcasts.Edit(context.Background(), w.caller(), b.ID, &desk.BroadcastInput{StopAt: desk.Field[desk.Time]{Set: true, Value: desk.TimeOf(w.clock.now()) - 1}})
			must(w.t, err)
		},
		desk.SkipDeleted: func(w *world, _ *desk.Broadcast, c *desk.Contact) { w.deleteContact(c.ID) },
		desk.SkipDuplicate: func(w *world, _ *desk.Broadcast, _ *desk.Contact) {
			w.store.beaten.Store(true)
		},
		desk.SkipUnreachable: func(w *world, _ *desk.Broadcast, c *desk.Contact) {
			w.edits(c, desk.ContactWrite{Phone: desk.Field[string]{Set: true, Null: true}})
		},
		desk.SkipNoConsent: func(w *world, _ *desk.Broadcast, c *desk.Contact) {
			wr := desk.ContactWrite{}
			saysOK(false)(&wr)
			w.edits(c, wr)
		},
		desk.SkipOptedOut: func(w *world, _ *desk.Broadcast, _ *desk.Contact) {
			_, err := w.Receive(context.Background(), w.ws, w.channel, provider.InboundMessage{ExternalID: "in.1", Number: phone, Text: "STOP", At: desk.TimeOf(w.clock.now())})
			must(w.t, err)
		},
		desk.SkipInConversation: func(w *world, _ *desk.Broadcast, _ *desk.Contact) {
			_, err := w.Receive(context.Background(), w.ws, w.channel, provider.InboundMessage{ExternalID: "in.1", Number: phone, Text: "When?", At: desk.TimeOf(w.clock.now())})
			must(w.t, err)
		},
		desk.SkipVariables: func(w *world, _ *desk.Broadcast, c *desk.Contact) {
			w.edits(c, desk.ContactWrite{Name: desk.Field[string]{Set: true, Null: true}})
		},
	} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			var b *desk.Broadcast
			var c *desk.Contact
			w := newBetween(t, func(w *world, turn int) {
				if turn == 1 {
					change(w, b, c)
				}
			})
			w.knowsOK()
			c = w.put(phoned(phone), named("Lucia"), alsoKnownAs("crm", "1"), saysOK(true))
			template, values := desk.TemplateName{Name: "sale", Language: "en"}, []desk.BroadcastValue(nil)
			if reason == desk.SkipVariables {
				template = desk.TemplateName{Name: "order_update", Language: "en_US"}
				values = []desk.BroadcastValue{{Address: "header.1", Value: "7"}, {Address: "1", From: "customer_first_name"}, {Address: "2", Value: "x"}}
			}
			b = w.consented(template, values, c)
			w.startBroadcast(b.ID)
			b = w.until(b.ID, "its end", in(desk.BroadcastDone))
			if len(w.provider.sent()) > 0 || b.Counts.Skips[reason] != 1 {
				t.Errorf("%d were sent; skips: %v", len(w.provider.sent()), b.Counts.Skips)
			}
			w.recounted(b)
		})
	}
}

// TestBroadcast_halted: a claim checks again that the broadcast runs, that who started it may
// still send, and that the channel can be used.
func TestBroadcast_halted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *world, b *desk.Broadcast)
		state  desk.BroadcastState
		reason desk.BroadcastReason
	}{
		"paused": {func(w *world, b *desk.Broadcast) {
			_, err := w.Broadcasts.Pause(context.Background(), w.operator(), b.ID)
			must(w.t, err)
		}, desk.BroadcastPaused, desk.PausedAsked},
		"cancelled": {func(w *world, b *desk.Broadcast) {
			_, err := w.Broadcasts.Cancel(context.Background(), w.operator(), b.ID)
			must(w.t, err)
		}, desk.BroadcastCancelled, ""},
		"key revoked": {func(w *world, _ *desk.Broadcast) {
			_, err := w.RevokeKey(context.Background(), w.operator(), w.keyID)
			must(w.t, err)
		}, desk.BroadcastPaused, desk.PausedStarter},
		"channel disabled": {func(w *world, _ *desk.Broadcast) {
			off := false
			_, err := w.EditChannel(context.Background(), w.operator(), w.channel, app.ChannelEdit{Enabled: &off})
			must(w.t, err)
		}, desk.BroadcastPaused, desk.PausedChannel},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b *desk.Broadcast
			w := newBetween(t, func(w *world, turn int) {
				if turn == 1 {
					c.change(w, b)
				}
			})
			b = w.draft("905320000001")
			w.startBroadcast(b.ID)
			b = w.until(b.ID, "a halt", in(c.state))
			w.restsBroadcasts()
			row := w.rowsOf(b.ID)[0]
			if b.Reason != c.reason || len(w.provider.sent()) > 0 || row.Attempt != (desk.ID{}) || row.Status != desk.RowPending && row.Status != desk.RowCancelled {
				t.Errorf("it is %s as %q, the row %s; %d were sent", b.State, b.Reason, row.Status, len(w.provider.sent()))
			}
		})
	}
}

// TestBroadcast_lease: a process whose lease another one has taken claims nothing. It claims the
// row later, once the lease is its own again.
func TestBroadcast_lease(t *testing.T) {
	t.Parallel()
	var turns, sentAt atomic.Int64
	w := newBetween(t, func(w *world, turn int) {
		if turns.Store(int64(turn)); turn > 1 {
			return
		}
		ref, other := store.LeaseRef{Workspace: w.ws, Task: desk.BroadcastTask}, w.clock.newID()
		waitFor(w.t, "another to take the lease", func() bool {
			w.clock.advance(desk.BroadcastLease + time.Second)
			held, err := w.file.HoldLeases(context.Background(), []store.LeaseRef{ref}, other, 100)
			must(w.t, err)
			_, ours := held[ref]
			return ours
		})
	})
	w.provider.plays(func(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
		sentAt.Store(turns.Load())
		return takes(ctx, d)
	})
	b := w.draft("905320000001")
	w.startBroadcast(b.ID)
	w.until(b.ID, "its end", in(desk.BroadcastDone))
	if n := len(w.provider.sent()); n != 1 || sentAt.Load() < 2 {
		t.Errorf("%d were sent, at turn %d", n, sentAt.Load())
	}
}

// TestBroadcast_duplicates: nobody gets a broadcast twice: neither a number that has moved to
// another contact since, nor a contact whose number is another one by now. Of a deleted contact, the
// numbers are still known.
func TestBroadcast_duplicates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rows   func(first, second *desk.Contact) []desk.RowInput
		change func(w *world, first, second *desk.Contact) // once the first has got it
	}{
		"number": {
			func(first, second *desk.Contact) []desk.RowInput {
				return []desk.RowInput{{Contact: &first.ID}, {Contact: &second.ID}}
			},
			func(w *world, first, second *desk.Contact) {
				w.edits(first, desk.ContactWrite{Phone: text("905320000009")})
				w.edits(second, desk.ContactWrite{Phone: text("905320000001")})
			},
		},
		"contact": {
			func(first, _ *desk.Contact) []desk.RowInput {
				return []desk.RowInput{{Contact: &first.ID}, {Find: phoneOf("905320000008")}}
			},
			func(w *world, first, _ *desk.Contact) {
				w.edits(first, desk.ContactWrite{Phone: text("905320000008")})
			},
		},
		"merged": {
			func(first, second *desk.Contact) []desk.RowInput {
				return []desk.RowInput{{Contact: &first.ID}, {Contact: &second.ID}}
			},
			func(w *world, first, second *desk.Contact) {
				_, err := w.Merges.Do(context.Background(), w.operator(), merges.Request{Into: second.ID, From: first.ID})
				must(w.t, err)
			},
		},
		"deleted": {
			func(first, second *desk.Contact) []desk.RowInput {
				return []desk.RowInput{{Contact: &first.ID}, {Contact: &second.ID}}
			},
			func(w *world, first, second *desk.Contact) {
				w.deleteContact(first.ID)
				w.edits(second, desk.ContactWrite{Phone: text("905320000001")})
			},
		},
		"other number": {
			func(first, second *desk.Contact) []desk.RowInput {
				return []desk.RowInput{{Contact: &first.ID}, {Contact: &second.ID}}
			},
			func(w *world, first, second *desk.Contact) {
				w.deleteContact(first.ID)
				w.edits(second, desk.ContactWrite{Phone: text("905320000003")})
			},
		},
	} {
		for when, turn := range map[string]int{"at the turn": 0, "before the claim": 2} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				var first, second *desk.Contact
				w := newBetween(t, func(w *world, now int) {
					if now == turn {
						c.change(w, first, second)
					}
				})
				first = w.put(phoned("905320000001"), alsoKnownAs("crm", "1"), alsoKnownAs(desk.KindPhone, "905320000003"))
				second = w.put(phoned("905320000002"), alsoKnownAs("crm", "2"))
				b := w.draft()
				results, err := w.Broadcasts.Add(t.Context(), w.caller(), b.ID, c.rows(first, second))
				if must(t, err); results[0].Err != nil || results[1].Err != nil {
					t.Fatalf("%+v", results)
				}
				_, err = w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{Pace: desk.Field[desk.BroadcastPace]{Set: true, Value: desk.BroadcastPace{People: 1, Minutes: 1}}})
				must(t, err)
				w.startBroadcast(b.ID)
				w.until(b.ID, "the first", func(b *desk.Broadcast) bool {
					return b.Reason == desk.WaitsForPace && b.Counts.ByStatus[desk.RowSent] == 1
				})
				if turn == 0 {
					c.change(w, first, second)
					if checked, _, err := w.Broadcasts.Check(t.Context(), w.caller(), b.ID, ""); err != nil || checked.Skips[desk.SkipDuplicate] != 1 {
						t.Errorf("a check finds %+v, %v", checked, err)
					}
				}
				w.clock.advance(2 * time.Minute)
				b = w.until(b.ID, "its end", in(desk.BroadcastDone))
				if n := len(w.provider.sent()); n != 1 || b.Counts.Skips[desk.SkipDuplicate] != 1 {
					t.Errorf("%d were sent; skips: %v", n, b.Counts.Skips)
				}
			})
		}
	}
}

// TestBroadcast_hashes: the hash of a number is keyed for its broadcast, and goes with the
// broadcast's end.
func TestBroadcast_hashes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	taken := map[store.NumberHash]bool{}
	w.store.takes = func(_ store.Tx, list []store.NumberHash) {
		mu.Lock()
		defer mu.Unlock()
		for _, h := range list {
			taken[h] = true
		}
	}
	for n := range 2 {
		b := w.draft("905320000001")
		w.startBroadcast(b.ID)
		w.until(b.ID, "its end", func(b *desk.Broadcast) bool { return b.State == desk.BroadcastDone && !b.Untidy })
		mu.Lock()
		hashes := slices.Collect(maps.Keys(taken))
		mu.Unlock()
		if len(hashes) != n+1 {
			t.Errorf("after %d broadcasts to a number, there were %d hashes", n+1, len(hashes))
		}
		facts, err := w.file.RowFacts(t.Context(), w.ws, store.RowQuestion{Broadcast: b.ID, Channel: w.channel, Numbers: hashes})
		if must(t, err); len(facts.Taken) > 0 {
			t.Errorf("after the end, %d hashes are left", len(facts.Taken))
		}
	}
}

// TestBroadcast_rows: who is posted again is the same row, by whatever the call names the person.
func TestBroadcast_rows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.put(phoned("905320000001"), alsoKnownAs(desk.KindPhone, "905320000002"), mailed("ann@example.com"))
	b := w.draft()
	value := func(text string) []desk.NamedValue { return []desk.NamedValue{{Address: "1", Value: text}} }
	var first desk.ID
	for i, call := range []struct {
		in   desk.RowInput
		want string
	}{
		{desk.RowInput{Contact: &c.ID}, "added"},
		{desk.RowInput{Contact: &c.ID}, "unchanged"},
		{desk.RowInput{Contact: &c.ID, Values: value("A")}, "replaced"},
		{desk.RowInput{Find: phoneOf("905320000001")}, "replaced"},
		{desk.RowInput{Find: phoneOf("905320000002")}, "replaced"},
		{desk.RowInput{Find: desk.Identity{Kind: desk.KindEmail, Value: "ann@example.com"}}, "replaced"},
	} {
		results, err := w.Broadcasts.Add(t.Context(), w.caller(), b.ID, []desk.RowInput{call.in})
		if must(t, err); results[0].Status != call.want {
			t.Errorf("call %d: %+v, want %s", i, results[0], call.want)
		}
		if first.IsZero() {
			first = results[0].ID
		}
		if results[0].ID != first {
			t.Errorf("call %d makes another row", i)
		}
	}
	for _, want := range []string{"added", "unchanged"} { // a number that nobody has yet
		results, err := w.Broadcasts.Add(t.Context(), w.caller(), b.ID, []desk.RowInput{{Find: phoneOf("905320000009")}})
		if must(t, err); results[0].Status != want {
			t.Errorf("a new number: %+v, want %s", results[0], want)
		}
	}
	if rows := w.rowsOf(b.ID); len(rows) != 2 || w.broadcastNow(b.ID).Rows != 2 {
		t.Errorf("%d rows", len(rows))
	}
}

// TestBroadcast_rowsMeanwhile: rows whose people were deleted or merged after they were found have
// the people of now.
func TestBroadcast_rowsMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	into, from, gone := w.put(phoned("905320000001")), w.put(phoned("905320000002"), mailed("bea@example.com")), w.put(phoned("905320000003"), mailed("cy@example.com"))
	b := w.draft()
	w.store.in(1, begin, func() error {
		w.merge(into, from)
		w.deleteContact(gone.ID)
		return nil
	})
	mail := func(address string) desk.RowInput {
		return desk.RowInput{Find: desk.Identity{Kind: desk.KindEmail, Value: address}}
	}
	results, err := w.Broadcasts.Add(t.Context(), w.caller(), b.ID, []desk.RowInput{
		{Contact: &into.ID}, {Contact: &from.ID}, mail("bea@example.com"), mail("cy@example.com"), {Find: phoneOf("905320000003")},
	})
	must(t, err)
	for i, want := range []string{"added", "", "unchanged", "", "added"} {
		if r := results[i]; r.Status != want || (r.Err == nil) != (want != "") || want == "" && !desk.IsType(r.Err, desk.NotFound) {
			t.Errorf("row %d: %+v, want %q", i, r, want)
		}
	}
	rows := w.rowsOf(b.ID)
	if len(rows) != 2 || rows[0].Contact != into.ID || !rows[1].Contact.IsZero() || rows[1].To != "905320000003" {
		t.Errorf("rows: %+v", rows)
	}
}

// TestBroadcast_rowsRenumbered: a number that a row of the call no longer has is the next person's.
func TestBroadcast_rowsRenumbered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.put(phoned("905320000001"))
	b := w.draft("905320000001")
	w.edits(c, desk.ContactWrite{Phone: text("905320000002")})
	results, err := w.Broadcasts.Add(t.Context(), w.caller(), b.ID, []desk.RowInput{{Contact: &c.ID}, {Find: phoneOf("905320000001")}})
	if must(t, err); results[0].Status != "replaced" || results[1].Status != "added" {
		t.Errorf("%+v", results)
	}
	if rows := w.rowsOf(b.ID); len(rows) != 2 || rows[0].Contact != c.ID || rows[1].To != "905320000001" {
		t.Errorf("rows: %+v", rows)
	}
}

// TestBroadcast_moved: what happens to a row between the look at it and its claim counts. After a
// merge it goes to the contact that is left, and nothing goes to a number whose person was deleted.
func TestBroadcast_moved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		row    func(first *desk.Contact) desk.RowInput
		change func(w *world, first, second *desk.Contact)
		status desk.RowStatus
		sent   []string
	}{
		"merged": {
			func(first *desk.Contact) desk.RowInput { return desk.RowInput{Contact: &first.ID} },
			func(w *world, first, second *desk.Contact) {
				_, err := w.Merges.Do(context.Background(), w.operator(), merges.Request{Into: second.ID, From: first.ID})
				must(w.t, err)
			}, desk.RowSent, []string{"905320000002"},
		},
		"deleted": {
			func(*desk.Contact) desk.RowInput { return desk.RowInput{Find: phoneOf("905320000001")} },
			func(w *world, first, _ *desk.Contact) { w.deleteContact(first.ID) }, desk.RowSkipped, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var first, second *desk.Contact
			w := newBetween(t, func(w *world, turn int) {
				if turn == 1 {
					c.change(w, first, second)
				}
			})
			first, second = w.put(phoned("905320000001")), w.put(phoned("905320000002"))
			b := w.draft()
			results, err := w.Broadcasts.Add(t.Context(), w.caller(), b.ID, []desk.RowInput{c.row(first)})
			if must(t, err); results[0].Err != nil {
				t.Fatal(results[0].Err)
			}
			w.startBroadcast(b.ID)
			w.until(b.ID, "its end", in(desk.BroadcastDone))
			var sent []string
			for _, d := range w.provider.sent() {
				sent = append(sent, d.Number)
			}
			if row := w.rowsOf(b.ID)[0]; row.Status != c.status || !slices.Equal(sent, c.sent) {
				t.Errorf("the row is %s as %q; sent to %v", row.Status, row.Reason, sent)
			}
		})
	}
}

// TestBroadcast_cancelledMeanwhile: a broadcast that is cancelled while it is about to pause itself
// stays so, and a message that is refused for now after that is not sent again.
func TestBroadcast_cancelledMeanwhile(t *testing.T) {
	t.Parallel()
	w := newBetween(t, nil)
	b := w.draft(numbersFrom(0, 200)...)
	var once sync.Once
	w.store.newest = func() {
		if w.broadcastNow(b.ID).Counts.ByStatus[desk.RowRefused] < desk.LeastOutcomes {
			return
		}
		once.Do(func() {
			_, err := w.Broadcasts.Cancel(context.Background(), w.caller(), b.ID)
			must(t, err)
		})
	}
	w.provider.plays(refuses)
	w.startBroadcast(b.ID)
	w.until(b.ID, "its end", func(b *desk.Broadcast) bool { return b.State != desk.BroadcastRunning })
	w.restsBroadcasts()
	if b = w.broadcastNow(b.ID); b.State != desk.BroadcastCancelled || b.Reason != "" {
		t.Errorf("it is %s as %q", b.State, b.Reason)
	}

	later := w.draft("905320000099")
	w.provider.plays(func(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
		_, err := w.Broadcasts.Cancel(context.Background(), w.caller(), later.ID)
		must(t, err)
		waitFor(t, "the other rows to be cancelled", func() bool { return !w.broadcastNow(later.ID).Untidy })
		return refusesForNow(2)(ctx, d)
	})
	_, err := w.Broadcasts.Start(t.Context(), w.caller(), later.ID)
	must(t, err)
	later = w.until(later.ID, "its end", func(b *desk.Broadcast) bool {
		return b.State == desk.BroadcastCancelled && b.Counts.ByStatus[desk.RowSending] == 0
	})
	w.restsBroadcasts()
	if row := w.rowsOf(later.ID)[0]; row.Status != desk.RowCancelled || later.Counts.ByStatus[desk.RowCancelled] != 1 {
		t.Errorf("the row is %s: %v", row.Status, later.Counts.ByStatus)
	}
}

// TestBroadcast_share: the messages of a broadcast wait for a place in its share of the number's
// places.
func TestBroadcast_share(t *testing.T) {
	t.Parallel()
	const people, perSecond = 12, 20
	w := newWorld(t)
	w.stop()
	w.others = map[desk.ChannelKind]provider.Provider{desk.SandboxChannel: narrow{w.provider, time.Second / perSecond}}
	w.start(app.Bounds{})
	w.store.pace = func([]desk.Bucket, time.Duration) (time.Duration, bool, error) { return 0, true, nil }
	var mu sync.Mutex
	var at []time.Time
	w.provider.plays(func(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
		mu.Lock()
		at = append(at, time.Now())
		mu.Unlock()
		return takes(ctx, d)
	})
	b := w.draft(numbersFrom(0, people)...)
	began := time.Now()
	w.startBroadcast(b.ID)
	w.until(b.ID, "its end", in(desk.BroadcastDone))
	mu.Lock()
	defer mu.Unlock()
	least := time.Duration(people-1) * time.Second * 4 / (perSecond * 3)
	if took := at[len(at)-1].Sub(began); len(at) != people || took < least {
		t.Errorf("%d were sent within %v, want at least %v", len(at), took, least)
	}
}

// TestBroadcast_away: while the provider is away for an hour, nobody is refused. Later all get
// the message.
func TestBroadcast_away(t *testing.T) {
	t.Parallel()
	const people = 50
	w := newWorld(t)
	var tries atomic.Int64
	back := w.clock.uptime() + time.Hour
	w.provider.plays(func(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
		if tries.Add(1); w.clock.uptime() < back {
			return refusesForNow(2)(ctx, d)
		}
		return takes(ctx, d)
	})
	b := w.draft(numbersFrom(0, people)...)
	w.startBroadcast(b.ID)
	waits := 0
	for ; w.clock.uptime() < back; waits++ {
		before := w.until(b.ID, "a wait", func(b *desk.Broadcast) bool { // all refusals are noted: one that is noted later would begin a new wait
			return b.Reason == desk.WaitsForProvider && b.Counts.ByStatus[desk.RowSending] == 0
		})
		if before.Counts.ByStatus[desk.RowPending] != people {
			t.Fatalf("after %d waits: %v", waits, before.Counts.ByStatus)
		}
		seen := tries.Load()
		w.clock.up.Add(int64(desk.LongestBroadcastWait))
		waitFor(t, "another try", func() bool { return tries.Load() > seen })
	}
	b = w.until(b.ID, "its end", in(desk.BroadcastDone))
	if n := b.Counts.ByStatus[desk.RowSent]; n != people {
		t.Errorf("%v", b.Counts.ByStatus)
	}
}

// TestBroadcast_pair: people for whom the provider takes nothing for now do not keep the others
// waiting, and get the message later.
func TestBroadcast_pair(t *testing.T) {
	t.Parallel()
	w := newBetween(t, nil)
	numbers := numbersFrom(0, 100)
	var open atomic.Bool
	w.provider.plays(func(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
		if slices.Index(numbers, d.Number)%5 == 4 && !open.Load() {
			return provider.Receipt{}, &desk.Refusal{Type: desk.ProviderUnavailable, Message: "later", Failure: &desk.Failure{Code: 131056, Title: "Pair rate limit hit"}, RetryAfter: 600}
		}
		return takes(ctx, d)
	})
	b := w.draft(numbers...)
	w.startBroadcast(b.ID)
	b = w.until(b.ID, "the others", func(b *desk.Broadcast) bool {
		return b.Counts.ByStatus[desk.RowSent] == 80 && b.Counts.ByStatus[desk.RowSending] == 0
	})
	if b.State != desk.BroadcastRunning || b.Reason != "" || b.Counts.ByStatus[desk.RowPending] != 20 {
		t.Errorf("it is %s as %q: %v", b.State, b.Reason, b.Counts.ByStatus)
	}
	_, err := w.Broadcasts.Pause(t.Context(), w.caller(), b.ID)
	must(t, err)
	if c, _, err := w.Broadcasts.Check(t.Context(), w.caller(), b.ID, ""); err != nil || c.LookedAt != 20 || c.Sendable != 20 {
		t.Errorf("a check finds %+v, %v", c, err)
	}
	_, err = w.Broadcasts.Resume(t.Context(), w.caller(), b.ID)
	must(t, err)
	open.Store(true)
	w.clock.advance(11 * time.Minute)
	b = w.until(b.ID, "its end", in(desk.BroadcastDone))
	if n := b.Counts.ByStatus[desk.RowSent]; n != 100 {
		t.Errorf("%v", b.Counts.ByStatus)
	}
	if got := w.Broadcasts.Outcomes(); got[desk.RowSent] != 100 || got[desk.RowPending] != 20 || got[desk.RowRefused] != 0 {
		t.Errorf("the outcomes are %v", got)
	}
}

// TestBroadcast_pairMerged: the provider takes nothing for two people for now, and they become one
// before the next try. They get the message once, also if their other row is sent just then.
func TestBroadcast_pairMerged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		into int
		also bool // the other row is sent before this one takes the numbers
		want int  // tries
	}{
		"into the first": {0, false, 3}, "into the second": {1, false, 3}, "sent meanwhile": {0, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBetween(t, nil)
			var open atomic.Bool
			w.provider.plays(func(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
				if !open.Load() {
					return provider.Receipt{}, &desk.Refusal{Type: desk.ProviderUnavailable, Message: "later", Failure: &desk.Failure{Code: 131056, Title: "Pair rate limit hit"}, RetryAfter: 600}
				}
				return takes(ctx, d)
			})
			people := []*desk.Contact{w.phoned("905320000001"), w.phoned("905320000002")}
			b := w.draft("905320000001", "905320000002")
			w.startBroadcast(b.ID)
			var rows []desk.BroadcastRow
			w.until(b.ID, "two refusals", func(*desk.Broadcast) bool {
				rows = w.rowsOf(b.ID)
				return !slices.ContainsFunc(rows, func(r desk.BroadcastRow) bool { return r.Status != desk.RowPending || r.Attempt.IsZero() })
			})
			_, err := w.Merges.Do(t.Context(), w.operator(), merges.Request{Into: people[c.into].ID, From: people[1-c.into].ID})
			must(t, err)
			if c.also {
				w.store.takes = func(tx store.Tx, _ []store.NumberHash) {
					there, err := tx.RowsToChange(b.ID, []desk.ID{rows[1].ID})
					must(t, err)
					change := store.Change(there[rows[1].ID])
					change.Row.Status = desk.RowSent
					must(t, tx.PutRows(b.ID, []store.RowChange{change}))
				}
			}
			open.Store(true)
			w.clock.advance(11 * time.Minute)
			b = w.until(b.ID, "its end", in(desk.BroadcastDone))
			if n := len(w.provider.sent()); n != c.want || b.Counts.ByStatus[desk.RowSent] != 1 || b.Counts.Skips[desk.SkipDuplicate] != 1 {
				t.Errorf("%d were sent: %v, %v", n, b.Counts.ByStatus, b.Counts.Skips)
			}
		})
	}
}

// TestBroadcast_heldBack: a person whom the provider's limit for one person holds back ten times is
// given up, and counted.
func TestBroadcast_heldBack(t *testing.T) {
	t.Parallel()
	w := newBetween(t, nil)
	w.store.pace = func([]desk.Bucket, time.Duration) (time.Duration, bool, error) { return time.Hour, false, nil }
	b := w.draft("905320000001")
	w.startBroadcast(b.ID)
	for held := 1; held < desk.MaxPersonRefusals; held++ {
		waitFor(t, "the row to be held back", func() bool { return w.rowsOf(b.ID)[0].Data.Held >= held })
		w.passes(b, desk.LongestBroadcastWait+time.Second)
	}
	b = w.until(b.ID, "its end", in(desk.BroadcastDone))
	if n := w.Broadcasts.Outcomes()[desk.RowRefused]; b.Counts.ByStatus[desk.RowRefused] != 1 || n != 1 {
		t.Errorf("%v; %d outcomes", b.Counts.ByStatus, n)
	}
}

// TestBroadcast_templatePaused: once a callback says that the template is paused, at most as many
// rows are claimed as were under way.
func TestBroadcast_templatePaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	must(t, w.SyncStale(t.Context()))
	w.meta.change(func() { w.meta.away = errors.New("the provider is away") }) // the library is not fetched again
	w.store.pace = func([]desk.Bucket, time.Duration) (time.Duration, bool, error) { return 0, true, nil }
	b := w.draft(numbersFrom(0, 400)...)
	_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{Channel: desk.Field[desk.ID]{Set: true, Value: channel}})
	must(t, err)
	var calls, pending atomic.Int64
	w.meta.change(func() {
		w.meta.meanwhile = func(provider.Dispatch) {
			if calls.Add(1) != 20 {
				return
			}
			w.callback(channel, provider.Update{Business: metaBusiness, Template: &provider.TemplateUpdate{Name: "hello", Language: "en", Status: "PAUSED"}})
			waitFor(t, "the template to be paused", func() bool { return w.templateStatus(channel) == "paused" })
			pending.Store(w.broadcastNow(b.ID).Counts.ByStatus[desk.RowPending])
		}
	})
	w.startBroadcast(b.ID)
	b = w.until(b.ID, "a pause", func(b *desk.Broadcast) bool {
		return b.State == desk.BroadcastPaused && b.Counts.ByStatus[desk.RowSending] == 0 && pending.Load() > 0
	})
	if more := pending.Load() - b.Counts.ByStatus[desk.RowPending]; b.Reason != desk.PausedTemplate || more > desk.BroadcastFlights || b.Counts.ByStatus[desk.RowPending] == 0 {
		t.Errorf("it is paused as %s, after %d more claims: %v", b.Reason, more, b.Counts.ByStatus)
	}
}

// TestBroadcast_reported: a failure that the provider reports later pauses a broadcast, if it
// means that no more can be sent, and one for this person alone does not.
func TestBroadcast_reported(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]desk.BroadcastReason{132015: desk.PausedTemplate, 132016: desk.PausedTemplate, 131053: desk.PausedFile, 131049: ""} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			t.Parallel()
			w := newBetween(t, nil)
			b := w.draft(numbersFrom(0, 120)...)
			_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{Pace: desk.Field[desk.BroadcastPace]{Set: true, Value: desk.BroadcastPace{People: 60, Minutes: 5}}})
			must(t, err)
			w.startBroadcast(b.ID)
			w.until(b.ID, "the first half", func(b *desk.Broadcast) bool {
				return b.Reason == desk.WaitsForPace && b.Counts.ByStatus[desk.RowSent] == 60
			})
			for _, d := range w.provider.sent() {
				s := said(d.Attempt, desk.Failed)
				s.Failure = &desk.Failure{Code: code, Title: "It failed", Fix: "Wait."}
				w.tell(s)
			}
			if want != "" {
				if b = w.until(b.ID, "a pause", in(desk.BroadcastPaused)); b.Reason != want {
					t.Errorf("it is paused as %s", b.Reason)
				}
				return
			}
			w.until(b.ID, "the failures", func(b *desk.Broadcast) bool { return b.Counts.ByStatus[desk.RowFailed] == 60 })
			w.clock.advance(6 * time.Minute)
			b = w.until(b.ID, "its end", in(desk.BroadcastDone))
			w.recounted(b)
		})
	}
}

// TestBroadcast_reportedLate: a failure that is reported after many later claims pauses a broadcast,
// too, unless it is of a message from before the broadcast was resumed.
func TestBroadcast_reportedLate(t *testing.T) {
	t.Parallel()
	w := newBetween(t, nil)
	w.store.passed.Store(true)
	b := w.draft(numbersFrom(0, 10)...)
	_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{Pace: desk.Field[desk.BroadcastPace]{Set: true, Value: desk.BroadcastPace{People: 4, Minutes: 5}}})
	must(t, err)
	w.startBroadcast(b.ID)
	w.until(b.ID, "its pace", func(b *desk.Broadcast) bool {
		return b.Reason == desk.WaitsForPace && b.Counts.ByStatus[desk.RowSent] == 4
	})
	fails := func(n int) {
		s := said(w.provider.sent()[n].Attempt, desk.Failed)
		s.Failure = &desk.Failure{Code: 132015, Title: "It failed", Fix: "Wait."}
		w.tell(s)
	}
	fails(0)
	if b = w.until(b.ID, "a pause", in(desk.BroadcastPaused)); b.Reason != desk.PausedTemplate || b.Counts.ByStatus[desk.RowFailed] != 1 {
		t.Errorf("it is paused as %s: %v", b.Reason, b.Counts.ByStatus)
	}
	waitFor(t, "a warning", func() bool { return len(w.log.find("a broadcast was paused")) == 1 })

	_, err = w.Broadcasts.Resume(t.Context(), w.caller(), b.ID)
	must(t, err)
	fails(1)
	b = w.until(b.ID, "another failure", func(b *desk.Broadcast) bool { return b.Counts.ByStatus[desk.RowFailed] == 2 })
	if b.State != desk.BroadcastRunning {
		t.Errorf("it is %s as %s", b.State, b.Reason)
	}
}

// TestBroadcast_failuresReported: a broadcast pauses if too many of its messages are reported to have
// failed, although many were sent after them.
func TestBroadcast_failuresReported(t *testing.T) {
	t.Parallel()
	const fast = 400
	w := newWorld(t)
	var n atomic.Int64
	rest := make(chan struct{})
	release := sync.OnceFunc(func() { close(rest) })
	defer release()
	w.provider.plays(func(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
		if n.Add(1) > fast {
			<-rest
		}
		return takes(ctx, d)
	})
	b := w.draft(numbersFrom(0, fast+100)...)
	w.startBroadcast(b.ID)
	w.until(b.ID, "the fast ones", func(b *desk.Broadcast) bool { return b.Counts.ByStatus[desk.RowSent] == fast })
	var failed []provider.Update
	for _, d := range w.provider.sent()[:60] {
		s := said(d.Attempt, desk.Failed)
		failed = append(failed, provider.Update{Status: &s})
	}
	w.reports(failed...)
	if b = w.until(b.ID, "a pause", in(desk.BroadcastPaused)); b.Reason != desk.PausedFailures {
		t.Errorf("it is paused as %s: %v", b.Reason, b.Counts.ByStatus)
	}
}

// TestBroadcast_restored: broadcasts that come from another database do not go on by themselves.
func TestBroadcast_restored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	draft, running, scheduled := w.draft("905320000001"), w.draft("905320000002"), w.draft("905320000003")
	_, err := w.Broadcasts.Edit(t.Context(), w.caller(), scheduled.ID, &desk.BroadcastInput{SendAt: desk.Field[desk.Time]{Set: true, Value: desk.TimeOf(w.clock.now().Add(time.Hour))}})
	must(t, err)
	for _, b := range []*desk.Broadcast{running, scheduled} {
		_, err := w.Broadcasts.Start(t.Context(), w.caller(), b.ID)
		must(t, err)
	}
	must(t, broadcast.StopAll(t.Context(), w.file, w.clock.now()))
	for _, b := range []*desk.Broadcast{running, scheduled} {
		if b := w.broadcastNow(b.ID); b.State != desk.BroadcastPaused || b.Reason != desk.PausedStopped {
			t.Errorf("it is %s as %q", b.State, b.Reason)
		}
	}
	if b := w.broadcastNow(draft.ID); b.State != desk.BroadcastDraft {
		t.Errorf("the draft is %s", b.State)
	}
	_, err = w.Broadcasts.Resume(t.Context(), w.caller(), running.ID)
	must(t, err)
	w.run()
	w.until(running.ID, "its end", in(desk.BroadcastDone))
	if n := len(w.provider.sent()); n != 1 {
		t.Errorf("%d were sent", n)
	}
}

// TestBroadcast_dormantAgain: the next broadcast goes into the dormant conversation and leaves
// it so. A single send opens it, but not one whose last message is older than a month.
func TestBroadcast_dormantAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	person := "905320000001"
	var first desk.ID
	for range 2 {
		b := w.draft(person)
		w.startBroadcast(b.ID)
		w.until(b.ID, "its end", in(desk.BroadcastDone))
		c := w.conversation(w.rowsOf(b.ID)[0].Conversation)
		if first.IsZero() {
			first = c.ID
		}
		if c.ID != first || !c.Dormant || c.Status != desk.StatusArchived {
			t.Errorf("the conversation is %+v, the first was %s", c, first)
		}
	}
	to := func(r *desk.SendRequest) { r.Phone = phoneOf(person) }
	if m := w.sent("one", to); m.Conversation.ID != first || !m.Existing || m.Conversation.Dormant || m.Conversation.Status != desk.StatusOpen {
		t.Errorf("a single send goes into %+v", m.Conversation)
	}
	w.status(first, desk.StatusClosed)
	b := w.draft(person)
	w.startBroadcast(b.ID)
	w.until(b.ID, "its end", in(desk.BroadcastDone))
	dormant := w.rowsOf(b.ID)[0].Conversation
	if dormant == first {
		t.Error("a closed conversation is dormant again")
	}
	w.status(dormant, desk.StatusClosed)
	w.status(dormant, desk.StatusArchived)
	b = w.draft(person)
	w.startBroadcast(b.ID)
	w.until(b.ID, "its end", in(desk.BroadcastDone))
	changed := dormant
	if dormant = w.rowsOf(b.ID)[0].Conversation; dormant == changed {
		t.Error("a conversation whose status was changed is still dormant")
	}
	w.stop()
	w.start(app.Bounds{})
	w.clock.advance(desk.DormantLife + time.Hour)
	if m := w.sent("two", to); m.Conversation.ID == dormant || m.Existing {
		t.Errorf("after a month, a single send goes into %+v", m.Conversation)
	}
}

// TestBroadcast_dormantMeanwhile: a single send to a person who was not known when it was planned
// opens the dormant conversation that a broadcast has made since.
func TestBroadcast_dormantMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const person = "905320000001"
	var dormant desk.ID
	w.provider.plays(meanwhile(func(provider.Dispatch) {
		w.provider.plays(takes)
		b := w.draft(person)
		w.startBroadcast(b.ID)
		w.until(b.ID, "its end", in(desk.BroadcastDone))
		dormant = w.rowsOf(b.ID)[0].Conversation
	}, takes))
	m := w.sent("one", func(r *desk.SendRequest) { r.Phone = phoneOf(person) })
	if c := w.conversation(dormant); m.Conversation.ID != dormant || !m.Existing || c.Dormant || c.Status != desk.StatusOpen {
		t.Errorf("it goes into %+v; the dormant one is %+v", m.Conversation, c)
	}
	if m := w.sent("two", func(r *desk.SendRequest) { r.Phone = phoneOf("905320000002") }); m.Existing {
		t.Errorf("a new person has %+v", m.Conversation)
	}
}
