//go:build unix

package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/api"
	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/sandbox"
	"parley/store"
	"parley/work"

	"github.com/google/uuid"
)

var faults = flag.Int("faults", 1, "how often TestSendOnce breaks a send at each point")

// A sendFault says at which step a send is broken, and how.
type sendFault struct {
	point  string // the step (see node.at)
	how    string // kill; gone: the database can't answer any more; lost: the database has done its work, but its answer is lost; stop: the process pauses for longer than its lease
	suffix string // the last digits of the number, which select what the sandbox does
	before string // another member's action while the provider has the message: delete, unassign
	sent   int    // the number of messages that the provider must have accepted in the end
	reply  bool   // the send is a reply with a file
}

// sendFaults has the steps of a send, from the outside in. Each step is broken in every
// way that makes sense for it.
var sendFaults = []sendFault{
	{point: "planned", how: "kill", sent: 1},
	{point: "in-claim", how: "kill", sent: 1},
	{point: "in-claim", how: "gone", sent: 1},
	{point: "after-claim", how: "kill", sent: 1},
	{point: "after-claim", how: "lost", sent: 1},
	{point: "after-claim", how: "stop", sent: 1},
	{point: "calling", how: "kill", sent: 1},
	{point: "taken", how: "kill", sent: 1},
	{point: "taken", how: "kill", suffix: "0003", sent: 1},
	{point: "taken", how: "kill", before: "delete", sent: 1},
	{point: "taken", how: "kill", before: "unassign", sent: 1},
	{point: "status-first", how: "kill", sent: 1},
	{point: "in-done", how: "kill", sent: 1},
	{point: "in-done", how: "gone", sent: 1},
	{point: "after-done", how: "kill", sent: 1},
	{point: "after-done", how: "lost", sent: 1},
	{point: "in-refused", how: "kill", suffix: "0001"},
	{point: "in-refused", how: "gone", suffix: "0001"},
	{point: "after-refused", how: "kill", suffix: "0002"},
	{point: "in-in_doubt", how: "kill", suffix: "0003", sent: 1},
	{point: "in-in_doubt", how: "gone", suffix: "0003", sent: 1},
	{point: "after-in_doubt", how: "kill", suffix: "0003", sent: 1},
	{point: "planned", how: "kill", sent: 1, reply: true},
	{point: "uploading", how: "kill", sent: 1, reply: true},
	{point: "in-claim", how: "kill", sent: 1, reply: true},
	{point: "after-claim", how: "kill", sent: 1, reply: true},
	{point: "calling", how: "kill", sent: 1, reply: true},
	{point: "taken", how: "kill", sent: 1, reply: true},
	{point: "taken", how: "kill", before: "delete", sent: 1, reply: true},
	{point: "in-done", how: "kill", sent: 1, reply: true},
	{point: "in-done", how: "gone", sent: 1, reply: true},
	{point: "after-done", how: "kill", sent: 1, reply: true},
	{point: "in-in_doubt", how: "kill", suffix: "0003", sent: 1, reply: true},
}

// TestSendOnce breaks sends at every step, each in its own process. Then it repeats the
// call on another node until the key has an answer. Whatever was broken, the provider has
// accepted the message once, never twice. In the end the key has an answer, or is free,
// or is in doubt and a person can settle it. An answer never changes.
func TestSendOnce(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, in deployment) {
		in.leave(t)
		sendsOnce(t, in)
	})
}

func sendsOnce(t *testing.T, in deployment) {
	t.Helper()
	dir := in.dir
	n := openNode(t, dir, sendFault{})
	ws, channel := n.workspace(t)
	trials, doubts := 0, 0
	for round := range *faults {
		for i, f := range sendFaults {
			if in.database != "" && !f.reply && *faults == 1 { // in a short run, PostgreSQL gets only the replies: the steps are the same as with SQLite
				continue
			}
			call := faultCall{
				Dir: dir, Fault: i, Key: fmt.Sprintf("fault-%d-%d", round, i),
				Number: fmt.Sprintf("90532%03d%d%s", round, 100+i, orText(f.suffix, "7777")),
			}
			kind := ""
			if f.reply {
				kind = "-reply"
			}
			t.Run(fmt.Sprintf("%s/%s%s%s%s/%d", f.point, f.how, f.suffix, f.before, kind, round), func(t *testing.T) {
				trials++
				if n.try(t, ws, channel, f, call) {
					doubts++
				}
			})
		}
	}
	t.Logf("%d broken sends, %d of which a person had to settle", trials, doubts)
}

