package e2e_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	consoleRaces = flag.Int("console-races", 24, "how many races of two members at the same conversations TestTwoAtOnce makes on each store. Long run: -console-races 1000")
	consoleSends = flag.Int("console-sends", 24, "how many forms TestFormsSendOnce sends on each store, clicked twice or with a cut connection. Long run: -console-sends 1000")
)

// nobody is the value that forms have for the assignee of an unassigned conversation.
const nobody = "00000000-0000-0000-0000-000000000000"

// A deed is a form that succeeded: its action, and the state of the conversation that the
// member had seen.
type deed struct{ conversation, member, what, message, assignee, status string }

// TestTwoAtOnce: two members answer, close, take and reopen the same conversations at the
// same time, while customers write. A form succeeds only if the conversation still has
// the state that the member saw. Any other form does nothing, and the page says what has
// changed.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, dir string, flags []string) {
		t.Parallel()
		const atOnce = 4
		m := newTeam(t, dir, flags)
		names := []string{"Mei", "Tomas"}
		var ids []string
		var visitors []*visitor
		for n, name := range names {
			ids = append(ids, m.member(name, "agent"))
			visitors = append(visitors, m.visitor(name, n))
		}
		seed := newSeed(t)
		api := m.nodes[0].client(t, m.key, atOnce)
		var mu sync.Mutex
		var deeds []deed
		var conversations []string
		var refused int
		for from := 0; from < *consoleRaces && !t.Failed(); from += atOnce {
			together(min(atOnce, *consoleRaces-from), func(i int) {
				rng := random(seed, uint64(from+i))
				r := &contest{api: api, visitors: visitors, ids: ids, rng: rng}
				err := r.run(phoneOf(from + i))
				mu.Lock()
				defer mu.Unlock()
				deeds, conversations, refused = append(deeds, r.deeds...), append(conversations, r.conversation), refused+r.refused
				if err != nil {
					t.Errorf("race %d: %v", from+i, err)
				}
			})
		}
		if t.Failed() {
			return
		}
		changes := judgeDeeds(t, changesOf(t, api), deeds, func(id string) (status, assignee string) {
			v := decode[struct {
				Data struct {
					Status         string
					AssignedMember string `json:"assigned_member_id"`
				}
			}](t, api.must(t, 200, "GET", "/conversations/"+id, "")).Data
			return v.Status, cmp.Or(v.AssignedMember, nobody)
		}, conversations)
		t.Logf("%d races: %d forms done, of which %d changed something, and %d answered 409", len(conversations), len(deeds), changes, refused)
		if *consoleRaces >= 10 && refused == 0 {
			t.Error("nobody was told of the other's change")
		}
	})
}

// A contest is a conversation on which two members act at the same time.
type contest struct {
	api          *client
	visitors     []*visitor
	ids          []string
	rng          *rand.Rand
	conversation string

	mu      sync.Mutex
	deeds   []deed
	refused int
}

