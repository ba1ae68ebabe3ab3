package app

import (
	"context"
	"errors"
	"time"

	"parley/desk"
)

// What follows is the operator's side, reached from the command line: no key is
// asked for, since who can read the database can do anything anyway.

// CreateWorkspace makes an empty workspace. country is an ISO 3166 code or "".
func (a *App) CreateWorkspace(ctx context.Context, name, country string) (desk.Workspace, error) {
	w := desk.Workspace{ID: a.newID()}
	if err := setWorkspace(&w, &name, &country); err != nil {
		return w, err
	}
	return w, a.store.CreateWorkspace(ctx, w)
}

// Workspaces lists all workspaces, oldest first.
func (a *App) Workspaces(ctx context.Context) ([]desk.Workspace, error) {
	return a.store.Workspaces(ctx)
}

// EditWorkspace changes what is not nil. A new country counts for numbers that
// are written from then on.
func (a *App) EditWorkspace(ctx context.Context, ws desk.ID, name, country *string) (w desk.Workspace, err error) {
	err = a.store.UpdateSettings(ctx, ws, func(s *desk.Settings) (desk.Change, error) {
		w = s.Workspace
		return desk.Change{Workspace: &w}, setWorkspace(&w, name, country)
	})
	return w, err
}

func setWorkspace(w *desk.Workspace, name, country *string) error {
	if name != nil {
		s, err := label("name", *name)
		if err != nil {
			return err
		}
		w.Name = s
	}
	if country != nil {
		s, err := desk.ParseCountry(*country)
		if err != nil {
			return desk.Invalidf("country: %v", err)
		}
		w.Country = s
	}
	return nil
}

// label checks a name that people gave to a workspace, a member or a key.
func label(what, s string) (string, error) {
	s, err := desk.ParseName(s)
	if err != nil {
		return "", desk.Invalidf("%s: %v", what, err)
	}
	if s == "" {
		return "", desk.Invalidf("%s: give one of 1 to 255 characters", what)
	}
	return s, nil
}

// A MemberEdit says what to change of a member; nil stays.
type MemberEdit struct{ Name, Email, Role *string }

// AddMember adds a teammate. Two members never share an e-mail.
func (a *App) AddMember(ctx context.Context, ws desk.ID, name, email, role string) (m desk.Member, err error) {
	m.ID = a.newID()
	err = a.store.UpdateSettings(ctx, ws, func(s *desk.Settings) (desk.Change, error) {
		return desk.Change{Member: &m}, setMember(s, &m, MemberEdit{&name, &email, &role})
	})
	return m, err
}

// MembersOf lists a workspace's members by name.
func (a *App) MembersOf(ctx context.Context, ws desk.ID) ([]*desk.Member, error) {
	s, err := a.store.Settings(ctx, ws)
	if err != nil {
		return nil, err
	}
	return s.Members(), nil
}

// EditMember changes what the edit names, or returns NotFound.
func (a *App) EditMember(ctx context.Context, id desk.ID, edit MemberEdit) (m desk.Member, err error) {
	ws, err := a.store.WorkspaceOf(ctx, id)
	if err != nil {
		return m, err
	}
	err = a.store.UpdateSettings(ctx, ws, func(s *desk.Settings) (desk.Change, error) {
		stored := s.Member(id)
		if stored == nil {
			return desk.Change{}, errNoMember
		}
		m = *stored
		return desk.Change{Member: &m}, setMember(s, &m, edit)
	})
	return m, err
}

var errNoMember = desk.NotFoundf("no member has this id; parley member list shows them")

func setMember(s *desk.Settings, m *desk.Member, edit MemberEdit) error {
	if edit.Name != nil {
		name, err := label("name", *edit.Name)
		if err != nil {
			return err
		}
		m.Name = name
	}
	if edit.Email != nil {
		email, err := desk.ParseEmail(*edit.Email)
		if err != nil {
			return desk.Invalidf("email: %v", err)
		}
		if other := s.ResolveMember(email); other != nil && other.ID != m.ID {
			return desk.Invalidf("email: the member %s of this workspace has it already", other.ID)
		}
		m.Email = email
	}
	if edit.Role != nil {
		role := desk.Role(*edit.Role)
		if role != desk.RoleAdmin && role != desk.RoleAgent {
			return desk.Invalidf("role: use admin or agent")
		}
		m.Role = role
	}
	return nil
}

