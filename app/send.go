package app

import (
	"context"
	"errors"
	"time"

	"parley/app/holds"
	"parley/app/steps"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// Send sends a template message once for each Idempotency-Key, even if the call is
// repeated at any time in any process. request is the HTTP request's id. The refusals
// are those of contract §5; only a definite refusal frees the key. It runs to its end
// even if the caller leaves.
//
// The steps: First everything is checked, and nothing is stored. Then the provider gets the
// file in the template's title, if there is one. Then the send waits for the provider's
// limits. The attempt takes the key with the whole plan, durably, before
// the first byte is sent. The provider is called outside of any transaction. Its answer
// is stored, in one transaction with all its consequences. If the process dies in
// between, the attempt is never sent again: it is in doubt until a status, or a person,
// settles it.
func (a *App) Send(ctx context.Context, p desk.Principal, r *desk.SendRequest, request desk.ID) (SendAnswer, error) {
	for again := 0; ; again++ {
		answer, err := a.once(ctx, p, r.Key, r.Hash, func() (*desk.Attempt, *outgoing, error) {
			plan, handed, err := a.prepare(ctx, p, r, request)
			if handed { // that may have taken a minute, in which the person may have opted out
				if p, err = a.afresh(ctx, p); err == nil {
					plan, _, err = a.prepare(ctx, p, r, request)
				}
			}
			if err != nil {
				return nil, nil, err
			}
			return plan.attempt, plan.dispatch, nil
		})
		switch {
		case errors.Is(err, errTemplatesMoved) && again < plansAgain:
			if p, err = a.afresh(ctx, p); err != nil {
				return SendAnswer{}, err
			}
		case !errors.Is(err, errContactGone):
			a.Conflicts.Note(p.Workspace(), p.Actor, err)
			return answer, err
		}
	}
}

// prepare plans a send and gives its file, if it has one, to the provider. handed tells that the
// provider did not have it before.
func (a *App) prepare(ctx context.Context, p desk.Principal, r *desk.SendRequest, request desk.ID) (plan *plannedSend, handed bool, err error) {
	if plan, err = a.plan(ctx, p, r, request); err == nil && plan.file != nil {
		handed, err = a.attach(ctx, plan.dispatch, plan.file)
	}
	return plan, handed && err == nil, err
}

// afresh returns the principal with the settings as they are now, if it may still send.
func (a *App) afresh(ctx context.Context, p desk.Principal) (desk.Principal, error) {
	settings, err := a.store.Settings(ctx, p.Workspace())
	if err == nil {
		err = p.Still(settings, desk.MessagesSend, a.now())
	}
	if err != nil {
		return p, err
	}
	return p.In(settings), nil
}

// errTemplatesMoved means that the templates have changed after a send was planned whose
// template needs a file or links. While the provider gets a large file, that takes a
// while. The send is then planned again, because its template may need something else now.
var errTemplatesMoved = desk.Errorf(desk.Unavailable, "the templates have changed while this send was prepared, so nothing was sent: try again")

// errContactGone means that a send's contact was deleted after the send was planned. The
// send is then planned again without this contact. It gets a new contact for the number, or
// fails if the request names the contact by its id.
var errContactGone = errors.New("the contact was deleted since the send was planned")

// once calls plan and sends its message. If an attempt holds the key already, it answers
// from this attempt instead.
func (a *App) once(ctx context.Context, p desk.Principal, key string, hash [32]byte, plan func() (*desk.Attempt, *outgoing, error)) (answer SendAnswer, err error) {
	late := time.NewTimer(a.bounds.Wait)
	defer late.Stop()
	var hold *holds.Hold
	leave := func(err error) {
		if hold != nil {
			hold.Leave(err)
			hold = nil
		}
	}
	defer func() { leave(err) }()
	for entered := false; !entered; { // the look comes last: whoever left before it has stored the attempt
		if hold, err = a.holds.Enter(ctx, p.Workspace(), key, hash, late.C, a.drained); err != nil {
			return SendAnswer{}, err
		}
		entered = hold != nil
		held, err := a.store.AttemptOfKey(ctx, p.Workspace(), key)
		if err != nil {
			return SendAnswer{}, err
		}
		if held != nil && !held.Expired() {
			leave(nil) // the answer may take a while
			return a.again(ctx, p, held, hash, late.C)
		}
	}
	hold.Plan()
	at, d, err := plan()
	if err != nil {
		return SendAnswer{}, err
	}
	f := a.flights.begin(at.ID)
	f.answer, f.err = a.fly(ctx, p, at, d, leave)
	a.flights.end(at.ID)
	var taken *keyTaken
	if errors.As(f.err, &taken) {
		return a.again(ctx, p, taken.by, hash, late.C)
	}
	return f.answer, f.err
}

// TrySend is Send as a dry run (contract-data §1). It checks everything up to the provider.
// It returns the answer that a send would store, without the ids and times that are not
// stored yet.
func (a *App) TrySend(ctx context.Context, p desk.Principal, r *desk.SendRequest) ([]byte, error) {
	plan, err := a.plan(ctx, p, r, desk.ID{})
	if err != nil {
		return nil, err
	}
	at, contact := plan.attempt, plan.contact
	var open *desk.Conversation
	if at.Plan.Known {
		if open, err = store.OpenConversation(ctx, a.store, p.Workspace(), at.Plan.Channel, contact.ID); err != nil {
			return nil, err
		}
		if open == nil {
			if open, err = a.wouldWake(ctx, p.Workspace(), at.Plan.Channel, contact.ID); err != nil {
				return nil, err
			}
		}
	}
	m := thread(p.Settings, at, contact, open, "", at.CreatedAt)
	m.Conversation.LastMessageAt = 0
	if open != nil {
		m.Conversation.LastMessageAt = open.LastMessageAt
	} else {
		m.Conversation.ID, m.Conversation.CreatedAt = desk.ID{}, 0
	}
	if !at.Plan.Known {
		m.Conversation.ContactID = desk.ID{}
	}
	m.Message = desk.Message{Text: m.Message.Text}
	return a.answer(m), nil
}

// Repeat answers a call from the attempt that holds its key, if there is one and the
// body is the same. It is for bodies that can no longer be read as before. For example,
// after the workspace's country has changed, a number without prefix is invalid or
// another number, but the repeated call must still not be sent again.
func (a *App) Repeat(ctx context.Context, p desk.Principal, key string, hash [32]byte) (answer SendAnswer, known bool, err error) {
	held, err := a.store.AttemptOfKey(ctx, p.Workspace(), key)
	if err != nil || held == nil || held.Expired() || held.Hash != hash {
		return SendAnswer{}, false, err
	}
	late := time.NewTimer(a.bounds.Wait)
	defer late.Stop()
	answer, err = a.again(ctx, p, held, hash, late.C)
	return answer, true, err
}

// Tried tells whether a call with the key was sent, or may have been, whatever its body.
func (a *App) Tried(ctx context.Context, p desk.Principal, key string) (bool, error) {
	held, err := a.store.AttemptOfKey(ctx, p.Workspace(), key)
	return held != nil && !held.Expired() && held.Phase != desk.Refused, err
}

// fly stores that an attempt holds its key, sends the message, and returns the answer. It
// calls leave once the hold is stored, or with the error if it is not.
func (a *App) fly(ctx context.Context, p desk.Principal, at *desk.Attempt, d *outgoing, leave func(error)) (SendAnswer, error) {
	if err := a.pace(ctx, d); err != nil {
		// Another process may hold the key already and have an answer.
		held, lookErr := a.store.AttemptOfKey(ctx, p.Workspace(), at.Key)
		if lookErr == nil && held != nil && !held.Expired() {
			err = &keyTaken{held}
		}
		leave(err)
		return SendAnswer{}, err
	}
	err := a.hold(ctx, p, at, d)
	leave(err)
	if err != nil {
		return SendAnswer{}, err
	}
	return a.dispatch(context.WithoutCancel(ctx), p.Workspace(), at, d)
}

// A keyTaken means that another attempt holds the key.
type keyTaken struct{ by *desk.Attempt }

func (*keyTaken) Error() string { return "another attempt holds the key" }

// hold makes the attempt the holder of its key, durably, or returns keyTaken.
func (a *App) hold(ctx context.Context, p desk.Principal, at *desk.Attempt, d *outgoing) error {
	ws := p.Workspace()
	err := a.store.InTx(ctx, ws, func(tx store.Tx) error {
		if p.Stale(tx.Settings()) {
			return ErrStale
		}
		if err := p.Still(tx.Settings(), desk.MessagesSend, a.now()); err != nil {
			return err
		}
		// A later deletion of the contact waits for this transaction, and so finds the attempt.
		kept := at.Plan.Known && at.Plan.Reply == nil
		var there map[desk.ID]bool
		if kept {
			var err error
			if there, err = tx.KeepContactsNext([]desk.ID{at.Plan.Contact}); err != nil {
				return err
			}
		}
		held, err := tx.AttemptOfKey(at.Key)
		if err != nil {
			return err
		}
		if held != nil {
			if !held.Expired() {
				return &keyTaken{held}
			}
			if err := tx.FreeKey(at.Key); err != nil {
				return err
			}
		}
		if at.Plan.Reply != nil {
			if err := a.mayStillReply(tx, at, d); err != nil {
				// While this transaction waited for the conversation, another process may have taken
				// the key. Then the conversation has changed because of this same reply.
				if held, heldErr := tx.AttemptOfKey(at.Key); heldErr == nil && held != nil && !held.Expired() {
					return &keyTaken{held}
				}
				return err
			}
		} else if kept && !there[at.Plan.Contact] {
			return errContactGone
		}
		if at.Plan.Reply == nil {
			if c := tx.Settings().Channel(at.Plan.Channel); d.library != 0 && c.Library != d.library {
				return errTemplatesMoved
			}
			if err := stillHasFile(tx, &at.Plan); err != nil {
				return err
			}
		}
		return a.claim(tx, at, d)
	})
	if errors.Is(err, store.ErrCommitLost) {
		return a.claimLost(ctx, ws, at)
	}
	return err
}

// claim stores the attempt and takes its key. Until d.By the message may be sent.
func (a *App) claim(tx store.Tx, at *desk.Attempt, d *outgoing) error {
	d.By = a.clock().Add(a.bounds.FirstByte)
	at.Lease = desk.LeaseFor(tx.Now(), a.bounds.lease())
	if err := tx.PutAttempt(at); err != nil {
		return err
	}
	return tx.TakeKey(at.Key, at.ID)
}

// claimLost returns nil if a claim is stored, though the answer to its commit was lost.
// Otherwise nothing is sent. The lost commit may still succeed, and would then hold the key
// without a send: so the claim is given up.
func (a *App) claimLost(ctx context.Context, ws desk.ID, at *desk.Attempt) error {
	if stored, err := a.store.Attempt(ctx, ws, at.ID); err == nil && stored != nil {
		return nil
	}
	giveUp := func(ctx context.Context) error { return a.giveUp(ctx, ws, at) }
	if giveUp(ctx) != nil {
		a.retry(ws, at, giveUp)
	}
	return provider.NotSent().Answer()
}

// dispatch calls the provider and stores the outcome. It returns ErrNoWorkspace if the
// workspace was deleted meanwhile: the attempt went with it.
func (a *App) dispatch(ctx context.Context, ws desk.ID, at *desk.Attempt, d *outgoing) (SendAnswer, error) {
	receipt, err := a.callProvider(ctx, d)
	a.Metrics.sends.count(err)
	if err == nil {
		defer a.accountAnswered(ctx, ws, d.Channel, nil) // after the send is settled
		stored, err := a.accepted(ctx, ws, at, receipt)
		if errors.Is(err, store.ErrNoWorkspace) {
			return SendAnswer{}, err
		}
		if err != nil {
			a.log.WarnContext(ctx, "a message was sent, but storing it failed; it will be stored again later",
				"attempt_id", at.ID, "request_id", at.Plan.OptIn.Request, "err", err)
			a.retry(ws, at, func(ctx context.Context) error {
				_, err := a.accepted(ctx, ws, at, receipt)
				return err
			})
		}
		return doneOr(stored, outcomeUnknown(at.ID))
	}
	var refusal *desk.Refusal
	if errors.As(err, &refusal) {
		if refusal.StaleMedia {
			a.dropRef(ctx, ws, at.Plan.File(), d.Channel.ID)
		}
		if refusal.Type == desk.WindowClosed {
			refusal.At = at.CreatedAt
		}
		if refusal.StaleTemplate {
			a.libraries.stale.add(d.Channel.ID)
		}
		if refusal.Account != nil {
			defer a.accountAnswered(ctx, ws, d.Channel, refusal.Account)
		}
		stored, err := a.refuse(ctx, ws, at.ID, refusal)
		if errors.Is(err, store.ErrNoWorkspace) {
			return SendAnswer{}, err
		}
		if err != nil {
			a.retry(ws, at, func(ctx context.Context) error {
				_, err := a.refuse(ctx, ws, at.ID, refusal)
				return err
			})
		}
		return doneOr(stored, refusal.Answer())
	}
	a.log.WarnContext(ctx, "the outcome of a send is unknown", "attempt_id", at.ID, "request_id", at.Plan.OptIn.Request, "err", err)
	stored, err := a.doubt(ctx, ws, at.ID, false)
	if errors.Is(err, store.ErrNoWorkspace) {
		return SendAnswer{}, err
	}
	if err != nil {
		a.log.WarnContext(ctx, "marking a send as in doubt failed; the sweeper will do it",
			"attempt_id", at.ID, "request_id", at.Plan.OptIn.Request, "err", err)
	}
	return doneOr(stored, outcomeUnknown(at.ID))
}

// dropRef drops the provider's id of a file, so that the next message with the file gives it
// to the provider again.
func (a *App) dropRef(ctx context.Context, ws, media, channel desk.ID) {
	if err := a.store.PutMediaRef(ctx, ws, media, channel, "", 0); err != nil {
		a.log.WarnContext(ctx, "the provider's id of a file can't be dropped", "workspace_id", ws, "media_id", media, "err", err)
	}
}

// doneOr returns the stored answer if the attempt is finished, otherwise err. A status may
// have finished the attempt before the provider answered.
func doneOr(stored *desk.Attempt, err error) (SendAnswer, error) {
	if stored != nil && stored.Phase == desk.Done {
		return SendAnswer{Body: stored.Response}, nil
	}
	return SendAnswer{}, err
}

// callProvider sends, unless it is too late. After a panic the outcome is unknown.
func (a *App) callProvider(ctx context.Context, d *outgoing) (r provider.Receipt, err error) {
	defer steps.Caught("provider", &err)
	// If this process was stopped for long, others may have given up on the attempt. Then this
	// process must not send.
	if a.clock().After(d.By) {
		return r, provider.NotSent()
	}
	ctx, cancel := context.WithTimeout(ctx, a.bounds.Provider)
	defer cancel()
	return a.providers[d.Channel.Kind].Send(ctx, d.Dispatch)
}

// retry tries in the background to store something, until it is stored or the process
// stops.
func (a *App) retry(ws desk.ID, at *desk.Attempt, do func(context.Context) error) {
	a.retries.Go(func() {
		ctx := context.Background()
		for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
			select {
			case <-time.After(wait):
			case <-a.stopped:
				return
			}
			err := do(ctx)
			if err == nil || errors.Is(err, store.ErrNoWorkspace) { // if the workspace was deleted, there is nothing to store
				return
			}
			if !desk.IsType(err, desk.Unavailable) {
				a.log.ErrorContext(ctx, "the outcome of a send can't be stored", "workspace_id", ws, "attempt_id", at.ID, "request_id", at.Plan.OptIn.Request, "err", err)
			}
		}
	})
}