func orText(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// try breaks one send, and repeats it until it is settled. It returns whether a person
// had to settle it.
func (n *node) try(t *testing.T, ws desk.ID, channel desk.ID, f sendFault, call faultCall) (released bool) {
	t.Helper()
	ctx := t.Context()
	p := n.principal(t, ws)
	if f.before == "delete" || f.reply { // the contact must exist before the send
		in := provider.InboundMessage{ExternalID: call.Key, Number: call.Number, Text: "Hello", At: 1}
		if f.reply {
			in.At = desk.TimeOf(time.Now())
		}
		c, err := n.app.Receive(ctx, ws, channel, in)
		if err != nil {
			t.Fatal(err)
		}
		if f.reply {
			file, err := n.app.Media.Upload(ctx, p, desk.FileHead{Name: "a.jpg"}, strings.NewReader("\xff\xd8\xff\xe0 of "+call.Key))
			if err != nil {
				t.Fatal(err)
			}
			call.Conversation, call.File = c.ID.String(), file.ID.String()
		}
	}
	if f.before == "unassign" {
		m, err := n.app.AddMember(ctx, n.operator(t, ws), "Leaving", call.Key+"@desk.example", "agent")
		if err != nil {
			t.Fatal(err)
		}
		call.Assignee = m.ID.String()
	}
	child := startFault(t, call)
	switch f.how {
	case "stop":
		child.waitStopped(t)
	case "kill":
		child.wait(t)
		if s, _ := child.cmd.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGKILL {
			t.Fatalf("the send was not broken: %v\n%s%s", child.cmd.ProcessState, child.stdout.String(), child.stderr.String())
		}
	default:
		child.wait(t)
		if !strings.Contains(child.stdout.String(), "broken") {
			t.Fatalf("the send was not broken: %s%s", child.stdout.String(), child.stderr.String())
		}
	}

	answer, released := n.settle(t, p, f, call)
	if f.how == "stop" { // the process goes on long after the key got its answer: it must not send
		child.resume(t)
		child.wait(t)
	}
	if got := takenOf(t, call.Dir, call.Number); got != f.sent {
		t.Errorf("the provider took %d messages for %s, want %d", got, call.Key, f.sent)
	}
	if f.sent == 0 {
		return released
	}
	for range 2 {
		again, err := n.send(ctx, p, call)
		if err != nil || !again.Replayed || !bytes.Equal(again.Body, answer) {
			t.Errorf("the key's answer has changed: %s, %v; it was %s", again.Body, err, answer)
		}
	}
	n.wantRows(t, p, f, call, answer)
	return released
}

// settle repeats the call until it gets an answer, as a client would. If the outcome
// stays unknown, settle releases the attempt, as a person would who has asked the
// provider.
func (n *node) settle(t *testing.T, p desk.Principal, f sendFault, call faultCall) (body []byte, released bool) {
	t.Helper()
	doubtful := time.Time{}
	for start := time.Now(); time.Since(start) < patience; {
		answer, err := n.send(t.Context(), p, call)
		e := desk.AsError(err)
		switch {
		case err == nil:
			return answer.Body, released
		case e.Type == desk.SendOutcomeUnknown:
			if doubtful.IsZero() {
				doubtful = time.Now()
			}
			taken := takenOf(t, call.Dir, call.Number)
			if taken > 0 && f.suffix != "0003" && time.Since(doubtful) < patience/2 {
				<-time.After(5 * time.Millisecond) // a status will settle it
				if err := n.app.LookForInbound(t.Context()); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if _, err := n.app.Release(t.Context(), n.operator(t, p.Workspace()), e.Details.(desk.InDoubtAttempt).AttemptID, taken > 0); err != nil {
				t.Fatalf("release: %v", err)
			}
			released = true
		case e.Type == desk.Unavailable: // nothing was sent, and the client is told to try again
		case e.Type == desk.SendInProgress: // the attempt's process is dead, or does not go on in time
			n.lapse(t, p, call.Key)
		case e.Type == desk.ProviderRejected || e.Type == desk.ProviderUnavailable:
			if f.sent == 0 {
				return nil, released
			}
			t.Fatalf("refused: %v", err)
		default:
			t.Fatalf("the call answers %v", err)
		}
	}
	t.Fatalf("%s has no answer", call.Key)
	return nil, false
}

// lapse ends the lease of the attempt with a key, so that the sweeper finds the attempt.
func (n *node) lapse(t *testing.T, p desk.Principal, key string) {
	t.Helper()
	at, err := n.store.AttemptOfKey(t.Context(), p.Workspace(), key)
	if err == nil && at != nil {
		err = n.store.InTx(t.Context(), p.Workspace(), func(tx store.Tx) error {
			stored, err := tx.Attempt(at.ID)
			if err != nil || stored == nil || stored.Phase.Settled() {
				return err
			}
			stored.Lease = 1
			return tx.PutAttempt(stored)
		})
	}
	if err := errors.Join(err, n.app.Sweep(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// wantRows checks that the send has left one contact, one open conversation and one
// message. If the contact was deleted meanwhile, none of them may exist.
func (n *node) wantRows(t *testing.T, p desk.Principal, f sendFault, call faultCall, answer []byte) {
	t.Helper()
	ctx := t.Context()
	held := desk.ContactFilter{Held: []desk.Identity{{Kind: desk.KindPhone, Value: call.Number}}}
	contacts, _, err := n.app.Contacts(ctx, p, held, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	if f.before == "delete" {
		told := decode[struct {
			Data struct {
				Conversation struct {
					ID        desk.ID
					ContactID desk.ID `json:"contact_id"`
				}
			}
		}](t, answer).Data.Conversation
		_, contactErr := n.app.Contact(ctx, p, told.ContactID)
		_, conversationErr := n.app.Conversation(ctx, p, told.ID)
		if len(contacts) != 0 || !desk.IsType(contactErr, desk.NotFound) || !desk.IsType(conversationErr, desk.NotFound) {
			t.Errorf("something of the deleted contact is back: %v, %v, %v", contacts, contactErr, conversationErr)
		}
		return
	}
	if len(contacts) != 1 {
		t.Fatalf("%d contacts have the number, want 1", len(contacts))
	}
	list, _, err := n.app.ContactConversations(ctx, p, contacts[0].ID, desk.StatusOpen, "", 10)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d conversations are open, want 1 (%v)", len(list), err)
	}
	messages, _, err := n.app.Messages(ctx, p, list[0].ID, "", 10)
	want := 1
	if f.reply {
		want = 2
	}
	if err != nil || len(messages) != want {
		t.Fatalf("%d messages, want %d (%v)", len(messages), want, err)
	}
	if f.reply && (messages[0].Attachment == nil || messages[0].Attachment.Status != desk.MediaReady) {
		t.Errorf("the reply has the file %+v", messages[0].Attachment)
	}
}

// A faultCall is the call that a broken process makes. The process gets it from its
// environment.
type faultCall struct {
	Dir, Key, Number, Assignee string
	Conversation, File         string // for a reply
	Hears                      string // set for a process that receives a message and answers automatically: the step at which it is killed
	Fault                      int
}

const faultEnv = "FAULT_CALL"

func (n *node) send(ctx context.Context, p desk.Principal, call faultCall) (app.SendAnswer, error) {
	if call.Conversation != "" {
		r := &desk.ReplyRequest{Key: call.Key, Hash: n.app.BodyHash([]byte(call.Number)), Attachment: &desk.SentAttachment{}}
		r.Conversation, _ = desk.ParseID(call.Conversation)
		r.Attachment.Media, _ = desk.ParseID(call.File)
		return n.app.Reply(ctx, p, r, n.app.NewID(), nil)
	}
	r := &desk.SendRequest{
		Key: call.Key, Hash: n.app.BodyHash([]byte(call.Number)), Phone: desk.Identity{Kind: desk.KindPhone, Value: call.Number},
		Template: "order_ready", Language: "en_US", Variables: desk.TemplateValues{List: []string{"A-17"}}, OptInConfirmed: true,
	}
	if call.Assignee != "" {
		r.Assignee = desk.Field[desk.Reference]{Set: true, Value: desk.ReferTo(call.Assignee)}
	}
	answer, err := n.app.Send(ctx, p, r, n.app.NewID())
	if desk.IsType(err, desk.InvalidRequest) && call.Assignee != "" { // the key is free, and the repeated call finds that the assignee was removed
		call.Assignee = ""
		return n.send(ctx, p, call)
	}
	return answer, err
}

// A node is an App on the installation's directory. It stands for another process.
type node struct {
	app   *app.App
	store nodeStore
	*brokenProvider
	counting atomic.Pointer[countingProvider] // if it is set, it is used instead of the provider
	dir      string

	fault sendFault
	hurt  sync.Once
	mu    sync.Mutex
	gone  bool // the database no longer answers
}

func openNode(t testing.TB, dir string, f sendFault) *node {
	n, err := newNode(dir, f)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		work.Run(ctx, work.Of(n.app), work.Keep{}, slog.New(slog.DiscardHandler))
		n.app.Close()
	}()
	t.Cleanup(func() {
		stop()
		<-ran
		if err := n.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func newNode(dir string, f sendFault) (*node, error) {
	store, err := openNodeStore(dir)
	if err != nil {
		return nil, err
	}
	n := &node{store: store, dir: dir, fault: f}
	newID := func() desk.ID { return desk.ID(uuid.Must(uuid.NewV7())) }
	played := sandbox.New(sandbox.Config{Library: store, Now: time.Now, NewID: newID, Pace: 20 * time.Millisecond})
	n.brokenProvider = &brokenProvider{played, n}
	firstByte := patience
	if f.how == "stop" {
		firstByte = stopped / 2
	}
	n.app = app.New(app.Deps{
		Store:     &brokenStore{store, n},
		Providers: map[desk.ChannelKind]provider.Provider{desk.SandboxChannel: n},
		Answer:    api.SendAnswer, Now: time.Now, NewID: newID,
		Random: func(b []byte) { copy(b, bytes.Repeat([]byte("fault"), 20)) },
		Secret: make([]byte, 32), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Bounds: app.Bounds{FirstByte: firstByte, Wait: 20 * time.Millisecond},
	})
	return n, nil
}

// A node is its own provider, so that a test can replace it by another one.

func (n *node) Send(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
	if c := n.counting.Load(); c != nil {
		return c.Send(ctx, d)
	}
	return n.brokenProvider.Send(ctx, d)
}

// operator returns the principal of the command line in a workspace.
func (n *node) operator(t *testing.T, ws desk.ID) desk.Principal {
	t.Helper()
	p, err := n.app.Operator(t.Context(), ws)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// workspace makes the records that the sends need. It stores their ids for the other
// processes.
func (n *node) workspace(t *testing.T) (ws, channel desk.ID) {
	t.Helper()
	ctx := t.Context()
	w, err := n.app.CreateWorkspace(ctx, "Faults", "TR")
	if err != nil {
		t.Fatal(err)
	}
	name, all := "test", "all"
	key, _, err := n.app.CreateKey(ctx, n.operator(t, w.ID), app.KeyEdit{Name: &name, Permissions: &all})
	if err != nil {
		t.Fatal(err)
	}
	at, _, err := n.app.AddChannel(ctx, n.operator(t, w.ID), app.NewChannel{Kind: desk.SandboxChannel})
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.app.PutTemplate(ctx, n.operator(t, w.ID), at.Channel.ID, []byte(`{"name":"order_ready","language":"en_US","status":"APPROVED","category":"UTILITY",
		"components":[{"type":"BODY","text":"Your order {{1}} is ready."}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(n.dir, "key"), []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	return w.ID, at.Channel.ID
}

func (n *node) principal(t testing.TB, _ desk.ID) desk.Principal {
	p, err := n.authenticate()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (n *node) authenticate() (desk.Principal, error) {
	key, err := os.ReadFile(filepath.Join(n.dir, "key"))
	if err != nil {
		return desk.Principal{}, err
	}
	return n.app.Access.Authenticate(context.Background(), string(key))
}

// at is called at each step of a send. At the step of the fault, it breaks the process.
// If it returns an error, the store must return this error.
func (n *node) at(point string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.gone {
		return errGone
	}
	if point != n.fault.point {
		return nil
	}
	var err error
	n.hurt.Do(func() {
		switch n.fault.how {
		case "kill":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case "stop":
			began := time.Now()
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			for time.Since(began) < stopped/2 { // the signal stops the threads one by one
			}
		case "gone":
			n.gone = true
			err = errGone
		case "lost":
			err = errGone
		}
		if n.fault.how != "stop" {
			fmt.Println("broken")
		}
	})
	return err
}

var errGone = desk.Errorf(desk.Unavailable, "the database is gone")

// A brokenStore is a store that tells its node every step of a send.
type brokenStore struct {
	nodeStore
	n *node
}

func (s *brokenStore) Book(ctx context.Context, ws desk.ID, l desk.Lookup) (*desk.Book, error) {
	book, err := s.nodeStore.Book(ctx, ws, l)
	return book, errors.Join(err, s.n.at("planned"))
}

// Windows is read by the plan of a reply, so it is a step.
func (s *brokenStore) Windows(ctx context.Context, ws desk.ID, refs []desk.WindowRef) (map[desk.WindowRef]desk.Window, error) {
	windows, err := s.nodeStore.Windows(ctx, ws, refs)
	return windows, errors.Join(err, s.n.at("planned"))
}

func (s *brokenStore) InTx(ctx context.Context, ws desk.ID, f func(store.Tx) error) error {
	step := ""
	err := s.nodeStore.InTx(ctx, ws, func(tx store.Tx) error {
		watched := &watchedTx{Tx: tx}
		err := f(watched)
		if step = watched.step; err == nil && step != "" {
			err = s.n.at("in-" + step)
		}
		return err
	})
	if err == nil && step != "" {
		err = s.n.at("after-" + step)
	}
	return err
}

// A watchedTx is a transaction. It finds out which step of a send the transaction is.
type watchedTx struct {
	store.Tx
	step string
}

func (tx *watchedTx) PutAttempt(at *desk.Attempt) error {
	tx.step = string(at.Phase)
	if at.Phase == desk.Dispatching {
		tx.step = "claim"
	}
	return tx.Tx.PutAttempt(at)
}

// Upload takes the file of a reply.
func (p *brokenProvider) Upload(ctx context.Context, at provider.Access, kind, name string, size int64, content io.Reader) (string, error) {
	ref, err := p.Sandbox.Upload(ctx, at, kind, name, size, content)
	_ = p.n.at("uploading")
	return ref, err
}

func (tx *watchedTx) PutAutoReply(j desk.AutoReplyJob) error {
	tx.step = "job"
	return tx.Tx.PutAutoReply(j)
}

// A brokenProvider records which messages the sandbox accepts. It does so before it
// returns.
type brokenProvider struct {
	*sandbox.Sandbox
	n *node
}

func (p *brokenProvider) Send(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
	_ = p.n.at("calling")
	r, err := p.Sandbox.Send(ctx, d)
	var refusal *desk.Refusal
	if errors.As(err, &refusal) {
		return r, err
	}
	log, openErr := os.OpenFile(filepath.Join(p.n.dir, "taken"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if openErr != nil {
		panic(openErr)
	}
	_, writeErr := fmt.Fprintln(log, d.Number)
	if err := errors.Join(writeErr, log.Close()); err != nil {
		panic(err)
	}
	// A real provider reports the statuses of an accepted message even if our process is
	// dead. Therefore the statuses of the receipt are stored separately.
	kept := p.n.store.InTx(ctx, d.Workspace, func(tx store.Tx) error {
		for _, later := range r.Later {
			due := tx.Now() + desk.Time(later.Wait.Milliseconds())
			if err := tx.PutInbound(desk.InboundItem{Channel: d.Channel.ID, ID: d.Attempt, Due: due, Body: later.Body}); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(kept, p.n.app.LookForInbound(ctx)); err != nil {
		panic(err)
	}
	r.Later = nil
	p.meanwhile(ctx, d)
	_ = p.n.at("taken")
	if p.n.fault.point == "status-first" {
		for at := (*desk.Attempt)(nil); at == nil || at.Phase != desk.Done; {
			<-time.After(time.Millisecond)
			at, _ = p.n.store.Attempt(ctx, d.Workspace, d.Attempt)
		}
		_ = p.n.at("status-first")
	}
	return r, err
}

// meanwhile does what another member does while the provider has the message.
func (p *brokenProvider) meanwhile(ctx context.Context, d provider.Dispatch) {
	principal, err := p.n.authenticate()
	if err != nil {
		panic(err)
	}
	switch p.n.fault.before {
	case "delete":
		_, err = p.n.app.Write(ctx, principal, &desk.Op{Kind: desk.OpDelete, Find: []desk.Identity{{Kind: desk.KindPhone, Value: d.Number}}})
	case "unassign":
		var operator desk.Principal
		operator, err = p.n.app.Operator(ctx, principal.Workspace())
		for _, m := range principal.Settings.Members() {
			err = errors.Join(err, p.n.app.RemoveMember(ctx, operator, m.ID))
		}
	}
	if err != nil {
		panic(err)
	}
}

// takenOf returns how many messages to a number the provider has accepted.
func takenOf(t testing.TB, dir, number string) (count int) {
	t.Helper()
	log, err := os.Open(filepath.Join(dir, "taken"))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for lines := bufio.NewScanner(log); lines.Scan(); {
		if lines.Text() == number {
			count++
		}
	}
	return count
}

// startFault starts this test binary again, as the process that makes the call and
// breaks.
func startFault(t *testing.T, call faultCall) *process {
	t.Helper()
	text, err := json.Marshal(call)
	if err != nil {
		t.Fatal(err)
	}
	return launchProgram(t, os.Args[0], []string{faultEnv + "=" + string(text)})
}

// stopped is the least time for which a process is stopped. It is longer than the time
// that the process may take from its claim to the first byte.
const stopped = 200 * time.Millisecond

// waitStopped waits until the process has stopped itself. Then it waits for the time
// stopped.
func (p *process) waitStopped(t *testing.T) {
	t.Helper()
	stat := fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid)
	for start := time.Now(); ; <-time.After(time.Millisecond) {
		text, err := os.ReadFile(stat)
		if err != nil {
			t.Skip("there is no /proc to see a stopped process in")
		}
		if _, rest, _ := strings.Cut(string(text), ") "); strings.HasPrefix(rest, "T") {
			<-time.After(stopped)
			return
		}
		if time.Since(start) > patience {
			t.Fatalf("the process does not stop: %s%s", p.stdout.String(), p.stderr.String())
		}
	}
}

func (p *process) resume(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// faultMain is the main function of the process that makes the call and breaks.
func faultMain(text string) int {
	var call faultCall
	if err := json.Unmarshal([]byte(text), &call); err != nil {
		panic(err)
	}
	if call.Hears != "" {
		return hearMain(call)
	}
	n, err := newNode(call.Dir, sendFaults[call.Fault])
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		if n.fault.how == "stop" {
			<-ctx.Done() // otherwise the process might be stopped within a transaction, and block all others
		}
		work.Run(ctx, work.Of(n.app), work.Keep{}, slog.New(slog.DiscardHandler))
		n.app.Close()
	}()
	p, err := n.authenticate()
	if err != nil {
		panic(err)
	}
	answer, err := n.send(ctx, p, call)
	fmt.Printf("%s %v\n", answer.Body, err)
	stop()
	<-ran
	if err := n.store.Close(); err != nil {
		panic(err)
	}
	return 0
}
