package console

import (
	"net/url"
	"testing"

	"parley/desk"
)

// conflict lets a program be refused, because two people hold the numbers that it sends.
func (w *world) conflict(one, name, other, otherName string) desk.ID {
	w.t.Helper()
	w.person(one, name, "")
	w.person(other, otherName, "")
	return w.refused(one, other)
}

// refused repeats the refused write. It returns the conflict.
func (w *world) refused(one, other string) desk.ID {
	w.t.Helper()
	op := &desk.Op{Kind: desk.OpUpsert}
	op.Write.Phone = desk.Field[string]{Set: true, Value: one}
	also := desk.Identity{Kind: desk.KindPhone, Value: other}
	op.Write.Identities = desk.Field[[]desk.Identity]{Set: true, Value: []desk.Identity{also}}
	op.Write.Sent = []desk.Identity{{Kind: desk.KindPhone, Value: one}, also}
	if _, err := w.app.Write(w.t.Context(), w.operator(), op); !desk.IsType(err, desk.IdentityConflict) {
		w.t.Fatal(err)
	}
	w.app.Conflicts.StoreNow(w.t.Context())
	list, _, err := w.app.Conflicts.Conflicts(w.t.Context(), w.operator(), desk.ConflictOpen, "", 1)
	if err != nil || len(list) != 1 {
		w.t.Fatal(list, err)
	}
	return list[0].ID
}

// TestConflicts: an agent sees what was refused, and dismisses, moves and merges.
func TestConflicts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei := w.as(w.mei)
	mei.get("/contacts").want(200, `href="/conflicts"`)
	mei.get("/conflicts").want(200, "No open conflicts").golden("conflicts/none")
	id := w.conflict("34612345678", "Lucía", "34612345679", "سارة")
	w.refused("34612345678", "34612345679")
	at := conflictPath(id)
	mei.get("/conflicts").want(200, at, "Lucía", "34 612 34 56 79", `<td class="num" data-l="Times">2</td>`).golden("conflicts/list")
	mei.get("/conflicts?after=x").want(200, at)
	mei.get(at).want(200, "Refused 2 times", "Merge…", "Move…", "Dismiss…").golden("conflicts/open")

	mei.get(at+"/decide").want(200, "Refused 2 times")
	mei.get(at+"/decide?do=x").want(422, "Choose what to do")
	mei.get(at+"/decide?do=merge").want(422, "Choose which contact stays").golden("conflicts/refused")
	mei.get(at + "/decide?do=merge&into=" + w.newID().String()).want(422)
	v, err := w.app.Conflicts.Conflict(t.Context(), w.operator(), id)
	if err != nil {
		t.Fatal(err)
	}
	move := at + "/decide?do=move&identity=" + url.QueryEscape("phone:34612345679") + "&to=" + v.Contacts[0].String()
	mei.get(move).want(200, "34 612 34 56 79 to", "no undo").golden("conflicts/move")
	mei.get(at+"/decide?do=dismiss").want(200, "Dismiss this conflict?").golden("conflicts/dismiss")
	mei.post(at + "/decide?do=dismiss").sends(at + "?done=decided")
	mei.post(at + "/decide?do=dismiss").sends(at + "?done=decided") // sent twice
	mei.post(move).want(409, "Somebody has decided about this conflict already").golden("conflicts/closed")
	mei.get("/conflicts?status=dismissed").want(200, at)
	mei.get("/conflicts").want(200, "No open conflicts")

	id = w.conflict("34612345680", "Ana", "34612345681", "Anna")
	at = conflictPath(id)
	if v, err = w.app.Conflicts.Conflict(t.Context(), w.operator(), id); err != nil {
		t.Fatal(err)
	}
	merge := at + "/decide?do=merge&into=" + v.Contacts[0].String()
	mei.get(merge).want(200, "undone for 30 days").golden("conflicts/merge")
	mei.post(merge).sends(at + "?done=decided")
	mei.get(at).want(200, "Merged into one").lacks("Merge…", "Dismiss…").golden("conflicts/merged")
	mei.get("/contacts/" + v.Contacts[1].String()).want(404)

	id = w.conflict("34612345682", "Bea", "34612345683", "Bo")
	at = conflictPath(id)
	if v, err = w.app.Conflicts.Conflict(t.Context(), w.operator(), id); err != nil {
		t.Fatal(err)
	}
	mei.post(at + "/decide?do=move&identity=phone:34612345683&to=" + v.Contacts[0].String()).sends(at + "?done=decided")
	mei.get(at).want(200, "An address was moved")
	mei.get("/conflicts?status=resolved").want(200, "Bea", "Ana")
}
