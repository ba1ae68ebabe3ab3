package app_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/app/merges"
	"parley/desk"
	"parley/provider"
)

var mergeModels = flag.Int("merge-models", 5, "TestMerge_model: how many merges are undone after random changes. Long run: -run 'TestMerge_model|TestPostgres/TestMerge_model' -merge-models 10000 -timeout 2h")

// mergesInAWorld is how many merges TestMerge_model makes in one workspace: a round reads all
// attempts of it.
const mergesInAWorld = 250

// mergeFields are the fields that a merge decides about. The first three are handles.
var mergeFields = []string{"external_id", "email", "phone", "name", "note", "owner", "attributes.plan"}

// A mergePerson is a contact as the model of merges sees it.
type mergePerson struct {
	fields  map[string]string
	further map[desk.Identity]bool
}

func mergePersonOf(c *desk.Contact) mergePerson {
	p := mergePerson{map[string]string{"external_id": c.ExternalID, "email": c.Email, "phone": c.Phone, "name": c.Name, "note": c.Note, "attributes.plan": strings.TrimSuffix(c.Attributes.JSON(), "{}")}, map[desk.Identity]bool{}}
	if c.Owner != nil {
		p.fields["owner"] = c.Owner.Name
	}
	for _, i := range c.FurtherIdentities() {
		p.further[i] = true
	}
	return p
}

func (p mergePerson) clone() mergePerson {
	return mergePerson{maps.Clone(p.fields), maps.Clone(p.further)}
}

// String is the person in a form that can be compared.
func (p mergePerson) String() string {
	var b strings.Builder
	for _, f := range mergeFields {
		fmt.Fprintf(&b, "%s=%q ", f, p.fields[f])
	}
	var further []string
	for i := range p.further {
		further = append(further, i.Kind+":"+i.Value)
	}
	slices.Sort(further)
	return fmt.Sprint(b.String(), further)
}

// handle is the identity in a field, if it is one of the three that have one.
func (p mergePerson) handle(field string) (i desk.Identity, ok bool) {
	if value := p.fields[field]; value != "" && slices.Contains(mergeFields[:3], field) {
		return desk.Identity{Kind: field, Value: value}, true
	}
	return i, false
}

func (p mergePerson) holds(claim desk.Claim) bool {
	for _, field := range mergeFields[:3] {
		if i, ok := p.handle(field); ok && i.Claim() == claim {
			return true
		}
	}
	for i := range p.further {
		if i.Claim() == claim {
			return true
		}
	}
	return false
}

// merged is the person after another one was merged into it, and the fields that it got from
// the other one, with the values that it had before.
func (p mergePerson) merged(from mergePerson, take []string) (both mergePerson, given map[string]string) {
	both, given = p.clone(), map[string]string{}
	maps.Copy(both.further, from.further)
	for _, field := range mergeFields {
		own, others := p.fields[field], from.fields[field]
		if others == "" || own == others {
			continue
		}
		loser := from
		if own == "" || slices.Contains(take, field) {
			both.fields[field], given[field], loser = others, own, p
		}
		if i, ok := loser.handle(field); ok {
			both.further[i] = true
		}
	}
	for _, field := range mergeFields[:3] {
		if i, ok := both.handle(field); ok {
			delete(both.further, i)
		}
	}
	return both, given
}

// A mergeUndo is what the model of an undo looks at.
type mergeUndo struct {
	from, both, now, third mergePerson // as it was, after the merge, before the undo
	given                  map[string]string
	missing                map[desk.NotRestored]bool
}

func (u *mergeUndo) miss(field string, reason desk.NotRestoredReason) {
	u.missing[desk.NotRestored{Field: field, Reason: reason}] = true
}

// stays returns why a handle does not return; "": it does.
func (u *mergeUndo) stays(i desk.Identity) desk.NotRestoredReason {
	if u.third.holds(i.Claim()) {
		return desk.RestoreTaken
	}
	for _, field := range mergeFields[:3] {
		own, ok := u.now.handle(field)
		_, given := u.given[field]
		if ok && own.Claim() == i.Claim() && (!given || own.Value != u.both.fields[field]) {
			return desk.RestoreChanged
		}
	}
	return ""
}

