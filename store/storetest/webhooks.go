package storetest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"

	"parley/app"
	"parley/desk"
)

// newWebhook is a notice that came as a webhook.
func newWebhook(channel desk.ID, at desk.Time) app.Notice {
	return app.Notice{Channel: channel, ID: newID(), Due: at, Webhook: at, Body: []byte("{\"a\": \"ü\"}\n\x00\xff")}
}

// putWebhook keeps the body of a notice that was taken in, and of whom it tells.
func putWebhook(t *testing.T, s app.Store, ws desk.ID, n app.Notice, people ...string) app.Notice {
	t.Helper()
	store(t, s, ws, func(tx app.Tx) error {
		return errors.Join(tx.PutWebhook(n), tx.PutWebhookPeople(n, people))
	})
	return n
}

// checkWebhooks looks which bodies are there.
func checkWebhooks(t *testing.T, s app.Store, ws desk.ID, kept bool, list ...app.Notice) {
	t.Helper()
	store(t, s, ws, func(tx app.Tx) error {
		for i, n := range list {
			body, err := tx.Webhook(n)
			if err != nil {
				return err
			}
			if (body != nil) != kept || kept && !bytes.Equal(body, n.Body) {
				t.Errorf("webhook %d, which is to be kept: %v, has a body of %d bytes (nil: %v), of %d", i, kept, len(body), body == nil, len(n.Body))
			}
		}
		return nil
	})
}

func checkNewest(t *testing.T, s app.Store, ws, channel desk.ID, want desk.Time) {
	t.Helper()
	at, err := s.NewestWebhook(t.Context(), ws, channel)
	must(t, err)
	equal(t, "newest webhook", at, want)
}

func webhookBodies(t *testing.T, s app.Store) {
	ws, _ := newWorkspace(t, s)
	channel := newID()
	checkNewest(t, s, ws, channel, 0)
	first, second, empty, large := newWebhook(channel, 10), newWebhook(channel, 10), newWebhook(newID(), 12), newWebhook(channel, 11)
	empty.Body = []byte{}
	large.Body = make([]byte, 1<<20)
	_, _ = rand.Read(large.Body)
	plain := app.Notice{Channel: channel, ID: newID(), Due: 13, Body: []byte("all of it"), Skip: 2}
	all := []app.Notice{first, second, empty, large}
	store(t, s, ws, func(tx app.Tx) error {
		for _, n := range all {
			if err := errors.Join(tx.PutWebhook(n), tx.PutNotice(n)); err != nil {
				return err
			}
			body, err := tx.Webhook(n)
			if err != nil || !bytes.Equal(body, n.Body) {
				t.Errorf("in its own transaction it has %d bytes of %d, %v", len(body), len(n.Body), err)
			}
		}
		return tx.PutNotice(plain)
	})
	checkWebhooks(t, s, ws, true, all...)
	another, elsewhen := first, first
	another.ID, elsewhen.Webhook = newID(), 11
	checkWebhooks(t, s, ws, false, another, elsewhen, plain)
	checkNewest(t, s, ws, channel, 11)
	checkNewest(t, s, ws, empty.Channel, 12)
	checkNewest(t, s, ws, newID(), 0)

	// Among the notices their bodies are not.
	bare := func(n app.Notice) app.Notice { n.Body = nil; return n }
	notices := func(want ...app.Notice) {
		t.Helper()
		got, _, err := s.Notices(t.Context(), ws, 99, 10)
		must(t, err)
		if len(got) != len(want) {
			t.Errorf("%d notices, want %d", len(got), len(want))
			return
		}
		for i, n := range got {
			if n.Webhook == 10 && n.ID != want[i].ID { // two are due at once
				want[i], want[1-i] = want[1-i], want[i]
			}
			equal(t, "notice", n, want[i])
		}
	}
	notices(bare(first), bare(second), bare(large), bare(empty), plain)

	// Of a part that was taken in, whoever takes the rest learns from the notice itself.
	rest := large
	rest.Skip = 70
	store(t, s, ws, func(tx app.Tx) error {
		taken, err := tx.TakeNotices([]app.Notice{large})
		equal(t, "taken", taken, []app.Notice{bare(large)})
		return errors.Join(err, tx.PutNotice(rest))
	})
	notices(bare(first), bare(second), bare(rest), bare(empty), plain)
	must(t, s.PutNotice(t.Context(), ws, plain))
	stale := plain
	stale.Skip, stale.Body = 0, nil
	store(t, s, ws, func(tx app.Tx) error {
		taken, err := tx.TakeNotices([]app.Notice{bare(large), stale})
		equal(t, "taken", taken, []app.Notice{bare(rest), plain})
		return err
	})
	checkWebhooks(t, s, ws, true, all...)

	first.Body, first.Channel = []byte("other"), empty.Channel
	store(t, s, ws, func(tx app.Tx) error { return tx.PutWebhook(first) }) // in the place of the first
	checkWebhooks(t, s, ws, true, first, second)
}

