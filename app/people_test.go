package app_test

import (
	"fmt"
	"slices"
	"testing"

	"parley/app/feed"
	"parley/desk"
	"parley/provider"
)

func phoneOf(v string) desk.Identity    { return desk.Identity{Kind: desk.KindPhone, Value: v} }
func accountOf(v string) desk.Identity  { return desk.Identity{Kind: desk.KindWhatsApp, Value: v} }
func userIDOf(v string) desk.Identity   { return desk.Identity{Kind: desk.KindWhatsAppUser, Value: v} }
func handles(c ...desk.Identity) string { return fmt.Sprint(c) }

// people stores a contact for each list of identities. If a list begins with a phone
// number, it is the field phone.
func (w *world) people(lists ...[]desk.Identity) (list []*desk.Contact) {
	w.t.Helper()
	for _, identities := range lists {
		var parts []func(*desk.ContactWrite)
		for n, i := range identities {
			if n == 0 && i.Kind == desk.KindPhone {
				parts = append(parts, phoned(i.Value))
			} else {
				parts = append(parts, alsoKnownAs(i.Kind, i.Value))
			}
		}
		list = append(list, w.put(parts...))
	}
	return list
}

// A number, or a text that is not a number, has two spellings here: long and short.
const (
	brazil, brazilShort       = "5511998765432", "551198765432"
	landline, landlineLong    = "551134567890", "5511934567890"
	mexico, mexicoShort       = "5215512345678", "525512345678"
	argentina, argentinaShort = "5491123456789", "541123456789"
)

// TestSender: the sender is found by the provider's id, then by the number in any spelling.
// All identities that the provider reports are stored, except those of another contact.
func TestSender(t *testing.T) {
	t.Parallel()
	type list = []desk.Identity
	for name, c := range map[string]struct {
		held         []list
		number, user string
		want         int // index of the contact in held that is the sender; -1: a new contact
		known        string
	}{
		"by number":                    {[]list{{phoneOf(number)}}, number, "", 0, handles(phoneOf(number))},
		"by number, and an id":         {[]list{{phoneOf(number)}}, number, "TR.9A", 0, handles(phoneOf(number), userIDOf("TR.9A"))},
		"by account":                   {[]list{{accountOf(number)}}, number, "", 0, handles(accountOf(number))},
		"by id":                        {[]list{{userIDOf("TR.9A")}}, "", "TR.9A", 0, handles(userIDOf("TR.9A"))},
		"by id, and a number":          {[]list{{userIDOf("TR.9A")}}, number, "TR.9A", 0, handles(accountOf(number), userIDOf("TR.9A"))},
		"the id wins":                  {[]list{{phoneOf(number)}, {userIDOf("TR.9A")}}, number, "TR.9A", 1, handles(userIDOf("TR.9A"))},
		"another id of the number":     {[]list{{phoneOf(number), userIDOf("TR.9A")}}, number, "TR.9B", 0, handles(phoneOf(number), userIDOf("TR.9A"), userIDOf("TR.9B"))},
		"nobody":                       {nil, number, "TR.9A", -1, handles(phoneOf(number), userIDOf("TR.9A"))},
		"nobody, without a number":     {[]list{{phoneOf(number)}}, "", "TR.9A", -1, handles(userIDOf("TR.9A"))},
		"nobody, by another id":        {[]list{{userIDOf("TR.9A")}}, "", "TR.9B", -1, handles(userIDOf("TR.9B"))},
		"Brazil, dialled with a nine":  {[]list{{phoneOf(brazil)}}, brazilShort, "", 0, handles(phoneOf(brazil), accountOf(brazilShort))},
		"Brazil, known without":        {[]list{{phoneOf(brazilShort)}}, brazil, "BR.9A", 0, handles(phoneOf(brazilShort), accountOf(brazil), userIDOf("BR.9A"))},
		"Brazil, a landline":           {[]list{{phoneOf(landline)}}, landlineLong, "", -1, handles(phoneOf(landlineLong))},
		"Brazil, like a landline":      {[]list{{phoneOf(landlineLong)}}, landline, "", -1, handles(phoneOf(landline))},
		"Brazil, the id wins":          {[]list{{phoneOf(brazil)}, {userIDOf("BR.9A")}}, brazilShort, "BR.9A", 1, handles(userIDOf("BR.9A"))},
		"Mexico, dialled without one":  {[]list{{phoneOf(mexicoShort)}}, mexico, "", 0, handles(phoneOf(mexicoShort), accountOf(mexico))},
		"Mexico, known with it":        {[]list{{accountOf(mexico)}}, mexicoShort, "", 0, handles(accountOf(mexico))},
		"Argentina, dialled as a line": {[]list{{phoneOf(argentinaShort)}}, argentina, "", 0, handles(phoneOf(argentinaShort), accountOf(argentina))},
		"Argentina, a line":            {[]list{{phoneOf(argentina)}}, argentinaShort, "", 0, handles(phoneOf(argentina), accountOf(argentinaShort))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			channel := w.connect(metaNumber, metaBusiness)
			held := w.people(c.held...)
			h := inbound(1, c.number, c.user, "Hello")
			h.Message.Name = "Ann"
			w.callback(channel, h)
			w.takeIn()
			got := w.writer(channel, 1)
			if who := slices.IndexFunc(held, func(c *desk.Contact) bool { return c.ID == got.ID }); who != c.want {
				t.Fatalf("it is contact %d, want %d", who, c.want)
			}
			if got.Name != "Ann" {
				t.Errorf("they are called %q", got.Name)
			}
			if known := fmt.Sprint(got.Identities()); known != c.known {
				t.Errorf("known as %s, want %s", known, c.known)
			}
			for i, before := range held {
				if i != c.want && !slices.Equal(w.contact(before.ID).Identities(), before.Identities()) {
					t.Errorf("contact %d has become %+v", i, w.contact(before.ID))
				}
			}
			again := inbound(2, c.number, c.user, "Hello again")
			again.Message.Name = "Another" // the contact has a name by now
			w.callback(channel, again)
			w.takeIn()
			if again := w.writer(channel, 2); again.ID != got.ID || again.UpdatedAt != got.UpdatedAt {
				t.Errorf("then it is %+v", again)
			}
		})
	}
}

