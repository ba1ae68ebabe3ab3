package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/store"

	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// newest returns the time of a channel's newest stored callback, or 0 if there is none.
func (w *world) newest(channel desk.ID) desk.Time {
	w.t.Helper()
	at := desk.Time(0)
	if w.postgres != nil {
		w.postgres.mu.Lock()
		defer w.postgres.mu.Unlock()
		must(w.t, w.postgres.conn.QueryRow(w.t.Context(), `SELECT coalesce(max(received_at), 0) FROM callbacks WHERE workspace_id = $1 AND channel_id = $2`,
			w.ws.String(), channel.String()).Scan((*int64)(&at)))
		return at
	}
	c, err := zombiezen.OpenConn(w.path, zombiezen.OpenReadOnly)
	must(w.t, err)
	err = sqlitex.Execute(c, `SELECT max(received_at) FROM callbacks WHERE workspace_id = ? AND channel_id = ?`, &sqlitex.ExecOptions{
		Args:       []any{w.ws[:], channel[:]},
		ResultFunc: func(row *zombiezen.Stmt) error { at = desk.Time(row.ColumnInt64(0)); return nil },
	})
	must(w.t, errors.Join(err, c.Close()))
	return at
}

// TestReceiveCallback: a callback that the channel's provider signed is durable before the
// answer. Nothing is stored of any other request.
func TestReceiveCallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	body, err := json.Marshal([]provider.Update{inbound(1, number, "", "Hello")})
	must(t, err)
	right := sign(appSecret, body)
	for name, c := range map[string]struct {
		channel   desk.ID
		signature string
		body      string
	}{
		"no signature":           {channel, "", string(body)},
		"a wrong one":            {channel, "x" + right[1:], string(body)},
		"one of another body":    {channel, right, string(body) + " "},
		"by the verify token":    {channel, sign(verifyToken, body), string(body)},
		"by nothing":             {channel, sign("", body), string(body)},
		"an unknown channel":     {desk.ID{9}, right, string(body)},
		"no channel, but an id":  {w.ada.ID, right, string(body)},
		"a channel that is deaf": {w.channel, right, string(body)},
	} {
		err := w.calledBack(c.channel, c.signature, []byte(c.body))
		if !desk.IsType(err, desk.Unauthorized) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, when := range []moment{begin, commit} {
		w.store.in(1, when, lost)
		refused(t, w.calledBack(channel, right, body), desk.Unavailable)
	}
	if list := w.due(); w.newest(channel) != 0 || w.newest(w.channel) != 0 || len(list) != 0 {
		t.Fatalf("stored: %+v", list)
	}

	must(t, w.calledBack(channel, right, body))
	if list := w.due(); len(list) != 1 || w.newest(channel) != list[0].ReceivedAt || list[0].Body != nil {
		t.Fatalf("stored: %+v", list)
	}
	w.holds(0, 0, 0) // not processed yet, so no records exist; the next process finds the callback
	w.stop()
	w.start(app.Bounds{})
	w.takeIn()
	w.holds(1, 1, 1)
}

// TestCallback_answersFirst: what a person writes is processed before the reports that came
// earlier.
func TestCallback_answersFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	sent := w.sent("0", on(channel))
	for range 25 { // more than share a transaction
		report := said(w.holder("0").ID, desk.Delivered)
		w.callback(channel, provider.Update{Channel: metaNumber, Status: &report})
	}
	w.callback(channel, inbound(1, number, "", "Hello"))
	must(t, w.TakeInbound(t.Context(), w.ws))
	heard := slices.ContainsFunc(w.messages(sent.Conversation.ID), func(m *desk.Message) bool { return m.Text == "Hello" })
	if n := len(w.due()); n < 10 || !heard {
		t.Errorf("with %d reports left, the message has come: %t", n, heard)
	}
	w.takeIn()
	if got := w.message(sent); got.Delivery != desk.Delivered {
		t.Errorf("at the end, the message is %s", got.Delivery)
	}
}

// TestCallback_inOrder: a report can teach the id of a person whose number is hidden, and prove that a
// message was sent. What depends on that does not go before it.
func TestCallback_inOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	sent := w.sent("0", on(channel))
	report := said(w.holder("0").ID, desk.Delivered)
	report.UserID = "TR.9A"
	w.callback(channel, provider.Update{Channel: metaNumber, Status: &report})
	w.callback(channel, inbound(1, "", "TR.9A", "Hello"))
	w.takeIn()
	if c := w.writer(channel, 1); c == nil || c.ID != sent.Conversation.ContactID {
		t.Errorf("the answer became another contact's: %+v, not %s", c, sent.Conversation.ContactID)
	}

	w.stop() // or the worker would take the report in before the answer comes
	w.start(app.Bounds{})
	w.meta.change(func() { w.meta.meanwhile = func(provider.Dispatch) { panic("the answer is lost") } })
	_ = w.send("1", on(channel))
	proof := said(w.holder("1").ID, desk.Delivered)
	quoting := inbound(2, number, "", "Thank you")
	quoting.Message.ReplyTo = proof.ExternalID
	w.callback(channel, provider.Update{Channel: metaNumber, Status: &proof})
	w.callback(channel, quoting)
	w.takeIn()
	if !slices.ContainsFunc(w.allMessages(), func(m *desk.Message) bool { return m.Text == "Thank you" && !m.ReplyTo.IsZero() }) {
		t.Error("an answer has lost the message that it quotes")
	}
}

