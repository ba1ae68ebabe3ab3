// Command parley is the whole product in one binary: the server and the operator's
// commands. Only this package reads flags, environment and signals.
//
//	main.go        the list of commands, exit codes, the line that reports an error
//	session.go     shared by all commands: opening the installation, printing results
//	serve.go       parley serve, and running a server
//	signals.go     the signals that stop a program
//	demo.go        parley demo: a filled workspace to look at
//	demodata.go    the invented people in it
//	demotalk.go    their conversations, on a sandbox channel
//	demosale.go    two broadcasts to some of them
//	workspace.go   parley workspace create, list, edit, delete, check
//	member.go      parley member add, list, edit, remove
//	login.go       parley login-link
//	key.go         parley key create, list, edit, revoke
//	channel.go     parley channel add, list, edit, check, sync
//	delivery.go    parley webhook ping, replay, deliveries, redeliver
//	deliver.go     how events are delivered to webhooks
//	webhook.go     parley webhook add, list, edit, remove, rotate
//	policy.go      parley policy show, set, clear
//	template.go    parley template put, list
//	sandbox.go     parley sandbox inbound
//	attempt.go     parley attempt list, release
//	events.go      parley events tail
//	media.go       parley media list, retry
//	mcp.go         parley mcp: an assistant's tools, over standard input and output
//	broadcast.go   parley broadcast list, show, pause, cancel, release
//	import.go      parley import contacts, opt-outs
//	export.go      parley export
//	erase.go       parley erase
//	migrate.go     parley migrate: from SQLite to PostgreSQL
//	citus.go       parley citus
//	doctor.go      parley doctor
//	backup.go      parley backup, restore
//	version.go     parley version
//	words.go       errors as sentences, and how they name flags and commands
//	help.go        parley help
//
// A command prints its result on standard output and logs on standard error. It exits
// with 0 if it succeeded, 1 if it failed, and 2 if it was called wrongly. An import exits with
// 3 if some rows were rejected.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"

	"parley/desk"

	"github.com/alecthomas/kong"
)

// Exit codes (contract §1).
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitSome   = 3 // of an import: some rows were rejected
)

type cli struct {
	Shared shared `embed:""`

	Serve     serveCmd     `cmd:"" help:"Serve the API."`
	Demo      demoCmd      `cmd:"" help:"Make a workspace full of invented people, and serve it."`
	Workspace workspaceCmd `cmd:"" help:"Workspaces: each has its own contacts, members and keys."`
	Member    memberCmd    `cmd:"" help:"Members: the teammates of a workspace."`
	LoginLink loginLinkCmd `cmd:"" help:"Make a link with which a member signs in to the console, once."`
	Key       keyCmd       `cmd:"" help:"API keys: programs need one to call the API."`
	Channel   channelCmd   `cmd:"" help:"Channels: the connections to messaging providers."`
	Policy    policyCmd    `cmd:"" help:"The reply policy: who gets conversations, hours, and automatic replies."`
	Webhook   webhookCmd   `cmd:"" help:"Webhooks: endpoints of yours, to which events are posted."`
	Template  templateCmd  `cmd:"" help:"Templates: the messages that the provider has reviewed."`
	Sandbox   sandboxCmd   `cmd:"" help:"Simulate what happens at a sandbox channel's provider."`
	Attempt   attemptCmd   `cmd:"" help:"Attempts: the outcome of each send."`
	Media     mediaCmd     `cmd:"" help:"Media: the files that were sent and received."`
	Events    eventsCmd    `cmd:"" help:"Events: what has changed in a workspace."`
	MCP       mcpCmd       `cmd:"" name:"mcp" help:"Let an assistant use parley, over standard input and output."`
	Broadcast broadcastCmd `cmd:"" help:"Broadcasts: one template to many people."`
	Import    importCmd    `cmd:"" help:"Import contacts or opt-outs from a file."`
	Export    exportCmd    `cmd:"" help:"Write contacts, opt-outs or conversations to a file."`
	Erase     eraseCmd     `cmd:"" help:"Delete contacts again that a restore has brought back."`
	Migrate   migrateCmd   `cmd:"" help:"Copy an installation from SQLite to PostgreSQL."`
	Citus     citusCmd     `cmd:"" help:"Distribute an installation over several PostgreSQL servers."`
	Doctor    doctorCmd    `cmd:"" help:"Look for what is wrong with an installation, and change nothing."`
	Backup    backupCmd    `cmd:"" help:"Write a backup of an installation on SQLite into one file."`
	Restore   restoreCmd   `cmd:"" help:"Restore a backup into an empty directory."`
	Version   versionCmd   `cmd:"" help:"Print the version."`
	Help      helpCmd      `cmd:"" help:"Explain a command, with examples."`
}

func main() {
	// parley has its own logger. The client of net/http writes to Go's standard logger. This may
	// include bytes that a receiver of webhooks sent unasked, which may be personal data.
	log.SetOutput(io.Discard)
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var c cli
	parser := kong.Must(&c,
		kong.Name("parley"),
		kong.Description("Customer conversations behind one API.\n\nStart with: parley demo"),
		kong.Writers(stdout, stderr),
		kong.Vars{
			"permissions": desk.JoinPermissions(desk.Permissions), "bindings": joinBindings(), "keepEvents": fmt.Sprintf("%dh", int(desk.KeepEvents.Hours())),
			"maxMedia": strconv.Itoa(desk.DefaultMaxMedia), "mediaPerWorkspace": strconv.Itoa(desk.DefaultMediaPerWorkspace), "keepFree": strconv.Itoa(desk.DefaultKeepFree),
		},
		kong.Help(printHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)
	chosen, err := parser.Parse(args)
	if err == nil {
		chosen.BindTo(ctx, (*context.Context)(nil))
		err = chosen.Run(&session{flags: c.Shared, typed: typedIn(chosen), stdin: stdin, stdout: stdout, stderr: stderr})
	}
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errSomeRejected):
		return exitSome
	}
	code, help := exitFailed, ""
	var parse *kong.ParseError
	if errors.As(err, &parse) {
		code, help = exitUsage, "; see parley help"
		if node := parse.Context.Selected(); node != nil {
			help += " " + node.Path()
		}
	} else if errors.As(err, new(usageError)) {
		code, help = exitUsage, "; see parley help"
	}
	_, _ = fmt.Fprintf(stderr, "parley: %s%s\n", sentence(err), help)
	return code
}

// typedIn returns which shared flags are in the arguments. A flag that is set by the
// environment does not count.
func typedIn(chosen *kong.Context) (t typed) {
	for _, part := range chosen.Path {
		if part.Flag != nil {
			t.data = t.data || part.Flag.Name == "data"
			t.database = t.database || part.Flag.Name == "database"
		}
	}
	return t
}