// undone returns both people after the undo.
func (u *mergeUndo) undone() (into, from mergePerson) {
	into, from = u.now.clone(), u.from.clone()
	back := map[desk.Claim]bool{}
	for _, field := range mergeFields[:3] {
		i, ok := from.handle(field)
		if !ok {
			continue
		}
		if reason := u.stays(i); reason != "" {
			u.miss(field, reason)
			from.fields[field] = ""
			continue
		}
		back[i.Claim()] = true
	}
	for i := range u.from.further {
		if reason := u.stays(i); reason != "" {
			u.miss("identities", reason)
			delete(from.further, i)
			continue
		}
		back[i.Claim()] = true
	}
	for field, was := range u.given {
		if u.now.fields[field] != u.both.fields[field] {
			u.miss(field, desk.RestoreChanged)
			continue
		}
		into.fields[field] = was
		if i, ok := into.handle(field); ok {
			delete(into.further, i)
			if u.third.holds(i.Claim()) {
				u.miss(field, desk.RestoreTaken)
				into.fields[field] = ""
			}
		}
	}
	maps.DeleteFunc(into.further, func(i desk.Identity, _ bool) bool { return back[i.Claim()] })
	return into, from
}

// A mergeTalks is the conversations of two contacts, and what is with them.
type mergeTalks struct {
	talks    map[desk.ID]*desk.Conversation
	messages map[desk.ID][]*desk.Message // of each conversation, newest first
	windows  map[desk.WindowRef]desk.Window
	doubts   map[desk.ID]*desk.Attempt
}

// talksOf reads the conversations of contacts, of which some may not exist.
func (w *world) talksOf(channels []desk.ID, contacts ...desk.ID) *mergeTalks {
	w.t.Helper()
	v := &mergeTalks{talks: map[desk.ID]*desk.Conversation{}, messages: map[desk.ID][]*desk.Message{}, doubts: map[desk.ID]*desk.Attempt{}}
	var refs []desk.WindowRef
	for _, contact := range contacts {
		list, _, err := w.Conversations(w.t.Context(), w.caller(), desk.ConversationFilter{Contact: contact}, "", 200)
		must(w.t, err)
		for _, c := range list {
			v.talks[c.ID], v.messages[c.ID] = c, w.messages(c.ID)
		}
		for _, channel := range channels {
			refs = append(refs, desk.WindowRef{Channel: channel, Contact: contact})
		}
	}
	var err error
	v.windows, err = w.file.Windows(w.t.Context(), w.ws, refs)
	must(w.t, err)
	for _, at := range w.attempts() {
		if at.Phase == desk.InDoubt && slices.Contains(contacts, at.Plan.Contact) {
			v.doubts[at.ID] = at
		}
	}
	return v
}

// open returns the open conversation of a contact on a channel, or nil.
func (v *mergeTalks) open(channel, contact desk.ID) *desk.Conversation {
	for _, c := range v.talks {
		if c.ChannelID == channel && c.ContactID == contact && c.Status == desk.StatusOpen {
			return c
		}
	}
	return nil
}

// loses tells whether a conversation is closed beside another one, when their contacts are merged.
func loses(c, other *desk.Conversation) bool {
	if c.Talk.WaitingSince > 0 != (other.Talk.WaitingSince > 0) {
		return other.Talk.WaitingSince > 0
	}
	if c.LastMessageAt != other.LastMessageAt {
		return c.LastMessageAt < other.LastMessageAt
	}
	return c.ID.Compare(other.ID) < 0
}

// A mergeRound merges two people, lets much happen to them, and undoes the merge.
type mergeRound struct {
	*world
	*rand.Rand
	n        int
	channels []desk.ID
	into, by desk.ID // by was merged
	third    desk.ID // zero until it is needed
	before   [2]mergePerson
}

