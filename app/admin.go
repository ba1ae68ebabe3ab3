package app

import (
	"context"
	"errors"
	"time"

	"parley/desk"
	"parley/store"

	"golang.org/x/sync/errgroup"
)

// The following methods change workspaces. An id of another workspace is NotFound, as
// in all methods that take a Principal.

// CreateWorkspace makes an empty workspace. country is an ISO 3166 code or "".
func (a *App) CreateWorkspace(ctx context.Context, name, country string) (desk.Workspace, error) {
	w := desk.Workspace{ID: a.newID()}
	if err := setWorkspace(&w, WorkspaceEdit{Name: &name, Country: &country}); err != nil {
		return w, err
	}
	return w, a.store.CreateWorkspace(ctx, w)
}

// Workspaces lists all workspaces, oldest first.
func (a *App) Workspaces(ctx context.Context) ([]desk.Workspace, error) {
	return a.store.Workspaces(ctx)
}

// Deleting lists the workspaces whose deletion is under way or was interrupted.
func (a *App) Deleting(ctx context.Context) ([]desk.Workspace, error) {
	return a.store.Deleting(ctx)
}

// A WorkspaceEdit has the new values of a workspace's fields; nil means no change. A new
// country applies to numbers that are written from then on.
type WorkspaceEdit struct {
	Name, Country    *string
	FixedExternalIDs *bool
}

// EditWorkspace changes the fields that the edit sets.
func (a *App) EditWorkspace(ctx context.Context, p desk.Principal, edit WorkspaceEdit) (w desk.Workspace, err error) {
	var read desk.Workspace
	wrong := setWorkspace(&read, edit) // before a lock is held
	err = a.configure(ctx, p, func(s *desk.Settings) (desk.Change, error) {
		w = s.Workspace
		if edit.Name != nil {
			w.Name = read.Name
		}
		if edit.Country != nil {
			w.Country = read.Country
		}
		if edit.FixedExternalIDs != nil {
			w.FixedExternalIDs = read.FixedExternalIDs
		}
		return desk.Change{Workspace: &w}, wrong
	})
	return w, err
}

// A HandleProblem is an identity that a person should check.
type HandleProblem struct {
	Kind, Value string
	Reason      string // shared or refused
	Contacts    []desk.ID
}

// checkPage is how many contacts are read at a time.
const checkPage = 200

// CheckWorkspace lists the identities that contacts share since an earlier release, then
// the handles that today's rules refuse. It reads all contacts.
func (a *App) CheckWorkspace(ctx context.Context, p desk.Principal) (list []HandleProblem, err error) {
	if err := p.Allow(desk.ContactsRead); err != nil {
		return nil, err
	}
	ws := p.Workspace()
	shared, err := a.store.Shared(ctx, ws)
	if err != nil {
		return nil, err
	}
	for _, s := range shared {
		list = append(list, HandleProblem{s.Kind, s.Value, "shared", s.Contacts})
	}
	after := desk.ContactPlace{UpdatedAt: -1, ID: lastID}
	for {
		contacts, next, err := a.store.Contacts(ctx, ws, desk.ContactFilter{}, after, checkPage)
		if err != nil {
			return nil, err
		}
		for _, c := range contacts {
			for _, i := range c.Refused() {
				list = append(list, HandleProblem{i.Kind, i.Value, "refused", []desk.ID{c.ID}})
			}
		}
		if next == nil {
			return list, nil
		}
		after = *next
	}
}

func setWorkspace(w *desk.Workspace, edit WorkspaceEdit) error {
	if edit.FixedExternalIDs != nil {
		w.FixedExternalIDs = *edit.FixedExternalIDs
	}
	if name := edit.Name; name != nil {
		s, err := label("/name", *name)
		if err != nil {
			return err
		}
		w.Name = s
	}
	if country := edit.Country; country != nil {
		s, err := desk.ParseCountry(*country)
		if err != nil {
			return desk.InvalidAt("/country", "%v", err)
		}
		w.Country = s
	}
	return nil
}

