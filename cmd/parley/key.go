package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/app"
	"parley/desk"
)

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Make an API key; it is shown once."`
	List   keyListCmd   `cmd:"" help:"List a workspace's keys, without their secrets."`
	Edit   keyEditCmd   `cmd:"" help:"Change a key's name, permissions or expiry; it counts from the next request on."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key for good, from the next request on."`
}

// permissions is the value of a flag: "all", or a list separated by commas.
type permissions string

func (p *permissions) UnmarshalText(text []byte) error {
	*p = permissions(text)
	_, err := desk.ParsePermissions(string(text))
	return plain(err)
}

// plain returns an error without its internal prefix, so that it can be shown to a
// person.
func plain(err error) error {
	var e *desk.Error
	if errors.As(err, &e) {
		return errors.New(e.Message)
	}
	return err
}

// An expiry is the value of a flag: a duration from now; 0 means never.
type expiry time.Duration

// maxExpiry is the longest duration: the year of the expiry then still has four digits.
const maxExpiry = 100 * 365 * 24 * time.Hour

func (e *expiry) UnmarshalText(text []byte) error {
	wrong := fmt.Errorf("%q is no time from now: give one such as 30d or 720h, at most 36500d, or 0 for never", text)
	var d time.Duration
	if days, ok := strings.CutSuffix(string(text), "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return wrong
		}
		d = time.Duration(n) * 24 * time.Hour
	} else {
		var err error
		if d, err = time.ParseDuration(string(text)); err != nil {
			return wrong
		}
	}
	if d < 0 || d > maxExpiry {
		return wrong
	}
	*e = expiry(d)
	return nil
}

type keyRecord struct {
	KeyID       string            `json:"key_id"`
	Name        string            `json:"name"`
	Permissions []desk.Permission `json:"permissions"`
	CreatedAt   string            `json:"created_at"`
	ExpiresAt   *string           `json:"expires_at"`
	RevokedAt   *string           `json:"revoked_at"`
	LastUsedAt  *string           `json:"last_used_at"`
}

func recordOfKey(k *desk.APIKey, uses map[desk.ID]desk.Time) keyRecord {
	return keyRecord{k.ID.String(), k.Name, k.Permissions, k.CreatedAt.String(), momentOf(k.ExpiresAt), momentOf(k.RevokedAt), momentOf(uses[k.ID])}
}

// permissionsText lists permissions in short form for people.
func permissionsText(list []desk.Permission) string {
	if len(list) == len(desk.Permissions) {
		return "all"
	}
	return desk.JoinPermissions(list)
}

func orNever(moment *string) string {
	if moment == nil {
		return "never"
	}
	return *moment
}

func (s *session) unknownKey(err error, id string) error {
	return s.unknown(err, "key", id, "key list --workspace W")
}

type keyCreateCmd struct {
	Workspace   string      `help:"The workspace's id." required:"" placeholder:"ID"`
	Name        string      `help:"What the key is for." required:"" placeholder:"NAME"`
	Permissions permissions `help:"all, or a comma-separated list: ${permissions}." required:"" placeholder:"P,Q"`
	Expires     *expiry     `help:"When it expires, from now: 30d, 720h; without it, never." placeholder:"TIME"`
}

// Help shows examples.
func (*keyCreateCmd) Help() string {
	return examples(
		`parley key create --workspace 01980000-0000-7000-8000-000000000001 --name "shop sync" --permissions all`,
		`parley key create --workspace 01980000-0000-7000-8000-000000000001 --name report --permissions contacts:read,members:read --expires 30d`,
	)
}

// Run makes the key.
func (c *keyCreateCmd) Run(ctx context.Context, s *session) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		edit := app.KeyEdit{Name: &c.Name, Permissions: (*string)(&c.Permissions), Expires: (*time.Duration)(c.Expires)}
		text, k, err := a.CreateKey(ctx, p, edit)
		if err != nil {
			return err
		}
		return s.answer(struct {
			KeyID string `json:"key_id"`
			Key   string `json:"key"`
		}{k.ID.String(), text}, "Made the key %s: %s\n\n  %s\n\nKeep it now: it is shown this once, and only a hash of it is stored.\n", k.Name, k.ID, text)
	})
}