// TestMerge_model merges two people, writes to them, receives from both, answers, sends, lets a
// third person take handles, and undoes the merge. What returns, and what does not, is as the
// model says.
func TestMerge_model(t *testing.T) {
	t.Parallel()
	for begin := 0; begin < *mergeModels; begin += mergesInAWorld {
		t.Run(fmt.Sprint("from=", begin), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.checkpoints()
			channels := []desk.ID{w.channel, w.addChannel()}
			_, _, err := w.PutAttribute(t.Context(), w.operator(), desk.AttributeInput{Key: "plan", Label: text("Plan"), Type: text("text")})
			must(t, err)
			for n := begin; n < min(begin+mergesInAWorld, *mergeModels); n++ {
				r := &mergeRound{world: w, Rand: rand.New(rand.NewPCG(3, uint64(n))), n: n, channels: channels}
				r.into, r.by = w.drawn(r.Rand, channels, n, 0), w.drawn(r.Rand, channels, n, 1)
				if r.run(); t.Failed() {
					t.Fatalf("in round %d", n)
				}
			}
		})
	}
}

func (r *mergeRound) run() {
	t := r.t
	t.Helper()
	into, from := mergePersonOf(r.contact(r.into)), mergePersonOf(r.contact(r.by))
	r.before = [2]mergePerson{into, from}
	was := r.talksOf(r.channels, r.into, r.by)
	created := r.contact(r.by).CreatedAt
	take := slices.DeleteFunc(slices.Clone(mergeFields), func(string) bool { return r.IntN(2) == 0 })
	r.clock.advance(time.Second)
	m, err := r.Merges.Do(t.Context(), r.caller(), merges.Request{Into: r.into, From: r.by, Take: take})
	must(t, err)
	both, given := into.merged(from, take)
	if got := mergePersonOf(r.contact(r.into)); got.String() != both.String() {
		t.Errorf("merged: %v\nwant %v", got, both)
	}
	var closed []desk.ID
	for _, channel := range r.channels {
		if one, other := was.open(channel, r.by), was.open(channel, r.into); one != nil && other != nil {
			if !loses(one, other) {
				one = other
			}
			closed = append(closed, one.ID)
		}
	}
	if !sameIDs(closed, m.Moved.Closed) {
		t.Errorf("the merge closed %v, want %v", m.Moved.Closed, closed)
	}

	for range 3 + r.IntN(12) {
		r.clock.advance(time.Second)
		r.happens()
	}

	u := &mergeUndo{from: from, both: both, now: mergePersonOf(r.contact(r.into)), third: mergePerson{}, given: given, missing: map[desk.NotRestored]bool{}}
	if !r.third.IsZero() {
		u.third = mergePersonOf(r.contact(r.third))
	}
	now := r.talksOf(r.channels, r.into)
	tried, err := r.Merges.TryUndo(t.Context(), r.caller(), m.ID)
	must(t, err)
	undone, err := r.Merges.Undo(t.Context(), r.caller(), m.ID)
	must(t, err)

	wantInto, wantFrom := u.undone()
	if got := mergePersonOf(r.contact(r.into)); got.String() != wantInto.String() {
		t.Errorf("the survivor: %v\nwant %v", got, wantInto)
	}
	if got := mergePersonOf(r.contact(r.by)); got.String() != wantFrom.String() || r.contact(r.by).CreatedAt != created {
		t.Errorf("the other: %v\nwant %v", got, wantFrom)
	}
	if !r.third.IsZero() && mergePersonOf(r.contact(r.third)).String() != u.third.String() {
		t.Error("a third contact has changed")
	}
	r.wantApart(u, m, was, now, r.talksOf(r.channels, r.into, r.by), wantFrom)
	if got := slices.Collect(maps.Keys(u.missing)); !sameMissing(got, undone.NotRestored) || !sameMissing(got, tried.NotRestored) {
		t.Errorf("not restored: %v, a dry run said %v; want %v", undone.NotRestored, tried.NotRestored, got)
	}
}