func deleteErasesWebhooks(t *testing.T, s app.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	op := upsert("a@example.com", "905321112233")
	op.Write.Identities = desk.Field[[]desk.Identity]{Set: true, Value: []desk.Identity{
		{Kind: desk.KindPhone, Value: "4930123456"}, {Kind: desk.KindWhatsApp, Value: "4915112345678"},
		{Kind: desk.KindWhatsAppUser, Value: "TR.12\"3"}, {Kind: "twitter", Value: "ada"},
	}}
	op.Write.Sent = append(op.Write.Sent, op.Write.Identities.Value...)
	const second = "12025550143"
	contact, friend := put(t, s, ws, op), put(t, s, ws, upsert("b@example.com", second))
	put(t, s, other, op)
	put(t, s, ws, upsert("c@example.com", "")) // whom no webhook can name
	channel := newID()
	with := func(ws desk.ID, people ...string) app.Notice {
		t.Helper()
		return putWebhook(t, s, ws, newWebhook(channel, now()), people...)
	}
	both := with(ws, second, "905321112233")
	gone := []app.Notice{
		both, with(ws, "905321112233"), with(ws, "4930123456"), with(ws, "4915112345678", "4915112345678"), with(ws, "TR.12\"3", "x"),
		with(ws, "905321112233", "4915112345678", "TR.12\"3"),
	}
	kept := []app.Notice{with(ws), with(ws, "ada"), with(ws, "a@example.com", "90532111223", "9053211122330", ""), with(ws, "905329999999")}
	friends, foreign := with(ws, second), with(other, "905321112233")

	// One that nobody has taken in yet, and one that was taken in and has a namesake which was not.
	pending, taken := with(ws, "905321112233"), with(ws, "905321112233")
	namesake := taken
	namesake.Webhook++
	for _, n := range []app.Notice{pending, namesake} {
		n.Due = now() // put off
		must(t, s.PutNotice(t.Context(), ws, n))
	}
	plain := with(ws, "905321112233")
	must(t, s.PutNotice(t.Context(), ws, app.Notice{Channel: channel, ID: plain.ID, Due: plain.Due, Body: []byte("x")}))
	gone = append(gone, taken, plain)

	// Whom a webhook tells of may be said again.
	store(t, s, ws, func(tx app.Tx) error {
		return errors.Join(tx.PutWebhookPeople(both, []string{second, "905321112233"}), tx.PutWebhookPeople(both, nil))
	})
	put(t, s, ws, patch(contact.ID, desk.ContactWrite{Name: text("A")})) // erases nothing
	checkWebhooks(t, s, ws, true, append(gone, kept...)...)
	put(t, s, ws, remove(contact.ID))
	checkWebhooks(t, s, ws, false, gone...)
	checkWebhooks(t, s, ws, true, append(kept, friends, pending)...)
	checkWebhooks(t, s, other, true, foreign)

	// With a webhook goes of whom it told: one in its place tells of nobody. And of one that
	// is gone, nothing is said any more.
	putWebhook(t, s, ws, both)
	lost := newWebhook(channel, now())
	store(t, s, ws, func(tx app.Tx) error { return tx.PutWebhookPeople(lost, []string{second}) })
	putWebhook(t, s, ws, lost)
	store(t, s, ws, func(tx app.Tx) error { // deleted inside a transaction of the caller's, it is the same
		op := remove(friend.ID)
		book, err := tx.Book(op)
		if err != nil {
			return err
		}
		if _, err := book.Apply(op, desk.ID{}, now(), newID); err != nil {
			return err
		}
		return tx.Flush(book)
	})
	checkWebhooks(t, s, ws, false, friends)
	checkWebhooks(t, s, ws, true, append(kept, pending, both, lost)...)
}

