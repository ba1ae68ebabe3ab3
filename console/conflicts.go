package console

import (
	"net/url"
	"slices"
	"strings"

	"parley/app/conflicts"
	"parley/desk"
)

// A conflictList is the list of conflicts between contacts.
type conflictList struct {
	Tabs        []tab
	Rows        []conflictRow
	First, Next string
	Empty       nothing
}

// A conflictRow is a conflict in the list.
type conflictRow struct {
	ID            desk.ID
	Href, Names   string
	Addresses     string
	Count, Author string
	At            moment
}

// conflictStates are the words for the statuses of conflicts.
var conflictStates = map[desk.ConflictStatus]pill{
	desk.ConflictOpen:      {"Open", "warn"},
	desk.ConflictResolved:  {"Resolved", "good"},
	desk.ConflictDismissed: {"Dismissed", ""},
}

// noConflicts are the texts of empty lists.
var noConflicts = map[desk.ConflictStatus]nothing{
	desk.ConflictOpen:      {"No open conflicts", "When something can't be saved because its addresses belong to different people, those people will be here.", "/contacts", "See the contacts"},
	desk.ConflictResolved:  {"Nothing resolved yet", "Conflicts that ended with a merge or a moved address will be here.", "/conflicts", "See open ones"},
	desk.ConflictDismissed: {"Nothing dismissed", "Conflicts that somebody called right as they are will be here.", "/conflicts", "See open ones"},
}

func conflictPath(id desk.ID) string { return "/conflicts/" + id.String() }

func (s *Server) conflicts(c *call) error {
	status, err := desk.ParseConflictStatus(c.query("status"))
	if err != nil {
		status = desk.ConflictOpen
	}
	base := func(status desk.ConflictStatus) string {
		if status == desk.ConflictOpen {
			return "/conflicts"
		}
		return "/conflicts?status=" + string(status)
	}
	page := conflictList{Empty: noConflicts[status]}
	for _, each := range []desk.ConflictStatus{desk.ConflictOpen, desk.ConflictResolved, desk.ConflictDismissed} {
		page.Tabs = append(page.Tabs, tab{Label: conflictStates[each].Text, Href: base(each), Here: each == status})
	}
	var list []*conflicts.Named
	next := ""
	after, err := c.fromCursor(func(after string) (err error) {
		list, next, err = s.app.Conflicts.Conflicts(c.r.Context(), c.p, status, after, pageRows)
		return err
	})
	if err != nil {
		return err
	}
	if after != "" {
		page.First = base(status)
	}
	if next != "" {
		page.Next = with(base(status), "after", next)
	}
	for _, v := range list {
		page.Rows = append(page.Rows, conflictRow{
			ID: v.ID, Href: conflictPath(v.ID), Names: conflictNames(v), Addresses: conflictAddresses(v),
			Count: count(int(v.Count)), Author: capital(c.actorName(v.Actor)), At: c.when(v.LastAt),
		})
	}
	return c.show("conflicts", view{Title: "Conflicts", Data: page})
}

// conflictNames names the contacts of a conflict.
func conflictNames(v *conflicts.Named) string {
	var names []string
	for _, id := range v.Contacts {
		name := v.Names[id]
		if name == "" {
			name = "Without a name"
		}
		names = append(names, apart(name))
	}
	return firstFew(names)
}

// conflictAddresses names what was refused.
func conflictAddresses(v *conflicts.Named) string {
	var list []string
	for _, i := range slices.Backward(v.Identities) {
		list = append(list, apart(identityText(i)))
	}
	return firstFew(list)
}

// A conflictPage is the page of a conflict.
type conflictPage struct {
	ID         desk.ID
	Action     string
	State      pill
	Open       bool
	MayDecide  bool
	Times      string
	Author     string
	First, At  moment
	Sides      []mergeSide
	Rows       []compareRow
	Identities []refused
	People     *field // who gets a moved address
	Address    *field // which
	Decided    string
	By         string
	DecidedAt  moment
	More       string // the contacts that the page does not show; "": none
}

// A compareRow is a field with the values of the contacts, one after the other.
type compareRow struct {
	Label  string
	Values []compared
}

type compared struct{ Name, Value string }

// A refused is an address that was refused, and who holds it now.
type refused struct{ Kind, Value, Holder, Href string }

// mostCompared is how many contacts of a conflict a page shows.
const mostCompared = 10

// conflictDecisions say how a conflict was decided.
var conflictDecisions = map[desk.ConflictAction]string{
	desk.ConflictMerge:   "Merged into one",
	desk.ConflictMove:    "An address was moved",
	desk.ConflictDismiss: "Dismissed: all is right as it is",
}

func (s *Server) conflict(c *call) error {
	v, err := c.conflictView()
	if err != nil {
		return err
	}
	return c.show("conflict", v)
}