// TestCallback_gathered: reports about messages wait a moment for others of their workspace, and
// what a person writes does not. A callback is read once.
func TestCallback_gathered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	sent := []desk.SentMessage{w.sent("0", on(channel)), w.sent("1", on(channel))}
	reported := w.clock.uptime()
	// waits checks that a report waits, unless the machine was too slow to see it.
	waits := func() {
		t.Helper()
		list, next := w.InboundDue()
		if slow := w.clock.uptime()-reported >= 50*time.Millisecond; !slow && (len(list) != 0 || next > 50*time.Millisecond) {
			t.Fatalf("after a report: %v, the next in %v", list, next)
		}
	}
	for _, key := range []string{"0", "1"} { // the second waits as long as the first does
		report := said(w.holder(key).ID, desk.Delivered)
		w.callback(channel, provider.Update{Channel: metaNumber, Status: &report})
		waits()
	}
	w.callback(channel, inbound(1, number, "", "Hello"))
	if list, _ := w.InboundDue(); !slices.Equal(list, []desk.ID{w.ws}) {
		t.Fatalf("after a message: %v", list)
	}
	w.meta.change(func() { w.meta.sick = true })
	must(t, w.TakeInbound(t.Context(), w.ws))
	if list, lines := w.due(), w.log.find("ERROR"); len(list) != 0 || lines != nil {
		t.Fatalf("left: %+v; logged: %q", list, lines)
	}
	for _, m := range sent {
		if got := w.message(m); got.Delivery != desk.Delivered {
			t.Errorf("a message is %s", got.Delivery)
		}
	}
	w.holds(1, 1, 3)

	w.meta.change(func() { w.meta.sick = false })
	report := said(w.holder("0").ID, desk.Read)
	reported = w.clock.uptime()
	w.callback(channel, provider.Update{Channel: metaNumber, Status: &report})
	waits()
}

// TestCallback_fetched: callbacks that another process has received are fetched together, before the
// transaction that processes them.
func TestCallback_fetched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	sent := w.sent("0", on(channel))
	for range 5 {
		report := said(w.holder("0").ID, desk.Delivered)
		w.callback(channel, provider.Update{Channel: metaNumber, Status: &report})
	}
	w.stop()
	w.start(app.Bounds{})
	w.store.in(100, begin, nil)
	must(t, w.TakeInbound(t.Context(), w.ws))
	if n, got := w.store.n, w.message(sent); n != 2 || got.Delivery != desk.Delivered || len(w.due()) != 0 {
		t.Errorf("%d transactions; the message is %s, and %+v are left", n, got.Delivery, w.due())
	}
}

func TestVerifyCallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	must(t, w.verify(channel, verifyToken))
	for name, c := range map[string]struct {
		channel desk.ID
		token   string
	}{
		"no token": {channel, ""}, "a wrong one": {channel, "x"}, "the app secret": {channel, appSecret}, "more": {channel, verifyToken + "x"},
		"an unknown channel": {desk.ID{9}, verifyToken}, "a sandbox": {w.channel, ""}, "no channel": {w.ada.ID, ""},
	} {
		if err := w.verify(c.channel, c.token); !desk.IsType(err, desk.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCallback_of_another_kind: a channel accepts callbacks only for its own kind, even if
// another provider knows its secrets.
func TestCallback_of_another_kind(t *testing.T) {
	t.Parallel()
	const other desk.ChannelKind = "heron"
	w := newWorld(t)
	w.stop()
	w.others = map[desk.ChannelKind]provider.Provider{other: w.meta}
	w.start(app.Bounds{})
	channel := w.connect(metaNumber, metaBusiness)
	body, err := json.Marshal([]provider.Update{inbound(1, number, "", "Hello")})
	must(t, err)
	by := func(kind desk.ChannelKind) error {
		return w.ReceiveCallback(t.Context(), kind, channel, carrying(sign(appSecret, body)), body)
	}
	verify := func(kind desk.ChannelKind) error {
		query := map[string]string{"hub.mode": "subscribe", "hub.verify_token": verifyToken, "hub.challenge": "1158201444"}
		_, err := w.VerifyCallback(t.Context(), kind, channel, func(name string) string { return query[name] })
		return err
	}
	refused(t, by(other), desk.Unauthorized)
	refused(t, verify(other), desk.Forbidden)
	if list := w.due(); len(list) != 0 {
		t.Errorf("stored: %+v", list)
	}
	must(t, by(desk.WhatsAppChannel))
	must(t, verify(desk.WhatsAppChannel))
	if list := w.due(); len(list) != 1 {
		t.Errorf("stored: %+v", list)
	}
}

// many returns n messages of three people.
func many(n int) (told []provider.Update) {
	for i := range n {
		told = append(told, inbound(i+1, fmt.Sprintf("90532111000%d", i%3), "", fmt.Sprint("Hello ", i)))
	}
	return told
}

// TestCallback_in_parts: a large callback does not delay others. If the process dies half
// way, no update is repeated or lost.
func TestCallback_in_parts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after int // the process dies after this many messages; 0: it does not die
		when  moment
	}{
		"at once": {}, "before the first is stored": {50, commit}, "after the first": {50, answer},
		"before the second is stored": {100, commit}, "after the second": {100, answer}, "before the last is stored": {120, commit}, "after the last": {120, answer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			channel := w.connect(metaNumber, metaBusiness)
			w.callback(channel, many(120)...)
			w.store.once.Store(true)
			var mu sync.Mutex // both the background work and this test process items
			var parts []int
			stored := 0
			w.store.ends = func(when moment, messages int) error {
				mu.Lock()
				defer mu.Unlock()
				if when == answer {
					stored += messages
					parts = append(parts, stored)
				}
				if after := stored; c.after > 0 && when == c.when {
					if when == commit {
						after += messages
					}
					if after == c.after {
						w.store.down.Store(true)
						return lost()
					}
				}
				return nil
			}
			if c.after > 0 {
				w.run()
				waitFor(t, "the process to die", w.store.down.Load)
				w.stop()
				w.start(app.Bounds{})
			}
			w.takeIn()
			w.holds(3, 3, 120)
			w.stop()
			if want := []int{50, 100, 120}; c.after == 0 && !slices.Equal(parts, want) {
				t.Errorf("taken in up to %v, want %v", parts, want)
			}
			if lines := w.log.find("it is skipped"); lines != nil {
				t.Errorf("logged: %q", lines)
			}
		})
	}
}