func webhooksAreForgotten(t *testing.T, s app.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	contact := put(t, s, ws, upsert("", "905321112233"))
	channel := newID()
	var list []app.Notice
	for _, at := range []desk.Time{30, 10, 50, 20, 40} {
		list = append(list, putWebhook(t, s, ws, newWebhook(channel, at), "905321112233", "1"))
	}
	thirty, ten, fifty, twenty, forty := list[0], list[1], list[2], list[3], list[4]
	foreign := putWebhook(t, s, other, newWebhook(channel, 10), "1")
	forget := func(ws desk.ID, before desk.Time, limit, want int) {
		t.Helper()
		n, err := s.ForgetWebhooks(t.Context(), ws, before, limit)
		must(t, err)
		equal(t, "webhooks that were forgotten", n, want)
	}
	forget(ws, 10, 10, 0)
	forget(ws, 50, 2, 2)
	checkWebhooks(t, s, ws, false, ten, twenty)
	checkWebhooks(t, s, ws, true, thirty, forty, fifty)
	forget(ws, 50, 3, 2)
	forget(ws, 50, 3, 0)
	checkWebhooks(t, s, ws, false, thirty, forty)
	checkWebhooks(t, s, ws, true, fifty)
	checkWebhooks(t, s, other, true, foreign)
	checkNewest(t, s, ws, channel, 50)

	// Nor is it known any more of whom they told.
	putWebhook(t, s, ws, ten)
	put(t, s, ws, remove(contact.ID))
	checkWebhooks(t, s, ws, true, ten)
	checkWebhooks(t, s, ws, false, fifty)
	forget(ws, 11, 1, 1)
	checkNewest(t, s, ws, channel, 0)
	forget(other, 99, 10, 1)
	checkWebhooks(t, s, other, false, foreign)
}

// webhooksAreSealed: two workspaces have the same webhook of the same people.
func webhooksAreSealed(t *testing.T, s app.Store) {
	one, _ := newWorkspace(t, s)
	two, _ := newWorkspace(t, s)
	inOne := newWebhook(newID(), 10)
	inTwo := inOne
	inTwo.Body, inTwo.Skip = []byte("two"), 5
	contacts := map[desk.ID]*desk.Contact{}
	for _, ws := range []desk.ID{one, two} {
		contacts[ws] = put(t, s, ws, upsert("", "905321112233"))
	}
	putWebhook(t, s, one, inOne, "905321112233")
	checkWebhooks(t, s, two, false, inOne)
	checkNewest(t, s, two, inOne.Channel, 0)
	store(t, s, two, func(tx app.Tx) error { return tx.PutWebhookPeople(inOne, []string{"905321112233"}) }) // it is not theirs
	putWebhook(t, s, two, inTwo, "905321112233")
	checkWebhooks(t, s, one, true, inOne)
	checkWebhooks(t, s, two, true, inTwo)

	must(t, s.PutNotice(t.Context(), two, inTwo)) // protects only what is there
	put(t, s, one, remove(contacts[one].ID))
	checkWebhooks(t, s, one, false, inOne)
	checkWebhooks(t, s, two, true, inTwo)
	list, _, err := s.Notices(t.Context(), one, 99, 10)
	must(t, err)
	equal(t, "notices of one", list, []app.Notice(nil))
	store(t, s, one, func(tx app.Tx) error {
		taken, err := tx.TakeNotices([]app.Notice{inTwo})
		equal(t, "taken from two", taken, []app.Notice(nil))
		return err
	})
	n, err := s.ForgetWebhooks(t.Context(), one, 99, 10)
	must(t, err)
	equal(t, "forgotten in one", n, 0)
	checkWebhooks(t, s, two, true, inTwo)
}
