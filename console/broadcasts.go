package console

import (
	"cmp"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"parley/desk"
	"parley/transfer"
)

// A broadcastList is the list of broadcasts.
type broadcastList struct {
	New         string // ""; the member may not make one
	Tabs        []tab
	Rows        []broadcastRow
	First, Next string
	Empty       nothing
}

// A broadcastRow is a broadcast in the list.
type broadcastRow struct {
	ID                   desk.ID
	Href, Name, Template string
	State                pill
	Standing             string
	People, Sent, Failed string
	Skipped              string
	At                   moment
}

// A broadcastPage is the page of a broadcast.
type broadcastPage struct {
	ID       desk.ID
	Href     string
	Name     string
	State    pill
	Standing string // why it waits or is paused
	Paused   bool
	Draft    bool
	Every    bool // the page renews itself
	Done     int64
	Total    int64
	Progress string
	Acts     broadcastActs
	Funnel   *chart
	Skips    []skipRow
	Choices  []skipRow
	Failures []failureRow
	Doubt    string // how many messages are in doubt
	Facts    []fact
	Template string
	Link     string         // the page of the template
	File     *shownTemplate // only the file in its title; nil: none
	Values   []fact
	Rows     string        // how many people there are, or who they are
	Whom     string        // to whom it would be sent
	Chosen   bool          // its people are an audience
	Test     []hiddenField // for a single send of the same
	People   peopleList
}

// broadcastActs are what the member may do with a broadcast now.
type broadcastActs struct{ Edit, Start, Pause, Resume, Cancel, Unschedule, Copy, Delete, Release bool }

// A skipRow says how many people were passed over for a reason, or tapped a button.
type skipRow struct{ Label, Count, Href string }

// A failureRow says how many messages failed with a code of the provider.
type failureRow struct{ Code, Title, Fix, Count string }

// A peopleList is a page of the people of a broadcast.
type peopleList struct {
	Status, Reason *field
	Answer         *field // nil: it was not started
	Files          []link
	Rows           []personRow
	First, Next    string
	Empty          nothing
}

// A link leads to a page, or to a file.
type link struct{ Label, Href string }

// A personRow is a person of a broadcast.
type personRow struct {
	ID         desk.ID
	Name, Href string // Href is "": there is no contact
	State      pill
	Why        string
	Replied    moment
	Choice     string // the button that was tapped; "": none
	Talk, Send string // the conversation and the attempt, or ""
	At         moment
}

// reportedWithin is how long after its end the page of a broadcast goes on to renew itself: by then,
// most deliveries are reported.
const reportedWithin = time.Hour

// renews tells whether the page of a broadcast renews itself: it sends, somebody may resume it, or
// its newest messages are still being delivered.
func (c *call) renews(b *desk.Broadcast) bool {
	return b.State == desk.BroadcastRunning || b.State == desk.BroadcastPaused ||
		b.State.Ended() && desk.TimeOf(c.now)-b.EndedAt < desk.Time(reportedWithin.Milliseconds())
}

func (s *Server) broadcasts(c *call) error {
	state, err := desk.ParseBroadcastState(c.query("state"))
	if err != nil {
		state = ""
	}
	base := func(state desk.BroadcastState) string {
		if state == "" {
			return "/broadcasts"
		}
		return "/broadcasts?state=" + string(state)
	}
	page := broadcastList{Empty: noBroadcasts[state], Tabs: []tab{{Label: "All", Href: base(""), Here: state == ""}}}
	if c.may(desk.BroadcastsWrite) {
		page.New = "/broadcasts/new"
		if state == "" {
			page.Empty.Link, page.Empty.Action = page.New, "New broadcast"
		}
	}
	for _, each := range desk.BroadcastStates {
		page.Tabs = append(page.Tabs, tab{Label: broadcastStates[each].Text, Href: base(each), Here: each == state})
	}
	var list []*desk.Broadcast
	next := ""
	after, err := c.fromCursor(func(after string) (err error) {
		list, next, err = s.app.Broadcasts.List(c.r.Context(), c.p, state, after, pageRows)
		return err
	})
	if err != nil {
		return err
	}
	if after != "" {
		page.First = base(state)
	}
	if next != "" {
		page.Next = with(base(state), "after", next)
	}
	for _, b := range list {
		n := c.countsOf(b)
		row := broadcastRow{
			ID: b.ID, Href: broadcastPath(b.ID), Name: b.Name, Template: b.Template, State: broadcastStates[b.State], Standing: c.standing(b),
			People: count(int(n.Total())), Sent: count(int(accepted(n))), Failed: count(int(n.ByStatus[desk.RowFailed] + n.ByStatus[desk.RowRefused])),
			Skipped: count(int(n.ByStatus[desk.RowSkipped])), At: c.when(b.CreatedAt),
		}
		if b.StartedAt != 0 {
			row.At = c.when(b.StartedAt)
		}
		page.Rows = append(page.Rows, row)
	}
	return c.show("broadcasts", view{Title: "Broadcasts", Data: page})
}

