package app

import (
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/desk"
)

// A WebhookReader is a provider that reports by webhooks.
type WebhookReader interface {
	// Signed tells whether the provider signed a webhook's body, which header says.
	Signed(at Access, header string, body []byte) bool

	// People lists whom a webhook's body names anywhere, by the values of their
	// identities, so that it can be forgotten with them.
	People(body []byte) []string
}

// MaxWebhook is how long a webhook's body may be, in bytes.
const MaxWebhook = 4 << 20

// VerifyWebhook answers a provider that asks whether a channel's address is ours: by
// the token that the operator gave to both. It returns Forbidden for any other.
func (a *App) VerifyWebhook(ctx context.Context, channel desk.ID, token string) error {
	_, at, err := a.accessOf(ctx, channel)
	if err != nil && !desk.IsType(err, desk.NotFound) {
		return err
	}
	want := at.Secrets.VerifyToken.Reveal()
	if err != nil || want == "" || subtle.ConstantTimeCompare([]byte(token), []byte(want)) != 1 {
		return desk.Errorf(desk.Forbidden, "the verify token is not the channel's")
	}
	_, err = a.store.Lease(ctx, at.Workspace, handshakeTask(channel), 0) // which tells when it was
	return err
}

// TakeWebhook stores a webhook durably, to be taken in right after. It returns
// Unauthorized when the channel's provider did not sign it. The body may be large, and
// nobody has shown a key: who does not even know a channel is not listened to.
func (a *App) TakeWebhook(ctx context.Context, channel desk.ID, signature string, body io.Reader) error {
	unsigned := desk.Errorf(desk.Unauthorized, "the webhook's signature is not the channel's")
	_, at, err := a.accessOf(ctx, channel)
	if desk.IsType(err, desk.NotFound) {
		return unsigned
	}
	if err != nil {
		return err
	}
	reader, ok := a.providers[at.Channel.Kind].(WebhookReader)
	if !ok {
		return unsigned
	}
	raw, err := io.ReadAll(io.LimitReader(body, MaxWebhook+1))
	switch {
	case err != nil:
		return desk.Invalidf("the body can't be read: %v", err)
	case len(raw) > MaxWebhook:
		return desk.Errorf(desk.PayloadTooLarge, "a webhook has up to %d bytes", MaxWebhook)
	case !reader.Signed(at, signature, raw):
		return unsigned
	}
	return a.keep(ctx, at.Workspace, channel, raw)
}

func (a *App) keep(ctx context.Context, ws, channel desk.ID, body []byte) error {
	now := a.now()
	n := Notice{Channel: channel, ID: a.newID(), Due: now, Body: body, Webhook: now}
	err := a.store.InTx(ctx, ws, func(tx Tx) error {
		if err := tx.PutWebhook(n); err != nil {
			return err
		}
		return tx.PutNotice(n)
	})
	if err == nil {
		a.agenda.note(ws, n.Due)
	}
	return err
}

// templateNews takes in that a template of a business account has changed: its status at
// once, and the rest when the library is fetched, which follows.
func (a *App) templateNews(ctx context.Context, ws desk.ID, kind desk.ChannelKind, business string, news TemplateNews) {
	a.ofBusiness(ctx, ws, kind, business, func(c *desk.Channel) error {
		a.stale.add(c.ID)
		if news.Status == "" {
			return nil
		}
		return a.setTemplateStatus(ctx, ws, c.ID, news)
	})
}

// standing takes in whether a business account may send.
func (a *App) standing(ctx context.Context, ws desk.ID, kind desk.ChannelKind, business string, news Standing) {
	a.ofBusiness(ctx, ws, kind, business, func(c *desk.Channel) error {
		return a.store.UpdateSettings(ctx, ws, func(s *desk.Settings) (desk.Change, error) {
			edited := *s.Channel(c.ID)
			account := &edited.Account
			if account.StandingAt > news.At || account.StandingAt == news.At && account.Blocked == news.Blocked {
				return desk.Change{}, nil // it comes late, or again
			}
			account.Blocked, account.BlockedUntil, account.StandingAt = news.Blocked, news.Until, news.At
			return desk.Change{Channel: &edited}, nil
		})
	})
}