// TestCallback_any_order: callbacks come twice and in any order, and their updates are
// divided into callbacks in any way. The result is always the same.
func TestCallback_any_order(t *testing.T) {
	t.Parallel()
	const first, second = "905321110001", "551198765432" // known as 5511998765432
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var want string
	for round := range 6 {
		w := newWorld(t)
		channel := w.connect(metaNumber, metaBusiness)
		told := []provider.Update{
			inbound(1, first, "", "One"), inbound(2, first, "TR.9A", "STOP"), inbound(3, first, "", "Three"), inbound(4, "", "TR.9A", "start"),
			inbound(5, second, "BR.9B", "Five"), inbound(6, second, "", "unsubscribe"), inbound(7, first, "", "Seven"),
			{Channel: metaNumber, Choice: &provider.MarketingChoice{Number: first, Change: desk.OptOut, At: 3500}},
			{Channel: metaNumber, Choice: &provider.MarketingChoice{Number: second, UserID: "BR.9B", Change: desk.OptInAgain, At: 5500}},
			{Channel: metaNumber, Choice: &provider.MarketingChoice{UserID: "BR.9B", Change: desk.OptInAgain, At: 5600}},
		}
		for _, to := range []string{first, "5511998765432"} {
			m := w.sent("k"+to, on(channel), func(r *desk.SendRequest) { r.Phone = phoneOf(to) })
			attempt := w.holder("k" + to).ID
			for _, d := range []desk.DeliveryStatus{desk.Sent, desk.Delivered, desk.Read, desk.Failed} {
				s := said(attempt, d)
				s.ExternalID = m.Message.ExternalID
				told = append(told, provider.Update{Channel: metaNumber, Status: &s})
			}
		}
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		if round > 0 { // the messages that link a person's handles come first
			w.callback(channel, told[1], told[4])
			told = append(told, told[:len(told)/2]...)
			r.Shuffle(len(told), func(i, j int) { told[i], told[j] = told[j], told[i] })
		}
		for len(told) > 0 {
			n := 1 + r.IntN(len(told))
			w.callback(channel, told[:n]...)
			if round > 0 && r.IntN(2) == 0 {
				w.callback(channel, told[:n]...)
			}
			told = told[n:]
		}
		w.takeIn()
		if got := w.story(); round == 0 {
			want = got
		} else if got != want {
			t.Fatalf("round %d ends as\n%swant\n%s", round, got, want)
		}
		w.stop()
		w.wants(0, on(w.channel), to(first))
		if r := w.send("sale", on(w.channel), to("5511998765432"), of("sale", "en")); !desk.IsType(r.err, desk.RecipientOptedOut) {
			t.Errorf("round %d: %v", round, r.err)
		}
		if t.Failed() {
			break
		}
	}
}

