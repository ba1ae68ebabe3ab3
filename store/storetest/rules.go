package storetest

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"parley/desk"
	"parley/store"
)

// OlderRules and NewerRules are the versions of the identity rules of two releases.
const (
	OlderRules = "rules 1, phones v1.8.9"
	NewerRules = "rules 1, phones v1.10.0"
)

const fenceWriters = 4

// OtherRules checks that a store stops writing when another one opens the same database
// with newer rules of identities. The callback open opens that database with the given
// rules.
func OtherRules(t *testing.T, open func(rules string, log *slog.Logger) (store.Store, error)) {
	t.Helper()
	var log bytes.Buffer
	older, err := open(OlderRules, slog.New(slog.NewTextHandler(&log, nil)))
	must(t, err)
	ws, _ := newWorkspace(t, older)

	var writers sync.WaitGroup
	var stored [fenceWriters][]string
	var refused [fenceWriters]error
	var count atomic.Int64
	var opened atomic.Bool
	under := make(chan struct{})
	for w := range fenceWriters {
		writers.Go(func() {
			for n, last := 0, false; !last && refused[w] == nil; n++ {
				last = opened.Load()
				email := fmt.Sprintf("%d.%d@example.com", w, n)
				if _, _, refused[w] = apply(t.Context(), older, ws, upsert(email, "")); refused[w] == nil {
					stored[w] = append(stored[w], email)
				}
				if count.Add(1) == 10*fenceWriters {
					close(under)
				}
			}
		})
	}
	<-under
	newer, err := open(NewerRules, slog.New(slog.DiscardHandler))
	opened.Store(true)
	writers.Wait()
	must(t, err)

	for w, err := range refused {
		wantType(t, err, desk.Unavailable)
		if text := err.Error(); !strings.Contains(text, OlderRules) || !strings.Contains(text, NewerRules) {
			t.Errorf("writer %d: %v", w, err)
		}
	}
	for _, email := range stored[0] {
		email := desk.EmailIdentity(email)
		book, err := newer.Book(t.Context(), ws, desk.Lookup{Identities: []desk.Identity{email}})
		must(t, err)
		if held, err := book.Holder(email); err != nil || held == nil {
			t.Fatalf("%s was stored, and nobody holds it: %v", email.Value, err)
		}
	}
	list, _, err := newer.Contacts(t.Context(), ws, desk.ContactFilter{}, desk.ContactPlace{}, 1)
	must(t, err)
	_, _, err = older.Contact(t.Context(), ws, list[0].ID)
	must(t, err)

	wantType(t, older.InTx(t.Context(), ws, func(store.Tx) error { t.Error("a transaction began"); return nil }), desk.Unavailable)
	wantType(t, older.UpdateSettings(t.Context(), ws, func(*desk.Settings) (desk.Change, error) {
		return desk.Change{Member: &desk.Member{ID: newID(), Name: "Late", Email: "late@example.com", Role: desk.RoleAgent}}, nil
	}), desk.Unavailable)
	wantType(t, older.Ready(t.Context()), desk.Unavailable)
	if lines := strings.Count(log.String(), "level=ERROR"); lines != 1 {
		t.Errorf("%d lines are logged: %s", lines, log.String())
	}
	must(t, newer.Ready(t.Context()))
	put(t, newer, ws, upsert("new@example.com", ""))

	if _, err := open(OlderRules, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "install that version or a later one") {
		t.Errorf("opened with older rules: %v", err)
	}
	again, err := open(NewerRules, slog.New(slog.DiscardHandler))
	must(t, err)
	put(t, newer, ws, upsert("new@example.com", "")) // opening with the same rules does not stop other stores
	must(t, again.Ready(t.Context()))
}

// IdleOnNewRules checks that Ready alone notices new rules, without a write.
func IdleOnNewRules(t *testing.T, open func(rules string, log *slog.Logger) (store.Store, error)) {
	t.Helper()
	older, err := open(OlderRules, slog.New(slog.DiscardHandler))
	must(t, err)
	must(t, older.Ready(t.Context()))
	_, err = open(NewerRules, slog.New(slog.DiscardHandler))
	must(t, err)
	wantType(t, older.Ready(t.Context()), desk.Unavailable)
	ws := newID()
	must(t, older.CreateWorkspace(t.Context(), desk.Workspace{ID: ws, Name: "Acme"}))
	_, _, err = apply(t.Context(), older, ws, upsert("a@example.com", ""))
	wantType(t, err, desk.Unavailable)
}