func outcomeUnknown(attempt desk.ID) *desk.Error {
	e := desk.Errorf(desk.SendOutcomeUnknown, "the provider's response was lost, so the message may have been sent; the same call never sends it twice: try again later").Advise(desk.ReleaseAttempt, attempt.String())
	e.Details, e.RetryAfter = desk.InDoubtAttempt{AttemptID: attempt}, 30
	return e
}

// A waiting call reads the attempt every otherProcess if another process sends it. If this
// process sends it, the call reads it every thisProcess, because a status or a person may
// settle it meanwhile.
const (
	otherProcess = 100 * time.Millisecond
	thisProcess  = time.Second
)

// again answers a repeated call: another attempt holds its key already. It waits for that
// attempt until late.
func (a *App) again(ctx context.Context, p desk.Principal, held *desk.Attempt, hash [32]byte, late <-chan time.Time) (SendAnswer, error) {
	if held.Hash != hash {
		return SendAnswer{}, holds.Reused()
	}
	for {
		switch held.Phase {
		case desk.Done:
			return SendAnswer{held.Response, true}, nil
		case desk.InDoubt:
			return SendAnswer{}, outcomeUnknown(held.ID)
		case desk.Refused:
			return SendAnswer{}, held.Refusal.Answer()
		case desk.Released:
			return SendAnswer{}, holds.InProgress()
		}
		f, pause := a.flights.of(held.ID), otherProcess
		if f != nil {
			pause = thisProcess
		}
		look := time.NewTimer(pause) // the garbage collector removes timers that did not fire
		select {
		case <-f.landed():
			return SendAnswer{f.answer.Body, f.err == nil}, f.err
		case <-look.C:
		case <-late:
			return SendAnswer{}, holds.InProgress()
		case <-a.drained:
			return SendAnswer{}, holds.InProgress()
		case <-ctx.Done():
			return SendAnswer{}, holds.InProgress()
		}
		next, err := a.store.Attempt(ctx, p.Workspace(), held.ID)
		if err != nil {
			return SendAnswer{}, err
		}
		if next == nil {
			return SendAnswer{}, holds.InProgress()
		}
		held = next
	}
}

// BodyHash returns a keyed hash of a request's body; the body can't be computed from it.
func (a *App) BodyHash(canonical []byte) [32]byte { return [32]byte(a.derive("body", canonical)) }