// TestReceipt: the provider's identities of the recipient are stored in the transaction that
// stores the message, except those of another contact.
func TestReceipt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	send := func(key, to, account, user string) string {
		t.Helper()
		w.meta.change(func() { w.meta.receipt = provider.Receipt{Number: account, UserID: user} })
		m := w.sent(key, on(channel), func(r *desk.SendRequest) { r.Phone = phoneOf(to) })
		return fmt.Sprint(w.contact(m.Conversation.ContactID).Identities())
	}
	if got, want := send("1", brazil, brazilShort, "BR.9A"), handles(phoneOf(brazil), accountOf(brazilShort), userIDOf("BR.9A")); got != want {
		t.Errorf("a new contact: %s, want %s", got, want)
	}
	if got, want := send("2", number, number, ""), handles(phoneOf(number)); got != want {
		t.Errorf("the number as it is: %s, want %s", got, want)
	}
	if got, want := send("3", number, brazilShort, "BR.9A"), handles(phoneOf(number)); got != want {
		t.Errorf("what another contact has: %s, want %s", got, want)
	}
	if got, want := send("4", number, "", "TR.9B"), handles(phoneOf(number), userIDOf("TR.9B")); got != want {
		t.Errorf("an id: %s, want %s", got, want)
	}
	w.callback(channel, inbound(1, "", "BR.9A", "Hello"), inbound(2, brazilShort, "", "Hello"))
	w.takeIn()
	w.holds(2, 2, 4+2)

	// A contact who was deleted meanwhile is not brought back.
	w.meta.change(func() {
		w.meta.receipt = provider.Receipt{UserID: "TR.9C"}
		w.meta.meanwhile = func(provider.Dispatch) { w.deleteContact(w.writerOf(number).ID) }
	})
	must(t, w.send("5", on(channel)).err)
	w.holds(1, 1, 3)

	// A contact is not brought back, either, if it was deleted after a status had told that
	// the message was sent.
	w.meta.change(func() {
		w.meta.meanwhile = func(d provider.Dispatch) {
			s := said(d.Attempt, desk.Delivered)
			w.callback(channel, provider.Update{Channel: metaNumber, Status: &s})
			w.takeIn()
			w.deleteContact(w.writerOf(number).ID)
		}
	})
	if r := w.send("6", on(channel)); r.err != nil || w.holder("6").Phase != desk.Done {
		t.Errorf("answered %v", r.err)
	}
	w.holds(1, 1, 3)
}

