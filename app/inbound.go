package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// TakeInbound processes the next due inbound items of a workspace in short
// transactions, and schedules the next check. It stops soon after the context ends; the
// rest stays stored.
func (a *App) TakeInbound(ctx context.Context, ws desk.ID) error {
	next, err := a.takeInbound(ctx, ws)
	if err != nil {
		next = time.Second // the database is away
	}
	if next >= 0 {
		a.inboundDue.after(ws, next)
	}
	return err
}

// takeInbound processes up to inboundGroup due items of a workspace, and returns how
// long to wait for the next one, less than 0 for none.
func (a *App) takeInbound(ctx context.Context, ws desk.ID) (next time.Duration, err error) {
	list, next, err := a.store.InboundItems(ctx, ws, longestWait, inboundGroup)
	if err != nil || len(list) == 0 {
		return next, err
	}
	due := len(list)
	if list, err = a.readCallbacks(ctx, ws, list); err != nil {
		return 0, err
	}
	taken, rest, err := a.takeGroup(store.Patiently(ctx), ws, list, updatesAtOnce)
	switch {
	case err == nil && taken == 0: // other processes took them
		return 100 * time.Millisecond, nil
	case err == nil && taken == due && !rest: // what came meanwhile is noted
		return next, nil
	case err == nil || desk.IsType(err, desk.Unavailable):
		return 0, err // there may be more
	}
	for i, n := range list { // One bad item must not block the rest, so each is tried alone.
		if ctx.Err() != nil {
			break
		}
		err = a.takeAlone(ctx, ws, list[i:i+1])
		if err != nil && !desk.IsType(err, desk.Unavailable) {
			err = a.passOver(ctx, ws, n, err)
		}
		if err != nil {
			break
		}
	}
	return 0, err
}

// takeAlone processes one item in a transaction of its own. If that fails and the item
// is a callback, it processes only the next update, so that a bad update fails alone.
func (a *App) takeAlone(ctx context.Context, ws desk.ID, one []desk.InboundItem) error {
	_, _, err := a.takeGroup(ctx, ws, one, updatesAtOnce)
	if err != nil && one[0].ReceivedAt != 0 && !desk.IsType(err, desk.Unavailable) {
		_, _, err = a.takeGroup(ctx, ws, one, 1)
	}
	return err
}

// A partError is why one update could not be processed.
type partError struct{ error }

func (e *partError) Unwrap() error { return e.error }

// passOver postpones an item that can't be processed. If one update of a callback is
// the cause, that update is skipped instead; the body is kept for days.
func (a *App) passOver(ctx context.Context, ws desk.ID, n desk.InboundItem, why error) error {
	return a.inTx(ctx, ws, func(tx store.Tx, then *afterwards) error {
		taken, err := tx.TakeInbound([]desk.InboundItem{n})
		if err != nil || len(taken) == 0 {
			return err // another process goes on with it
		}
		later := taken[0]
		var part *partError
		if n.ReceivedAt == 0 || !errors.As(why, &part) {
			later.Due = tx.Now() + desk.Time(postponed.Milliseconds())
			*then = append(*then, func() {
				a.log.ErrorContext(ctx, "an inbound item can't be processed; it will be tried again in an hour", "workspace_id", ws, "inbound_item_id", n.ID, "err", why)
			})
		} else if later.Skip == n.Skip {
			later.Skip++
			*then = append(*then, func() {
				a.log.ErrorContext(ctx, "a part of a callback can't be processed; it is skipped", "workspace_id", ws, "channel_id", n.Channel, "callback_id", n.ID, "part", n.Skip, "err", why)
			})
		}
		return tx.PutInbound(later)
	})
}

// updatesAtOnce is how many updates of a callback share a transaction. A callback may
// have a thousand, and requests wait for the transaction.
const updatesAtOnce = 50

// takeGroup handles the items that no other process has taken, up to a number of updates. It
// returns the number of items, and whether a rest of them stays stored.
func (a *App) takeGroup(ctx context.Context, ws desk.ID, list []desk.InboundItem, atOnce int) (taken int, rest bool, err error) {
	err = a.inTx(ctx, ws, func(tx store.Tx, then *afterwards) error {
		if err := lockAssignment(tx); err != nil {
			return err
		}
		ours, err := tx.TakeInbound(list)
		taken, rest = len(ours), false
		var ended []endedCallback
		for left := atOnce; err == nil && len(ours) > 0; ours = ours[1:] {
			if left <= 0 {
				rest, err = true, tx.PutInbound(ours[0])
				continue
			}
			var n int
			n, err = a.takeItem(ctx, tx, ours[0], left, &ended, then)
			left -= n
		}
		if err != nil {
			return err
		}
		return keepBodies(tx, ended)
	})
	return taken, rest, err
}