// ofBusiness does something to each channel of a business account, and logs what failed.
func (a *App) ofBusiness(ctx context.Context, ws desk.ID, kind desk.ChannelKind, business string, do func(*desk.Channel) error) {
	s, err := a.store.Settings(ctx, ws)
	if err == nil {
		for _, c := range s.Channels() {
			if c.Kind == kind && c.Account.BusinessID == business {
				err = errors.Join(err, do(c))
			}
		}
	}
	if err != nil {
		a.log.ErrorContext(ctx, "news of a provider's account can't be stored; the next fetch of its templates will tell", "workspace_id", ws, "err", err)
	}
}

// setTemplateStatus changes the status of a template in the mirror.
func (a *App) setTemplateStatus(ctx context.Context, ws, channel desk.ID, news TemplateNews) error {
	version, stored, err := a.store.Templates(ctx, ws, channel)
	if err != nil {
		return err
	}
	for i, t := range stored {
		// Webhooks sometimes spell en_US as en-US.
		if t.Name != news.Name || strings.ReplaceAll(t.Language, "-", "_") != strings.ReplaceAll(news.Language, "-", "_") {
			continue
		}
		changed, err := t.WithStatus(news.Status)
		if err != nil || changed == t {
			return err
		}
		stored[i] = changed
		if err := a.replaceLibrary(ctx, ws, channel, version, stored); !errors.Is(err, errMoved) {
			return err
		}
		return a.setTemplateStatus(ctx, ws, channel, news)
	}
	return nil // one that the next fetch brings
}

// stale are the channels whose library is to be fetched soon.
type stale struct {
	mu       sync.Mutex
	channels []desk.ID
	changed  chan struct{} // has an element when there are any
}

func (s *stale) add(channel desk.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.channels, channel) {
		s.channels = append(s.channels, channel)
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// again adds channels that could not be looked at, for the next look.
func (s *stale) again(channels []desk.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels = append(s.channels, channels...)
}

func (s *stale) take() (channels []desk.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	channels, s.channels = s.channels, nil
	return channels
}

const (
	// syncEvery is how old a mirror of templates may get.
	syncEvery = time.Hour
	// syncAgain is how long after a fetch that failed comes the next.
	syncAgain = 5 * time.Minute
	// syncLook is how often a node looks for channels whose mirror is old.
	syncLook = time.Minute
	// syncPause is how long the news of templates are gathered before they are fetched.
	syncPause = 2 * time.Second
	// keepWebhook is how long a webhook's body is kept, in milliseconds.
	keepWebhook = desk.Time(7 * 24 * 60 * 60 * 1000)
)

// SyncStale fetches the libraries of channels that changed, or that nobody has fetched for
// long. Of several nodes one does.
func (a *App) SyncStale(ctx context.Context) error {
	if a.providers[desk.WhatsAppChannel] == nil {
		return nil
	}
	changed := a.stale.take()
	defer func() { a.stale.again(changed) }()
	channels, err := a.store.ChannelsOfKind(ctx, desk.WhatsAppChannel)
	if err != nil {
		return err
	}
	for _, c := range channels {
		if i := slices.Index(changed, c.ID); i >= 0 {
			changed = slices.Delete(changed, i, i+1)
		} else {
			synced, err := a.store.LeaseOf(ctx, c.Workspace, syncedTask(c.ID))
			if err != nil {
				return err
			}
			if a.now()-synced < desk.Time(syncEvery.Milliseconds()) {
				continue
			}
			ours, err := a.store.Lease(ctx, c.Workspace, "sync "+c.ID.String(), desk.Time(syncAgain.Milliseconds()))
			if err != nil {
				return err
			}
			if !ours {
				continue
			}
		}
		if _, _, err := a.SyncChannel(ctx, c.ID); err != nil && ctx.Err() == nil {
			a.log.WarnContext(ctx, "fetching a channel's templates failed; parley channel check says what is wrong", "workspace_id", c.Workspace, "channel_id", c.ID, "err", err)
		}
	}
	return nil
}

// runSync does SyncStale, beside the other work of Run, since providers are slow.
func (a *App) runSync(ctx context.Context) {
	look := time.NewTicker(syncLook)
	defer look.Stop()
	for {
		a.attempt(ctx, "fetch templates", a.SyncStale)
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		case <-a.stale.changed:
			select { // more of the same may come
			case <-ctx.Done():
				return
			case <-time.After(syncPause):
			}
		}
	}
}
