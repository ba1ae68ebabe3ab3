package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"parley/desk"
	"parley/store"
)

// database makes the checks that ask the database. If it can't be opened, or has another
// schema, the rest is skipped.
func (e *examination) database(ctx context.Context, opened error) {
	type check struct {
		id  string
		run func(context.Context, string)
	}
	list := []check{{"db.settings", e.settings}, {"search.behind", e.search}, {"sends.in_doubt", e.inDoubt}, {"clock", e.clock}}
	if e.Deep {
		list = append(list, check{"db.integrity", e.integrity}, check{"db.identities", e.identities}, check{"media.missing", e.media})
	}
	why := e.openedWith(ctx, opened)
	for _, c := range list {
		if why != "" && (e.db == nil || c.id != "db.settings" && c.id != "clock" && c.id != "db.integrity") {
			e.add(c.id, Skip, "", "%s", why)
			continue
		}
		c.run(ctx, c.id)
	}
}

// openedWith checks whether the database could be opened, and its schema. It returns why
// other checks must be skipped.
func (e *examination) openedWith(ctx context.Context, opened error) (why string) {
	const open, schema, away = "db.open", "db.schema", "the database can't be opened"
	var has, knows int64
	if opened == nil { // SQLite reads the file only now
		has, knows, opened = e.db.Schema(ctx)
	}
	switch {
	case errors.Is(opened, fs.ErrNotExist):
		e.add(open, Fail, "name the right place with --data or --database", "%s holds no parley installation", e.Storage)
	case opened != nil:
		e.add(open, Fail, "see that the file or the server is there, and that this user may read it; if it is damaged, restore a backup", "%s: %v", e.Storage, opened)
	}
	if opened != nil {
		e.db = nil
		e.add(schema, Skip, "", away)
		return away
	}
	e.add(open, OK, "", "%s can be read", e.Storage)
	switch {
	case has > knows:
		e.add(schema, Fail, "install that release, or a later one", "the database was written by a newer release (schema %d, this one knows %d)", has, knows)
	case has < knows:
		e.add(schema, Fail, "start the server of this release: it upgrades the database", "the database has schema %d, and this release needs %d", has, knows)
	default:
		e.add(schema, OK, "", "the database has schema %d, as this release needs", has)
		return ""
	}
	return "the database has the schema of another release"
}

func (e *examination) settings(ctx context.Context, id string) {
	doubts, err := e.db.Doubts(ctx)
	switch {
	case err != nil:
		e.deny(id, err)
	case doubts != nil:
		e.add(id, Fail, "set it back: with such a value, data can be lost or spoilt", "%s", strings.Join(doubts, "; "))
	default:
		e.add(id, OK, "", "the database's settings keep what is written")
	}
}

// mostBehind is how many workspaces are counted whose search is behind.
const mostBehind = 1000

func (e *examination) search(ctx context.Context, id string) {
	now, _, err := e.db.Clock(ctx)
	if err != nil {
		e.deny(id, err)
		return
	}
	behind, err := e.db.Unindexed(ctx, []desk.EventType{desk.ContactCreated, desk.ContactUpdated, desk.ContactDeleted}, now-desk.Time(staleness.Milliseconds()), mostBehind)
	switch {
	case err != nil:
		e.deny(id, err)
	case len(behind) == mostBehind:
		e.add(id, Warn, catchUp, "in %d workspaces or more the search does not know changes that are older than %v", mostBehind, staleness)
	case len(behind) > 0:
		e.add(id, Warn, catchUp, "in %d workspaces, such as %s, the search does not know changes that are older than %v", len(behind), behind[0], staleness)
	default:
		e.add(id, OK, "", "the search knows all changes")
	}
}

const catchUp = "see that a server runs, and wait: it catches up by itself; its log says what it lacks"

// lasting returns a difference of times.
func lasting(t desk.Time) time.Duration { return time.Duration(t) * time.Millisecond }

func (e *examination) inDoubt(ctx context.Context, id string) {
	m, err := e.db.Metrics(ctx, 0)
	switch {
	case err != nil:
		e.deny(id, err)
	case m.InDoubt > 0:
		e.add(id, Warn, "look at the provider whether they were sent, then parley attempt release", "the outcome of %d sends is unknown", m.InDoubt)
	default:
		e.add(id, OK, "", "the outcome of every send is known")
	}
}

// clock compares this machine's clock with the database's, in the middle of the request.
func (e *examination) clock(ctx context.Context, id string) {
	before := e.Now()
	theirs, _, err := e.db.Clock(ctx)
	if err != nil {
		e.deny(id, err)
		return
	}
	took := e.Now().Sub(before)
	ahead := desk.TimeOf(before.Add(took/2)) - theirs
	if d := lasting(ahead).Abs(); d > clocks+took/2 {
		e.add(id, Warn, "synchronize the clocks of both machines, such as with chrony", "this machine's clock and the database's differ by %v", d.Round(100*time.Millisecond))
		return
	}
	e.add(id, OK, "", "this machine's clock agrees with the database's")
}