// story returns all messages with their people, as a text without parley's own ids and
// times.
func (w *world) story() string {
	w.t.Helper()
	var lines []string
	list, _, err := w.Conversations(context.Background(), w.caller(), desk.ConversationFilter{}, "", 100)
	must(w.t, err)
	for _, c := range list {
		person := w.contact(c.ContactID)
		lines = append(lines, fmt.Sprintln("conversation with", person.Identities(), c.Status))
		for _, m := range w.messages(c.ID) {
			failed := ""
			if m.Failure != nil {
				failed = m.Failure.Title
			}
			lines = append(lines, fmt.Sprintln(person.Phone, m.Direction, m.Text, m.Delivery, failed))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// TestCallback_update_that_fails: only the failing update is left out, whatever its position.
func TestCallback_update_that_fails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	w.store.put = func(m *desk.Message) error {
		switch m.Text {
		case "poison":
			panic("a bug in storing")
		case "refused":
			return errors.New("a constraint of the database")
		}
		return nil
	}
	told := many(60)
	told[0].Message.Text, told[31].Message.Text = "poison", "refused"
	told[54].Message.Number = "" // from nobody
	told[59].Message.Text = "poison"
	w.callback(channel, told...)
	w.callback(channel, inbound(100, "905321110009", "", "Hello beside them"))
	w.takeIn()
	w.holds(4, 4, 60-4+1)
	lines := w.logged(4, "it is skipped")
	if len(lines) != 4 {
		t.Errorf("logged: %q", lines)
	}
	for i, part := range []int{0, 31, 54, 59} {
		if i < len(lines) && (!strings.Contains(lines[i], fmt.Sprint("part=", part, " ")) || !strings.HasPrefix(lines[i], "ERROR")) {
			t.Errorf("logged: %s, want part %d", lines[i], part)
		}
	}
	if at := w.newest(channel); at == 0 {
		t.Error("the body is gone")
	}
}

// TestCallback_while_the_database_is_away: one update of a callback is bad, so the updates
// are processed one by one. If the database is away at this moment, the good update is not
// left out.
func TestCallback_while_the_database_is_away(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	w.store.once.Store(true)
	times := 0
	w.store.put = func(m *desk.Message) error {
		if m.Text == "poison" {
			return errors.New("a constraint of the database")
		}
		if times++; times == 3 { // it is tried with the other callback, then with the bad update, then alone
			return lost()
		}
		return nil
	}
	w.callback(channel, inbound(1, number, "", "Hello"), inbound(2, number, "", "poison"))
	w.takeIn()
	if w.writer(channel, 1) == nil || times < 4 {
		t.Errorf("it is left out, after %d attempts", times)
	}
	if lines := w.logged(1, "it is skipped"); len(lines) != 1 || !strings.Contains(lines[0], "part=1 ") {
		t.Errorf("logged: %q", lines)
	}
}

// TestCallback_that_can_not_be_read: a callback that is not JSON is dropped with its body,
// because nobody knows whom the body names; only its time stays. If reading panics because
// of a bug, the callback stays unchanged and waits for the next release. Neither callback
// delays other items.
func TestCallback_that_can_not_be_read(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	odd := []byte(`{"from":"` + number)
	must(t, w.calledBack(channel, sign(appSecret, odd), odd))
	pending := w.due()
	w.takeIn()
	if lines := w.logged(1, "dropped"); len(lines) != 1 || !strings.Contains(lines[0], "unexpected end of JSON input") {
		t.Errorf("logged: %q", lines)
	}
	must(t, w.file.InTx(t.Context(), w.ws, func(tx store.Tx) error {
		body, err := tx.Callback(pending[0])
		if len(body) != 0 || w.newest(channel) != pending[0].ReceivedAt {
			t.Errorf("the body is kept: %q", body)
		}
		return err
	}))
	w.meta.change(func() { w.meta.sick = true })
	w.callback(channel, many(3)...)
	m := w.sent("k", on(w.channel))
	w.tell(said(w.holder("k").ID, desk.Read))
	w.takeIn()
	if got := w.message(m); got.Delivery != desk.Read {
		t.Errorf("the inbound item beside it: %s", got.Delivery)
	}
	if lines := w.logged(1, "in an hour"); len(lines) != 1 || w.log.find("it is skipped") != nil {
		t.Errorf("logged: %q", lines)
	}
	w.meta.change(func() { w.meta.sick = false })
	w.clock.advance(61 * time.Minute)
	if list := w.due(); len(list) != 1 || list[0].Skip != 0 {
		t.Fatalf("after an hour: %+v", list)
	}
	must(t, w.LookForInbound(t.Context()))
	w.takeIn()
	w.holds(3+1, 3+1, 3+1) // three of the callback, and one of the sandbox
}

// TestCallback_of_other_numbers: several numbers share a callback URL. An update about a
// number goes to its channel in this workspace, and never to another workspace's channel.
func TestCallback_of_other_numbers(t *testing.T) {
	t.Parallel()
	const sibling, foreign, foreignBusiness = "200300400500601", "200300400500699", "100200300400599"
	w := newWorld(t)
	channel, siblings := w.connect(metaNumber, metaBusiness), w.connect(sibling, metaBusiness)
	w.connect("200300400500602", "100200300400501")
	other := w.another()
	others := other.connect(foreign, foreignBusiness)
	theirs := other.put(phoned("905321110008"))
	mine := w.put(phoned("905321110008"))
	before := other.caller().Settings.Version

	through := func(number string, n int, text string) provider.Update {
		h := inbound(n, "905321110001", "", text)
		h.Channel = number
		return h
	}
	w.callback(channel,
		through("", 1, "Hello to its own"), through(metaNumber, 2, "Hello"), through(sibling, 3, "Hello"), through(foreign, 4, "Hello"), through("1", 5, "Hello"),
		provider.Update{Channel: foreign, Choice: &provider.MarketingChoice{Number: "905321110002", Change: desk.OptOut, At: 10}},
		provider.Update{Channel: foreign, Move: &provider.Move{Number: "905321110008", NewNumber: "905321110009"}},
		provider.Update{Business: foreignBusiness, Choice: &provider.MarketingChoice{Number: "905321110002", Change: desk.OptOut, At: 10}},
		provider.Update{Business: foreignBusiness, Move: &provider.Move{Number: "905321110008", NewNumber: "905321110009"}},
		provider.Update{Business: foreignBusiness, Account: &provider.AccountStatus{Blocked: "gone"}},
		provider.Update{Business: foreignBusiness, Template: &provider.TemplateUpdate{Name: "hello", Language: "en", Status: "DISABLED"}},
		provider.Update{Channel: sibling, Choice: &provider.MarketingChoice{Number: "905321110003", Change: desk.OptOut, At: 10}},
		provider.Update{Business: metaBusiness, Choice: &provider.MarketingChoice{Number: "905321110004", Change: desk.OptOut, At: 10}},
		provider.Update{Business: "100200300400501", Choice: &provider.MarketingChoice{Number: "905321110005", Change: desk.OptOut, At: 10}},
	)
	w.takeIn()
	w.stop() // so that the work after transactions is done also
	for n, want := range map[int]desk.ID{1: channel, 2: channel, 3: siblings, 4: {}, 5: {}} {
		for _, c := range []desk.ID{channel, siblings, others} {
			if found := w.writer(c, n) != nil; found != (c == want) {
				t.Errorf("message %d is on channel %s: %v", n, c, found)
			}
		}
	}
	w.holds(2, 2, 3)
	other.holds(1, 0, 0)
	for _, c := range []*desk.Contact{w.contact(mine.ID), other.contact(theirs.ID)} {
		if c.Phone != "905321110008" {
			t.Errorf("a person of another number's has moved: %+v", c)
		}
	}
	if now := other.caller().Settings; now.Version != before || now.Channel(others).Status.Blocked != "" {
		t.Errorf("the other workspace's settings have changed: %+v", now.Channel(others))
	}
	w.wants(0, on(w.channel), to("905321110002"))
	w.wants(10, on(w.channel), to("905321110003"))
	w.wants(10, on(w.channel), to("905321110004"))
	w.wants(10, on(w.channel), to("905321110005"))
	if r := other.send("k", of("sale", "en"), to("905321110003")); r.err != nil {
		t.Errorf("the choice holds in the other workspace: %v", r.err)
	}
}

// TestCallback_of_another_app: a callback signed with the secret of one Meta app counts
// only for the numbers of that app. The secret is then replaced on one channel after the
// other. Meanwhile, a callback still counts for all numbers of the app.
func TestCallback_of_another_app(t *testing.T) {
	t.Parallel()
	const foreign, foreignBusiness = "200300400500601", "100200300400501"
	w := newWorld(t)
	stranger := account(foreign, foreignBusiness)
	stranger.Secrets.AppSecret = provider.NewSecret("s3cret-of-another-app")
	channel, others, sibling := w.connect(metaNumber, metaBusiness), w.connectAs(stranger), w.connect("200300400500602", metaBusiness)
	version := w.caller().Settings.Version
	to := func(n int, number string) provider.Update {
		h := inbound(n, "905321110001", "", "Hello")
		h.Channel = number
		return h
	}
	w.callback(channel, to(1, foreign), to(2, "200300400500602"),
		provider.Update{Channel: foreign, Choice: &provider.MarketingChoice{Number: "905321110002", Change: desk.OptOut, At: 10}},
		provider.Update{Business: foreignBusiness, Account: &provider.AccountStatus{Blocked: "gone"}},
		provider.Update{Business: foreignBusiness, Template: &provider.TemplateUpdate{Name: "hello", Language: "en", Status: "DISABLED"}})
	w.takeIn()
	w.stop()
	if w.writer(others, 1) != nil || w.writer(sibling, 2) == nil || w.caller().Settings.Version != version {
		t.Errorf("another app's channel is %+v", w.caller().Settings.Channel(others))
	}
	w.wants(0, on(w.channel), to905("2"))

	w.start(app.Bounds{})
	replace := func(id desk.ID, secret string) {
		t.Helper()
		_, err := w.EditChannel(t.Context(), w.operator(), id, app.ChannelEdit{Secrets: provider.Secrets{AppSecret: provider.NewSecret(secret)}})
		must(t, err)
	}
	replace(channel, "s3cret-2")
	w.callback(channel, to(3, "200300400500602"))
	w.takeIn()
	w.callback(sibling, to(4, metaNumber))
	w.takeIn()
	replace(sibling, "s3cret-2")
	w.callback(channel, to(5, "200300400500602"))
	w.takeIn()
	if w.writer(sibling, 3) == nil || w.writer(channel, 4) == nil || w.writer(sibling, 5) == nil {
		t.Error("messages are lost while the secret is replaced")
	}
	replace(channel, "s3cret-3")
	replace(channel, "s3cret-4")
	body, err := json.Marshal([]provider.Update{to(6, "200300400500602")})
	must(t, err)
	must(t, w.calledBack(channel, sign("s3cret-4", body), body))
	w.takeIn()
	if w.writer(sibling, 6) != nil {
		t.Error("a number of what is another app by now has heard it")
	}
}

func to905(last string) edit { return to("90532111000" + last) }

// TestCallback_of_a_deleted_contact: a deletion erases the bodies that name the person. A
// callback that is not processed yet is not lost: its person becomes a new contact, who can
// be deleted again.
func TestCallback_of_a_deleted_contact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	w.callback(channel, inbound(1, number, "TR.9A", "Hello"))
	w.takeIn()
	first := w.writer(channel, 1)
	w.stop()
	w.deleteContact(first.ID)
	if w.newest(channel) != 0 {
		t.Error("the body is still there")
	}
	w.holds(0, 0, 0)

	w.start(app.Bounds{})
	w.callback(channel, inbound(2, number, "", "Hello"))
	w.takeIn()
	w.stop()
	w.start(app.Bounds{})
	w.clock.advance(time.Second)
	w.callback(channel, inbound(3, number, "", "STOP"))
	w.deleteContact(w.writer(channel, 2).ID)
	pending := w.due()
	if len(pending) != 1 || w.newest(channel) != pending[0].ReceivedAt {
		t.Fatalf("pending: %+v, newest %s", pending, w.newest(channel))
	}
	w.takeIn()
	w.holds(1, 1, 1)
	again := w.writer(channel, 3)
	if again == nil || again.ID == first.ID || again.Phone != number {
		t.Fatalf("the new contact: %+v", again)
	}
	w.deleteContact(again.ID)
	if w.newest(channel) != 0 {
		t.Error("the body is still there")
	}
	if r := w.send("k", on(w.channel), of("sale", "en")); !desk.IsType(r.err, desk.RecipientOptedOut) {
		t.Errorf("the choice is forgotten: %v", r.err)
	}

	// No erasure would ever delete a body about a person who is not a contact.
	w.stop()
	w.start(app.Bounds{})
	w.clock.advance(time.Second)
	w.callback(channel, provider.Update{Channel: metaNumber, Choice: &provider.MarketingChoice{Number: number, Change: desk.OptInAgain, At: desk.TimeOf(w.clock.now())}})
	pending = w.due()
	w.takeIn()
	must(t, w.file.InTx(t.Context(), w.ws, func(tx store.Tx) error {
		body, err := tx.Callback(pending[0])
		if len(body) != 0 || w.newest(channel) != pending[0].ReceivedAt {
			t.Errorf("the body is kept: %q", body)
		}
		return err
	}))
	w.wants(0, on(w.channel))
}

// blocked checks whether a send on a channel is refused because the channel is blocked.
func (w *world) blocked(channel desk.ID, want bool) {
	w.t.Helper()
	r := w.send("k "+w.clock.newID().String(), on(channel))
	if !want {
		must(w.t, r.err)
	} else if e := refusalOf(w.t, r.err, desk.ChannelNotUsable); e.Details != (desk.Unusable{Reason: "blocked"}) {
		w.t.Errorf("details: %+v", e.Details)
	}
}

// TestAccountStatus: while the provider blocks an account, sends on all its channels are
// refused without a call, until the provider reports the end or the time is over.
func TestAccountStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel, sibling, free := w.connect(metaNumber, metaBusiness), w.connect("200300400500601", metaBusiness), w.connect("200300400500602", "100200300400501")
	tell := func(s provider.AccountStatus) {
		t.Helper()
		w.callback(channel, provider.Update{Business: metaBusiness, Account: &s})
		w.run()
		waitFor(t, "the news to be taken in", func() bool {
			a := w.caller().Settings.Channel(sibling).Status
			return a.Blocked == s.Blocked && a.Until == s.Until
		})
	}
	tell(provider.AccountStatus{Blocked: "a violation"})
	w.blocked(channel, true)
	w.blocked(sibling, true)
	w.blocked(free, false)
	w.blocked(w.channel, false)
	version := w.caller().Settings.Version
	w.callback(channel, provider.Update{Business: metaBusiness, Account: &provider.AccountStatus{Blocked: "a violation"}})
	w.takeIn()
	if problems, err := w.CheckChannel(t.Context(), w.operator(), channel); err != nil || len(problems) != 1 || !problems[0].Blocking || !strings.Contains(problems[0].Text, "a violation") {
		t.Errorf("checked: %+v, %v", problems, err)
	}
	tell(provider.AccountStatus{At: 20})
	w.blocked(channel, false)
	w.callback(channel, provider.Update{Business: metaBusiness, Account: &provider.AccountStatus{Blocked: "late news", At: 10}})
	w.takeIn()
	if !w.raised(version, 2) {
		t.Errorf("what was known already, and the new account status of two channels, took the version from %d to %d", version, w.caller().Settings.Version)
	}
	tell(provider.AccountStatus{Blocked: "for an hour", At: 30, Until: desk.TimeOf(w.clock.now()) + 3_600_000})
	w.blocked(channel, true)
	w.clock.advance(59 * time.Minute)
	w.blocked(channel, true)
	w.clock.advance(2 * time.Minute)
	w.blocked(channel, false)
	if problems, err := w.CheckChannel(t.Context(), w.operator(), channel); err != nil || len(problems) != 0 {
		t.Errorf("checked: %+v, %v", problems, err)
	}
	if lines := w.logged(6, "WARN a channel's account status has changed"); len(lines) != 6 { // three changes of two channels
		t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}

// TestAccountStatus_repliesOnly: an account that may only reply still sends replies,
// automatic replies included. An account that may not send at all sends no replies.
func TestAccountStatus_repliesOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	status := func(replies bool, at desk.Time) {
		t.Helper()
		must(t, w.file.UpdateSettings(t.Context(), w.ws, func(s *desk.Settings) (desk.Change, error) {
			c := *s.Channel(channel)
			c.Status = desk.AccountStatus{Blocked: "a violation", Replies: replies, Since: at}
			return desk.Change{Channel: &c}, nil
		}))
	}
	hears := func(id, from string) *desk.Conversation {
		t.Helper()
		c, err := w.Receive(t.Context(), w.ws, channel, provider.InboundMessage{ExternalID: id, Number: from, Text: "Hi", At: w.at()})
		must(t, err)
		return c
	}
	w.policy(closed, says("We are closed.", ""))
	status(false, 1)
	c := hears("1", number)
	w.autoReplies()
	_, err := w.replies("k", c.ID)
	refused(t, err, desk.ChannelNotUsable)
	status(true, 2)
	w.blocked(channel, true)
	if _, err := w.replies("k", c.ID); err != nil || len(w.meta.calls) != 1 {
		t.Errorf("%v, %d calls", err, len(w.meta.calls))
	}
	hears("2", "905321110011")
	w.autoReplies()
	if n := len(w.meta.calls); n != 2 || w.meta.calls[1].Text != "We are closed." {
		t.Errorf("%d calls", n)
	}
	if problems, err := w.CheckChannel(t.Context(), w.operator(), channel); err != nil || len(problems) == 0 || !strings.Contains(problems[0].Text, "still answered") {
		t.Errorf("checked: %+v, %v", problems, err)
	}
}

