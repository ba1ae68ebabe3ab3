//go:build unix

package e2e_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/store/postgres/pgtest"
	"parley/whatsapp/whatsapptest"
)

var whatsAppSends = flag.Int("whatsapp-sends", 200, "how many messages TestWhatsAppLosesAnswers sends")

// Only the provider and the operator may see these secrets. The token is as long as a
// real one.
var (
	waToken     = "EAAG" + strings.Repeat("aZ09", 40)
	waAppSecret = "f00dbabe" + strings.Repeat("0c", 12)
	waVerify    = "verify-" + strings.Repeat("x7", 12)
)

// A whatsApp is an installation. The simulator is its provider.
type whatsApp struct {
	deployment
	sim       *whatsapptest.Simulator
	graph     string // the address of the simulator
	server    *server
	ws, key   string
	channel   string
	printed   buffer // the output of all commands together
	callbacks string // the path of the callbacks
	children  []*process
	flags     []string // of the servers
	env       []string // of the commands
}

// newWhatsApp starts a server and a simulator. They are not connected yet.
func newWhatsApp(t testing.TB, database string, templates []whatsapptest.Template) *whatsApp {
	t.Helper()
	return newWhatsAppIn(t, deployment{newDir(t), database}, whatsapptest.Config{Templates: templates})
}

// newWhatsAppIn is like newWhatsApp, but in a directory, and with a configuration of the
// simulator.
func newWhatsAppIn(t testing.TB, d deployment, c whatsapptest.Config, flags ...string) *whatsApp {
	t.Helper()
	w := &whatsApp{deployment: d, flags: flags}
	c.Token, c.AppSecret, c.VerifyToken, c.StatusDelay = waToken, waAppSecret, waVerify, 10*time.Millisecond
	w.sim = whatsapptest.New(c)
	graph := httptest.NewServer(w.sim)
	w.graph = graph.URL
	t.Cleanup(func() {
		w.sim.Close()
		graph.Close()
	})
	w.ws = w.command(t, 0, "workspace", "create", "--name", "Test", "--country", "TR")["workspace_id"].(string)
	w.key = w.command(t, 0, "key", "create", "--workspace", w.ws, "--name", "test", "--permissions", "all")["key"].(string)
	w.server = w.serve(t)
	return w
}

// args returns the arguments of a command with the flags that name the store.
func (w *whatsApp) args(args ...string) []string {
	args = append(args, "--data", w.dir)
	if w.database != "" {
		args = append(args, "--database", w.database)
	}
	return args
}

func (w *whatsApp) serve(t testing.TB) *server {
	t.Helper()
	args := []string{"--data", w.dir}
	if w.database != "" {
		args = append(args, "--database", w.database)
	}
	s := serveWith(t, nil, append(args, w.flags...)...)
	w.children = append(w.children, s.process)
	return s
}

// command runs a command that has the secrets in its environment. It keeps the standard
// error, which has logs and errors, for wantNoSecrets.
func (w *whatsApp) command(t testing.TB, code int, args ...string) (answer map[string]any) {
	t.Helper()
	r := parley(t, append([]string{"WA_TOKEN=" + waToken, "WA_SECRET=" + waAppSecret, "WA_VERIFY=" + waVerify, "WA_WRONG=EAAGwrong"}, w.env...),
		append(w.args(args...), "--json")...)
	_, _ = w.printed.Write([]byte(r.stderr))
	if r.code != code {
		t.Fatalf("parley %s: exit %d, want %d\n%s%s", strings.Join(args, " "), r.code, code, r.stdout, r.stderr)
	}
	if code == 0 {
		_ = json.Unmarshal([]byte(r.stdout), &answer) // each test checks only the fields that it needs
	}
	return answer
}

// add returns the arguments of the command that connects the simulator's number.
func (w *whatsApp) add(more ...string) []string {
	ids := w.sim.IDs()
	return append([]string{
		"channel", "add", "whatsapp", "--workspace", w.ws, "--phone-number-id", ids.PhoneNumberID, "--waba-id", ids.BusinessID,
		"--app-secret-env", "WA_SECRET", "--token-env", "WA_TOKEN", "--verify-token-env", "WA_VERIFY", "--graph-url", w.graph,
	}, more...)
}

// connect connects the number. From then on, the simulator sends callbacks to a server.
func (w *whatsApp) connect(t testing.TB, to *server, more ...string) {
	t.Helper()
	w.channel = w.command(t, 0, w.add(more...)...)["channel_id"].(string)
	w.callbacks = "/hooks/whatsapp/" + w.channel
	w.sim.SetWebhook(to.url+w.callbacks, waVerify)
	if err := w.sim.VerifyWebhook(t.Context()); err != nil {
		t.Fatalf("the handshake: %v", err)
	}
}