// takeItem processes an item, or the next updates of a callback. It returns how many
// updates it has processed. A panic while it reads the item becomes an error; otherwise it
// would end the process at every try.
func (a *App) takeItem(ctx context.Context, tx store.Tx, n desk.InboundItem, atOnce int, ended *[]endedCallback, then *afterwards) (taken int, err error) {
	defer steps.Caught("inbound item", &err)
	channel := tx.Settings().Channel(n.Channel)
	if channel == nil {
		return 0, nil // channels are never removed
	}
	var told []provider.Update
	var rest *desk.InboundItem
	var wait time.Duration
	var last *lastPart
	if n.ReceivedAt != 0 {
		told, rest, last, err = a.nextPart(tx, channel, n, atOnce)
	} else {
		var later *provider.Later
		if told, later, err = a.providers[channel.Kind].Read(n); later != nil {
			next := itemOf(*later, n.Channel, n.ID, min(n.Due, tx.Now()))
			rest, wait = &next, later.Wait
		}
	}
	if n.ReceivedAt != 0 && rest == nil {
		*then = append(*then, func() { a.readings.Drop(n.ID) })
	}
	var unread *unreadableError
	switch {
	case n.ReceivedAt != 0 && err != nil && !errors.As(err, &unread):
		return 0, err
	case err != nil:
		if n.ReceivedAt != 0 { // nobody knows whom the body names, so no erasure would delete it
			if err := tx.EraseCallback(n); err != nil {
				return 0, err
			}
		}
		unreadable := err // the result is nil by the time this is logged
		*then = append(*then, func() {
			a.log.ErrorContext(ctx, "an inbound item can't be read; it is dropped", "channel_id", n.Channel, "inbound_item_id", n.ID, "err", unreadable)
		})
		return 0, nil
	}
	dropped := false
	var contact *desk.Contact // of the last update, if it is a new message
	for _, h := range told {
		var nothing bool
		if contact, nothing, err = a.takeUpdate(ctx, tx, channel, h, then); err != nil {
			return 0, err
		}
		dropped = dropped || nothing
	}
	switch {
	case rest != nil:
		ws := tx.Settings().ID
		*then = append(*then, func() { a.inboundDue.after(ws, wait) })
		err = tx.PutInbound(*rest)
	case n.ReceivedAt != 0:
		if !dropped {
			dropped, err = a.toldAgain(tx, channel, last.before)
		}
		switch {
		case err != nil:
		case dropped:
			err = tx.EraseCallback(n)
		default:
			*ended = append(*ended, endedCallback{n, last.people, contact})
		}
	}
	return len(told), err
}

// toldAgain reports whether a callback has updates about a message of a deleted person. It
// checks only the updates that were processed in earlier transactions.
func (a *App) toldAgain(tx store.Tx, own *desk.Channel, before []provider.Update) (bool, error) {
	var list []desk.MessageRef
	for _, h := range before {
		id := h.Names()
		if channel := a.concerned(tx.Settings(), own, h); channel != nil && id != "" {
			list = append(list, desk.MessageRef{Channel: channel.ID, ExternalID: id})
		}
	}
	if list == nil {
		return false, nil
	}
	return tx.AnyErased(list)
}

// An unreadableError means that a callback's body has an unknown form.
type unreadableError struct{ error }

// maxReading is how many bytes of bodies are read before their content is processed.
const maxReading = 1 << 20