// runAndLook starts Run, and waits until it has looked for libraries to fetch.
func (w *world) runAndLook() {
	w.t.Helper()
	looked := w.store.listed.Load()
	w.run()
	waitFor(w.t, "the first look for libraries", func() bool { return w.store.listed.Load() > looked })
}

// templateStatus returns the status of the English template hello in a channel's library.
func (w *world) templateStatus(channel desk.ID) string {
	w.t.Helper()
	library, err := w.TemplatesOf(context.Background(), w.operator(), channel)
	must(w.t, err)
	return library.Find("hello", "en").Status
}

// TestTemplateNews: a new status counts at once, however the language is spelled, and the
// library is fetched soon after.
func TestTemplateNews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel, sibling, other := w.connect(metaNumber, metaBusiness), w.connect("200300400500601", metaBusiness), w.connect("200300400500602", "100200300400501")
	must(t, w.SyncStale(t.Context())) // the next one is due in an hour
	w.meta.change(func() { w.meta.away = errors.New("the provider is away") })
	w.runAndLook()
	update := template("order_update", "en_US", "UTILITY", "Order {{1}}", "Hi {{1}}, order {{2}} ships today.")
	w.callback(channel,
		provider.Update{Business: metaBusiness, Template: &provider.TemplateUpdate{Name: "hello", Language: "en", Status: "PAUSED"}},
		provider.Update{Business: metaBusiness, Template: &provider.TemplateUpdate{Name: update.Name, Language: "en-US", Status: "DISABLED"}},
		provider.Update{Business: metaBusiness, Template: &provider.TemplateUpdate{Name: "unknown", Language: "en", Status: "APPROVED"}})
	for _, c := range []desk.ID{channel, sibling} {
		waitFor(t, "the statuses to change", func() bool {
			library, err := w.TemplatesOf(t.Context(), w.operator(), c)
			must(t, err)
			return w.templateStatus(c) == "paused" && library.Find("order_update", "en_US").Status == "disabled"
		})
		e := refusalOf(t, w.send("k"+c.String(), on(c)).err, desk.TemplateNotSendable)
		if got := e.Details.(desk.Unsendable); got.Status != "paused" || !slices.Contains(got.Reasons, "not_approved") {
			t.Errorf("details: %+v", got)
		}
	}
	w.sent("tr", on(channel), of("hello", "tr"))
	if got := w.templateStatus(other); got != "approved" {
		t.Errorf("another account's is %s", got)
	}
	waitFor(t, "the library to be fetched, in vain", func() bool { return w.meta.times(channel) > 1 && w.meta.times(sibling) > 1 })
	w.meta.change(func() { w.meta.away = nil })
	w.callback(channel, provider.Update{Business: metaBusiness, Template: &provider.TemplateUpdate{Name: "hello", Language: "en"}})
	waitFor(t, "the library to be fetched", func() bool { return w.templateStatus(channel) == "approved" && w.templateStatus(sibling) == "approved" })
	if n := w.meta.times(other); n != 1 {
		t.Errorf("another account's library was fetched %d times", n)
	}
}