// countsOf returns the numbers of a broadcast as people see them.
func (c *call) countsOf(b *desk.Broadcast) *desk.BroadcastCounts {
	if b.Counts == nil {
		return &desk.BroadcastCounts{}
	}
	return b.Counts.As(b.State)
}

// accepted counts the messages that the provider took.
func accepted(n *desk.BroadcastCounts) int64 {
	return n.ByStatus[desk.RowSent] + n.ByStatus[desk.RowDelivered] + n.ByStatus[desk.RowRead] + n.ByStatus[desk.RowFailed]
}

func (s *Server) broadcast(c *call) error {
	v, err := c.broadcastView()
	if err != nil {
		return err
	}
	return c.show("broadcast", v)
}

// broadcastView reads the page of the broadcast in the path.
func (c *call) broadcastView() (view, error) {
	b, err := c.s.app.Broadcasts.Get(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return view{}, err
	}
	n := c.countsOf(b)
	p := broadcastPage{
		ID: b.ID, Href: broadcastPath(b.ID), Name: b.Name, State: broadcastStates[b.State], Standing: c.standing(b), Paused: b.State == desk.BroadcastPaused, Draft: b.State == desk.BroadcastDraft,
		Every: c.renews(b), Total: max(n.Total(), 1), Acts: c.broadcastActs(b), Template: b.Template, Facts: c.broadcastFacts(b), Values: c.broadcastValues(b),
	}
	if v := c.p.Settings.Channel(b.Channel); v != nil {
		p.Link = "/templates/" + v.ID.String() + "/" + url.PathEscape(b.Template) + "/" + url.PathEscape(b.Language)
	}
	if id := b.TitleFile(); id != "" {
		_, file, err := c.storedFile(id)
		if err != nil {
			return view{}, err
		}
		if file == nil {
			file = &shownFile{Name: "It is not there any more", Blank: true}
		}
		p.File = &shownTemplate{File: file}
	}
	if left := n.ByStatus[desk.RowPending] + n.ByStatus[desk.RowSending]; !p.Draft {
		p.Done = n.Total() - left
		p.Progress = count(int(p.Done)) + " of " + peopleWords(n.Total())
		p.Funnel = broadcastFunnel(n)
	}
	p.Rows = peopleWords(n.Total())
	if p.Whom = p.Rows; b.Audience != nil {
		if p.Rows, err = c.audienceWords(b.Audience); err != nil {
			return view{}, err
		}
		p.Whom, p.Chosen = "its people", true
		p.Facts = append([]fact{{Label: "People", Value: p.Rows}}, p.Facts...)
		if b.AtMost > 0 && b.AtMost < desk.MaxBroadcastPeople {
			p.Facts = append(p.Facts, fact{Label: "At most", Value: peopleWords(b.AtMost)})
		}
	}
	if p.Acts.Start {
		p.Test = []hiddenField{{"channel", b.Channel.String()}, {"template", b.Template + "/" + b.Language}}
		for _, v := range b.Values {
			if v.Address == desk.MediaAddress {
				p.Test = append(p.Test, hiddenField{"media", v.Value})
			} else if v.Value != "" {
				p.Test = append(p.Test, hiddenField{"value." + v.Address, v.Value})
			}
		}
	}
	for _, reason := range desk.RowReasons {
		if k := n.Skips[reason]; k > 0 {
			p.Skips = append(p.Skips, skipRow{rowReasons[reason], count(int(k)), p.Href + "?status=skipped&reason=" + string(reason) + "#people"})
		}
	}
	for _, choice := range n.Choices {
		p.Choices = append(p.Choices, skipRow{Label: choice.Title, Count: count(int(choice.N))})
	}
	if k := n.ByStatus[desk.RowInDoubt]; k > 0 {
		p.Doubt = several(int(k), "message")
	}
	if p.Failures, err = c.broadcastFailures(b, n.Failures); err != nil {
		return view{}, err
	}
	if p.People, err = c.peopleOf(b); err != nil {
		return view{}, err
	}
	return view{Title: b.Name, Data: p, Refresh: p.Every}, nil
}