// settled waits until the simulator has posted all its callbacks.
func (w *whatsApp) settled(t testing.TB) {
	t.Helper()
	if err := w.sim.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// greeting is the template that these tests send.
const greeting = "greeting"

// templatesOf makes a library of n templates. One of them is greeting.
func templatesOf(n int) (list []whatsapptest.Template) {
	for i := range n {
		name := fmt.Sprintf("template_%03d", i)
		if i == n/2 {
			name = greeting
		}
		list = append(list, whatsapptest.Template{
			"name": name, "language": "tr", "category": "UTILITY", "status": "APPROVED", "parameter_format": "NAMED",
			"components": []any{map[string]any{"type": "BODY", "text": "Merhaba {{musteri_adi}}, siparişiniz hazır."}},
		})
	}
	return list
}

// outbound returns the body of a send of greeting.
func outbound(phone, name string) string {
	return fmt.Sprintf(`{"to":{"phone":%q},"template":{"name":%q,"language":"tr","variables":{"musteri_adi":%q}},"opt_in_confirmed":true}`, phone, greeting, name)
}

// A bubble has those fields of a message that these tests read.
type bubble struct {
	ID             string `json:"id"`
	ExternalID     string `json:"external_id"`
	Text           string `json:"text"`
	Direction      string `json:"direction"`
	DeliveryStatus string `json:"delivery_status"`
	Failure        *struct {
		Code       int
		Title, Fix string
	} `json:"failure"`
	Kind    string
	Author  map[string]any
	ReplyTo string `json:"reply_to"`
	Content map[string]any

	Attachments []struct {
		MediaID string `json:"media_id"`
		Status  string
	}
}

// bubbles returns the messages of a person, the oldest first. The person has only one
// conversation.
func (c *client) bubbles(t testing.TB, phone string) []bubble {
	t.Helper()
	type list struct{ Data []struct{ ID string } }
	contacts := decode[list](t, c.must(t, 200, "GET", "/contacts?phone="+url.QueryEscape(phone), "")).Data
	if len(contacts) == 0 {
		return nil
	}
	conversations := decode[list](t, c.must(t, 200, "GET", "/contacts/"+contacts[0].ID+"/conversations", "")).Data
	if len(contacts) != 1 || len(conversations) > 1 {
		t.Fatalf("%s has %d contacts and %d conversations", phone, len(contacts), len(conversations))
	}
	if len(conversations) == 0 {
		return nil
	}
	all := decode[struct{ Data []bubble }](t, c.must(t, 200, "GET", "/conversations/"+conversations[0].ID+"/messages?limit=200", "")).Data
	slices.Reverse(all)
	return all
}

// TestWhatsApp tests the real binary with the simulator: connecting a number, 500
// templates in pages, a send, its statuses, an answer, a paused template, a restricted
// account. At the end it searches for the secrets everywhere.
func TestWhatsApp(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			var cluster *pgtest.Server
			database := ""
			if store == "postgres" {
				cluster = pgtest.Cluster(t)
				database = cluster.Database(t)
			}
			w := newWhatsApp(t, database, templatesOf(500))
			hooked := w.server
			if store == "postgres" {
				hooked = w.serve(t) // the simulator sends its callbacks to another node
			}
			c := w.server.client(t, w.key, 4)

			// A channel that has a problem is not stored, and no subscription is left
			// behind.
			w.sim.Configure(func(set *whatsapptest.Settings) {
				set.Unsubscribed, set.Phone = true, whatsapptest.Template{"status": "PENDING"}
			})
			w.command(t, 1, w.add()...)
			w.sim.Configure(func(set *whatsapptest.Settings) {
				if set.Phone = nil; !set.Unsubscribed {
					t.Error("channel add refused the number, and yet subscribed the app")
				}
			})
			w.command(t, 1, w.add("--token-env", "WA_WRONG")...)
			w.command(t, 1, w.add("--waba-id", w.sim.IDs().PhoneNumberID)...)
			w.command(t, 1, w.add("--app-secret-env", "WA_WRONG")...)
			w.command(t, 1, w.add("--app-secret-env", "WA_NOT_SET")...)
			if listed := c.must(t, 200, "GET", "/channels", ""); !bytes.Contains(listed, []byte(`"data":[]`)) {
				t.Errorf("a channel is there: %s", listed)
			}

			w.connect(t, hooked)
			w.command(t, 1, w.add()...)
			if flag := "--phone-number-id: the channel " + w.channel + " of this workspace has it already"; !strings.Contains(w.printed.String(), flag) {
				t.Errorf("the same number again: no %q", flag)
			}
			w.command(t, 0, "channel", "check", w.channel)
			w.command(t, 0, "channel", "list", "--workspace", w.ws)
			type templates struct {
				Data []struct{ Name, Status string }
			}
			if got := decode[templates](t, c.must(t, 200, "GET", "/templates", "")).Data; len(got) != 500 {
				t.Errorf("%d templates", len(got))
			}

			// A send, and its statuses.
			const phone, digits = "+905321112233", "905321112233"
			r, err := c.send("POST", "/conversations/outbound", outbound(phone, "Ayşe"), "Idempotency-Key", "first")
			if err != nil || r.status != http.StatusCreated {
				t.Fatalf("%v: %d %s", err, r.status, r.body)
			}
			waitFor(t, "the message to be read", func() bool {
				all := c.bubbles(t, phone)
				return len(all) == 1 && all[0].DeliveryStatus == "read" && strings.HasPrefix(all[0].ExternalID, "wamid.") &&
					all[0].Text == "Merhaba Ayşe, siparişiniz hazır."
			})
			if again, err := c.send("POST", "/conversations/outbound", outbound(phone, "Ayşe"), "Idempotency-Key", "first"); err != nil ||
				again.header.Get("Idempotent-Replayed") != "true" || !bytes.Equal(again.body, r.body) {
				t.Errorf("the same again: %v, %d %s", err, again.status, again.body)
			}
			w.sim.AddRule(whatsapptest.Rule{Match: whatsapptest.Match{Next: 1}, Outcome: whatsapptest.Outcome{Kind: whatsapptest.AcceptThenFailed, Code: 131026}})
			if r, err := c.send("POST", "/conversations/outbound", outbound("+905329990001", "Ece"), "Idempotency-Key", "fails"); err != nil || r.status != http.StatusCreated {
				t.Fatalf("%v: %d %s", err, r.status, r.body)
			}
			waitFor(t, "the message to have failed", func() bool {
				all := c.bubbles(t, "+905329990001")
				return len(all) == 1 && all[0].DeliveryStatus == "failed" && all[0].Failure != nil && all[0].Failure.Code == 131026 && all[0].Failure.Fix != ""
			})

			// People send messages of every kind.
			w.sim.Inbound(whatsapptest.Inbound{From: digits, Name: "Ayşe Yılmaz", Text: "Teşekkürler \U0001F600 / tamam"}).Wait()
			waitFor(t, "the answer to arrive", func() bool {
				all := c.bubbles(t, phone)
				return len(all) == 2 && all[1].Direction == "inbound" && all[1].Text == "Teşekkürler \U0001F600 / tamam"
			})
			kinds := []string{"image", "video", "audio", "document", "sticker", "location", "contacts", "button", "button_reply", "list_reply", "nfm_reply", "reaction", "order", "unsupported", "hologram"}
			for _, kind := range kinds {
				w.sim.Inbound(whatsapptest.Inbound{From: digits, Type: kind, Twice: true}).Wait()
			}
			waitFor(t, "a message of each kind", func() bool { return len(c.bubbles(t, phone)) == 2+len(kinds) })
			var shown []string
			for _, one := range c.bubbles(t, phone) {
				if shown = append(shown, one.Kind); strings.TrimSpace(one.Text) == "" {
					t.Errorf("a message without a text: %+v", one)
				}
			}
			slices.Sort(shown)
			if want := []string{
				"audio", "choice", "choice", "choice", "contacts", "document", "image", "location", "order", "reaction", "sticker", "template", "text",
				"unsupported", "unsupported", "unsupported", "video",
			}; !slices.Equal(shown, want) {
				t.Errorf("kinds %q, want %q", shown, want)
			}

			// Each file that people sent is fetched once.
			waitFor(t, "the files of people", func() bool {
				ready := 0
				for _, one := range c.bubbles(t, phone) {
					if len(one.Attachments) == 1 && one.Attachments[0].Status == "ready" {
						ready++
					}
				}
				return ready == 5
			})
			for _, file := range w.sim.Media() {
				if file.Tries != 1 {
					t.Errorf("the file %s was fetched %d times", file.ID, file.Tries)
				}
			}

			w.forgetsFiles(t, c, phone)

			// In the phone app, the business types a message to a new person. The person
			// reacts to this message.
			const other = "905331114455"
			typed := w.sim.Echo(whatsapptest.Inbound{From: other, Text: "Ürününüz geldi", Twice: true})
			typed.Wait()
			w.sim.Echo(whatsapptest.Inbound{From: other, Type: "revoke"}).Wait()
			waitFor(t, "what was typed in the phone app", func() bool { return len(c.bubbles(t, "+"+other)) == 1 })
			w.sim.Inbound(whatsapptest.Inbound{From: other, Type: "reaction", Text: "❤", ReplyTo: typed.ID}).Wait()
			w.sim.Inbound(whatsapptest.Inbound{From: other, Type: "button_reply", Text: "Tamam", ReplyTo: typed.ID}).Wait()
			waitFor(t, "the answers to it", func() bool { return len(c.bubbles(t, "+"+other)) == 3 })
			for _, one := range c.bubbles(t, "+"+other) {
				asked, _ := json.Marshal(one.Content)
				switch {
				case one.ExternalID == typed.ID && one.Direction == "outbound" && one.DeliveryStatus == "sent" && one.Author == nil && one.Kind == "text":
				case one.Kind == "reaction" && one.ReplyTo != "" && string(asked) == `{"reaction":{"emoji":"❤"}}`:
				case one.Kind == "choice" && one.ReplyTo != "" && string(asked) == `{"choice":{"id":"opt_1","title":"Tamam"}}`:
				default:
					t.Errorf("%+v", one)
				}
			}
			identities := string(c.must(t, 200, "GET", "/contacts/"+decode[struct{ Data []struct{ ID string } }](t,
				c.must(t, 200, "GET", "/contacts?phone="+url.QueryEscape(phone), "")).Data[0].ID+"/identities", ""))
			if !strings.Contains(identities, `"kind":"whatsapp_user"`) {
				t.Errorf("the provider's id of the person is not known: %s", identities)
			}

			// Changes of a template, and of the account.
			if err := w.sim.TemplateSet(greeting, "tr", whatsapptest.TemplatePatch{Status: "PAUSED"}); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the template not to be sendable", func() bool {
				r, err := c.send("POST", "/conversations/outbound", outbound(phone, "Ayşe"), "Idempotency-Key", "paused")
				return err == nil && r.status == http.StatusUnprocessableEntity && bytes.Contains(r.body, []byte("template_not_sendable")) && bytes.Contains(r.body, []byte("paused"))
			})
			if err := w.sim.TemplateSet(greeting, "tr", whatsapptest.TemplatePatch{Status: "APPROVED"}); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the template to be sendable", func() bool {
				r, err := c.send("POST", "/conversations/outbound", outbound(phone, "Ayşe"), "Idempotency-Key", "approved")
				return err == nil && r.status == http.StatusCreated
			})
			w.sim.AccountRestriction("RESTRICTED_BIZ_INITIATED_MESSAGING").Wait()
			tries := 0
			waitFor(t, "the channel not to be usable", func() bool {
				tries++
				r, err := c.send("POST", "/conversations/outbound", outbound(fmt.Sprintf("+90533333%04d", tries), "Ayşe"), "Idempotency-Key", fmt.Sprint("blocked-", tries))
				return err == nil && bytes.Contains(r.body, []byte("channel_not_usable"))
			})
			w.command(t, 1, "channel", "check", w.channel)

			if twice := w.sim.Duplicates(); len(twice) != 0 {
				t.Errorf("sent twice: %q", twice)
			}
			w.settled(t)
			if cluster != nil {
				out, err := exec.Command(cluster.Program("pg_dump"), database).Output()
				if err != nil {
					t.Fatal(err)
				}
				w.wantNoSecrets(t, string(out))
				return
			}
			w.wantNoSecrets(t, "")
		})
	}
}