// TestRecipient_events: the event of the recipient's new identity comes before the event of the
// message, whether the provider's answer or a status reported the identity.
func TestRecipient_events(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	start := w.latest()
	expect := func(act string, want ...string) {
		t.Helper()
		page, err := w.Feed.Page(t.Context(), w.caller(), feed.Query{Cursor: start, Limit: 50})
		must(t, err)
		start = w.Feed.Cursor(page)
		var got []string
		for _, e := range page.Events {
			got = append(got, string(e.Type))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q\nwant %q", act, got, want)
		}
	}
	status := func(attempt desk.ID, user string) {
		s := said(attempt, desk.Delivered)
		s.UserID = user
		w.callback(channel, provider.Update{Channel: metaNumber, Status: &s})
		w.takeIn()
	}
	w.meta.change(func() { w.meta.receipt = provider.Receipt{UserID: "TR.9A"} })
	w.sent("1", on(channel), to("905321119001"))
	expect("an answer", "contact.created", "contact.updated", "conversation.created", "message.sent")
	w.meta.change(func() { w.meta.receipt = provider.Receipt{} })
	w.sent("2", on(channel), to("905321119002"))
	expect("a send", "contact.created", "conversation.created", "message.sent")
	status(w.holder("2").ID, "TR.9B")
	expect("a status", "contact.updated", "message.delivered")
	w.meta.change(func() {
		w.meta.meanwhile = func(d provider.Dispatch) { status(d.Attempt, "TR.9C") }
	})
	w.sent("3", on(channel), to("905321119003"))
	expect("a status before the answer", "contact.created", "contact.updated", "conversation.created", "message.sent", "message.delivered")
}

// TestEarlyStatus_tells_the_recipient: a status comes before its message is stored, and has
// the provider's id of the recipient. This id is stored with the message, in each way of
// storing the message.
func TestEarlyStatus_tells_the_recipient(t *testing.T) {
	t.Parallel()
	tell := func(w *world, channel, attempt desk.ID) {
		for _, d := range []desk.DeliveryStatus{desk.Delivered, desk.Sent} {
			s := saidEarly(attempt, d)
			if s.UserID = "TR.9A"; d == desk.Sent {
				s.UserID = ""
			}
			w.callback(channel, provider.Update{Channel: metaNumber, Status: &s})
		}
		w.takeIn()
	}
	for name, send := range map[string]func(w *world, channel desk.ID) desk.ID{
		"while it is sent": func(w *world, channel desk.ID) desk.ID {
			w.meta.change(func() { w.meta.meanwhile = func(d provider.Dispatch) { tell(w, channel, d.Attempt) } })
			return w.sent("1", on(channel)).Conversation.ContactID
		},
		"before its id is known": func(w *world, channel desk.ID) desk.ID {
			w.meta.change(func() { w.meta.meanwhile = func(provider.Dispatch) { panic("the answer is lost") } })
			_ = w.send("1", on(channel))
			at := w.holder("1")
			_, err := w.Release(w.t.Context(), w.operator(), at.ID, true)
			must(w.t, err)
			tell(w, channel, at.ID)
			said := said(at.ID, desk.Sent) // this status shows the provider's id of the message
			w.callback(channel, provider.Update{Channel: metaNumber, Status: &said})
			w.takeIn()
			return w.attempt(at.ID).Plan.Contact
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			channel := w.connect(metaNumber, metaBusiness)
			contact := send(w, channel)
			if got, want := fmt.Sprint(w.contact(contact).Identities()), handles(phoneOf(number), userIDOf("TR.9A")); got != want {
				t.Errorf("known as %s, want %s", got, want)
			}
		})
	}
}

// writerOf returns the contact who has a number.
func (w *world) writerOf(number string) *desk.Contact {
	w.t.Helper()
	i := phoneOf(number)
	list, _, err := w.Contacts(w.t.Context(), w.caller(), desk.ContactFilter{Held: []desk.Identity{i}}, "", 10)
	must(w.t, err)
	if len(list) != 1 {
		w.t.Fatalf("%d contacts have %s", len(list), number)
	}
	return list[0]
}

// TestLearn_no_more: a contact with the greatest number of handles can still get and send
// messages.
func TestLearn_no_more(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	list := []desk.Identity{phoneOf(number)}
	for n := range desk.MaxFurther {
		list = append(list, desk.Identity{Kind: "loyalty", Value: fmt.Sprint(n)})
	}
	full := w.people(list)[0]
	w.meta.change(func() { w.meta.receipt = provider.Receipt{UserID: "TR.9A"} })
	if m := w.sent("k", on(channel)); m.Conversation.ContactID != full.ID {
		t.Errorf("sent to %s", m.Conversation.ContactID)
	}
	w.callback(channel, inbound(1, number, "TR.9A", "Hello"),
		provider.Update{Channel: metaNumber, Move: &provider.Move{Number: number, NewUserID: "TR.9A"}})
	w.takeIn()
	if c := w.writer(channel, 1); c == nil || c.ID != full.ID {
		t.Errorf("written by %+v", c)
	}
	if lines := w.log.find("it is skipped"); lines != nil {
		t.Errorf("logged: %q", lines)
	}
}