// wantApart compares the conversations after an undo with what the model makes of those before
// the merge, and before the undo.
func (r *mergeRound) wantApart(u *mergeUndo, m *desk.Merge, was, now, got *mergeTalks, from mergePerson) {
	t := r.t
	t.Helper()
	if len(got.talks) != len(now.talks) || len(got.doubts) != len(now.doubts) {
		t.Errorf("%d conversations and %d sends in doubt, want %d and %d", len(got.talks), len(got.doubts), len(now.talks), len(now.doubts))
	}
	owner := func(id desk.ID) desk.ID {
		if c := was.talks[id]; c != nil && c.ContactID == r.by {
			return r.by
		}
		return r.into
	}
	want := map[desk.ID]desk.ConversationStatus{}
	for id, c := range now.talks {
		want[id] = c.Status
	}
	for _, id := range m.Moved.Closed {
		taken := false
		for other, status := range want {
			taken = taken || status == desk.StatusOpen && owner(other) == owner(id) && now.talks[other].ChannelID == now.talks[id].ChannelID
		}
		if want[id] == desk.StatusClosed && !taken {
			want[id] = desk.StatusOpen
		} else {
			u.miss("conversations", desk.RestoreChanged)
		}
	}
	for id, status := range want {
		c := got.talks[id]
		if c == nil || c.ContactID != owner(id) || c.Status != status {
			t.Errorf("the conversation %v: %+v, want %s of %v", id, c, status, owner(id))
			continue
		}
		if fmt.Sprint(messageIDs(got.messages[id])) != fmt.Sprint(messageIDs(now.messages[id])) {
			t.Errorf("the messages of %v: %v, want %v", id, messageIDs(got.messages[id]), messageIDs(now.messages[id]))
		}
		for _, said := range got.messages[id] {
			if said.Attachment != nil && said.Attachment.ContactID != owner(id) {
				t.Errorf("the file %v is %v's, want %v", said.Media, said.Attachment.ContactID, owner(id))
			}
		}
	}
	for id, at := range got.doubts {
		holder := r.into
		if to := (desk.Identity{Kind: desk.KindPhone, Value: at.Plan.Canonical()}); from.holds(to.Claim()) {
			holder = r.by
		}
		if at.Plan.Contact != holder {
			t.Errorf("the send in doubt %v to %s is %v's, want %v", id, at.Plan.Canonical(), at.Plan.Contact, holder)
		}
	}
	for _, channel := range r.channels {
		both := was.windows[desk.WindowRef{Channel: channel, Contact: r.into}].With(was.windows[desk.WindowRef{Channel: channel, Contact: r.by}])
		merged := now.windows[desk.WindowRef{Channel: channel, Contact: r.into}]
		for _, contact := range []desk.ID{r.into, r.by} {
			ref := desk.WindowRef{Channel: channel, Contact: contact}
			want, talked := was.windows[ref], false
			for id, list := range got.messages {
				c := got.talks[id]
				if c.ContactID != contact || c.ChannelID != channel {
					continue
				}
				talked = true
				for _, said := range list {
					if said.Direction == desk.Inbound && said.TS > both.OpenedAt && said.TS > want.OpenedAt {
						want.OpenedAt, want.Number = said.TS, ""
					}
				}
			}
			if want.OpenedAt == merged.OpenedAt {
				want.Number = merged.Number
			}
			if merged.RepliedAt > both.RepliedAt {
				want.Replied(merged.RepliedAt)
			}
			if talked && got.windows[ref] != want {
				t.Errorf("the window %+v, want %+v", got.windows[ref], want)
			}
		}
	}
}

// happens lets one thing happen to the merged contact.
func (r *mergeRound) happens() {
	t := r.t
	t.Helper()
	c := r.contact(r.into)
	numbers := c.Numbers()
	var number string
	if len(numbers) > 0 {
		number = numbers[r.IntN(len(numbers))]
	}
	list, _, err := r.Conversations(t.Context(), r.caller(), desk.ConversationFilter{Contact: r.into}, "", 200)
	must(t, err)
	key := r.clock.newID().String()
	switch what := r.IntN(12); {
	case what < 3:
		r.patch()
	case what < 6 && number != "":
		in := provider.InboundMessage{ExternalID: key, Number: number, Text: "Hello", At: desk.TimeOf(r.clock.now())}
		if what == 5 {
			in.Kind, in.Media = desk.KindImage, &provider.InboundMedia{Ref: key}
		}
		_, err := r.Receive(t.Context(), r.ws, r.channels[r.IntN(2)], in)
		must(t, err)
	case what == 6 && len(list) > 0:
		_, err := r.replies(key, list[r.IntN(len(list))].ID)
		r.mayRefuse(err, desk.ConversationNotOpen, desk.WindowClosed, desk.RecipientUnreachable)
	case what == 7 && number != "":
		must(t, r.send(key, to(number), on(r.channels[r.IntN(2)])).err)
	case what == 8 && number != "":
		r.inDoubt(key, to(number), on(r.channels[r.IntN(2)]))
	case what == 9 && len(list) > 0:
		status := []desk.ConversationStatus{desk.StatusOpen, desk.StatusClosed}[r.IntN(2)]
		_, err := r.SetStatus(t.Context(), r.caller(), list[r.IntN(len(list))].ID, status, nil)
		r.mayRefuse(err, desk.ConversationOpen)
	case what == 10 && len(c.Identities()) > 0:
		if r.third.IsZero() {
			r.third = r.put(mailed(fmt.Sprintf("third%d@example.com", r.n))).ID
		}
		taken := c.Identities()[r.IntN(len(c.Identities()))]
		_, err := r.Write(t.Context(), r.caller(), &desk.Op{Kind: desk.OpMove, ByID: true, Target: r.third, Remove: []desk.Identity{taken}})
		must(t, err)
	case what == 11 && len(c.Further) > 0:
		_, err := r.Write(t.Context(), r.caller(), &desk.Op{Kind: desk.OpRemoveIdentity, ByID: true, Target: r.into, Remove: []desk.Identity{c.Further[r.IntN(len(c.Further))]}})
		must(t, err)
	}
}