func (r *contest) run(phone string) error {
	made, err := r.api.send("POST", "/conversations/outbound", fmt.Sprintf(`{"to":{"phone":"%s"},"template":{"name":"hello","language":"en_US"},"opt_in_confirmed":true}`, phone), "Idempotency-Key", "race-"+phone)
	if err != nil || made.status != http.StatusCreated {
		return fmt.Errorf("%d %s: %w", made.status, made.body, err)
	}
	var answer struct {
		Data struct{ Conversation struct{ ID string } }
	}
	if err := json.Unmarshal(made.body, &answer); err != nil {
		return err
	}
	r.conversation = answer.Data.Conversation.ID
	page, err := r.visitors[0].send("/inbox/"+r.conversation, nil)
	if err == nil {
		err = r.customer(page.body) // members can only reply after the customer has written
	}
	if err != nil {
		return err
	}
	for range 2 + r.rng.IntN(2) {
		var pages [2][]byte
		for i, v := range r.visitors {
			page, err := v.send("/inbox/"+r.conversation, nil)
			if err != nil || page.status != http.StatusOK {
				return fmt.Errorf("the page: %d, %w", page.status, err)
			}
			pages[i] = page.body
		}
		var acts []func() error
		for i := range r.visitors {
			anyway := r.rng.IntN(2) == 0
			what := choose(r.rng, "take", "reply", "reply", "close")
			acts = append(acts, func() error { return r.act(i, what, pages[i], anyway) })
		}
		if r.rng.IntN(2) == 0 {
			acts = append(acts, func() error { return r.customer(pages[0]) })
		}
		r.rng.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
		errs := make([]error, len(acts))
		together(len(acts), func(i int) { errs[i] = acts[i]() })
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// customer sends a message as the customer.
func (r *contest) customer(page []byte) error {
	f, err := formOf(page, "/customer")
	if err != nil {
		return err
	}
	f = f.with("text", "Are you there?")
	got, err := r.visitors[0].send(f.action, f.values)
	if err == nil && got.status != http.StatusSeeOther {
		err = fmt.Errorf("a customer's message: %d %s", got.status, got.body)
	}
	return err
}

// act sends the form of a page. If the form is refused because something has changed, and
// anyway is set, the member confirms the action.
func (r *contest) act(who int, what string, page []byte, anyway bool) error {
	words := map[string][]string{"take": {"/assign", `name="to" value="` + r.ids[who]}, "close": {"/status", `value="closed"`}, "reply": {"/reply", ">Send</button>"}, "reopen": {"/status", `value="open"`}}
	f, err := formOf(page, words[what]...)
	if errors.Is(err, errNoForm) { // the page has no such form: the conversation already belongs to the member, or is closed
		what = "reopen"
		if f, err = formOf(page, words[what]...); errors.Is(err, errNoForm) {
			what = "close"
			f, err = formOf(page, words[what]...)
		}
	}
	if err != nil {
		return err
	}
	switch what {
	case "reply":
		f = f.with("reply", "An answer of "+r.ids[who])
	case "take":
		f = f.with("to", r.ids[who])
	case "close":
		f = f.with("status", "closed")
	case "reopen":
		f = f.with("status", "open")
	}
	for range 5 {
		got, err := r.visitors[who].send(f.action, f.values)
		if err != nil {
			return err
		}
		d := deed{r.conversation, r.ids[who], what, f.values.Get("seen_message"), f.values.Get("seen_assignee"), f.values.Get("seen_status")}
		r.mu.Lock()
		switch got.status {
		case http.StatusSeeOther:
			r.deeds = append(r.deeds, d)
		case http.StatusConflict:
			r.refused++
		}
		r.mu.Unlock()
		switch {
		case got.status == http.StatusSeeOther:
			return nil
		case got.status != http.StatusConflict:
			return fmt.Errorf("%s: %d %s", what, got.status, got.body)
		case bytes.Contains(got.body, []byte("This person has another open conversation")):
			return nil // the customer has written again after the conversation was closed
		case bytes.Contains(got.body, []byte("Nothing was sent: it is ")), bytes.Contains(got.body, []byte("somebody else is sending")):
			return nil
		case !bytes.Contains(got.body, []byte("Nothing was done")) && !bytes.Contains(got.body, []byte("Nothing was sent")):
			return fmt.Errorf("%s: a 409 that does not say what has changed: %s", what, got.body)
		case !anyway:
			return nil
		}
		if f, err = formOf(got.body, "Leave it"); err != nil {
			return err
		}
		if f.values.Get("seen_message") == d.message && f.values.Get("seen_assignee") == d.assignee && f.values.Get("seen_status") == d.status {
			return fmt.Errorf("%s: refused although nothing was new: %s", what, got.body)
		}
	}
	return nil
}

// A changeEvent has those fields of an event that judgeDeeds reads.
type changeEvent struct {
	Type    string
	Actor   struct{ ID string }
	Subject struct {
		ID             string
		ConversationID string `json:"conversation_id"`
	}
	Changed []string
	Data    struct{ TS string } // of a message; TS and the id give its position in the list
}

// changesOf reads the whole feed.
func changesOf(t *testing.T, c *client) (all []changeEvent) {
	t.Helper()
	for cursor, more := "oldest", true; more; {
		page := decode[struct {
			Data   []changeEvent
			Cursor string
			More   bool
		}](t, c.must(t, 200, "GET", "/events?limit=200&cursor="+cursor, ""))
		all, cursor, more = append(all, page.Data...), page.Cursor, page.More
	}
	return all
}

// judgeDeeds replays the feed. For each change of a conversation by a member, there must
// be a deed, and the member must have seen the state before the change. All other deeds
// must have changed nothing. judgeDeeds returns the number of deeds that changed
// something.
func judgeDeeds(t *testing.T, feed []changeEvent, deeds []deed, stored func(id string) (status, assignee string), conversations []string) (changes int) {
	t.Helper()
	type state struct {
		message, assignee, status string
		at                        string   // the position of the newest message in the list
		was                       []string // the assignees and statuses that it has had so far
		shown                     []deed   // the states that it has had so far
	}
	states := map[string]*state{}
	for _, id := range conversations {
		states[id] = &state{status: "open", assignee: nobody}
	}
	left := map[deed]int{}
	for _, d := range deeds {
		left[d]++
	}
	members := map[string]bool{}
	for _, d := range deeds {
		members[d.member] = true
	}
	show := func(s *state) {
		s.shown = append(s.shown, deed{message: s.message, assignee: s.assignee, status: s.status})
	}
	for i, e := range feed {
		switch e.Type {
		case "message.sent", "message.received":
			s := states[e.Subject.ConversationID]
			if s == nil {
				continue
			}
			if members[e.Actor.ID] { // a reply: the member may have seen any earlier state
				if !slices.ContainsFunc(s.shown, func(d deed) bool {
					d.conversation, d.member, d.what = e.Subject.ConversationID, e.Actor.ID, "reply"
					left[d]--
					if left[d] < 0 {
						left[d]++
						return false
					}
					return true
				}) {
					t.Errorf("the reply %s by %s in conversation %s, which nobody asked for", e.Subject.ID, e.Actor.ID, e.Subject.ConversationID)
				}
				changes++
			}
			// The newest message is the one that members see last in the list. A reply
			// may be accepted before a customer's message and stored after it.
			if at := e.Data.TS + " " + e.Subject.ID; at > s.at {
				s.message, s.at = e.Subject.ID, at
			}
			show(s)
		case "conversation.updated":
			s := states[e.Subject.ID]
			if s == nil {
				continue
			}
			d := deed{conversation: e.Subject.ID, member: e.Actor.ID, message: s.message, assignee: s.assignee, status: s.status}
			switch {
			case slices.Contains(e.Changed, "status") && s.status == "open":
				d.what, s.status = "close", "closed"
			case slices.Contains(e.Changed, "status"):
				d.what, s.status = "reopen", "open"
			default:
				d.what, s.assignee = "take", e.Actor.ID
			}
			if next := feed[min(i+1, len(feed)-1)]; d.what == "take" && left[d] == 0 && next.Type == "message.sent" && next.Actor.ID == e.Actor.ID && next.Subject.ConversationID == e.Subject.ID {
				if d.assignee != nobody {
					t.Errorf("a reply took the conversation %s of %s", d.conversation, d.assignee)
				}
				left[d]++ // the reply took the conversation, not a form
			}
			show(s)
			s.was = append(s.was, s.assignee, s.status)
			if left[d]--; left[d] < 0 {
				t.Errorf("%s by %s changed conversation %s, which nobody asked for on message %s and holder %q", d.what, d.member, d.conversation, d.message, d.assignee)
			}
			changes++
		}
	}
	for d, n := range left {
		s := states[d.conversation]
		did := map[string]string{"close": "closed", "reopen": "open", "take": d.member}[d.what] // "" for a reply, which always changes something
		if n > 0 && !slices.Contains(s.was, did) {
			t.Errorf("%s by %s in conversation %s is answered as done, but did nothing", d.what, d.member, d.conversation)
		}
	}
	for id, s := range states {
		if status, assignee := stored(id); status != s.status || assignee != s.assignee {
			t.Errorf("conversation %s is %s and %q's, by its events it should be %s and %q's", id, status, assignee, s.status, s.assignee)
		}
	}
	return changes
}

// TestFormsSendOnce: forms send a template or a reply. Some of them are clicked twice.
// For some, the connection is cut before or after the server has received the form. For
// some, the response of the provider is lost. Each form sends one message. In the end the
// page shows the message, or says that the send is in doubt.
func TestFormsSendOnce(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, dir string, flags []string) {
		t.Parallel()
		const atOnce = 4
		m := newTeam(t, dir, flags)
		m.member("Mei", "agent")
		v := m.visitor("Mei", 0)
		others := []*visitor{v, v.at(m.nodes[len(m.nodes)-1].url)}
		api := m.nodes[0].client(t, m.key, atOnce)
		phone := func(n int) string {
			if n%8 > 5 {
				return fmt.Sprintf("+4930%05d0003", n) // the provider's response for this number is lost
			}
			return phoneOf(n)
		}
		for n := 1; n < *consoleSends; n += 2 { // these people write first, because they get replies
			m.must("sandbox", "inbound", "--channel", m.channel, "--from", phone(n), "--text", "How much?")
		}
		var mu sync.Mutex
		ends := map[string]int{}
		for from := 0; from < *consoleSends && !t.Failed(); from += atOnce {
			together(min(atOnce, *consoleSends-from), func(i int) {
				n := from + i
				end, err := sendForm(api, others, n, phone(n))
				if err != nil {
					t.Errorf("form %d: %v", n, err)
				}
				mu.Lock()
				defer mu.Unlock()
				ends[end]++
			})
		}
		attempts := map[string]int{}
		for _, doubt := range []string{"", "?doubt=yes"} {
			page := v.mustGet(t, 200, "/sends"+doubt)
			attempts[doubt] = strings.Count(page, `href="/sends/`)
		}
		t.Logf("%d forms: %v; links to attempts on the first page: %v", *consoleSends, ends, attempts)
		if ends["doubt"] != *consoleSends/4 || ends["sent"] != *consoleSends-*consoleSends/4 {
			t.Errorf("%v, want two of eight in doubt", ends)
		}
	})
}