// TestMove: a contact gets the person's new number and id. Identities of another contact stay
// there, and the old number is free.
func TestMove(t *testing.T) {
	t.Parallel()
	const next = "905321110099"
	type list = []desk.Identity
	for name, c := range map[string]struct {
		held []list
		move provider.Move
		want []string
	}{
		"the number":               {[]list{{phoneOf(number)}}, provider.Move{Number: number, NewNumber: next}, []string{handles(phoneOf(next))}},
		"number and id":            {[]list{{phoneOf(number), userIDOf("TR.9A")}}, provider.Move{Number: number, UserID: "TR.9A", NewNumber: next, NewUserID: "TR.9B"}, []string{handles(phoneOf(next), userIDOf("TR.9B"))}},
		"the id":                   {[]list{{phoneOf(number), userIDOf("TR.9A")}}, provider.Move{UserID: "TR.9A", NewUserID: "TR.9B"}, []string{handles(phoneOf(number), userIDOf("TR.9B"))}},
		"the id, found by number":  {[]list{{phoneOf(number)}}, provider.Move{Number: number, UserID: "TR.9A", NewUserID: "TR.9B"}, []string{handles(phoneOf(number), userIDOf("TR.9B"))}},
		"a number, found by id":    {[]list{{userIDOf("TR.9A")}}, provider.Move{UserID: "TR.9A", NewNumber: next}, []string{handles(accountOf(next), userIDOf("TR.9A"))}},
		"an account":               {[]list{{phoneOf("905321110001"), accountOf(number)}}, provider.Move{Number: number, NewNumber: next}, []string{handles(phoneOf("905321110001"), accountOf(next))}},
		"nobody":                   {[]list{{phoneOf("905321110001")}}, provider.Move{Number: number, UserID: "TR.9A", NewNumber: next, NewUserID: "TR.9B"}, []string{handles(phoneOf("905321110001"))}},
		"onto another's number":    {[]list{{phoneOf(number)}, {phoneOf(next)}}, provider.Move{Number: number, NewNumber: next}, []string{handles(phoneOf(number)), handles(phoneOf(next))}},
		"onto another's id":        {[]list{{phoneOf(number), userIDOf("TR.9A")}, {userIDOf("TR.9B")}}, provider.Move{Number: number, UserID: "TR.9A", NewUserID: "TR.9B"}, []string{handles(phoneOf(number)), handles(userIDOf("TR.9B"))}},
		"onto another's, and more": {[]list{{phoneOf(number), userIDOf("TR.9A")}, {userIDOf("TR.9B")}}, provider.Move{Number: number, UserID: "TR.9A", NewNumber: next, NewUserID: "TR.9B"}, []string{handles(phoneOf(next)), handles(userIDOf("TR.9B"))}},
		"onto another's number, with an id": {
			[]list{{phoneOf(number), accountOf("905321110001"), userIDOf("TR.9A")}, {phoneOf(next)}}, provider.Move{Number: number, UserID: "TR.9A", NewNumber: next, NewUserID: "TR.9B"},
			[]string{handles(phoneOf(number), accountOf("905321110001"), userIDOf("TR.9B")), handles(phoneOf(next))},
		},
		"of nobody, to somebody's number": {
			[]list{{phoneOf(next)}}, provider.Move{Number: number, NewNumber: next, NewUserID: "TR.9B"}, []string{handles(phoneOf(next))},
		},
		"of a number in two spellings": {
			[]list{{phoneOf(brazil), accountOf(brazilShort)}}, provider.Move{Number: brazilShort, NewNumber: next}, []string{handles(phoneOf(next))},
		},
		"of a number in the other spelling": {
			[]list{{phoneOf(brazil), accountOf(brazilShort)}}, provider.Move{Number: brazil, NewNumber: next}, []string{handles(phoneOf(next))},
		},
		"to the other spelling": {
			[]list{{phoneOf(brazil), accountOf(brazilShort)}}, provider.Move{Number: brazilShort, NewNumber: brazil}, []string{handles(phoneOf(brazil))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			channel := w.connect(metaNumber, metaBusiness)
			held := w.people(c.held...)
			for range 2 { // the report comes twice
				w.callback(channel, provider.Update{Channel: metaNumber, Move: &c.move})
				w.takeIn()
				for i, want := range c.want {
					if got := fmt.Sprint(w.contact(held[i].ID).Identities()); got != want {
						t.Errorf("contact %d is known as %s, want %s", i, got, want)
					}
				}
			}
			w.holds(len(held), 0, 0)
			if lines := w.log.find("it is skipped"); lines != nil {
				t.Errorf("logged: %q", lines)
			}
		})
	}
}

