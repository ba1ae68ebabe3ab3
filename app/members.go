package app

import (
	"bytes"
	"cmp"
	"slices"

	"parley/app/cursors"
	"parley/desk"
)

// Members returns a page of the workspace's members by name, and the cursor of the next
// page, "" if there is none. It returns InvalidRequest for a cursor that was not given out
// for this list.
func (a *App) Members(p desk.Principal, cursor string, limit int) ([]*desk.Member, string, error) {
	list := cursors.List{Workspace: p.Workspace(), Name: "members"}
	all := p.Settings.Members()
	if cursor != "" {
		place, err := a.cursors.Open(list, cursor)
		if err != nil {
			return nil, "", err
		}
		id, name := place[:len(desk.ID{})], string(place[len(desk.ID{}):])
		i := slices.IndexFunc(all, func(m *desk.Member) bool {
			return cmp.Or(cmp.Compare(m.Name, name), bytes.Compare(m.ID[:], id)) > 0
		})
		if i < 0 {
			i = len(all)
		}
		all = all[i:]
	}
	size := desk.NewPageSize(limit)
	n := 0
	for n < len(all) && size.Add(all[n].ListBytes()) {
		n++
	}
	if n == len(all) {
		return all, "", nil
	}
	last := all[n-1]
	return all[:n], a.cursors.Seal(list, append(last.ID[:], last.Name...)), nil
}
