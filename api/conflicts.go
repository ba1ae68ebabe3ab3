package api

import (
	"net/http"
	"strconv"

	"parley/app/conflicts"
	"parley/desk"
)

func (s *Server) listConflicts(c *call) (answer, error) {
	q, page, err := listQuery(c.r.URL.RawQuery, "status")
	if err != nil {
		return answer{}, err
	}
	status := desk.ConflictOpen
	if q.Has("status") {
		if status, err = desk.ParseConflictStatus(q.Get("status")); err != nil {
			return answer{}, err
		}
	}
	list, next, err := s.app.Conflicts.Conflicts(c.r.Context(), c.principal, status, page.cursor, page.limit)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, list, c.appendConflict, next)}, nil
}

func (s *Server) getConflict(c *call) (answer, error) {
	return c.conflict(s.app.Conflicts.Conflict(c.r.Context(), c.principal, c.id()))
}

// resolveConflict answers POST /conflicts/{id}/resolve.
func (s *Server) resolveConflict(c *call) (answer, error) {
	var d desk.ConflictDecision
	var action desk.Field[string]
	var into, to desk.Field[desk.ID]
	var identity desk.Field[desk.Identity]
	take, dry := false, false
	err := c.decode(maxBody, func(r *decoder) error {
		return r.object(func(name string) (err error) {
			switch name {
			case "action":
				return field(r, &action, r.text)
			case "into":
				return field(r, &into, r.id)
			case "to":
				return field(r, &to, r.id)
			case "take":
				take = true
				d.Take, err = r.take()
				return err
			case "identity":
				return field(r, &identity, func() (desk.Identity, error) { return r.identity(c.principal.Settings.Country) })
			case dryRun:
				dry, err = r.bool()
				return err
			}
			return r.unknown(name, "action", "into", "take", "identity", "to", dryRun)
		})
	})
	if err != nil {
		return answer{}, err
	}
	d.Action, d.Into, d.To, d.Identity = desk.ConflictAction(action.Value), into.Value, to.Value, identity.Value
	merge, move := d.Action == desk.ConflictMerge, d.Action == desk.ConflictMove
	switch {
	case !action.Has() || !merge && !move && d.Action != desk.ConflictDismiss:
		err = desk.InvalidAt("/action", "send merge, move or dismiss")
	case into.Has() != merge:
		err = desk.InvalidAt("/into", "it belongs to merge: the contact into which the others are merged")
	case take && !merge:
		err = desk.InvalidAt("/take", "it belongs to merge")
	case to.Has() != move:
		err = desk.InvalidAt("/to", "it belongs to move: the contact that gets the identity")
	case identity.Has() != move:
		err = desk.InvalidAt("/identity", "it belongs to move: what the contact gets")
	}
	if err != nil {
		return answer{}, err
	}
	if dry {
		found, err := s.app.Conflicts.Try(c.r.Context(), c.principal, c.id(), d)
		if err == nil {
			c.dryRun()
		}
		return c.conflict(found, err)
	}
	return c.conflict(s.app.Conflicts.Resolve(c.r.Context(), c.principal, c.id(), d))
}

// conflict answers with one conflict, or with the error.
func (c *call) conflict(v *conflicts.Named, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, v, c.appendConflict)}, nil
}

func (c *call) appendConflict(b []byte, v *conflicts.Named) []byte {
	return appendConflict(b, v.Conflict, v.Names, c.principal.Settings)
}

func appendConflict(b []byte, v *desk.Conflict, names map[desk.ID]string, s *desk.Settings) []byte {
	b = appendID(append(b, `{"id":`...), v.ID)
	b = append(append(append(b, `,"status":"`...), v.Status...), `","contacts":`...)
	b = appendArray(b, v.Contacts, func(b []byte, id desk.ID) []byte {
		b = appendID(append(b, `{"id":`...), id)
		return append(appendText(append(b, `,"name":`...), names[id]), '}')
	})
	b = appendIdentities(append(b, `,"identities":`...), v.Identities)
	b = strconv.AppendInt(append(b, `,"count":`...), v.Count, 10)
	b = appendTime(append(b, `,"first_at":`...), v.FirstAt)
	b = appendTime(append(b, `,"last_at":`...), v.LastAt)
	b = appendActor(append(b, `,"actor":`...), v.Actor, s)
	b = append(b, `,"resolution":`...)
	r := v.Resolution
	if r == nil {
		return append(b, "null}"...)
	}
	b = append(append(append(b, `{"action":"`...), r.Decision.Action...), `","at":`...)
	b = appendActor(append(appendTime(b, r.At), `,"actor":`...), r.Actor, s)
	return append(appendArray(append(b, `,"merge_ids":`...), r.Merges, appendID), "}}"...)
}