// forgetsFiles tests that the provider forgets a file. A reply with this file is refused.
// When the same call is made again, it uploads the file again.
func (w *whatsApp) forgetsFiles(t testing.TB, c *client, phone string) {
	t.Helper()
	uploads := func() (n int) {
		for _, m := range w.sim.Media() {
			if m.Uploaded {
				n++
			}
		}
		return n
	}
	before := len(c.bubbles(t, phone)) + 1
	conversation, err := w.asks(t, c, strings.TrimPrefix(phone, "+"))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the question", func() bool { return len(c.bubbles(t, phone)) == before })
	file := decode[struct{ Data struct{ ID string } }](t, c.must(t, 201, "POST", "/media?name=shop.jpg", "\xff\xd8\xff\xe0 a picture")).Data.ID
	reply := func(key string) reply {
		r, err := c.send("POST", "/conversations/"+conversation+"/messages", `{"attachment":{"media_id":"`+file+`","caption":"Our shop"}}`, "Idempotency-Key", key)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, key := range []string{"file 1", "file 2"} {
		if r := reply(key); r.status != 201 || uploads() != 1 {
			t.Errorf("%d uploads; %d %s", uploads(), r.status, r.body)
		}
	}
	w.sim.ForgetUploads()
	if r := reply("file 3"); r.status != 422 || !bytes.Contains(r.body, []byte("provider_rejected")) || uploads() != 1 {
		t.Errorf("once the file is forgotten: %d uploads; %d %s", uploads(), r.status, r.body)
	}
	if r := reply("file 3"); r.status != 201 || r.header.Get("Idempotent-Replayed") != "" || uploads() != 2 {
		t.Errorf("the same again: %d uploads; %d %s", uploads(), r.status, r.body)
	}
	if all := c.bubbles(t, phone); len(all) != before+3 {
		t.Errorf("%d messages, before %d", len(all), before)
	}
}

// wantNoSecrets searches for the secrets: in the output of servers and commands, in the
// metrics, and in a dump. It stops the servers, and then searches the files of the
// database.
func (w *whatsApp) wantNoSecrets(t testing.TB, dump string) {
	t.Helper()
	found := map[string]string{"errors of commands": w.printed.String(), "the dump": dump}
	for _, path := range []string{"/metrics", "/openapi.json"} {
		response, err := http.Get(w.server.url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		found[path] = string(body)
	}
	found["/channels"] = w.server.want(t, 200, w.key, "GET", "/channels", "")
	for i, p := range w.children {
		p.stop(t)
		found[fmt.Sprintf("log %d", i)] = p.stderr.String() + p.stdout.String()
	}
	err := filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "secret.key" {
			return err
		}
		b, err := os.ReadFile(path)
		found[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	secretKey, err := os.ReadFile(filepath.Join(w.dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found["errors of commands"]) == 0 || len(found["log 0"]) == 0 {
		t.Error("nothing was logged, so nothing was looked through")
	}
	for where, text := range found {
		for what, secret := range map[string]string{
			"token": waToken, "app secret": waAppSecret, "verify token": waVerify, "API key": w.key, "secret key": strings.TrimSpace(string(secretKey)),
		} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s stands in %s", what, where)
			}
		}
	}
}

// TestWhatsAppLosesAnswers: the provider accepts each message, but a fifth of its
// responses is lost. No message is sent twice. A send with an unknown outcome is settled
// soon after a status of its message arrives. Every second message is a reply.
func TestWhatsAppLosesAnswers(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{"sqlite": func(testing.TB) string { return "" }, "postgres": pgtest.Database} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			losesAnswers(t, database(t))
		})
	}
}

