package app

import (
	"context"
	"errors"
	"time"

	"parley/app/broadcast"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// A machine is the send machine as broadcasts use it.
type machine struct{ a *App }

func (m machine) Usable(c *desk.Channel) error { return m.a.usable(c) }

func (m machine) LibraryOf(ctx context.Context, ws desk.ID, c *desk.Channel) (*desk.Library, error) {
	return m.a.libraries.of(ctx, ws, c)
}

func (m machine) ChoiceHandles(ws desk.ID, number string, c *desk.Contact) []store.NumberHash {
	return m.a.choiceHandles(ws, number, c)
}

func (m machine) NumberHash(ws, broadcast desk.ID, canonical string) store.NumberHash {
	return store.NumberHash(m.a.derive("broadcast number", ws[:], broadcast[:], []byte(canonical)))
}

func (m machine) EffectOf(c *desk.Channel, f *desk.Failure) desk.Effect {
	if caster, ok := m.a.providers[c.Kind].(provider.Caster); ok {
		return caster.Effect(f)
	}
	return desk.NoEffect
}

func (m machine) PerSecond(c *desk.Channel) float64 {
	for _, b := range m.a.limits(c, desk.ID{}, "").Buckets {
		if !b.Person && b.Interval > 0 {
			return float64(time.Second) / float64(b.Interval)
		}
	}
	return 0
}

func (m machine) Pace(ctx context.Context, ws desk.ID, c *desk.Channel, number string, of func(desk.Bucket) bool) (time.Duration, bool, error) {
	var buckets []desk.Bucket
	for _, b := range m.a.limits(c, ws, number).Buckets {
		if of(b) {
			buckets = append(buckets, b)
		}
	}
	return m.a.place(ctx, ws, buckets)
}

func (m machine) Release(ctx context.Context, p desk.Principal, id desk.ID, sent bool) (*desk.Attempt, error) {
	return m.a.Release(ctx, p, id, sent)
}

// Fly sends a message of a broadcast (see broadcast.Machine).
func (m machine) Fly(ctx context.Context, ws desk.ID, b *desk.Broadcast, t *desk.Template, key string, claim func(tx store.Tx, plan func(broadcast.Sending) (*desk.Attempt, error)) (bool, error)) error {
	a := m.a
	file, sent, err := m.attachTitle(ctx, ws, b, t) // before the claim; mostly the provider has it already
	if err != nil {
		return err
	}
	var at *desk.Attempt
	var d *outgoing
	claimed := false
	err = a.store.InTx(ctx, ws, func(tx store.Tx) (err error) {
		claimed, at, d = false, nil, nil
		claimed, err = claim(tx, func(s broadcast.Sending) (_ *desk.Attempt, err error) {
			if at, d, err = a.planRow(tx.Settings(), s, key); err == nil && file != nil {
				at.Plan.Media, d.File = file.ID, sent
			}
			return at, err
		})
		if err != nil || !claimed {
			return err
		}
		if err := stillHasFile(tx, &at.Plan); err != nil {
			return err
		}
		return a.claim(tx, at, d)
	})
	if errors.Is(err, store.ErrCommitLost) && at != nil {
		err = a.claimLost(ctx, ws, at)
	}
	if err != nil {
		return err
	}
	if !claimed {
		return broadcast.ErrNotClaimed
	}
	_, err = a.dispatch(context.WithoutCancel(ctx), ws, at, d)
	return err
}

// attachTitle gives the provider the file in the template's title, and returns it; nil: the title
// has none.
func (m machine) attachTitle(ctx context.Context, ws desk.ID, b *desk.Broadcast, t *desk.Template) (file *desk.Media, sent *provider.SentFile, err error) {
	if !t.TakesFile() {
		return nil, nil, nil
	}
	settings, err := m.a.store.Settings(ctx, ws)
	if err != nil {
		return nil, nil, err
	}
	if file, sent, err = m.a.fileOf(ctx, settings, b, t); err != nil {
		return nil, nil, err
	}
	access, err := m.a.accessToSend(ws, settings.Channel(b.Channel))
	if err != nil {
		return nil, nil, err
	}
	_, err = m.a.attach(ctx, &outgoing{Dispatch: provider.Dispatch{Access: access, File: sent}}, file)
	return file, sent, err
}

// CheckFile refuses a file in the template's title that can't be sent.
func (m machine) CheckFile(ctx context.Context, s *desk.Settings, b *desk.Broadcast, t *desk.Template) error {
	_, _, err := m.a.fileOf(ctx, s, b, t)
	return err
}

// fileOf returns the file in the title of a broadcast's template; nil if it has none.
func (a *App) fileOf(ctx context.Context, s *desk.Settings, b *desk.Broadcast, t *desk.Template) (*desk.Media, *provider.SentFile, error) {
	return a.titleFile(ctx, desk.Principal{Actor: b.StartedBy, Settings: s}, t, t.Supplied(desk.TemplateValues{Object: true, Named: []desk.NamedValue{{Address: desk.MediaAddress, Value: b.TitleFile()}}}), nil)
}

// planRow returns the attempt of a row, and its message.
func (a *App) planRow(s *desk.Settings, r broadcast.Sending, key string) (*desk.Attempt, *outgoing, error) {
	b, now, v := r.Broadcast, a.now(), r.Verdict
	supplied := r.Template.Supplied(v.Given)
	channel := s.Channel(b.Channel)
	access, err := a.accessToSend(s.ID, channel)
	if err != nil {
		return nil, nil, err
	}
	at := &desk.Attempt{ID: a.newID(), Key: key, Hash: a.BodyHash([]byte(key)), Actor: b.StartedBy, Phase: desk.Dispatching, CreatedAt: now, Broadcast: b.ID, Plan: desk.Plan{
		Channel: channel.ID, Conversation: a.newID(), Message: a.newID(),
		Template: r.Template.Name, Language: r.Template.Language, Text: r.Template.Text(v.Values),
		OptIn: desk.NewOptIn(b.StartedBy, now, desk.ID{}), Number: v.Number, Sender: b.Name, Links: r.Template.Links(supplied),
	}}
	at.Plan.OptIn.Attribute = b.Consent.Attribute
	if r.Contact != nil {
		at.Plan.Contact, at.Plan.Known = r.Contact.ID, true
	} else {
		at.Plan.Contact, at.Plan.Profile = a.newID(), r.Row.Data.Person
	}
	return at, &outgoing{Dispatch: provider.Dispatch{
		Access: access, Attempt: at.ID, Number: v.Number, Template: r.Template, Components: r.Template.Components(v.Values, supplied),
	}}, nil
}