// sendForm sends one form in one of several ways, which n selects. It repeats the form
// until a response says how the send ended. Then it counts the messages. Every second
// form is a reply.
func sendForm(api *client, others []*visitor, n int, phone string) (end string, err error) {
	made, err := api.expect("POST", "/contacts", fmt.Sprintf(`{"phone":"%s","name":"Person %d"}`, phone, n), http.StatusCreated, http.StatusOK)
	if err != nil {
		return "", err
	}
	var person struct{ Data contact }
	if err := json.Unmarshal(made.body, &person); err != nil {
		return "", err
	}
	v := others[0]
	path, fields := "/send?template=hello/en_US&contact="+person.Data.ID, []string{"opt_in", "yes", "assignee", ""}
	already := n % 2
	if already == 1 {
		talk, err := api.expect("GET", "/contacts/"+person.Data.ID+"/conversations", "", http.StatusOK)
		if err != nil {
			return "", err
		}
		var list struct{ Data []struct{ ID string } }
		if err := json.Unmarshal(talk.body, &list); err != nil || len(list.Data) != 1 {
			return "", fmt.Errorf("%s: %w", talk.body, err)
		}
		path, fields = "/inbox/"+list.Data[0].ID, []string{"reply", "Twelve."}
	}
	page, err := v.send(path, nil)
	if err != nil {
		return "", err
	}
	f, err := formOf(page.body, `name="key"`)
	if err != nil {
		return "", err
	}
	f = f.with(fields...)
	answers := make([]reply, 2)
	errs := make([]error, 2)
	click := func(i int) { answers[i], errs[i] = others[i].send(f.action, f.values) }
	switch n / 2 % 4 {
	case 0: // a double click
		together(2, click)
	case 1: // a connection that is cut before the server has received the whole form
		err = v.cut(f, -1, 0)
	case 2: // a connection that is cut after that, at once or a little later
		err = v.cut(f, 0, time.Duration(n%7)*time.Millisecond)
	case 3: // a connection that is cut, and a double click at the same time
		together(3, func(i int) {
			if i == 2 {
				err = v.cut(f, 0, 0)
				return
			}
			click(i)
		})
	}
	if err = errors.Join(append(errs, err)...); err != nil {
		return "", err
	}
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		click(n / 4 % 2) // a click on "Try again"
		a := answers[n/4%2]
		switch {
		case errs[n/4%2] != nil:
			return "", errs[n/4%2]
		case a.status == http.StatusSeeOther && strings.HasPrefix(a.header.Get("Location"), "/inbox/"):
			end = "sent"
		case a.status == http.StatusConflict && bytes.Contains(a.body, []byte("See how it ends")):
			if !bytes.Contains(a.body, []byte("Do not send it again")) && time.Since(begun) < patience {
				continue // the message is still being sent
			}
			end = "doubt"
		case a.status == http.StatusServiceUnavailable && time.Since(begun) < patience:
			continue
		default:
			return "", fmt.Errorf("%d to %q: %s", a.status, a.header.Get("Location"), a.body)
		}
		break
	}
	for _, a := range answers {
		if to := a.header.Get("Location"); to != "" && to != answers[n/4%2].header.Get("Location") {
			return "", fmt.Errorf("two answers lead to %s and %s", to, answers[n/4%2].header.Get("Location"))
		}
	}
	return end, onceSent(api, v, person.Data.ID, end, already, answers[n/4%2].header.Get("Location"))
}

