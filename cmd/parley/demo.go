package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/app"
	"parley/config"
	"parley/desk"
)

type demoCmd struct {
	Listen address `help:"Where to listen, by default ${default}; port 0 picks a free one." placeholder:"HOST:PORT" default:"127.0.0.1:8480" env:"PARLEY_LISTEN"`

	webhookFlags `embed:""`
	deliverFlags `embed:""`
}

// Validate refuses negative times.
func (c *demoCmd) Validate() error { return c.check() }

// loopback are the networks of this machine. A demo's webhooks may reach them.
var loopback = []prefix{prefix(netip.MustParsePrefix("127.0.0.0/8")), prefix(netip.MustParsePrefix("::1/128"))}

// Help shows examples.
func (*demoCmd) Help() string {
	return examples(
		`parley demo`,
		`parley demo --data /tmp/parley-demo --listen 127.0.0.1:0`,
	)
}

const (
	demoName    = "Parley demo"
	demoCountry = "US"
	demoFile    = "demo.json"
)

// demoEdition is the number of the demo's newest edition. It becomes greater when the
// demo gets new content.
const demoEdition = 4

// A demoAccess is the access to the demo workspace. It is stored in the data directory,
// because the database does not have the secret of the key.
type demoAccess struct {
	WorkspaceID string `json:"workspace_id"`
	Key         string `json:"key"`
	Edition     int    `json:"edition"` // an older release has written a smaller number, or no number
}

// Run makes the demo, or reopens it, and serves it.
func (c *demoCmd) Run(ctx context.Context, s *session) error {
	serve := &serveCmd{Listen: c.Listen, LogLevel: "warn", EventRetention: desk.KeepEvents, roomFlags: roomFlags{desk.DefaultMediaPerWorkspace, desk.DefaultKeepFree}, webhookFlags: c.webhookFlags, deliverFlags: c.deliverFlags} // what it prints should stay in sight
	serve.Allow = slices.Concat(loopback, serve.Allow)
	var where string // set once the server is ready
	err := s.serve(ctx, serve, func(in installation, base string) error {
		file := filepath.Join(in.storage.Dir, demoFile)
		if err := checkDemoPlace(ctx, in, file); err != nil {
			return err
		}
		if err := in.storage.MakeDir(); err != nil { // the directory for the key
			return fmt.Errorf("demo: %w; choose another data directory with --data", err)
		}
		d, err := openDemo(ctx, in, file)
		if err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		where = in.storage.String()
		return s.answer(struct {
			BaseURL     string `json:"base_url"`
			Key         string `json:"key"`
			WorkspaceID string `json:"workspace_id"`
			ConsoleURL  string `json:"console_url,omitempty"`
		}{base, d.access.Key, d.access.WorkspaceID, demoConsole(base, d)}, "%s", block(demoText(where, base, d)))
	})
	if err != nil || where == "" || s.flags.JSON {
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "Stopped; everything is in %s.\n", where)
	return err
}

// checkDemoPlace refuses a database that has workspaces but no demo workspace. Such a
// database is a real installation, and must not get invented people. The demo workspace
// is recognized by the file of an earlier run. If that run was interrupted before it
// wrote the file, the workspace is recognized by its name.
func checkDemoPlace(ctx context.Context, in installation, file string) error {
	workspaces, err := in.app.Workspaces(ctx)
	if err != nil || len(workspaces) == 0 {
		return err
	}
	access, err := readDemoFile(file)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	for _, w := range workspaces {
		if w.Name == demoName || w.ID.String() == access.WorkspaceID {
			return nil
		}
	}
	return fmt.Errorf("demo: %s holds workspaces of yours, and the demo is not mixed with them: choose a new directory with --data (and leave out --database and PARLEY_DATABASE_URL)", in.storage)
}

// An openedDemo has the data that a person needs to try the demo.
type openedDemo struct {
	access  demoAccess
	token   string  // the token of a link that signs in as the demo's admin
	channel desk.ID // the sandbox
	person  desk.ID // the contact in the curl lines
}

