package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"parley/api"
	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/sandbox"
	"parley/store"
	"parley/store/postgres"
	"parley/store/sqlite"
	"parley/web"
	"parley/work"
)

var (
	inboundMedia  = flag.Int("inbound-media", 20, "how many files TestInboundMedia has fetched by a process that is killed")
	mediaErasures = flag.Int("media-erasures", 8, "how many people TestErasureOfMedia deletes")
	mediaKills    = flag.Int("media-kills", 2, "how often TestInboundMedia and TestErasureOfMedia kill the process")
)

// A mediaCall is the configuration of a process, which gets it from its environment. It
// names the installation on which the process fetches files and serves the API. It also
// says how many of a hundred tries to fetch a file fail.
type mediaCall struct {
	Dir, Database string
	Fail          int
}

const mediaEnv = "MEDIA_CALL"

// A mediaNode is an App on the installation.
type mediaNode struct {
	mediaCall
	app   *app.App
	store nodeStore
}

// A nodeStore is the database of an App that runs in this process.
type nodeStore interface {
	store.Store
	sandbox.Library
	io.Closer
}

// databaseFile is the name of a file in the directory of the nodes. If they use
// PostgreSQL, it has the URL of the database.
const databaseFile = "database.url"

func openNodeStore(dir string) (nodeStore, error) {
	url, err := os.ReadFile(filepath.Join(dir, databaseFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sqlite.Open(context.Background(), sqlite.Config{Serves: true, Path: filepath.Join(dir, "parley.db")})
	case err != nil:
		return nil, err
	}
	return postgres.Open(context.Background(), postgres.Config{URL: string(url), MaxConns: 6})
}

// fetchLease is the time for which a killed process keeps a file from the others.
const fetchLease = 500 * time.Millisecond

func newMediaNode(call mediaCall) (*mediaNode, error) {
	n := &mediaNode{mediaCall: call}
	var err error
	if n.store, err = openNodeStore(call.Dir); err != nil {
		return nil, err
	}
	newID := func() desk.ID { return desk.ID(uuid.Must(uuid.NewV7())) }
	courier := &courier{sandbox.New(sandbox.Config{Library: n.store, Now: time.Now, NewID: newID, Pace: time.Hour}), call.Fail}
	n.app = app.New(app.Deps{
		Store: n.store, Providers: map[desk.ChannelKind]provider.Provider{desk.SandboxChannel: courier}, Answer: api.SendAnswer,
		Now: time.Now, NewID: newID, Random: func(b []byte) { copy(b, bytes.Repeat([]byte("media"), 20)) },
		Secret: make([]byte, 32), Log: slog.New(slog.DiscardHandler), Bounds: app.Bounds{Fetch: fetchLease},
	})
	return n, nil
}

// leave makes the directory of the nodes, and stores the URL of their database there.
func (d deployment) leave(t *testing.T) {
	t.Helper()
	err := os.MkdirAll(d.dir, 0o700)
	if err == nil && d.database != "" {
		err = os.WriteFile(filepath.Join(d.dir, databaseFile), []byte(d.database), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func openMediaNode(t *testing.T, call mediaCall) *mediaNode {
	t.Helper()
	n, err := newMediaNode(call)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.app.Close()
		if err := n.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// mediaMain is the main function of the process. Until it is killed, it fetches files,
// deletes unused content, and serves the API.
func mediaMain(text string) int {
	var call mediaCall
	if err := json.Unmarshal([]byte(text), &call); err != nil {
		panic(err)
	}
	n, err := newMediaNode(call)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	go work.Run(ctx, work.Of(n.app), work.Keep{}, slog.New(slog.DiscardHandler))
	go func() {
		for range time.Tick(20 * time.Millisecond) {
			_ = n.app.Media.DropContents(ctx)
		}
	}()
	edge := web.New(web.Config{Log: slog.New(slog.DiscardHandler), NewID: n.app.NewID, Ready: n.app.Ready, Drain: n.app.Drain})
	api.New(api.Config{App: n.app, Web: edge})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	panic((&http.Server{Handler: edge.Handler(), ReadHeaderTimeout: patience}).Serve(listener))
}

// start starts the process. It returns the process and the address of the API.
func (n *mediaNode) start(t *testing.T, fail int) (*process, string) {
	t.Helper()
	call := n.mediaCall
	call.Fail = fail
	text, err := json.Marshal(call)
	if err != nil {
		t.Fatal(err)
	}
	p := launchProgram(t, os.Args[0], []string{mediaEnv + "=" + string(text)})
	waitFor(t, "the process to serve", func() bool {
		if p.ended() {
			t.Fatalf("the process has ended: %s%s", p.stdout.String(), p.stderr.String())
		}
		return strings.Contains(p.stdout.String(), "\n")
	})
	return p, strings.TrimSpace(p.stdout.String())
}

// A courier is a sandbox whose customers send files. Some tries to fetch a file fail.
type courier struct {
	*sandbox.Sandbox
	fail int
}

// sentFile returns the content of the file with a reference: the reference, many times.
func sentFile(ref string) []byte {
	size := 1000 + int(sha256.Sum256([]byte(ref))[0])*1000
	if strings.HasSuffix(ref, "7") {
		size += 1 << 20
	}
	return bytes.Repeat([]byte("\xff\xd8\xff\xe0 "+ref+" "), size/len(ref))
}

func (c *courier) Fetch(ctx context.Context, _ provider.Access, ref string, told func(provider.FetchedMedia) error, w io.Writer) (is provider.FetchedMedia, err error) {
	content := sentFile(ref)
	sum := sha256.Sum256(content)
	is = provider.FetchedMedia{MIME: "image/jpeg", Size: int64(len(content)), SHA256: sum[:]}
	if err := told(is); err != nil {
		return is, err
	}
	fault := -1
	if rand.IntN(100) < c.fail {
		fault = rand.IntN(5)
	}
	switch fault {
	case 0:
		return is, errors.New("the line is down")
	case 1, 2:
		content = content[:len(content)/2]
	case 3:
		content[len(content)/2] ^= 1
	case 4:
		panic("a bug")
	}
	for part := range 4 { // so slow that a kill may come in between
		n := len(content)
		if _, err := w.Write(content[part*n/4 : (part+1)*n/4]); err != nil {
			return is, err
		}
		select {
		case <-ctx.Done():
			return is, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	if fault == 1 {
		err = io.ErrUnexpectedEOF
	}
	return is, err
}

// A mediaDesk is a workspace on a node, with a channel.
type mediaDesk struct {
	*mediaNode
	ws, channel desk.ID
	key         string
}

func newMediaDesk(t *testing.T, in deployment) *mediaDesk {
	t.Helper()
	in.leave(t)
	d := &mediaDesk{mediaNode: openMediaNode(t, mediaCall{Dir: in.dir, Database: in.database})}
	w, err := d.app.CreateWorkspace(t.Context(), "Media", "DE")
	if err != nil {
		t.Fatal(err)
	}
	d.ws = w.ID
	name, all := "test", "all"
	if d.key, _, err = d.app.CreateKey(t.Context(), d.operator(t), app.KeyEdit{Name: &name, Permissions: &all}); err != nil {
		t.Fatal(err)
	}
	at, _, err := d.app.AddChannel(t.Context(), d.operator(t), app.NewChannel{Kind: desk.SandboxChannel})
	if err != nil {
		t.Fatal(err)
	}
	d.channel = at.Channel.ID
	return d
}

func (d *mediaDesk) operator(t *testing.T) desk.Principal {
	t.Helper()
	p, err := d.app.Operator(t.Context(), d.ws)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sends simulates a person who sends a file.
func (d *mediaDesk) sends(t *testing.T, person int, ref string) *desk.Conversation {
	t.Helper()
	sum := sha256.Sum256(sentFile(ref))
	c, err := d.app.Receive(t.Context(), d.ws, d.channel, provider.InboundMessage{
		ExternalID: fmt.Sprint(person, " ", ref), Number: strings.TrimPrefix(phoneOf(person), "+"), Text: "[image] " + ref, At: desk.TimeOf(time.Now()), Kind: desk.KindImage,
		Media: &provider.InboundMedia{Ref: ref, MIME: "image/png", SHA256: sum[:]},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// files returns the records of all files.
func (d *mediaDesk) files(t *testing.T) (all []*desk.Media) {
	t.Helper()
	for before := (desk.ID{}); ; before = all[len(all)-1].ID {
		page, err := d.store.MediaList(t.Context(), d.ws, false, before, 200)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, page...); len(page) < 200 {
			return all
		}
	}
}

// fetched waits until all files are ready. It does not wait for jobs, but makes them due
// at once.
func (d *mediaDesk) fetched(t *testing.T, limit time.Duration) {
	t.Helper()
	for start := time.Now(); ; <-time.After(50 * time.Millisecond) {
		left := d.hasten(t)
		if left == 0 {
			return
		}
		if time.Since(start) > limit {
			t.Fatalf("%d files are not ready", left)
		}
	}
}

// hasten makes waiting jobs due. It returns the number of files that are still pending.
func (d *mediaDesk) hasten(t *testing.T) (left int) {
	t.Helper()
	var pending []desk.ID
	for _, m := range d.files(t) {
		switch m.Status {
		case desk.MediaPending:
			pending = append(pending, m.ID)
		case desk.MediaFailed:
			t.Fatalf("a file was given up: %+v", m)
		}
	}
	left = len(pending)
	err := d.store.InTx(t.Context(), d.ws, func(tx store.Tx) error {
		for _, id := range pending[:min(left, 100)] {
			job, err := tx.MediaJob(id)
			if err != nil {
				return err
			}
			if job == nil || !job.Holder.IsZero() || job.Due <= tx.Now() {
				continue
			}
			job.Due = tx.Now()
			if err := tx.PutMediaJob(*job); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// swept makes the node delete what killed processes have left behind, as if an hour had
// passed.
func (d *mediaDesk) swept(t *testing.T) {
	t.Helper()
	const statement = `UPDATE media_contents SET pinned_until = 0`
	var err error
	if d.Database == "" {
		var db *sql.DB
		if db, err = sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(d.Dir, "parley.db"))+"?_pragma=busy_timeout(5000)"); err == nil {
			_, err = db.ExecContext(t.Context(), statement)
			err = errors.Join(err, db.Close())
		}
	} else {
		var conn *pgx.Conn
		if conn, err = pgx.Connect(t.Context(), d.Database); err == nil {
			_, err = conn.Exec(t.Context(), statement)
			err = errors.Join(err, conn.Close(t.Context()))
		}
	}
	for drafts := 0; drafts < 10 && err == nil; drafts++ { // drafts are deleted in groups
		err = d.store.DropDrafts(t.Context(), -time.Hour)
	}
	if err = errors.Join(err, d.app.Media.DropContents(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// holds checks that exactly these contents exist, and that there are no drafts.
func (d *mediaDesk) holds(t *testing.T, contents map[string]bool) {
	t.Helper()
	if d.Database != "" {
		tables := deployment{d.Dir, d.Database}.dump(t)
		if n := len(tables["media_drafts"]); n != 0 {
			t.Errorf("drafts are left: %d bytes", n)
		}
		conn, err := pgx.Connect(t.Context(), d.Database)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
		var n, orphans int
		err = conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM media_contents),
			(SELECT count(*) FROM media_chunks c WHERE NOT EXISTS (SELECT FROM media_contents m WHERE m.workspace_id = c.workspace_id AND m.chunks = c.chunks))`).Scan(&n, &orphans)
		if err != nil || n != len(contents) || orphans != 0 {
			t.Errorf("%d contents are stored, want %d; %d chunks belong to none (%v)", n, len(contents), orphans, err)
		}
		return
	}
	found := 0
	err := filepath.WalkDir(filepath.Join(d.Dir, "media"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		found++
		b, err := os.ReadFile(path)
		if sum := fmt.Sprintf("%x", sha256.Sum256(b)); sum != entry.Name() || !contents[sum] {
			t.Errorf("the file %s is left: %.60q", path, b)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) || found != len(contents) {
		t.Errorf("%d files are stored, want %d (%v)", found, len(contents), err)
	}
}

// TestInboundMedia: people send files. The process that fetches the files is killed again
// and again, and three of ten tries fail. In the end all files are there, with all their
// bytes.
func TestInboundMedia(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, in deployment) {
		d := newMediaDesk(t, in)
		contents := map[string]bool{}
		wants := map[desk.ID][]byte{} // the expected content of each conversation's file
		for i := range *inboundMedia {
			ref := fmt.Sprintf("file-%05d", i)
			contents[fmt.Sprintf("%x", sha256.Sum256(sentFile(ref)))] = true
			wants[d.sends(t, i, ref).ID] = sentFile(ref)
		}
		began, tries := time.Now(), 0
		for range *mediaKills {
			p, _ := d.start(t, 30)
			ready := *inboundMedia - d.hasten(t)
			goal := ready + 1 + (*inboundMedia-ready)/(2+*mediaKills)*2/3
			waitFor(t, "some files", func() bool { tries++; return *inboundMedia-d.hasten(t) >= min(goal, *inboundMedia) })
			<-time.After(time.Duration(rand.IntN(5000)) * time.Microsecond)
			p.kill()
		}
		p, _ := d.start(t, 30)
		d.fetched(t, patience+time.Duration(*inboundMedia)*100*time.Millisecond)
		t.Logf("%d files in %v, with %d kills", *inboundMedia, time.Since(began), *mediaKills)
		p.kill()
		for conversation, want := range wants {
			list, _, err := d.app.Messages(t.Context(), d.operator(t), conversation, "", 10)
			if err != nil || len(list) != 1 || list[0].Attachment == nil {
				t.Fatalf("%v: %+v", err, list)
			}
			if got := d.read(t, list[0].Attachment); !bytes.Equal(got, want) {
				t.Errorf("the file of %s has %d bytes, want %d", list[0].Text, len(got), len(want))
			}
			if m := list[0].Attachment; m.MIME != "image/jpeg" || m.Size != int64(len(want)) {
				t.Errorf("%+v", m)
			}
		}
		d.swept(t)
		d.holds(t, contents)
	})
}

func (d *mediaDesk) read(t *testing.T, m *desk.Media) []byte {
	t.Helper()
	_, content, err := d.app.Media.Open(t.Context(), d.operator(t), m.ID)
	if err != nil {
		t.Fatalf("%+v: %v", m, err)
	}
	defer content.Close()
	b, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fileTrace matches text that only the files of one person have.
var fileTrace = regexp.MustCompile(`(own|sent|late)-of-person-\d{5}`)

// TestErasureOfMedia: a process deletes people while it fetches their files, and is
// killed again and again. After a sweep, no file is left that only these people sent or
// got. If other people have files with the same bytes, these are still there.
func TestErasureOfMedia(t *testing.T) {
	t.Parallel()
	onBothStores(t, eraseMedia)
}

// deletes deletes a person over HTTP. If the server is killed meanwhile, it repeats the
// request.
func (d *mediaDesk) deletes(contact desk.ID, url func() string) (err error) {
	for start := time.Now(); time.Since(start) < 2*patience; <-time.After(5 * time.Millisecond) {
		request, err := http.NewRequest("DELETE", url()+"/v1/contacts/"+contact.String(), http.NoBody)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+d.key)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusNoContent || response.StatusCode == http.StatusNotFound {
			return nil
		}
	}
	return errors.New("it has no answer")
}

func eraseMedia(t *testing.T, in deployment) {
	t.Helper()
	d := newMediaDesk(t, in)
	p, err := d.app.Access.Authenticate(t.Context(), d.key)
	if err != nil {
		t.Fatal(err)
	}
	gone, stay := *mediaErasures, max(2, *mediaErasures/4)
	contents := map[string]bool{} // the contents that must stay
	stays := func(content []byte) { contents[fmt.Sprintf("%x", sha256.Sum256(content))] = true }
	people := make([]*desk.Conversation, gone+stay)
	for i := range people {
		same := fmt.Sprintf("same-%05d", i%stay)
		d.sends(t, i, same)
		own := fmt.Sprintf("own-of-person-%05d", i)
		people[i] = d.sends(t, i, own)
		if i >= gone {
			stays(sentFile(own))
			stays(sentFile(same))
		}
	}
	upload := func(content []byte) desk.ID {
		t.Helper()
		m, err := d.app.Media.Upload(t.Context(), p, desk.FileHead{Name: "a.jpg"}, bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		return m.ID
	}
	gets := func(i int, what string, media desk.ID) {
		t.Helper()
		r := &desk.ReplyRequest{Key: fmt.Sprint(what, i), Conversation: people[i].ID, Attachment: &desk.SentAttachment{Media: media}}
		if _, err := d.app.Reply(t.Context(), p, r, desk.ID{1}, nil); err != nil {
			t.Fatal(err)
		}
	}
	shared := make([]desk.ID, stay)
	for i := range shared {
		content := sentFile(fmt.Sprintf("shared-%05d", i))
		shared[i] = upload(content)
		stays(content)
		gets(gone+i, "shared", shared[i])
	}
	for i := range gone {
		gets(i, "sent", upload(sentFile(fmt.Sprintf("sent-of-person-%05d", i))))
		gets(i, "shared", shared[i%stay])
	}
	running, at := d.start(t, 20)
	d.fetched(t, patience+time.Duration(gone)*100*time.Millisecond)
	for i := range gone {
		if i%2 == 0 { // the file is fetched while the person is deleted
			d.sends(t, i, fmt.Sprintf("late-of-person-%05d", i))
		}
	}

	// While people are deleted, the process is killed and started again.
	var url atomic.Value
	url.Store(at)
	var next, deleted atomic.Int64
	var deleting sync.WaitGroup
	for range 4 {
		deleting.Go(func() {
			for i := next.Add(1) - 1; i < int64(gone) && !t.Failed(); i = next.Add(1) - 1 {
				if err := d.deletes(people[i].ContactID, func() string { return url.Load().(string) }); err != nil {
					t.Errorf("person %d is not deleted: %v", i, err)
				}
				deleted.Add(1)
			}
		})
	}
	for kill := range *mediaKills {
		for deleted.Load() < int64(kill*gone / *mediaKills) && !t.Failed() {
			<-time.After(time.Millisecond)
		}
		<-time.After(time.Duration(rand.IntN(20_000)) * time.Microsecond)
		running.kill()
		running, at = d.start(t, 20)
		url.Store(at)
	}
	deleting.Wait()
	d.fetched(t, patience)
	running.kill()
	d.swept(t)
	d.holds(t, contents)
	left := deployment{d.Dir, d.Database}.dump(t)
	if d.Database == "" {
		err := filepath.WalkDir(filepath.Join(d.Dir, "media"), func(path string, entry os.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				left[path], err = os.ReadFile(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	found := 0
	for where, content := range left {
		for _, trace := range fileTrace.FindAll(content, -1) {
			found++
			n := 0
			if _, err := fmt.Sscanf(string(trace[len(trace)-5:]), "%05d", &n); err != nil || n < gone {
				t.Errorf("%s is left in %s", trace, where)
				break
			}
		}
	}
	if found == 0 {
		t.Error("nothing is found of those who stay: the test has lost its subject")
	}
	for i := gone; i < len(people); i++ {
		want := map[string]bool{fmt.Sprintf("own-of-person-%05d", i): true, fmt.Sprintf("same-%05d", i%stay): true, fmt.Sprintf("shared-%05d", i-gone): true}
		list, _, err := d.app.Messages(t.Context(), d.operator(t), people[i].ID, "", 10)
		if err != nil || len(list) != 3 {
			t.Fatalf("person %d has %d messages (%v)", i, len(list), err)
		}
		for _, m := range list {
			if m.Attachment == nil {
				t.Errorf("person %d: %+v", i, m)
				continue
			}
			content := d.read(t, m.Attachment)
			for ref := range want {
				if bytes.Equal(content, sentFile(ref)) {
					delete(want, ref)
				}
			}
		}
		if len(want) != 0 {
			t.Errorf("of person %d, %v is missing", i, want)
		}
	}
	t.Logf("%d people deleted, %d kills, %d contents stay", gone, *mediaKills, len(contents))
}