// onceSent checks that a person has one more message, and that the page shows it. If the
// end is "doubt", the person must have no new conversation.
func onceSent(api *client, v *visitor, contact, end string, already int, path string) error {
	var list struct{ Data []struct{ ID string } }
	ids := func(path string) ([]struct{ ID string }, error) {
		r, err := api.expect("GET", path, "", http.StatusOK)
		if err == nil {
			list.Data = nil
			err = json.Unmarshal(r.body, &list)
		}
		return list.Data, err
	}
	conversations, err := ids("/contacts/" + contact + "/conversations")
	if err != nil {
		return err
	}
	if end == "doubt" {
		if len(conversations) != already {
			return fmt.Errorf("%d conversations with somebody whose message is in doubt", len(conversations))
		}
		return nil
	}
	if len(conversations) != 1 {
		return fmt.Errorf("%d conversations, want 1", len(conversations))
	}
	messages, err := ids("/conversations/" + conversations[0].ID + "/messages")
	if err != nil {
		return err
	}
	page, err := v.send(path, nil)
	if err != nil {
		return err
	}
	if len(messages) != 1+already || bytes.Count(page.body, []byte(`id="m-`)) != 1+already || !bytes.Contains(page.body, []byte(`id="m-`+messages[0].ID)) {
		return fmt.Errorf("%d messages, and the page %s shows %d", len(messages), path, bytes.Count(page.body, []byte(`id="m-`)))
	}
	return nil
}

// cut sends a form, but leaves out the last bytes of its body: less bytes or, if less is
// below 0, half of the body. Then it closes the connection without reading.
func (v *visitor) cut(f filled, less int, wait time.Duration) error {
	at, err := url.Parse(v.url)
	if err != nil {
		return err
	}
	c, err := net.Dial("tcp", at.Host)
	if err != nil {
		return err
	}
	defer c.Close()
	body := f.values.Encode()
	var head strings.Builder
	fmt.Fprintf(&head, "POST %s HTTP/1.1\r\nHost: %s\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n", f.action, at.Host, len(body))
	for _, cookie := range v.http.Jar.Cookies(at) {
		fmt.Fprintf(&head, "Cookie: %s=%s\r\n", cookie.Name, cookie.Value)
	}
	if less < 0 {
		less = len(body) / 2
	}
	if _, err := fmt.Fprintf(c, "%s\r\n%s", head.String(), body[:len(body)-less]); err != nil {
		return err
	}
	if wait > 0 { // the server may be at another step at each cut
		<-time.After(wait)
	}
	return nil
}