func losesAnswers(t *testing.T, database string) {
	t.Helper()
	const atOnce = 16
	const late = 300 * time.Millisecond // the time from the message to its status
	w := newWhatsApp(t, database, templatesOf(1))
	w.connect(t, w.server, "--per-second", "1000")
	seed := newSeed(t)
	lost := whatsapptest.Outcome{Kind: whatsapptest.AcceptLoseResponse, Delay: late}
	for _, how := range []whatsapptest.Kind{whatsapptest.AcceptTruncate, whatsapptest.HTTP500HTML, whatsapptest.HTTP200Garbage, whatsapptest.Redirect307} {
		w.sim.AddRule(whatsapptest.Rule{Match: whatsapptest.Match{Share: 0.01}, Outcome: whatsapptest.Outcome{Kind: how, Accepted: true, Delay: late}})
	}
	w.sim.AddRule(whatsapptest.Rule{Match: whatsapptest.Match{Share: 0.2}, Outcome: lost})
	c := w.server.client(t, w.key, atOnce)
	var next, unknown, held atomic.Int64
	var mu sync.Mutex
	var slowest time.Duration
	together(atOnce, func(worker int) {
		rng := random(seed, uint64(worker))
		for i := next.Add(1); i <= int64(*whatsAppSends) && !t.Failed(); i = next.Add(1) {
			path, body, key := "/conversations/outbound", outbound(fmt.Sprintf("+90532%07d", i), "Ayşe"), fmt.Sprintf("lost-%d", i)
			if i%2 == 1 {
				conversation, err := w.asks(t, c, fmt.Sprintf("90532%07d", i))
				if err != nil {
					t.Error(err)
					return
				}
				path, body = "/conversations/"+conversation+"/messages", `{"text":"Hazır."}`
			}
			var doubted time.Time
			for start, try := time.Now(), 1; ; try++ {
				r, err := c.send("POST", path, body, "Idempotency-Key", key)
				if err != nil || time.Since(start) > patience {
					t.Errorf("key %s: %v, %d %s", key, err, r.status, r.body)
					return
				}
				if r.status == http.StatusCreated {
					break
				}
				switch {
				case bytes.Contains(r.body, []byte("send_outcome_unknown")):
					if doubted.IsZero() {
						doubted = time.Now()
						unknown.Add(1)
					}
				case bytes.Contains(r.body, []byte("provider_unavailable")), bytes.Contains(r.body, []byte("send_in_progress")):
					held.Add(1)
				default:
					t.Errorf("key %s: %d %s", key, r.status, r.body)
					return
				}
				<-time.After(asksAgain(try) + time.Duration(rng.IntN(20))*time.Millisecond)
			}
			if !doubted.IsZero() {
				mu.Lock()
				slowest = max(slowest, time.Since(doubted)-late)
				mu.Unlock()
			}
		}
	})
	w.settled(t)
	if twice := w.sim.Duplicates(); len(twice) != 0 {
		t.Errorf("%d messages were accepted twice: %q", len(twice), twice)
	}
	sends := w.sim.Sends()
	people := map[string]bool{}
	for _, s := range sends {
		people[s.To] = true
	}
	if len(sends) != *whatsAppSends || len(people) != *whatsAppSends {
		t.Errorf("%d messages to %d people were accepted, want %d", len(sends), len(people), *whatsAppSends)
	}
	if unknown.Load() == 0 {
		t.Error("no answer was lost")
	}
	t.Logf("%d sends, %d of unknown outcome, settled at most %v after their status; %d calls held back", *whatsAppSends, unknown.Load(), slowest, held.Load())
}