func (e *examination) integrity(ctx context.Context, id string) {
	wrong, known, err := e.db.Damage(ctx)
	switch {
	case err != nil:
		e.deny(id, err)
	case !known:
		e.add(id, Skip, "run pg_amcheck on the database's server", "PostgreSQL is checked by its own tools")
	case wrong != nil:
		e.add(id, Fail, "keep a copy of the files, then restore a backup", "the database's file is damaged: %s", strings.Join(wrong, "; "))
	default:
		e.add(id, OK, "", "the database's file is sound")
	}
}

// page is how many contacts or files are read at a time.
const page = 500

// identities checks that each contact is found by each of its identities, and that none
// belongs to a contact that does not exist.
func (e *examination) identities(ctx context.Context, id string) {
	workspaces, err := e.db.Workspaces(ctx)
	var lost, stray, contacts int64
	for _, w := range workspaces {
		for before, more := lastID, true; more && err == nil; {
			var list []*desk.Contact
			if list, more, err = e.db.ContactsBefore(ctx, w.ID, before, page); err != nil || len(list) == 0 {
				break
			}
			before = list[len(list)-1].ID
			contacts += int64(len(list))
			var n int64
			n, err = e.unfound(ctx, w.ID, list)
			lost += n
		}
		if err == nil {
			var n int64
			n, err = e.db.StrayClaims(ctx, w.ID)
			stray += n
		}
		if err != nil {
			break
		}
	}
	switch {
	case err != nil:
		e.deny(id, err)
	case lost+stray > 0:
		e.add(id, Fail, "restore a backup, or report this with the version and the history of the installation",
			"%d contacts are not found by one of their identities, and %d identities belong to no contact", lost, stray)
	default:
		e.add(id, OK, "", "each of %d contacts is found by its identities", contacts)
	}
}

var lastID = desk.ID{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}

// unfound counts the contacts that are not found by one of their identities. Others may
// write meanwhile, so a contact that seems to be lost is read again.
func (e *examination) unfound(ctx context.Context, ws desk.ID, list []*desk.Contact) (int64, error) {
	for try := 0; len(list) > 0 && try < 3; try++ {
		var claims []desk.Claim
		for _, c := range list {
			claims = append(claims, c.Claims()...)
		}
		claimed, err := e.db.Claimed(ctx, ws, claims)
		if err != nil {
			return 0, err
		}
		var lost []*desk.Contact
		for _, c := range list {
			if !slices.ContainsFunc(c.Claims(), func(claim desk.Claim) bool { return !slices.Contains(claimed[claim], c.ID) }) {
				continue
			}
			now, _, err := e.db.Contact(ctx, ws, c.ID)
			if err != nil {
				return 0, err
			}
			if now != nil {
				lost = append(lost, now)
			}
		}
		list = lost
	}
	return int64(len(list)), nil
}

// media checks that the content of each file can be read.
func (e *examination) media(ctx context.Context, id string) {
	workspaces, err := e.db.Workspaces(ctx)
	missing, files := 0, 0
	for _, w := range workspaces {
		for after := []byte{}; err == nil; {
			list, listed := e.db.Contents(ctx, w.ID, after, page)
			if err = listed; err != nil || len(list) == 0 {
				break
			}
			for _, c := range list {
				files++
				gone, looked := e.missing(ctx, w.ID, c)
				if looked == nil && gone {
					// It may have been deleted meanwhile.
					again, asked := e.db.Contents(ctx, w.ID, after, page)
					looked, gone = asked, false
					for _, other := range again {
						gone = gone || string(other.SHA256) == string(c.SHA256) && other.Lost == c.Lost
					}
				}
				if err = errors.Join(err, looked); gone {
					missing++
				}
			}
			after = list[len(list)-1].SHA256
		}
	}
	switch {
	case err != nil:
		e.deny(id, err)
	case missing > 0:
		e.add(id, Fail, "copy the missing files from a backup of the same directory", "the content of %d of %d files is missing or too short", missing, files)
	default:
		e.add(id, OK, "", "the content of %d files is there", files)
	}
}

// missing tells whether content can't be read up to its last byte.
func (e *examination) missing(ctx context.Context, ws desk.ID, c store.Content) (bool, error) {
	if c.Lost {
		return true, nil
	}
	content, err := e.db.OpenContent(ctx, ws, c.SHA256)
	if desk.IsType(err, desk.NotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("the content %x: %w", c.SHA256, err)
	}
	end, err := content.Seek(0, io.SeekEnd)
	if err := errors.Join(err, content.Close()); err != nil {
		return false, fmt.Errorf("the content %x: %w", c.SHA256, err)
	}
	return end != c.Size, nil
}