// openDemo opens the demo workspace. If there is no such workspace, it makes and fills it.
func openDemo(ctx context.Context, in installation, file string) (d openedDemo, err error) {
	a := in.app
	principal, access, err := reopenDemo(ctx, a, file)
	if err != nil {
		return d, err
	}
	if principal.Key == nil {
		if principal, access, err = makeDemo(ctx, a); err != nil {
			return d, err
		}
	}
	if access.Edition < demoEdition {
		if principal, err = talkDemo(ctx, in, principal, access); err != nil {
			return d, err
		}
		channel, err := demoChannelID(ctx, a, principal.Workspace())
		if err != nil {
			return d, err
		}
		if err := addDemoBroadcasts(ctx, a, principal.Workspace(), channel); err != nil {
			return d, err
		}
		// The edition is stored last. If this run is interrupted before, the next run adds the
		// missing parts.
		access.Edition = demoEdition
		text, err := json.Marshal(access)
		if err != nil {
			return d, err
		}
		if err := config.Replace(file, append(text, '\n')); err != nil {
			return d, err
		}
	}
	d.access = access
	if d.channel, err = demoChannelID(ctx, a, principal.Workspace()); err != nil {
		return d, err
	}
	if d.person, err = demoFirst(ctx, a, principal); err != nil {
		return d, err
	}
	d.token, err = demoLink(ctx, a, principal.Workspace())
	return d, err
}

// demoLink makes a link that signs in as the demo's admin. It returns "" if the admin has
// been removed.
func demoLink(ctx context.Context, a *app.App, ws desk.ID) (token string, err error) {
	operator, err := a.Operator(ctx, ws)
	if err != nil {
		return "", err
	}
	if admin, found := demoAdmin(operator); found {
		token, _, err = a.Access.MakeLink(ctx, operator, admin)
	}
	return token, err
}

// reopenDemo reads the file of an earlier run. If there is none, or if its key is no
// longer valid, the principal is zero.
func reopenDemo(ctx context.Context, a *app.App, file string) (p desk.Principal, access demoAccess, err error) {
	if access, err = readDemoFile(file); err != nil || access.Key == "" {
		return p, access, err
	}
	p, err = a.Access.Authenticate(ctx, access.Key)
	if desk.IsType(err, desk.Unauthorized) {
		err = nil
	}
	return p, access, err
}

// readDemoFile reads the file of an earlier run. It returns the zero access if there is
// none.
func readDemoFile(file string) (access demoAccess, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return access, nil
	}
	if err != nil {
		return access, err
	}
	if err := json.Unmarshal(text, &access); err != nil {
		return access, fmt.Errorf("%s: %w; remove the file to get another key", file, err)
	}
	return access, nil
}

// makeDemo fills a workspace. Every step looks for the results of an earlier run, so a
// run that was interrupted is completed by the next one.
func makeDemo(ctx context.Context, a *app.App) (p desk.Principal, access demoAccess, err error) {
	ws, err := demoWorkspace(ctx, a)
	if err != nil {
		return p, access, err
	}
	operator, err := a.Operator(ctx, ws)
	if err != nil {
		return p, access, err
	}
	if err := addDemoMembers(ctx, a, operator); err != nil {
		return p, access, err
	}
	name, all := "demo", "all"
	key, _, err := a.CreateKey(ctx, operator, app.KeyEdit{Name: &name, Permissions: &all})
	if err != nil {
		return p, access, err
	}
	if p, err = a.Access.Authenticate(ctx, key); err != nil {
		return p, access, err
	}
	for _, in := range demoAttributes() {
		if _, _, err := a.PutAttribute(ctx, p, in); err != nil {
			return p, access, fmt.Errorf("attribute %s: %w", in.Key, err)
		}
	}
	_, errs, err := a.WriteAll(ctx, p, demoOps())
	return p, demoAccess{WorkspaceID: ws.String(), Key: key}, errors.Join(append(errs, err)...)
}

// talkDemo adds the parts that the demo of an older release lacks: the channel, people
// with names in other scripts, and the conversations.
func talkDemo(ctx context.Context, in installation, p desk.Principal, access demoAccess) (desk.Principal, error) {
	a := in.app
	channel, err := addDemoChannel(ctx, a, p.Workspace())
	if err != nil {
		return p, err
	}
	if p, err = a.Access.Authenticate(ctx, access.Key); err != nil { // a principal from before this moment does not see the new channel
		return p, err
	}
	var ops []*desk.Op
	for i := range demoScripts {
		ops = append(ops, demoPerson(i))
	}
	if _, errs, err := a.WriteAll(ctx, p, ops); err != nil || errors.Join(errs...) != nil {
		return p, errors.Join(append(errs, err)...)
	}
	return p, holdDemoTalks(ctx, in, p, channel, access.Edition)
}