// broadcastActs returns what the member may do with a broadcast now.
func (c *call) broadcastActs(b *desk.Broadcast) (a broadcastActs) {
	if c.may(desk.BroadcastsWrite) {
		a.Pause = b.State == desk.BroadcastRunning || b.State == desk.BroadcastScheduled
		a.Unschedule = b.State == desk.BroadcastScheduled
		a.Delete = b.State == desk.BroadcastDraft || b.State.Ended()
		a.Cancel = !a.Delete
		a.Copy = true
	}
	a.Edit = c.may(desk.BroadcastsSend)
	a.Start = a.Edit && b.State == desk.BroadcastDraft
	a.Resume = c.may(desk.BroadcastsSend) && b.State == desk.BroadcastPaused
	a.Release = c.may(desk.AttemptsWrite)
	return a
}

// broadcastFunnel is the picture of how far the messages got.
func broadcastFunnel(n *desk.BroadcastCounts) *chart {
	total := n.Total()
	sent, read := accepted(n), n.ByStatus[desk.RowRead]
	delivered, failed := n.ByStatus[desk.RowDelivered]+read, n.ByStatus[desk.RowFailed]+n.ByStatus[desk.RowRefused]
	text := func(v int64) string { return count(int(v)) }
	c := barsOf("funnel", "How far it got", sentences(text(sent)+" sent", text(delivered)+" delivered", text(read)+" read", text(n.Replied)+" replied", text(failed)+" failed"), total, []string{"Reached", "People", "Share"})
	for _, v := range []struct {
		label, kind string
		n           int64
		always      bool
	}{
		{"Sent", "", sent, true}, {"Delivered", "", delivered, true}, {"Read", "good", read, true}, {"Replied", "good", n.Replied, true}, {"Failed", "bad", failed, true},
		{"Opted out", "bad", n.OptedOut, false}, {"Passed over", "", n.ByStatus[desk.RowSkipped], false}, {"In doubt", "bad", n.ByStatus[desk.RowInDoubt], false}, {"Cancelled", "", n.ByStatus[desk.RowCancelled], false},
		{"To do", "", n.ByStatus[desk.RowPending] + n.ByStatus[desk.RowSending], false},
	} {
		if v.n > 0 || v.always {
			share := percent(v.n, total)
			c.bar(v.label, text(v.n)+" · "+share, v.kind, v.n, v.label, text(v.n), share)
		}
	}
	return c
}