// patch writes a field of the merged contact: clears it, or writes a new value, or one that one
// of the two had.
func (r *mergeRound) patch() {
	field := mergeFields[r.IntN(len(mergeFields))]
	value := r.before[r.IntN(2)].fields[field]
	if field == "attributes.plan" {
		value = fmt.Sprint("plan", r.IntN(2)) // as the two may have it
	}
	if new := map[string]string{"external_id": "own-" + r.clock.newID().String(), "email": fmt.Sprintf("new%d.%d@example.com", r.n, r.IntN(1000)), "phone": fmt.Sprintf("90533%07d", 10*r.n+r.IntN(10))}[field]; r.IntN(3) == 0 {
		if value = new; new == "" && field != "owner" {
			value = fmt.Sprint("new ", r.IntN(1000))
		}
	}
	sent := text(value)
	if r.IntN(4) == 0 || value == "" {
		sent = desk.Field[string]{Set: true, Null: true}
	}
	op := &desk.Op{Kind: desk.OpPatch, ByID: true, Target: r.into}
	if i := (desk.Identity{Kind: field, Value: value}); sent.Has() && slices.Contains(mergeFields[:3], field) {
		op.Write.Sent = []desk.Identity{i}
	}
	switch field {
	case "external_id":
		op.Write.ExternalID = sent
	case "email":
		op.Write.Email = sent
	case "phone":
		op.Write.Phone = sent
	case "name":
		op.Write.Name = sent
	case "note":
		op.Write.Note = sent
	case "owner":
		op.Write.Owner = desk.Field[desk.Reference]{Set: true, Null: true}
		if sent.Has() {
			op.Write.Owner = refer([]string{"grace@example.com", "ada@example.com"}[r.IntN(2)])
		}
	default:
		v := desk.AttributeWrite{Key: "plan"}
		if sent.Has() {
			v.Value = desk.Value{Kind: desk.StringValue, Text: value}
		}
		op.Write.Attributes = desk.Field[[]desk.AttributeWrite]{Set: true, Value: []desk.AttributeWrite{v}}
	}
	_, err := r.Write(r.t.Context(), r.caller(), op)
	r.mayRefuse(err, desk.IdentityConflict)
}

// mayRefuse fails on an error that is of no such type.
func (r *mergeRound) mayRefuse(err error, types ...desk.ErrorType) {
	r.t.Helper()
	if e := (*desk.Error)(nil); err != nil && (!errors.As(err, &e) || !slices.Contains(types, e.Type)) {
		r.t.Fatal(err)
	}
}

func sameIDs(a, b []desk.ID) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.SortFunc(a, desk.ID.Compare)
	slices.SortFunc(b, desk.ID.Compare)
	return slices.Equal(a, b)
}

func sameMissing(a, b []desk.NotRestored) bool {
	text := func(list []desk.NotRestored) []string {
		var names []string
		for _, m := range list {
			names = append(names, m.Field+" "+string(m.Reason))
		}
		slices.Sort(names)
		return names
	}
	return slices.Equal(text(a), text(b))
}

func messageIDs(list []*desk.Message) (ids []desk.ID) {
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	return ids
}