// TestSyncStale: if a library was not fetched for an hour, one of several nodes fetches it.
// A library that was reported as changed is always fetched, even if the database was away
// meanwhile.
func TestSyncStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	other := w.another()
	others := other.connect(metaNumber, metaBusiness)
	nodes := []*app.App{w.App, w.node(&faultyStore{Store: w.file}, app.Bounds{})}
	must(t, w.SyncStale(t.Context())) // the libraries were fetched when the channels were connected
	w.clock.advance(61 * time.Minute)
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			if err := nodes[n%2].SyncStale(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if a, b := w.meta.times(channel), w.meta.times(others); a != 2 || b != 2 {
		t.Fatalf("fetched %d and %d times", a, b)
	}
	w.runAndLook()
	w.callback(channel, provider.Update{Business: metaBusiness, Template: &provider.TemplateUpdate{Name: "hello", Language: "en", Status: "PAUSED"}})
	waitFor(t, "the status to change", func() bool { return w.templateStatus(channel) == "paused" })
	w.stop() // the process stops before it has fetched the library
	w.store.down.Store(true)
	refused(t, w.SyncStale(t.Context()), desk.Unavailable)
	w.store.down.Store(false)
	for range 2 { // the second call has nothing to do
		must(t, w.SyncStale(t.Context()))
	}
	if a, b := w.meta.times(channel), w.meta.times(others); a != 3 || b != 2 || w.templateStatus(channel) != "approved" {
		t.Errorf("fetched %d and %d times", a, b)
	}

	// A refusal can also show that the library has changed.
	for _, r := range []*desk.Refusal{refusal, {Type: desk.ProviderRejected, StaleTemplate: true}} {
		w.meta.change(func() { w.meta.refusal = r })
		refused(t, w.send("k", on(channel)).err, desk.ProviderRejected)
		must(t, w.SyncStale(t.Context()))
	}
	if a, b := w.meta.times(channel), w.meta.times(others); a != 4 || b != 2 {
		t.Errorf("fetched %d and %d times", a, b)
	}
}