func demoWorkspace(ctx context.Context, a *app.App) (desk.ID, error) {
	workspaces, err := a.Workspaces(ctx)
	if err != nil {
		return desk.ID{}, err
	}
	for _, w := range workspaces {
		if w.Name == demoName {
			return w.ID, nil
		}
	}
	w, err := a.CreateWorkspace(ctx, demoName, demoCountry)
	return w.ID, err
}

func addDemoMembers(ctx context.Context, a *app.App, operator desk.Principal) error {
	there := map[string]bool{}
	for _, m := range operator.Settings.Members() {
		there[desk.CanonicalEmail(m.Email)] = true
	}
	for _, m := range demoMembers {
		if there[m.email] {
			continue
		}
		if _, err := a.AddMember(ctx, operator, m.name, m.email, string(m.role)); err != nil {
			return err
		}
	}
	return nil
}

// demoFirst returns the contact that now has the first person's phone number. If there is
// no such contact, it creates the contact, because the curl lines need it.
func demoFirst(ctx context.Context, a *app.App, p desk.Principal) (desk.ID, error) {
	first := demoPerson(0).Write
	phone := []desk.Identity{{Kind: desk.KindPhone, Value: first.Phone.Value}}
	found, _, err := a.Contacts(ctx, p, desk.ContactFilter{Held: phone}, "", 1)
	if err != nil {
		return desk.ID{}, err
	}
	if len(found) == 1 {
		return found[0].ID, nil
	}
	outcome, err := a.Write(ctx, p, &desk.Op{Write: desk.ContactWrite{Name: first.Name, Phone: first.Phone, Sent: phone}})
	if err != nil {
		return desk.ID{}, err
	}
	return outcome.Contact.ID, nil
}

// demoConsole returns a link that opens the console signed in, or "" if the demo has no
// admin.
func demoConsole(base string, d openedDemo) string {
	if d.token == "" {
		return ""
	}
	return signInURL(strings.TrimSuffix(base, "/v1"), d.token)
}

// demoText is the text for the user: the address of the console, and four lines to paste.
// The captions of the lines are pasted together with them. In an interactive zsh, # does
// not begin a comment. Therefore a caption must not contain a character that ends a
// command or opens a quotation.
func demoText(where, base string, d openedDemo) string {
	first := demoPerson(0).Write
	digits := first.Phone.Value
	phone := fmt.Sprintf("+1 (%s) %s-%s", digits[1:4], digits[4:7], digits[7:])
	agent := demoMembers[0]
	auth := "-H 'Authorization: Bearer " + d.access.Key + "'"
	post := auth + " -H 'Content-Type: application/json'"
	body := fmt.Sprintf(`{"channel_id": "%s", "to": {"contact_id": "%s"}, "opt_in_confirmed": true, "template": {"name": "appointment_reminder", "language": "en_US", `+
		`"variables": {"header.customer_first_name": "%s", "agent_name": "%s", "day": "Friday", "time": "15:00"}}}`,
		d.channel, d.person, desk.FirstName(first.Name.Value), agent.name)

	var b strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format+"\n", args...) }
	line("parley demo: %d contacts, %d conversations on a sandbox channel, %d broadcasts, %d attributes and %d members, in %s",
		demoContacts, len(demoTalks), len(demoBroadcasts), len(demoAttributes()), len(demoMembers), where)
	line("")
	if console := demoConsole(base, d); console != "" {
		line("  console   %s", console)
		line("            opens signed in as %s; the link works once, within ten minutes", demoMembers[0].name)
		line("")
	}
	line("  base URL  %s", base)
	line("  API key   %s", d.access.Key)
	line("  docs      %s/docs", strings.TrimSuffix(base, "/v1"))
	line("")
	line("# the templates that can be sent, and what to fill in when %s writes to %s", agent.name, first.Name.Value)
	line("curl -sS %s '%s/templates?channel_id=%s&agent=%s&contact_id=%s'", auth, base, d.channel, agent.email, d.person)
	line("# send one of them, and paste it again: the same answer comes without a second message")
	line("curl -sS %s -H 'Idempotency-Key: reminder-%s' -d '%s' '%s/conversations/outbound'", post, d.person, body, base)
	line("# the conversations with that contact")
	line("curl -sS %s '%s/contacts/%s/conversations'", auth, base, d.person)
	line("# a note for that contact, found by the phone number in another format: the same contact, not a second one")
	line(`curl -sS %s -d '{"phone": "%s", "note": "Asked for a call back"}' '%s/contacts'`, post, phone, base)
	line("")
	line("Ctrl-C stops it; the next parley demo opens it again, with the same key.")
	return b.String()
}