// RemoveMember removes a member, whose contacts go to the shared pool and whose open
// conversations become unassigned.
func (a *App) RemoveMember(ctx context.Context, id desk.ID) error {
	ws, err := a.store.WorkspaceOf(ctx, id)
	if err != nil {
		return err
	}
	for {
		err := a.store.UpdateSettings(ctx, ws, func(s *desk.Settings) (desk.Change, error) {
			m := s.Member(id)
			if m == nil {
				return desk.Change{}, errNoMember
			}
			return desk.Change{RemoveMember: m}, nil
		})
		if !errors.Is(err, ErrOwns) {
			return err
		}
		if err := a.disown(ctx, ws, id); err != nil {
			return err
		}
		if err := a.unassign(ctx, ws, id); err != nil {
			return err
		}
	}
}

// disown clears the owner of the contacts that a member owns, by the one write
// path, as many at a time as a batch holds.
func (a *App) disown(ctx context.Context, ws, member desk.ID) error {
	contacts, err := a.store.Contacts(ctx, ws, desk.ContactFilter{Owner: member}, desk.ContactPlace{}, desk.MaxOperations)
	if err != nil || len(contacts) == 0 {
		return err
	}
	r := &request{}
	for _, c := range contacts {
		r.ops = append(r.ops, &desk.Op{Kind: desk.OpAssign, ByID: true, Target: c.ID, Owner: desk.Field[string]{Set: true, Null: true}})
	}
	a.writer.write(ws, r)
	return r.err // a contact that was deleted meanwhile needs nothing more
}

// A KeyEdit says what to change of a key; nil stays. An Expires of 0 means never.
type KeyEdit struct {
	Name, Permissions *string
	Expires           *time.Duration // from now
}

// CreateKey makes a key and returns its text, which can't be had again.
func (a *App) CreateKey(ctx context.Context, ws desk.ID, edit KeyEdit) (text string, k desk.APIKey, err error) {
	var c desk.Credential
	random := make([]byte, 64)
	for ok := false; !ok; text, c, ok = desk.NewKey(random) {
		a.random(random)
	}
	k = desk.APIKey{ID: a.newID(), PublicID: c.PublicID, SecretHash: c.Hash(), CreatedAt: a.now()}
	err = a.store.UpdateSettings(ctx, ws, func(*desk.Settings) (desk.Change, error) {
		return desk.Change{Key: &k}, a.setKey(&k, edit)
	})
	return text, k, err
}

// Keys lists a workspace's keys, oldest first.
func (a *App) Keys(ctx context.Context, ws desk.ID) ([]*desk.APIKey, error) {
	s, err := a.store.Settings(ctx, ws)
	if err != nil {
		return nil, err
	}
	return s.Keys(), nil
}

// EditKey changes what the edit names, from the next request on.
func (a *App) EditKey(ctx context.Context, id desk.ID, edit KeyEdit) (desk.APIKey, error) {
	return a.changeKey(ctx, id, func(k *desk.APIKey) error { return a.setKey(k, edit) })
}

// RevokeKey makes a key useless for good, from the next request on.
func (a *App) RevokeKey(ctx context.Context, id desk.ID) (desk.APIKey, error) {
	return a.changeKey(ctx, id, func(k *desk.APIKey) error {
		if k.RevokedAt == 0 {
			k.RevokedAt = a.now()
		}
		return nil
	})
}

func (a *App) changeKey(ctx context.Context, id desk.ID, change func(*desk.APIKey) error) (k desk.APIKey, err error) {
	ws, err := a.store.WorkspaceOf(ctx, id)
	if err != nil {
		return k, err
	}
	err = a.store.UpdateSettings(ctx, ws, func(s *desk.Settings) (desk.Change, error) {
		stored := s.Key(id)
		if stored == nil {
			return desk.Change{}, desk.NotFoundf("no key has this id; parley key list shows them")
		}
		k = *stored
		return desk.Change{Key: &k}, change(&k)
	})
	return k, err
}

func (a *App) setKey(k *desk.APIKey, edit KeyEdit) error {
	if edit.Name != nil {
		name, err := label("name", *edit.Name)
		if err != nil {
			return err
		}
		k.Name = name
	}
	if edit.Permissions != nil {
		permissions, err := desk.ParsePermissions(*edit.Permissions)
		if err != nil {
			return err
		}
		k.Permissions = permissions
	}
	if edit.Expires != nil {
		switch {
		case *edit.Expires < 0:
			return desk.Invalidf("expires: a key can't expire in the past; to end it now, use parley key revoke")
		case *edit.Expires == 0:
			k.ExpiresAt = 0
		default:
			k.ExpiresAt = a.now() + desk.Time(edit.Expires.Milliseconds())
		}
	}
	return nil
}