// TestOptOut_by_any_handle: a marketing choice counts for each spelling of the number. It may
// come from the person's stop or start word, or from the provider, with the number or with
// its id alone. The newest choice counts.
func TestOptOut_by_any_handle(t *testing.T) {
	t.Parallel()
	choice := func(at desk.Time, number, user string, change desk.OptChange) provider.Update {
		return provider.Update{Channel: metaNumber, Choice: &provider.MarketingChoice{Number: number, UserID: user, Change: change, At: at}}
	}
	link := inbound(1, brazilShort, "BR.9A", "Hello")
	for name, c := range map[string]struct {
		told  []provider.Update
		since desk.Time
	}{
		"a word, from the other spelling":        {[]provider.Update{inbound(2, brazilShort, "", "STOP")}, 2000},
		"and back":                               {[]provider.Update{inbound(2, brazilShort, "", "STOP"), inbound(3, brazilShort, "", "START")}, 0},
		"and back, in the dialled spelling":      {[]provider.Update{inbound(2, brazilShort, "", "STOP"), inbound(3, brazil, "", "START")}, 0},
		"the switch":                             {[]provider.Update{choice(10, brazilShort, "", desk.OptOut)}, 10},
		"the switch, by id, of one known":        {[]provider.Update{link, choice(10, "", "BR.9A", desk.OptOut)}, 10},
		"the switch, by id, of one unknown":      {[]provider.Update{choice(10, "", "BR.9A", desk.OptOut)}, 0},
		"by id, and back by id":                  {[]provider.Update{link, choice(10, "", "BR.9A", desk.OptOut), choice(20, "", "BR.9A", desk.OptInAgain)}, 0},
		"by id, and back by number":              {[]provider.Update{link, choice(10, "", "BR.9A", desk.OptOut), choice(20, brazil, "", desk.OptInAgain)}, 0},
		"by both, and back by number":            {[]provider.Update{inbound(2, brazilShort, "BR.9A", "STOP"), inbound(3, brazilShort, "", "START")}, 0},
		"by number, and back by id":              {[]provider.Update{link, inbound(2, brazilShort, "", "STOP"), choice(3000, "", "BR.9A", desk.OptInAgain)}, 0},
		"an older switch":                        {[]provider.Update{inbound(2, brazilShort, "", "STOP"), choice(1999, brazil, "", desk.OptInAgain)}, 2000},
		"an older word":                          {[]provider.Update{choice(2001, brazil, "", desk.OptInAgain), inbound(2, brazilShort, "", "STOP")}, 0},
		"a choice of nothing":                    {[]provider.Update{choice(10, brazil, "BR.9A", desk.OptNone)}, 0},
		"another's":                              {[]provider.Update{link, inbound(2, number, "TR.9B", "STOP"), choice(10, "", "BR.9C", desk.OptOut)}, 0},
		"a hidden number's, who writes a word":   {[]provider.Update{link, inbound(2, "", "BR.9A", "STOP")}, 2000},
		"a hidden number's, and back by a word":  {[]provider.Update{link, inbound(2, "", "BR.9A", "STOP"), inbound(3, brazilShort, "BR.9A", "START")}, 0},
		"the id that the number had at the time": {[]provider.Update{link, choice(10, "", "BR.9A", desk.OptOut), {Channel: metaNumber, Move: &provider.Move{UserID: "BR.9A", NewUserID: "BR.9D"}}}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			channel := w.connect(metaNumber, metaBusiness)
			for _, h := range c.told {
				w.callback(channel, h)
				w.takeIn()
			}
			w.wants(c.since, on(w.channel), to(brazilShort))
			w.wants(c.since, on(channel), to(brazil))
			id := w.writerOf(brazilShort).ID
			w.wants(c.since, on(channel), toContact(id))
			w.deleteContact(id) // without the contact, nothing links the id and the number
			w.wants(c.since, on(w.channel), to(brazil))
		})
	}
}