// TestSyncStale_slow: a provider never answers with the library of one channel. This delays
// no other workspace. The provider is not asked a second time meanwhile, even if somebody
// asks by hand. A change that is reported during the fetch is fetched after it.
func TestSyncStale_slow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := w.connect(metaNumber, metaBusiness)
	other := w.another()
	others := other.connect(metaNumber, metaBusiness)
	w.meta.change(func() { w.meta.slow = slow })
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	synced := func() desk.Time {
		h, err := w.ChannelHealth(t.Context(), other.operator(), others)
		must(t, err)
		return h.Synced
	}
	begins := func() (ended chan error) {
		w.clock.advance(61 * time.Minute)
		ended = make(chan error, 1)
		go func() { ended <- w.SyncStale(ctx) }()
		return ended
	}
	before := synced()
	first := begins()
	waitFor(t, "both to be fetched", func() bool { return w.meta.times(slow) == 2 && synced() > before })
	second := begins()
	waitFor(t, "the second call to end", func() bool { return len(second) == 1 })
	waitFor(t, "the other to be fetched again", func() bool { // the first call may not have left it when the second came
		must(t, w.SyncStale(ctx))
		return w.meta.times(others) == 3
	})

	impatient, leave := context.WithCancel(ctx)
	leave()
	_, _, err := w.SyncChannel(impatient, w.operator(), slow)
	refused(t, err, desk.Unavailable)
	if n := w.meta.times(slow); n != 2 {
		t.Errorf("it was asked %d times", n)
	}
	w.meta.change(func() { w.meta.refusal = &desk.Refusal{Type: desk.ProviderRejected, StaleTemplate: true} })
	refused(t, w.send("k", on(slow)).err, desk.ProviderRejected)
	<-w.TemplatesNoted()
	must(t, w.SyncStale(ctx))
	if len(w.TemplatesNoted()) != 0 {
		t.Error("while it is fetched, it is said to have changed")
	}
	stop()
	t.Log("the first call has ended:", <-first)
	waitFor(t, "it to be said", func() bool { return len(w.TemplatesNoted()) == 1 })
	w.meta.change(func() { w.meta.slow = desk.ID{} })
	must(t, w.SyncStale(t.Context()))
	if n := w.meta.times(slow); n != 3 {
		t.Errorf("it was asked %d times", n)
	}
}