// label checks the name of a workspace, a member or a key.
func label(at, s string) (string, error) {
	s, err := desk.ParseName(s)
	if err != nil {
		return "", desk.InvalidAt(at, "%v", err)
	}
	if s == "" {
		return "", desk.InvalidAt(at, "give 1 to 255 characters")
	}
	return s, nil
}

// DeleteWorkspace deletes a workspace with everything in it; name must be its name. Its
// keys are refused at once. The rest is deleted in small transactions, so that other
// workspaces wait little; after each, progress is called with the number of deleted
// records. If it is interrupted, another call continues. It returns how many records it
// deleted. Its errors are NotFound, and InvalidRequest if the workspace has another name.
func (a *App) DeleteWorkspace(ctx context.Context, ws desk.ID, name string, progress func(records int)) (records int, err error) {
	err = a.store.DeleteWorkspace(ctx, ws, func(stored string) error {
		if name != stored {
			return desk.InvalidAt("/name", "the workspace %s has another name, so nothing was deleted: give its name exactly", ws).Advise(desk.ListWorkspaces)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	err = inSteps(ctx, 1, func(limit int) (int, error) { // one record may have megabytes
		n, err := a.store.EraseWorkspace(ctx, ws, limit)
		if records += n; n > 0 {
			progress(records)
		}
		return n, err
	})
	return records, err
}

// stepTarget is how long a step of long work should take. The first step has firstStep
// records. Later steps have more or fewer, but at most mostInStep. If a step takes more
// than twice stepTarget, the next one is smaller.
const (
	stepTarget = 40 * time.Millisecond
	firstStep  = 100
	mostInStep = 2000
)

// inSteps calls step until it has nothing left to do or fails, or ctx ends. Each step is
// a transaction of up to limit records. limit is adapted to the time that the last step
// took, so that others wait only shortly. It does not go below least: on a busy machine
// even an empty step takes long, so smaller steps would not be faster.
func inSteps(ctx context.Context, least int, step func(limit int) (n int, err error)) error {
	for limit := firstStep; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		began := time.Now()
		n, err := step(limit)
		if err != nil || n == 0 {
			return err
		}
		switch took := time.Since(began); {
		case took > 2*stepTarget:
			limit = max(limit/2, least)
		case took < stepTarget:
			limit = min(limit+limit/4+1, mostInStep)
		}
	}
}

// A MemberEdit has the new values of a member's fields; nil means no change.
type MemberEdit struct {
	Name, Email, Role *string
	Available         *bool
}

// AddMember adds a teammate. Two members never share an e-mail.
func (a *App) AddMember(ctx context.Context, p desk.Principal, name, email, role string) (m desk.Member, err error) {
	m.ID = a.newID()
	edit := MemberEdit{Name: &name, Email: &email, Role: &role}.read()
	err = a.configure(ctx, p, func(s *desk.Settings) (desk.Change, error) {
		return desk.Change{Member: &m}, setMember(s, &m, edit)
	})
	return m, err
}

// EditMember changes the fields that the edit sets, or returns NotFound. If the caller is a
// member, it returns InvalidRequest if no admin would be left.
func (a *App) EditMember(ctx context.Context, p desk.Principal, id desk.ID, edit MemberEdit) (m desk.Member, err error) {
	read := edit.read()
	err = a.configure(ctx, p, func(s *desk.Settings) (desk.Change, error) {
		stored := s.Member(id)
		if stored == nil {
			return desk.Change{}, desk.ErrNoMember
		}
		m = *stored
		if err := setMember(s, &m, read); err != nil {
			return desk.Change{}, err
		}
		return desk.Change{Member: &m}, p.LeavesAdmin(s, stored, m.Role)
	})
	return m, err
}

// SetAvailable sets whether the reply policy may give a member conversations, or returns
// NotFound. Members may set it for themselves, whatever their role.
func (a *App) SetAvailable(ctx context.Context, p desk.Principal, id desk.ID, available bool) (m desk.Member, err error) {
	own := p.Member != nil && p.Member.ID == id
	err = store.UpdateSettings(ctx, a.store, p.Workspace(), p.Actor, a.now, func(s *desk.Settings) (desk.Change, error) {
		stored := s.Member(id)
		switch {
		case own && stored == nil:
			return desk.Change{}, desk.ErrSignedOut
		case !own:
			if err := p.Still(s, desk.MembersWrite, a.now()); err != nil {
				return desk.Change{}, err
			}
		}
		if stored == nil {
			return desk.Change{}, desk.ErrNoMember
		}
		m = *stored
		return desk.Change{Member: &m}, setMember(s, &m, memberEdit{Available: &available})
	})
	return m, err
}

// Rename changes the member's own name.
func (a *App) Rename(ctx context.Context, p desk.Principal, name string) (m desk.Member, err error) {
	if p.Member == nil {
		return m, desk.Errorf(desk.Forbidden, "only members have names of their own")
	}
	edit := MemberEdit{Name: &name}.read()
	err = store.UpdateSettings(ctx, a.store, p.Workspace(), p.Actor, a.now, func(s *desk.Settings) (desk.Change, error) {
		stored := s.Member(p.Member.ID)
		if stored == nil {
			return desk.Change{}, desk.ErrSignedOut
		}
		m = *stored
		return desk.Change{Member: &m}, setMember(s, &m, edit)
	})
	return m, err
}

// A memberEdit is a MemberEdit with its texts read. The error of a wrong text is kept beside
// the text, and setMember returns it.
type memberEdit struct {
	Name, Email, Role          *string
	nameErr, emailErr, roleErr error
	ref                        desk.Reference // to the holder of the e-mail
	Available                  *bool
}

// read reads the texts of an edit, before a transaction begins.
func (e MemberEdit) read() memberEdit {
	r := memberEdit{Available: e.Available}
	if e.Name != nil {
		name, err := label("/name", *e.Name)
		r.Name, r.nameErr = &name, err
	}
	if e.Email != nil {
		email, err := desk.ParseEmail(*e.Email)
		if err != nil {
			err = desk.InvalidAt("/email", "%v", err)
		}
		r.Email, r.emailErr, r.ref = &email, err, desk.ReferTo(email)
	}
	if e.Role != nil {
		r.Role = e.Role
		if role := desk.Role(*e.Role); role != desk.RoleAdmin && role != desk.RoleAgent {
			r.roleErr = desk.InvalidAt("/role", "use admin or agent")
		}
	}
	return r
}

func setMember(s *desk.Settings, m *desk.Member, edit memberEdit) error {
	if edit.Name != nil {
		if edit.nameErr != nil {
			return edit.nameErr
		}
		m.Name = *edit.Name
	}
	if edit.Email != nil {
		if edit.emailErr != nil {
			return edit.emailErr
		}
		if other := s.ResolveMember(edit.ref); other != nil && other.ID != m.ID {
			return desk.InvalidAt("/email", "the member %s of this workspace has it already", other.ID)
		}
		m.Email = *edit.Email
	}
	if edit.Role != nil {
		if edit.roleErr != nil {
			return edit.roleErr
		}
		m.Role = desk.Role(*edit.Role)
	}
	if edit.Available != nil {
		m.Away = !*edit.Available
	}
	return nil
}

// RemoveMember removes a member. Their contacts go to the shared pool, and their open
// conversations become unassigned, in small transactions, so that others wait little.
// If it is interrupted, another call continues. If the caller is a member, it returns
// InvalidRequest if no admin would be left.
func (a *App) RemoveMember(ctx context.Context, p desk.Principal, id desk.ID) error {
	for {
		err := a.configure(ctx, p, func(s *desk.Settings) (desk.Change, error) {
			m := s.Member(id)
			if m == nil {
				return desk.Change{}, desk.ErrNoMember
			}
			return desk.Change{RemoveMember: m}, p.LeavesAdmin(s, m, "")
		})
		if !errors.Is(err, store.ErrOwns) {
			return err
		}
		// Each step begins where the last one ended. Released rows stay in PostgreSQL's
		// indexes for some time, and every step would read them again.
		var contact desk.ContactPlace
		var conversation *desk.ConversationPlace
		release, ctx := errgroup.WithContext(ctx)
		release.SetLimit(min(2, a.store.FlushesAbreast()))
		release.Go(func() error {
			return inSteps(ctx, firstStep, func(limit int) (int, error) {
				return a.disown(ctx, p, id, &contact, min(limit, desk.MaxOperations))
			})
		})
		release.Go(func() error {
			return inSteps(ctx, firstStep, func(limit int) (int, error) { return a.unassign(ctx, p, id, &conversation, limit) })
		})
		if err := release.Wait(); err != nil {
			return err
		}
	}
}

// disown removes the owner of up to limit contacts of a member through the contact writer.
// It returns the number of contacts. It begins behind the position in after, and sets after
// to the last contact.
func (a *App) disown(ctx context.Context, p desk.Principal, member desk.ID, after *desk.ContactPlace, limit int) (int, error) {
	contacts, _, err := a.store.Contacts(ctx, p.Workspace(), desk.ContactFilter{Owner: member}, *after, limit)
	if err != nil || len(contacts) == 0 {
		return 0, err
	}
	*after = contacts[len(contacts)-1].Place()
	r := &request{actor: p.Actor}
	for _, c := range contacts {
		r.ops = append(r.ops, &desk.Op{Kind: desk.OpAssign, ByID: true, Target: c.ID, Owner: desk.Field[desk.Reference]{Set: true, Null: true}})
	}
	a.writer.write(p.Workspace(), r)
	return len(contacts), r.err // if a contact was deleted meanwhile, nothing remains to do
}

// A KeyEdit has the new values of a key's fields; nil means no change. An Expires of 0
// means never.
type KeyEdit struct {
	Name, Permissions *string
	Expires           *time.Duration // from now
}

// CreateKey makes a key and returns its text, which is not stored.
func (a *App) CreateKey(ctx context.Context, p desk.Principal, edit KeyEdit) (text string, k desk.APIKey, err error) {
	var c desk.Credential
	random := make([]byte, 64)
	for ok := false; !ok; text, c, ok = desk.NewKey(random) {
		a.random(random)
	}
	k = desk.APIKey{ID: a.newID(), PublicID: c.PublicID, SecretHash: c.Hash(), CreatedAt: a.now()}
	wrong := a.setKey(&k, edit) // before a lock is held
	err = a.configure(ctx, p, func(*desk.Settings) (desk.Change, error) { return desk.Change{Key: &k}, wrong })
	return text, k, err
}

// EditKey changes the fields that the edit sets. The change applies from the next request on.
func (a *App) EditKey(ctx context.Context, p desk.Principal, id desk.ID, edit KeyEdit) (desk.APIKey, error) {
	var read desk.APIKey
	wrong := a.setKey(&read, edit) // before a lock is held
	return a.changeKey(ctx, p, id, func(k *desk.APIKey) error {
		if edit.Name != nil {
			k.Name = read.Name
		}
		if edit.Permissions != nil {
			k.Permissions = read.Permissions
		}
		if edit.Expires != nil {
			k.ExpiresAt = read.ExpiresAt
		}
		return wrong
	})
}

// RevokeKey revokes a key for good, from the next request on.
func (a *App) RevokeKey(ctx context.Context, p desk.Principal, id desk.ID) (desk.APIKey, error) {
	return a.changeKey(ctx, p, id, func(k *desk.APIKey) error {
		if k.RevokedAt == 0 {
			k.RevokedAt = a.now()
		}
		return nil
	})
}

func (a *App) changeKey(ctx context.Context, p desk.Principal, id desk.ID, change func(*desk.APIKey) error) (k desk.APIKey, err error) {
	err = a.configure(ctx, p, func(s *desk.Settings) (desk.Change, error) {
		stored := s.Key(id)
		if stored == nil {
			return desk.Change{}, desk.NotFoundf("no key has this id").Advise(desk.ListKeys)
		}
		k = *stored
		return desk.Change{Key: &k}, change(&k)
	})
	return k, err
}

func (a *App) setKey(k *desk.APIKey, edit KeyEdit) error {
	if edit.Name != nil {
		name, err := label("/name", *edit.Name)
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
			return desk.InvalidAt("/expires", "a key can't expire in the past").Advise(desk.RevokeKey)
		case *edit.Expires == 0:
			k.ExpiresAt = 0
		default:
			k.ExpiresAt = a.now() + desk.Time(edit.Expires.Milliseconds())
		}
	}
	return nil
}