// asksAgain is how long a client waits before it asks again. Many that ask all the time would
// take the processor from what they wait for.
func asksAgain(try int) time.Duration {
	return min(5*time.Millisecond<<min(try, 6), 200*time.Millisecond)
}

// asks simulates a message of a person. It returns the conversation.
func (w *whatsApp) asks(t testing.TB, c *client, number string) (conversation string, err error) {
	w.sim.Inbound(whatsapptest.Inbound{From: number, Text: "Hazır mı?"}).Wait()
	for start, try := time.Now(), 1; time.Since(start) < patience; <-time.After(asksAgain(try)) {
		try++
		r, err := c.expect("GET", "/contacts?phone=%2B"+number, "", 200)
		if err != nil {
			return "", err
		}
		type list struct{ Data []struct{ ID string } }
		contacts := decode[list](t, r.body).Data
		if len(contacts) == 0 {
			continue
		}
		if r, err = c.expect("GET", "/contacts/"+contacts[0].ID+"/conversations", "", 200); err != nil {
			return "", err
		}
		if found := decode[list](t, r.body).Data; len(found) == 1 {
			return found[0].ID, nil
		}
	}
	return "", fmt.Errorf("%s wrote, and has no conversation", number)
}

// TestWhatsAppReplies: an account that may not start conversations can still reply. A
// reply tells the provider which messages were read. The address of a file may have
// expired: then the file is fetched from a new address.
func TestWhatsAppReplies(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			database := ""
			if store == "postgres" {
				database = pgtest.Database(t)
			}
			w := newWhatsApp(t, database, templatesOf(1))
			w.connect(t, w.server)
			c := w.server.client(t, w.key, 4)
			conversation, err := w.asks(t, c, "905321110001")
			if err != nil {
				t.Fatal(err)
			}
			thread := "/conversations/" + conversation + "/messages"
			w.sim.Inbound(whatsapptest.Inbound{From: "905321110001", ID: "wamid.ASKS", Text: "Alo?"}).Wait()
			waitFor(t, "the second message", func() bool { return strings.Contains(w.server.want(t, 200, w.key, "GET", thread, ""), "wamid.ASKS") })
			w.sim.AccountRestriction("RESTRICTED_BIZ_INITIATED_MESSAGING").Wait()
			waitFor(t, "the restriction", func() bool {
				return w.command(t, 0, "channel", "list", "--workspace", w.ws)["data"].([]any)[0].(map[string]any)["blocked"] != nil
			})
			if status, answer := w.server.call(t, w.key, "POST", "/conversations/outbound", outbound("+905321110002", "Ada"), "Idempotency-Key", "first"); status != 422 {
				t.Errorf("writing first: %d %s", status, answer)
			}
			if status, answer := w.server.call(t, w.key, "POST", thread, `{"text":"Evet"}`, "Idempotency-Key", "k"); status != 201 {
				t.Fatalf("a reply: %d %s", status, answer)
			}
			waitFor(t, "the receipt", func() bool { return len(w.sim.Reads()) == 1 && w.sim.Reads()[0].ID == "wamid.ASKS" })

			w.sim.Inbound(whatsapptest.Inbound{From: "905321110001", ID: "wamid.FILE", Type: "image", Fault: "expired:1"}).Wait()
			type messages struct {
				Data []struct {
					ID          string `json:"external_id"`
					Attachments []struct{ Status string }
				}
			}
			waitFor(t, "the file", func() bool {
				list := decode[messages](t, c.must(t, 200, "GET", thread, "")).Data
				return list[0].ID == "wamid.FILE" && list[0].Attachments[0].Status == "ready"
			})
		})
	}
}