// TestOptOut_by_id_before_the_number_is_known: the opt-out counts once a contact has the id.
func TestOptOut_by_id_before_the_number_is_known(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	w.callback(channel, provider.Update{Channel: metaNumber, Choice: &provider.MarketingChoice{UserID: "TR.9A", Change: desk.OptOut, At: 10}})
	w.takeIn()
	w.holds(0, 0, 0) // a marketing choice does not create a contact
	w.wants(0, on(channel))
	w.callback(channel, inbound(1, number, "TR.9A", "Hello"))
	w.takeIn()
	w.wants(10, on(channel))
}

// TestStatus_tells_the_recipient: a status stores the provider's id of the recipient. So the
// contact is found when the next message has only that id.
func TestStatus_tells_the_recipient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	m := w.sent("1", on(channel), func(r *desk.SendRequest) { r.Phone = phoneOf(number) })
	s := said(w.holder("1").ID, desk.Delivered)
	s.UserID = "TR.9A"
	for range 2 {
		w.callback(channel, provider.Update{Channel: metaNumber, Status: &s})
		w.takeIn()
	}
	got, want := fmt.Sprint(w.contact(m.Conversation.ContactID).Identities()), handles(phoneOf(number), userIDOf("TR.9A"))
	if got != want {
		t.Errorf("known as %s, want %s", got, want)
	}
	w.callback(channel, inbound(1, "", "TR.9A", "Hello"))
	w.takeIn()
	if writer := w.writer(channel, 1); writer.ID != m.Conversation.ContactID {
		t.Errorf("the message is of %s, not of %s", writer.ID, m.Conversation.ContactID)
	}
}

// TestOptOut_told_once: the same wish again is no event, also if the person has another handle by
// now. The wish of a number is one, even if that of the person was known by another handle.
func TestOptOut_told_once(t *testing.T) {
	t.Parallel()
	byID := func(change desk.OptChange, at desk.Time) provider.Update {
		return provider.Update{Channel: metaNumber, Choice: &provider.MarketingChoice{UserID: "TR.9A", Change: change, At: at}}
	}
	type known = []desk.Identity // what the contact is known by before, beside its id
	for name, c := range map[string]struct {
		known known
		told  []provider.Update
		want  []desk.EventType
	}{
		"two spellings, number hidden": {known{phoneOf("541123456789"), accountOf("5491123456789")}, []provider.Update{byID(desk.OptOut, 10), byID(desk.OptOut, 20)}, []desk.EventType{desk.ContactOptedOut}},
		"of one of two numbers before": {known{phoneOf(number), accountOf("5491123456789")}, []provider.Update{inbound(1, number, "", "STOP"), byID(desk.OptOut, 2000)}, []desk.EventType{desk.ContactOptedOut, desk.ContactOptedOut}},
		"an id is learned in between":  {nil, []provider.Update{inbound(1, number, "", "STOP"), inbound(2, number, "TR.9A", "Hello"), inbound(3, number, "TR.9A", "STOP")}, []desk.EventType{desk.ContactOptedOut}},
		"by id first, then by number":  {nil, []provider.Update{byID(desk.OptOut, 10), inbound(1, number, "TR.9A", "Hello"), inbound(2, number, "TR.9A", "STOP")}, []desk.EventType{desk.ContactOptedOut}},
		"by id first, then back":       {nil, []provider.Update{byID(desk.OptOut, 10), inbound(1, number, "TR.9A", "Hello"), inbound(2, number, "TR.9A", "START")}, []desk.EventType{desk.ContactOptedIn}},
		"back and forth":               {nil, []provider.Update{inbound(1, number, "TR.9A", "STOP"), inbound(2, number, "", "START"), inbound(3, number, "TR.9A", "STOP")}, []desk.EventType{desk.ContactOptedOut, desk.ContactOptedIn, desk.ContactOptedOut}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			channel := w.connect(metaNumber, metaBusiness)
			if c.known != nil {
				w.people(append(c.known, userIDOf("TR.9A")))
			}
			for _, told := range c.told {
				w.callback(channel, told)
				w.takeIn()
			}
			page, err := w.Feed.Page(t.Context(), w.operator(), feed.Query{Cursor: "oldest", Limit: 1000})
			must(t, err)
			var got []desk.EventType
			for _, e := range page.Events {
				if e.Type == desk.ContactOptedOut || e.Type == desk.ContactOptedIn {
					got = append(got, e.Type)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