// readCallbacks reads the bodies of callbacks among the items before the transaction
// that processes them, because others wait for the transaction. It returns the first
// items, up to one with a long body.
func (a *App) readCallbacks(ctx context.Context, ws desk.ID, list []desk.InboundItem) ([]desk.InboundItem, error) {
	unread := func(n desk.InboundItem) bool { return n.ReceivedAt != 0 && a.readings.Get(n.ID) == nil }
	if !slices.ContainsFunc(list, unread) {
		return list, nil
	}
	var s *desk.Settings
	var bytes, fetched int
	err := a.store.InTx(store.Patiently(ctx), ws, func(tx store.Tx) (err error) {
		s = tx.Settings()
		for bytes, fetched = 0, 0; err == nil && fetched < len(list) && bytes <= maxReading; fetched++ {
			if n := &list[fetched]; unread(*n) {
				n.Body, err = tx.Callback(*n)
				bytes += len(n.Body)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, n := range list[:fetched] {
		if channel := s.Channel(n.Channel); channel != nil && unread(n) {
			_, _ = a.read(channel.Kind, n) // otherwise the transaction meets the bug, and postpones the item
		}
	}
	return list[:fetched], nil
}

// A lastPart has the data that is needed at the end of a callback: the updates before the
// last part, and the people whom the callback names.
type lastPart struct {
	before []provider.Update
	people []desk.Identity
}

// nextPart returns the next updates of a callback. If more updates follow, rest is the item
// for them. Otherwise rest is nil, and last has the data for the end of the callback.
func (a *App) nextPart(tx store.Tx, channel *desk.Channel, n desk.InboundItem, atOnce int) (told []provider.Update, rest *desk.InboundItem, last *lastPart, err error) {
	one := a.readings.Get(n.ID)
	if one == nil {
		if n.Body, err = tx.Callback(n); err != nil {
			return nil, nil, nil, err
		}
		if one, err = a.read(channel.Kind, n); err != nil {
			return nil, nil, nil, err
		}
	}
	if one.Err != nil {
		return nil, nil, nil, &unreadableError{one.Err}
	}
	if rest, err := one.InOrder(tx, n); rest != nil || err != nil {
		return nil, rest, nil, err
	}
	later := n
	later.Body, later.Skip = nil, n.Skip+atOnce
	if later.Skip < len(one.Told) {
		return one.Told[n.Skip:later.Skip], &later, nil, nil
	}
	begun := min(n.Skip, len(one.Told))
	return one.Told[begun:], nil, &lastPart{one.Told[:begun], one.People}, nil
}

// maxPeople is the greatest number of people in a callback whose body is kept.
const maxPeople = 2500

// An endedCallback is a callback that was processed to its end, with the people whom it names.
type endedCallback struct {
	item    desk.InboundItem
	people  []desk.Identity
	contact *desk.Contact // somebody whom this transaction has just read, or nil
}

// others lists the people of the callback who are not the contact: mostly nobody, and then
// no look-up is needed.
func (c *endedCallback) others() (list []desk.Identity) {
	var held []desk.Claim
	if c.contact != nil {
		held = c.contact.Claims()
	}
	for _, i := range c.people {
		if !slices.Contains(held, i.Claim()) {
			list = append(list, i)
		}
	}
	return list
}

// keepBodies keeps the bodies of processed callbacks, each until any of the people whom it names
// is erased. If one of them is not a contact, no erasure would ever delete this body, so only
// its time is kept. A body that names more people than a real callback does is not kept
// either, because looking them up would take too long.
func keepBodies(tx store.Tx, list []endedCallback) (err error) {
	defer steps.Caught("inbound item", &err)
	var others []desk.Identity
	for _, c := range list {
		if len(c.people) <= maxPeople {
			others = append(others, c.others()...)
		}
	}
	if len(others) > maxPeople { // of several callbacks
		if err := keepBodies(tx, list[:len(list)/2]); err != nil {
			return err
		}
		return keepBodies(tx, list[len(list)/2:])
	}
	var book *desk.Book
	if others != nil {
		if book, err = tx.Book(desk.Lookup{Identities: others}); err != nil {
			return err
		}
	}
	for _, c := range list {
		if err := keepBody(tx, book, &c); err != nil {
			return err
		}
	}
	return nil
}

// keepBody keeps one body. The book has the people other than the callback's contact.
func keepBody(tx store.Tx, book *desk.Book, c *endedCallback) error {
	if len(c.people) > maxPeople || slices.ContainsFunc(c.others(), book.Free) {
		c.item.Body = nil
		return tx.PutCallback(c.item)
	}
	var claims []string
	for _, i := range c.people {
		claims = append(claims, i.Claim().Value)
	}
	return tx.PutCallbackPeople(c.item, claims)
}

// takeUpdate processes one update. It reports whether the update was dropped, so that
// nothing of it is stored, and returns the contact of a new message. The update may concern
// another channel, because several numbers share a callback URL. The error of takeUpdate is
// a partError.
func (a *App) takeUpdate(ctx context.Context, tx store.Tx, own *desk.Channel, h provider.Update, then *afterwards) (contact *desk.Contact, dropped bool, err error) {
	defer func() {
		if err != nil {
			err = &partError{err}
		}
	}()
	defer steps.Caught("inbound item", &err)
	channel := a.concerned(tx.Settings(), own, h)
	if channel == nil {
		return nil, false, nil // a number that this workspace has not connected
	}
	ws := tx.Settings().ID
	switch {
	case h.Template != nil:
		*then = append(*then, func() { a.updateTemplate(ctx, ws, channel.Kind, h.Business, *h.Template) })
		return nil, false, nil
	case h.Account != nil:
		*then = append(*then, func() { a.setAccountStatus(ctx, ws, channel.Kind, h.Business, *h.Account) })
		return nil, false, nil
	case h.Choice != nil:
		return nil, false, a.recordChoice(tx, a.person(tx, channel.ID, h.Choice.Number, h.Choice.UserID), h.Choice.Change, h.Choice.At, true, byProvider(channel.ID))
	case h.Move != nil:
		return nil, false, a.move(tx, channel.ID, h.Move)
	}
	if h.Status != nil {
		dropped, err = a.takeStatus(ctx, tx, channel.ID, *h.Status, then)
		return nil, dropped, err
	}
	if h.Message != nil {
		c, contact, err := a.receive(tx, channel.ID, *h.Message)
		return contact, c == nil, err
	}
	return nil, false, nil
}

// concerned returns the channel that an update is about. If the update is about a business
// account, it returns one of the account's channels. It returns nil if the workspace has no
// such channel. Only channels with the same app secret count: another app may not report
// about them.
func (a *App) concerned(s *desk.Settings, own *desk.Channel, h provider.Update) *desk.Channel {
	if h.Channel == own.ExternalID || h.Channel == "" && (h.Business == "" || h.Business == own.Account.BusinessID) {
		return own
	}
	mine, err := a.access(s.ID, own)
	for _, c := range s.Channels() {
		if c.Kind != own.Kind || c.ExternalID != h.Channel && (h.Channel != "" || c.Account.BusinessID != h.Business) {
			continue
		}
		if at, other := a.access(s.ID, c); err == nil && other == nil && at.Secrets.SameApp(mine.Secrets) {
			return c
		}
	}
	return nil
}

// takeStatus moves a message forward, and reports whether the status was dropped. A status
// with the id of an unsettled attempt proves that the provider accepted the message, and
// finishes the attempt. A status of an unknown message is kept for a day, because the
// message may come later. Two statuses are not kept: the message of an attempt is stored
// with the attempt or never, and the message of a deleted person does not come back.
func (a *App) takeStatus(ctx context.Context, tx store.Tx, channel desk.ID, n desk.StatusUpdate, then *afterwards) (dropped bool, err error) {
	m, err := tx.MessageBy(channel, n.ExternalID)
	if err != nil {
		return false, err
	}
	if m == nil && !n.Attempt.IsZero() { // perhaps the first report that it was accepted
		at, err := tx.Attempt(n.Attempt)
		if err != nil {
			return false, err
		}
		if at != nil && at.Plan.Channel == channel {
			if err := a.accept(ctx, tx, at, a.person(tx, channel, "", n.UserID), n.ExternalID, at.CreatedAt, a.now(), then); err != nil {
				return false, err
			}
			if at.Erased {
				return true, nil
			}
			if m, err = tx.MessageBy(channel, n.ExternalID); err != nil {
				return false, err
			}
		}
	}
	if m != nil {
		return false, a.moveForward(tx, m, n)
	}
	dropped, err = tx.AnyErased([]desk.MessageRef{{Channel: channel, ExternalID: n.ExternalID}})
	if dropped || err != nil || !n.Attempt.IsZero() {
		return dropped, err
	}
	return false, tx.KeepStatus(channel, n)
}

// moveForward moves a stored message forward to a status.
func (a *App) moveForward(tx store.Tx, m *desk.Message, n desk.StatusUpdate) error {
	// Do this first, so that the contact's event comes before that of the message.
	if err := a.rememberRecipient(tx, m, n.UserID); err != nil || m.Direction != desk.Outbound {
		return err
	}
	was := m.IsAnswer()
	events := a.reach(m, n)
	if events == nil {
		return nil
	}
	if err := tx.PutMessageDelivery(m); err != nil {
		return err
	}
	if m.IsAnswer() != was {
		if err := failedOrNot(tx, m); err != nil {
			return err
		}
	}
	if err := a.failedBy(tx, m); err != nil {
		return err
	}
	return tx.Append(events...)
}

// InboundDue returns the workspaces with inbound items that are due, and how long to
// wait for the next one. It returns each workspace once, until a check of it is
// scheduled again.
func (a *App) InboundDue() (list []desk.ID, next time.Duration) {
	return a.inboundDue.take()
}

// InboundNoted returns a channel that has an element if InboundDue may return more than
// before.
func (a *App) InboundNoted() <-chan struct{} { return a.inboundDue.changed }

// LookForInbound adds the inbound items that other processes have stored to inboundDue.
func (a *App) LookForInbound(ctx context.Context) error {
	due, err := a.store.InboundDue(ctx, longestWait)
	for ws, wait := range due {
		a.inboundDue.after(ws, wait)
	}
	return err
}