type keyListCmd struct {
	Workspace string `help:"The workspace's id." required:"" placeholder:"ID"`
}

// Help shows examples.
func (*keyListCmd) Help() string {
	return examples(
		`parley key list --workspace 01980000-0000-7000-8000-000000000001`,
		`parley key list --workspace 01980000-0000-7000-8000-000000000001 --json`,
	)
}

// Run lists the keys.
func (c *keyListCmd) Run(ctx context.Context, s *session) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		uses, err := a.Access.KeyUses(ctx, p)
		if err != nil {
			return err
		}
		var records []keyRecord
		for _, k := range p.Settings.Keys() {
			records = append(records, recordOfKey(k, uses))
		}
		return answerList(s, records, []string{"KEY", "NAME", "PERMISSIONS", "CREATED", "EXPIRES", "REVOKED", "LAST USED"}, func(r keyRecord) []string {
			return []string{r.KeyID, r.Name, permissionsText(r.Permissions), r.CreatedAt, orNever(r.ExpiresAt), orDash(r.RevokedAt), orNever(r.LastUsedAt)}
		})
	})
}

type keyEditCmd struct {
	Key         string       `arg:"" help:"The key's id."`
	Name        *string      `help:"The new name." placeholder:"NAME"`
	Permissions *permissions `help:"The new permissions: all, or a comma-separated list: ${permissions}." placeholder:"P,Q"`
	Expires     *expiry      `help:"When it expires, from now: 30d, 720h; 0 for never." placeholder:"TIME"`
}

// Help shows examples.
func (*keyEditCmd) Help() string {
	return examples(
		`parley key edit 01980000-0000-7000-8000-000000000003 --permissions contacts:read`,
		`parley key edit 01980000-0000-7000-8000-000000000003 --expires 0`,
	)
}

// Validate refuses an edit without a change.
func (c *keyEditCmd) Validate() error {
	if c.Name == nil && c.Permissions == nil && c.Expires == nil {
		return errors.New("nothing to change: give --name, --permissions or --expires")
	}
	return nil
}

// Run changes the key.
func (c *keyEditCmd) Run(ctx context.Context, s *session) error {
	return s.onRecord(ctx, c.Key, s.unknownKey, func(a *app.App, p desk.Principal) error {
		edit := app.KeyEdit{Name: c.Name, Permissions: (*string)(c.Permissions), Expires: (*time.Duration)(c.Expires)}
		k, err := a.EditKey(ctx, p, idOf(c.Key), edit)
		if err != nil {
			return err
		}
		uses, err := a.Access.KeyUses(ctx, p)
		if err != nil {
			return err
		}
		r := recordOfKey(&k, uses)
		return s.answer(r, "The key %s is now named %s, has the permissions %s, and expires %s.\n", r.KeyID, r.Name,
			permissionsText(r.Permissions), orNever(r.ExpiresAt))
	})
}

type keyRevokeCmd struct {
	Key string `arg:"" help:"The key's id."`
}

// Help shows examples.
func (*keyRevokeCmd) Help() string {
	return examples(`parley key revoke 01980000-0000-7000-8000-000000000003`)
}

// Run revokes the key.
func (c *keyRevokeCmd) Run(ctx context.Context, s *session) error {
	return s.onRecord(ctx, c.Key, s.unknownKey, func(a *app.App, p desk.Principal) error {
		k, err := a.RevokeKey(ctx, p, idOf(c.Key))
		if err != nil {
			return err
		}
		uses, err := a.Access.KeyUses(ctx, p)
		if err != nil {
			return err
		}
		r := recordOfKey(&k, uses)
		return s.answer(r, "Revoked the key %s (%s) at %s.\n", r.Name, r.KeyID, orDash(r.RevokedAt))
	})
}