// TestSyncChannel_slow: a fetch ends after some minutes, and says why.
func TestSyncChannel_slow(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, app.Bounds{Templates: 50 * time.Millisecond})
	channel := w.connect(metaNumber, metaBusiness)
	w.meta.change(func() { w.meta.slow = channel })
	_, _, err := w.SyncChannel(t.Context(), w.operator(), channel)
	if e := refusalOf(t, err, desk.Unavailable); !strings.Contains(e.Message, "within 50ms") {
		t.Errorf("it says %q", e.Message)
	}
}

// TestSyncChannel_of_others_every_time: each fetch returns other templates than the one
// before. The earlier templates stay with the status deleted, up to the size that a library
// may have.
func TestSyncChannel_of_others_every_time(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	names := func(n int) (list []desk.TemplateSource) {
		for i := range desk.MaxTemplates * 2 / 5 {
			list = append(list, template(fmt.Sprintf("t%d_%d", n, i), "en", "UTILITY", "", "Hi"))
		}
		return list
	}
	for n := range 4 {
		w.meta.change(func() { w.meta.library = names(n) })
		_, _, err := w.SyncChannel(t.Context(), w.operator(), channel)
		must(t, err)
	}
	library, err := w.TemplatesOf(t.Context(), w.operator(), channel)
	must(t, err)
	deleted := 0
	for _, tmpl := range library.Templates {
		if tmpl.Status == "deleted" {
			deleted++
		}
	}
	if n := len(library.Templates); n != desk.MaxTemplates || deleted != desk.MaxTemplates*3/5 {
		t.Errorf("%d templates, %d of them deleted", n, deleted)
	}
}

// TestSyncChannel_of_a_library_that_moved: two nodes fetch a library at once. The node that
// asked first does not overwrite the newer library that the other node has stored.
func TestSyncChannel_of_a_library_that_moved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	other := w.node(&faultyStore{Store: w.file}, app.Bounds{})
	has := func(n int) {
		w.meta.library = []desk.TemplateSource{template("hello", "en", "UTILITY", "", fmt.Sprint("Hello number ", n))}
	}
	moves, n := 1, 1
	has(n)
	var fetching func()
	fetching = func() { // a change, then the fetch of the other node, then another change
		if moves == 0 {
			return
		}
		moves--
		w.meta.fetching = nil
		n++
		has(n)
		_, _, err := other.SyncChannel(t.Context(), w.operator(), channel)
		must(t, err)
		n++
		has(n)
		w.meta.fetching = fetching
	}
	w.meta.fetching = fetching
	says := func(want string) {
		t.Helper()
		library, err := w.TemplatesOf(t.Context(), w.operator(), channel)
		must(t, err)
		if got := library.Find("hello", "en").Body; got != want {
			t.Errorf("the template says %q, want %q", got, want)
		}
	}
	if _, _, err := w.SyncChannel(t.Context(), w.operator(), channel); err != nil || w.meta.times(channel) != 1+3 {
		t.Errorf("fetched %d times, %v", w.meta.times(channel), err)
	}
	says("Hello number 3")
	moves = 10 // more changes than the number of times that a fetch is repeated
	has(n + 1)
	_, _, err := w.SyncChannel(t.Context(), w.operator(), channel)
	refused(t, err, desk.Unavailable)
	says(fmt.Sprint("Hello number ", n-1))
}

// TestSyncChannel_of_WhatsApp: a failed fetch changes nothing. A template that the provider no
// longer has gets the status deleted until it comes back.
func TestSyncChannel_of_WhatsApp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	all := w.meta.library
	step := func(what string, library []desk.TemplateSource, away error, want string) {
		t.Helper()
		w.meta.change(func() { w.meta.library, w.meta.away = library, away })
		if _, _, err := w.SyncChannel(t.Context(), w.operator(), channel); !errors.Is(err, away) {
			t.Errorf("%s: %v", what, err)
		}
		r := w.send(what, on(channel))
		if got := w.templateStatus(channel); got != want || (want == "approved") != (r.err == nil) {
			t.Errorf("%s: %s, sent: %v", what, got, r.err)
		}
	}
	away := errors.New("the provider is away")
	step("there", all, nil, "approved")
	step("nothing can be had", nil, away, "approved")
	step("half can be had", all[1:], away, "approved")
	step("vanished", all[1:], nil, "deleted")
	version := w.caller().Settings.Version
	step("vanished still", all[1:], nil, "deleted")
	if now := w.caller().Settings.Version; now != version {
		t.Errorf("nothing changed, and the version went from %d to %d", version, now)
	}
	step("back", all, nil, "approved")
}