func (c *call) conflictView() (view, error) {
	ctx := c.r.Context()
	v, err := c.s.app.Conflicts.Conflict(ctx, c.p, c.id("id"))
	if err != nil {
		return view{}, err
	}
	ids := v.Contacts[:min(len(v.Contacts), mostCompared)]
	people, err := c.s.app.ContactsByID(ctx, c.p, ids)
	if err != nil {
		return view{}, err
	}
	p := conflictPage{
		ID: v.ID, Action: conflictPath(v.ID) + "/decide", State: conflictStates[v.Status], Open: v.Status == desk.ConflictOpen, MayDecide: c.may(desk.ContactsMerge),
		Times: several(int(v.Count), "time"), Author: c.actorName(v.Actor), First: c.when(v.FirstAt), At: c.when(v.LastAt),
	}
	if more := len(v.Contacts) - len(ids); more > 0 {
		p.More = several(more, "more contact")
	}
	var texts []map[string]string
	var choices []choice
	holders := map[desk.Claim]mergeSide{}
	for _, id := range ids {
		contact := people[id]
		if contact == nil {
			continue
		}
		side, text := sideOf(c, contact), c.mergeTexts(contact)
		var also []string
		for _, i := range contact.Further[:min(len(contact.Further), mostCompared)] {
			also = append(also, kindLabel(i.Kind)+" "+identityText(i))
		}
		if more := len(contact.Further) - len(also); more > 0 {
			also = append(also, "and "+count(more)+" more")
		}
		text["identities"] = strings.Join(also, ", ")
		for _, i := range contact.Identities() {
			holders[i.Claim()] = side
		}
		p.Sides, texts = append(p.Sides, side), append(texts, text)
		choices = append(choices, choice{Value: id.String(), Label: side.Name + ", " + side.Address})
	}
	for _, name := range append(c.mergeFields(), "identities") {
		row, held := compareRow{Label: c.mergeLabel(name)}, false
		for i, text := range texts {
			row.Values = append(row.Values, compared{p.Sides[i].Name, text[name]})
			held = held || text[name] != ""
		}
		if held {
			p.Rows = append(p.Rows, row)
		}
	}
	var addresses []choice
	for _, i := range slices.Backward(v.Identities) {
		row := refused{Kind: kindLabel(i.Kind), Value: identityText(i)}
		if side, held := holders[i.Claim()]; held {
			row.Holder, row.Href = side.Name, side.Path
			addresses = append(addresses, choice{Value: i.Kind + ":" + i.Value, Label: row.Kind + " " + row.Value + ", now of " + side.Name})
		}
		p.Identities = append(p.Identities, row)
	}
	if len(addresses) > 0 {
		p.Address = (&form{}).Field("identity", "Address", "", "").Of(addresses)
		p.People = (&form{}).Field("to", "Belongs to", "", "").Of(choices)
	}
	if r := v.Resolution; r != nil {
		p.Decided, p.By, p.DecidedAt = conflictDecisions[r.Decision.Action], c.actorName(r.Actor), c.when(r.At)
	}
	return view{Title: "Conflict", Data: p}, nil
}

// decision returns the decision for which the address of the page asks.
func (c *call) decision() (d desk.ConflictDecision, err error) {
	d.Action = desk.ConflictAction(c.query("do"))
	switch d.Action {
	case desk.ConflictMerge:
		d.Into, _ = desk.ParseID(c.query("into"))
		if d.Into.IsZero() {
			err = desk.Invalidf("choose which contact stays")
		}
	case desk.ConflictMove:
		kind, value, _ := strings.Cut(c.query("identity"), ":")
		d.Identity = desk.Identity{Kind: kind, Value: value}
		d.To, _ = desk.ParseID(c.query("to"))
	case desk.ConflictDismiss:
	default:
		err = desk.Invalidf("choose what to do")
	}
	return d, err
}

// askDecision asks before a decision about a conflict is carried out, if it can be.
// Without one, it shows the conflict.
func (s *Server) askDecision(c *call) error {
	if c.query("do") == "" {
		return s.conflict(c)
	}
	d, err := c.decision()
	var v *conflicts.Named
	if err == nil {
		v, err = s.app.Conflicts.Try(c.r.Context(), c.p, c.id("id"), d)
	}
	if err != nil {
		return c.undecided(err)
	}
	name := func(id desk.ID) string {
		if v.Names[id] == "" {
			return "the contact without a name"
		}
		return apart(v.Names[id])
	}
	path := conflictPath(v.ID)
	q := url.Values{"do": {string(d.Action)}}
	page := confirmation{Back: path}
	switch d.Action {
	case desk.ConflictMerge:
		q.Set("into", d.Into.String())
		page.Heading, page.Button = "Merge these "+count(len(v.Contacts))+" contacts into "+name(d.Into)+"?", "Merge"
		page.Text = []string{
			name(d.Into) + " gets the addresses, conversations and files of the others. Where both have a value, that of " + name(d.Into) + " stays.",
			"An address that is no longer in its field stays as a further address, so this person is still found by it.",
			"The merge can be undone for 30 days.",
		}
	case desk.ConflictMove:
		q.Set("identity", d.Identity.Kind+":"+d.Identity.Value)
		q.Set("to", d.To.String())
		page.Heading, page.Button = "Move "+apart(identityText(d.Identity))+" to "+name(d.To)+"?", "Move"
		page.Text = []string{
			"Whoever has this address now loses it, also in its field. " + name(d.To) + " gets it as a further address.",
			"Conversations stay where they are. There is no undo: to take it back, remove the address there, and add it here.",
		}
	case desk.ConflictDismiss:
		page.Heading, page.Button = "Dismiss this conflict?", "Dismiss"
		page.Text = []string{"All contacts stay as they are. The same conflict is not shown among the open ones again, even if something is refused for it later."}
	}
	page.Action = path + "/decide?" + q.Encode()
	return c.confirm(page)
}

func (s *Server) decide(c *call) error {
	d, err := c.decision()
	var v *conflicts.Named
	if err == nil {
		v, err = s.app.Conflicts.Resolve(c.r.Context(), c.p, c.id("id"), d)
	}
	if err != nil {
		return c.undecided(err)
	}
	return c.see(conflictPath(v.ID), "decided")
}

// undecided shows the conflict with the reason why a decision was refused.
func (c *call) undecided(err error) error {
	if !desk.IsType(err, desk.InvalidRequest) && !desk.IsType(err, desk.ConflictClosed) {
		return err
	}
	v, readErr := c.conflictView()
	if readErr != nil {
		return readErr
	}
	return c.again("conflict", v, err)
}
