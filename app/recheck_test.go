package app_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/store"
)

// keyChanges are changes that make the world's key invalid, and the refusals that follow.
var keyChanges = map[string]struct {
	change func(*world) error
	want   desk.ErrorType
}{
	"revoked": {func(w *world) error {
		_, err := w.RevokeKey(context.Background(), w.operator(), w.keyID)
		return err
	}, desk.Unauthorized},
	"expired": {func(w *world) error {
		soon := time.Millisecond
		_, err := w.EditKey(context.Background(), w.operator(), w.keyID, app.KeyEdit{Expires: &soon})
		w.clock.advance(time.Second)
		return err
	}, desk.Unauthorized},
	"edited": {func(w *world) error {
		fewer := "contacts:read"
		_, err := w.EditKey(context.Background(), w.operator(), w.keyID, app.KeyEdit{Permissions: &fewer})
		return err
	}, desk.Forbidden},
}

// TestWrite_with_a_key_changed_meanwhile: a principal that was authenticated before its key
// was revoked, expired or lost the permission stores nothing any more.
func TestWrite_with_a_key_changed_meanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range keyChanges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			upsert := func(id string) *desk.Op {
				return &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{ExternalID: text(id), Sent: []desk.Identity{{Kind: desk.KindExternalID, Value: id}}}}
			}
			p := w.caller()
			stored, err := w.Write(t.Context(), p, upsert("before"))
			must(t, err)
			file, err := w.Media.Upload(t.Context(), p, desk.FileHead{Name: "a.jpg"}, strings.NewReader(picture))
			must(t, err)
			must(t, c.change(w))

			_, err = w.Write(t.Context(), p, upsert("one"))
			refused(t, err, c.want)
			_, err = w.Write(t.Context(), p, &desk.Op{Kind: desk.OpDelete, ByID: true, Target: stored.ID})
			refused(t, err, c.want)
			_, _, err = w.WriteAll(t.Context(), p, []*desk.Op{upsert("two"), upsert("three")})
			refused(t, err, c.want)
			_, err = w.Try(t.Context(), p, upsert("one"))
			refused(t, err, c.want)
			_, _, err = w.TryAll(t.Context(), p, []*desk.Op{upsert("two"), upsert("three")})
			refused(t, err, c.want)
			_, _, err = w.PutAttribute(t.Context(), p, desk.AttributeInput{Key: "new", Type: text("text")})
			refused(t, err, c.want)
			_, _, err = w.PutSnippet(t.Context(), p, "new", "Hi")
			refused(t, err, c.want)
			refused(t, w.DeleteSnippet(t.Context(), p, "new"), c.want)
			refused(t, w.Media.Delete(t.Context(), p, file.ID), c.want)
			_, err = w.SetPolicy(t.Context(), p, desk.ID{}, desk.PolicyInput{AutoReply: &desk.AutoReplyInput{}})
			refused(t, err, c.want)
			refused(t, w.ClearPolicy(t.Context(), p, desk.ID{}), c.want)
			_, err = w.SetAvailable(t.Context(), p, w.ada.ID, false)
			refused(t, err, c.want)

			contacts, _, err := w.Contacts(t.Context(), p, desk.ContactFilter{}, "", 10)
			if err != nil || len(contacts) != 1 || contacts[0].ID != stored.ID {
				t.Errorf("stored: %v, %v", contacts, err)
			}
			settings, err := w.store.Settings(t.Context(), p.Workspace())
			if err != nil || settings.Attributes["new"] != nil || settings.Policy(desk.ID{}) != nil || settings.Member(w.ada.ID).Away {
				t.Errorf("the attribute, the policy or the absence is stored, %v", err)
			}
			if snippets, err := w.store.Snippets(t.Context(), p.Workspace()); err != nil || len(snippets) > 0 {
				t.Errorf("the snippet is stored: %+v, %v", snippets, err)
			}
		})
	}
}

// A countingStore counts the conversations and events that its transactions write.
type countingStore struct {
	store.Store
	written int
}

func (s *countingStore) InTx(ctx context.Context, ws desk.ID, f func(store.Tx) error) error {
	return s.Store.InTx(ctx, ws, func(tx store.Tx) error { return f(countingTx{tx, s}) })
}

type countingTx struct {
	store.Tx
	s *countingStore
}

func (tx countingTx) PutConversation(list ...*desk.Conversation) error {
	tx.s.written += len(list)
	return tx.Tx.PutConversation(list...)
}

func (tx countingTx) Append(events ...desk.Event) error {
	tx.s.written += len(events)
	return tx.Tx.Append(events...)
}

// TestUnchangedIsNotWritten: a write of stored values writes no row and no event, and does not
// make all nodes read the settings again.
func TestUnchangedIsNotWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.writes(number, "Hi")
	w.store.once.Store(true) // otherwise each transaction runs twice and is counted twice
	store := &countingStore{Store: w.store}
	node := w.node(store, app.Bounds{})
	p := w.caller()
	for i, change := range []func() error{
		func() error { _, err := node.Assign(t.Context(), p, c.ID, "ada@example.com", nil); return err },
		func() error { _, err := node.SetStatus(t.Context(), p, c.ID, desk.StatusClosed, nil); return err },
		func() error { _, err := node.SetStatus(t.Context(), p, c.ID, desk.StatusOpen, nil); return err },
	} {
		for again, want := range []int{2, 0} {
			store.written = 0
			if err := change(); err != nil || store.written != want {
				t.Errorf("change %d, again %d: %d rows, %v; want %d", i, again, store.written, err, want)
			}
		}
	}

	version := func() int64 { return w.caller().Settings.Version }
	put := func(in desk.AttributeInput) func() error {
		return func() error { _, _, err := w.PutAttribute(t.Context(), p, in); return err }
	}
	for i, change := range []func() error{
		put(desk.AttributeInput{Key: "city", Type: text("text")}),
		put(desk.AttributeInput{Key: "city", Label: text("City")}),
		put(desk.AttributeInput{Key: "plans", Type: text("select"), Options: desk.Field[[]string]{Set: true, Value: []string{"a", "b"}}}),
		func() error { _, err := w.ArchiveAttribute(t.Context(), p, "city", true); return err },
		func() error { _, err := w.ArchiveAttribute(t.Context(), p, "city", false); return err },
	} {
		for again, want := range []int64{1, 0} {
			before := version()
			if err := change(); err != nil || !w.raised(before, want) {
				t.Errorf("attribute change %d, again %d: from version %d to %d, %v; want %d changes", i, again, before, version(), err, want)
			}
		}
	}
}