// broadcastFailures lists the failures, with what to do about each as far as one of the first
// failed people tells it.
func (c *call) broadcastFailures(b *desk.Broadcast, list []desk.FailureCount) (rows []failureRow, err error) {
	fixes := map[int]string{}
	for _, status := range []desk.RowStatus{desk.RowFailed, desk.RowRefused} {
		if len(list) == 0 {
			return nil, nil
		}
		people, _, err := c.s.app.Broadcasts.Rows(c.r.Context(), c.p, b.ID, desk.RowFilter{Status: status}, "", pageRows)
		if err != nil {
			return nil, err
		}
		for _, r := range people {
			if r.Failure != nil {
				fixes[r.Failure.Code] = sentence(r.Failure.Fix)
			}
		}
	}
	for _, f := range list {
		row := failureRow{Code: strconv.Itoa(f.Code), Title: sentence(f.Title), Fix: fixes[f.Code], Count: count(int(f.N))}
		if f.Title == "" {
			row.Title = "Code " + row.Code
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// answered are the values of the filter by reply.
var answered = map[string]bool{"yes": true, "no": false}

// rowFilter reads the filter of a broadcast's people in the URL.
func (c *call) rowFilter() desk.RowFilter {
	f := desk.RowFilter{Status: desk.RowStatus(c.query("status")), Reason: desk.RowReason(c.query("reason"))}
	if !slices.Contains(desk.RowStatuses, f.Status) {
		f.Status = ""
	}
	if !slices.Contains(desk.RowReasons, f.Reason) {
		f.Reason = ""
	}
	if replied, known := answered[c.query("answer")]; known {
		f.Replied = &replied
	}
	return f
}

// peopleOf reads a page of a broadcast's people by the filter in the URL.
func (c *call) peopleOf(b *desk.Broadcast) (list peopleList, err error) {
	f := c.rowFilter()
	statuses, reasons := []choice{{Label: "All"}}, []choice{{Label: "Any"}}
	for _, status := range desk.RowStatuses {
		statuses = append(statuses, choice{Value: string(status), Label: rowStates[status].Text})
	}
	for _, reason := range desk.RowReasons {
		reasons = append(reasons, choice{Value: string(reason), Label: rowReasons[reason]})
	}
	var unsent form
	list.Status, list.Reason = unsent.Field("status", "State", "", string(f.Status)).Of(statuses), unsent.Field("reason", "Reason", "", string(f.Reason)).Of(reasons)
	query := url.Values{}
	if f.Status != "" {
		query.Set("status", string(f.Status))
	}
	if f.Reason != "" {
		query.Set("reason", string(f.Reason))
	}
	answer := ""
	if f.Replied != nil {
		answer = c.query("answer")
		query.Set("answer", answer)
	}
	base := broadcastPath(b.ID)
	if len(query) > 0 {
		base += "?" + query.Encode()
	}
	if b.StartedAt > 0 {
		list.Answer = unsent.Field("answer", "Answer", "", answer).Of([]choice{{Label: "Any"}, {Value: "yes", Label: "Replied"}, {Value: "no", Label: "No reply"}})
		for _, format := range exportFormats[:2] { // as a table
			query := maps.Clone(query)
			query.Set("format", format.Word)
			list.Files = append(list.Files, link{format.Name, broadcastPath(b.ID) + "/people/file?" + query.Encode()})
		}
	}
	ctx, next := c.r.Context(), ""
	var rows []desk.BroadcastRow
	after, err := c.fromCursor(func(after string) (err error) {
		rows, next, err = c.s.app.Broadcasts.Rows(ctx, c.p, b.ID, f, after, pageRows)
		return err
	})
	if err != nil {
		return list, err
	}
	if after != "" {
		list.First = base + "#people"
	}
	if next != "" {
		list.Next = with(base, "after", next) + "#people"
	}
	list.Empty = nothing{Title: "Nobody here", Text: "The people to whom it is sent will be here, with what came of it."}
	switch {
	case next != "":
		list.Empty = nothing{"Nobody among these", "The people after them were not looked at yet.", list.Next, "Look at more"}
	case len(query) > 0:
		list.Empty = nothing{"Nobody fits", "No person of this broadcast has this state, reason and answer.", broadcastPath(b.ID) + "#people", "See all"}
	case b.State.Ended() && b.Rows > 0:
		list.Empty.Text = "What became of each person was deleted some time after the end. The numbers stay."
	}
	ids := make([]desk.ID, 0, len(rows))
	for _, r := range rows {
		if !r.Contact.IsZero() {
			ids = append(ids, r.Contact)
		}
	}
	known, err := c.s.app.ContactsByID(ctx, c.p, ids)
	if err != nil {
		return list, err
	}
	for _, r := range rows {
		list.Rows = append(list.Rows, c.personRow(r, known[r.Contact]))
	}
	return list, nil
}

func (c *call) personRow(r desk.BroadcastRow, contact *desk.Contact) personRow {
	row := personRow{ID: r.ID, Name: phone(r.To), State: rowStates[r.Status], Why: rowReasons[r.Reason], At: c.when(r.At), Replied: c.when(r.Data.Reply.At), Choice: r.Data.Reply.Choice}
	switch {
	case contact != nil:
		row.Name, row.Href = nameOf(contact), "/contacts/"+contact.ID.String()
	case row.Name == "":
		row.Name = nameOf(nil)
	}
	if r.Failure != nil {
		row.Why = sentence(r.Failure.Title)
	}
	if !r.Attempt.IsZero() {
		row.Send = "/sends/" + r.Attempt.String()
	}
	if !r.Conversation.IsZero() && !r.Message.IsZero() {
		row.Talk = "/inbox/" + r.Conversation.String() + "?view=broadcasts"
	}
	return row
}

// filePage is how many rows of a broadcast are read at a time.
const filePage = 1000

// peopleFile sends the people of a broadcast who match the filter in the URL as a file, like an
// export.
func (s *Server) peopleFile(c *call) error {
	n := slices.IndexFunc(exportFormats, func(f exportFormat) bool {
		return f.Word == cmp.Or(c.query("format"), "csv") && f.format != transfer.JSONL
	})
	if n < 0 {
		return desk.NotFoundf("there is no such format")
	}
	chosen, id, f := exportFormats[n], c.id("id"), c.rowFilter()
	if _, err := s.app.Broadcasts.Get(c.r.Context(), c.p, id); err != nil {
		return err
	}
	return c.sendFile("broadcast", chosen, desk.BroadcastsRead, func(to io.Writer, still func() error) error {
		out, err := transfer.NewRows(to, chosen.format)
		if err != nil {
			return err
		}
		for cursor, more := "", true; more; more = cursor != "" {
			if err := still(); err != nil {
				return err
			}
			var page []desk.BroadcastRow
			if page, cursor, err = s.app.Broadcasts.Rows(c.r.Context(), c.p, id, f, cursor, filePage); err != nil {
				return err
			}
			for i := range page {
				if err := out.Row(&page[i]); err != nil {
					return err
				}
			}
		}
		return out.Flush()
	})
}