// TestWhatsAppSignatures: a callback with one wrong bit, in the body or in the signature,
// is refused and changes nothing. A correct callback is accepted. If it comes twice, the
// second one changes nothing.
func TestWhatsAppSignatures(t *testing.T) {
	t.Parallel()
	const flips = 1000
	w := newWhatsApp(t, "", templatesOf(1))
	w.connect(t, w.server)
	c := w.server.client(t, w.key, 8)
	rng := random(newSeed(t), 0)
	// The test first collects callbacks that the simulator has made.
	sink := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(sink.Close)
	w.sim.SetWebhook(sink.URL, "")
	for i := range 10 {
		phone := fmt.Sprintf("+90532111%04d", i)
		if r, err := c.send("POST", "/conversations/outbound", outbound(phone, "Ayşe"), "Idempotency-Key", fmt.Sprint(i)); err != nil || r.status != http.StatusCreated {
			t.Fatalf("%v: %d %s", err, r.status, r.body)
		}
		w.sim.Inbound(whatsapptest.Inbound{From: phone[1:], Text: "Merhaba, şu sipariş / nerede?"})
	}
	w.settled(t)
	var bodies [][]byte
	for _, d := range w.sim.Deliveries() {
		bodies = append(bodies, d.Body)
	}
	if len(bodies) < 40 {
		t.Fatalf("%d callbacks", len(bodies))
	}
	post := func(body []byte, signature string) int {
		request, err := http.NewRequestWithContext(t.Context(), "POST", w.server.url+w.callbacks, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header["X-Hub-Signature-256"] = []string{signature}
		response, err := c.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if answer, err := io.ReadAll(response.Body); err != nil || len(answer) > 0 {
			t.Errorf("a callback is answered %q, %v", answer, err)
		}
		return response.StatusCode
	}
	state := func() (all string) {
		for i := range 10 {
			all += fmt.Sprintf("%+v\n", c.bubbles(t, fmt.Sprintf("+90532111%04d", i)))
		}
		return all + fmt.Sprint(c.contacts(t))
	}
	before := state()
	refused := 0
	for i := range flips {
		body := bytes.Clone(bodies[i%len(bodies)])
		signature := []byte(whatsapptest.Sign(waAppSecret, body))
		broken := body
		if i%2 == 1 {
			broken = signature
		}
		flip(rng, broken, i%2 == 1)
		if got := post(body, string(signature)); got == http.StatusUnauthorized {
			refused++
		} else {
			t.Errorf("flip %d: %d\n%q\n%s", i, got, signature, body)
		}
	}
	if after := state(); after != before {
		t.Errorf("refused callbacks have changed something:\n%s\nwas\n%s", after, before)
	}
	for _, body := range bodies {
		if got := post(body, whatsapptest.Sign(waAppSecret, body)); got != http.StatusOK {
			t.Fatalf("an intact callback: %d %s", got, body)
		}
	}
	waitFor(t, "the callbacks to be taken in", func() bool {
		for i := range 10 {
			all := c.bubbles(t, fmt.Sprintf("+90532111%04d", i))
			if len(all) != 2 || all[0].DeliveryStatus != "read" && all[1].DeliveryStatus != "read" {
				return false
			}
		}
		return true
	})
	then := state()
	rng.Shuffle(len(bodies), func(i, j int) { bodies[i], bodies[j] = bodies[j], bodies[i] })
	for _, body := range bodies {
		if got := post(body, whatsapptest.Sign(waAppSecret, body)); got != http.StatusOK {
			t.Fatalf("a replay: %d %s", got, body)
		}
	}
	// Callbacks are processed in order. So when this last callback is processed, all
	// others are processed as well.
	w.sim.SetWebhook(w.server.url+w.callbacks, waVerify)
	w.sim.Inbound(whatsapptest.Inbound{From: "905329999999", Text: "the last"}).Wait()
	waitFor(t, "the last callback", func() bool { return len(c.bubbles(t, "+905329999999")) == 1 })
	if after := state(); !strings.HasPrefix(after, then[:strings.LastIndex(then, "\n")+1]) {
		t.Errorf("replays have changed something:\n%s\nwas\n%s", after, then)
	}
	t.Logf("%d of %d refused, %d taken", refused, flips, len(bodies))
}

// flip changes one bit. In a header, the changed text stays printable.
func flip(rng *rand.Rand, b []byte, header bool) {
	for {
		i, bit := rng.IntN(len(b)), byte(1)<<rng.IntN(8)
		if c := b[i] ^ bit; !header || c > ' ' && c < 0x7f {
			b[i] = c
			return
		}
	}
}

// TestWhatsAppRefusals: the provider refuses sends, and the caller gets the right errors.
// Package whatsapp tests each code.
func TestWhatsAppRefusals(t *testing.T) {
	t.Parallel()
	w := newWhatsApp(t, "", templatesOf(1))
	w.connect(t, w.server)
	c := w.server.client(t, w.key, 1)
	for i, tc := range []struct {
		outcome whatsapptest.Outcome
		status  int
		kind    string
		code    int
	}{
		{whatsapptest.Outcome{Kind: whatsapptest.Refuse, Code: 131030}, 422, "provider_rejected", 131030},
		{whatsapptest.Outcome{Kind: whatsapptest.Refuse, Code: 132001}, 422, "provider_rejected", 132001},
		{whatsapptest.Outcome{Kind: whatsapptest.Refuse, Code: 999999, HTTP: 400}, 422, "provider_rejected", 999999},
		{whatsapptest.Outcome{Kind: whatsapptest.Refuse, Code: 130429}, 502, "provider_unavailable", 130429},
		{whatsapptest.Outcome{Kind: whatsapptest.Refuse, Code: 190, Subcode: 463, HTTP: 401}, 502, "provider_unavailable", 190},
		{whatsapptest.Outcome{Kind: whatsapptest.ResetBeforeRead}, 503, "send_outcome_unknown", 0},
		{whatsapptest.Outcome{Kind: whatsapptest.HTTP502Empty}, 503, "send_outcome_unknown", 0},
	} {
		w.sim.AddRule(whatsapptest.Rule{Match: whatsapptest.Match{Next: 1}, Outcome: tc.outcome})
		phone := fmt.Sprintf("+90532222%04d", i)
		r, err := c.send("POST", "/conversations/outbound", outbound(phone, "Ayşe"), "Idempotency-Key", fmt.Sprint("refused-", i))
		if err != nil {
			t.Fatal(err)
		}
		answer := decode[struct {
			Error struct {
				Type    string
				Details struct {
					Code       int
					Title, Fix string
				}
			}
		}](t, r.body).Error
		if r.status != tc.status || answer.Type != tc.kind || answer.Details.Code != tc.code || tc.code != 0 && (answer.Details.Title == "" || answer.Details.Fix == "") {
			t.Errorf("%+v: %d %s", tc.outcome, r.status, r.body)
		}
		if tc.status >= 500 && r.header.Get("Retry-After") == "" {
			t.Errorf("%+v: no Retry-After", tc.outcome)
		}
		if all := c.bubbles(t, phone); len(all) != 0 {
			t.Errorf("%+v leaves %+v", tc.outcome, all)
		}
	}
}

// TestCrossCheck connects an independent program to the simulator. The program parses
// callbacks, with its signature check turned on, and sends a template with its own
// client. So where the program and the simulator agree, the simulator is probably right.
func TestCrossCheck(t *testing.T) {
	t.Parallel()
	dir := nodeProgram(t, "crosscheck")

	sim := whatsapptest.New(whatsapptest.Config{Token: waToken, AppSecret: waAppSecret, VerifyToken: waVerify, StatusDelay: time.Millisecond})
	graph := httptest.NewServer(sim)
	t.Cleanup(graph.Close)
	t.Cleanup(sim.Close)
	const to, callback = "905321112233", "crosscheck-1"
	node := exec.Command("node", "crosscheck.mjs")
	node.Dir = dir
	node.Env = append(os.Environ(), "SIM="+graph.URL, "TOKEN="+waToken, "SECRET="+waAppSecret, "VERIFY="+waVerify,
		"PNID="+sim.IDs().PhoneNumberID, "TO=+"+to)
	var stderr buffer
	node.Stderr = &stderr
	stdin, err := node.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Process.Kill() })
	type event struct {
		Webhooks, Sent, Message, From, Name, Text, Status, Phone, ID, Callback string
		Refused                                                                any
		Answer                                                                 json.RawMessage
	}
	lines := json.NewDecoder(stdout)
	next := func() (e event) {
		t.Helper()
		if err := lines.Decode(&e); err != nil {
			t.Fatalf("the program has ended: %v\n%s", err, stderr.String())
		}
		return e
	}
	sim.SetWebhook(next().Webhooks, waVerify)
	if err := sim.VerifyWebhook(t.Context()); err != nil {
		t.Errorf("the handshake: %v", err)
	}
	if _, err := io.WriteString(stdin, callback+"\n"); err != nil {
		t.Fatal(err)
	}
	heard := map[string]string{}
	for len(heard) < 4 {
		switch e := next(); {
		case e.Status != "":
			heard[e.Status] = e.ID
			if e.Callback != callback || e.Phone != to {
				t.Errorf("a status: %+v", e)
			}
		case e.Sent != "":
			heard["answer"] = e.Sent
		default:
			t.Fatalf("%+v %s", e, e.Answer)
		}
	}
	for what, id := range heard {
		if id != heard["answer"] {
			t.Errorf("%s is of the message %s, not %s", what, id, heard["answer"])
		}
	}
	if n := sim.Accepted(callback); n != 1 {
		t.Errorf("%d messages were accepted", n)
	}
	const text = "Merhaba, şu sipariş / nerede? 😀"
	in := sim.Inbound(whatsapptest.Inbound{From: to, Name: "Ayşe Yılmaz", Text: text})
	if e := next(); e.Message != "text" || e.From != to || e.Name != "Ayşe Yılmaz" || e.Text != text || e.ID != in.ID {
		t.Errorf("a message: %+v", e)
	}
	// The program also refuses a signature that we refuse.
	sim.Configure(func(s *whatsapptest.Settings) { s.Signing = whatsapptest.SignedBadly })
	sim.Inbound(whatsapptest.Inbound{From: to, Text: text})
	if e := next(); fmt.Sprint(e.Refused) != "401" {
		t.Errorf("a wrong signature: %+v", e)
	}
}
