// Command parley is the whole product in one binary: the server, and what an
// operator does beside it. This is the only place that reads flags, environment
// and signals.
//
//	main.go        the list of commands, exit codes, the line that says what went wrong
//	session.go     what all commands share: opening the installation, answering
//	serve.go       parley serve, and running a server
//	demo.go        parley demo: a filled workspace to look at
//	demodata.go    the invented people in it
//	demotalk.go    their conversations, on a sandbox channel
//	workspace.go   parley workspace create, list, edit
//	member.go      parley member add, list, edit, remove
//	key.go         parley key create, list, edit, revoke
//	channel.go     parley channel add, list, edit, check, sync
//	template.go    parley template put, list
//	sandbox.go     parley sandbox inbound
//	attempt.go     parley attempt list, release
//	migrate.go     parley migrate: from SQLite to PostgreSQL
//	version.go     parley version
//	help.go        parley help
//
// A command answers on standard output, logs on standard error, and exits 0 when
// it is done, 1 when it failed, 2 when it was called wrongly.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"parley/desk"

	"github.com/alecthomas/kong"
)

// Exit codes (contract §1).
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

type cli struct {
	Shared shared `embed:""`

	Serve     serveCmd     `cmd:"" help:"Serve the API."`
	Demo      demoCmd      `cmd:"" help:"Make a workspace full of invented people, and serve it."`
	Workspace workspaceCmd `cmd:"" help:"Workspaces: each is a tenant of its own."`
	Member    memberCmd    `cmd:"" help:"Members: the teammates of a workspace."`
	Key       keyCmd       `cmd:"" help:"API keys: what programs call the API with."`
	Channel   channelCmd   `cmd:"" help:"Channels: what messages travel through."`
	Template  templateCmd  `cmd:"" help:"Templates: what the provider lets a business say first."`
	Sandbox   sandboxCmd   `cmd:"" help:"Play what happens at a sandbox channel's provider."`
	Attempt   attemptCmd   `cmd:"" help:"Attempts: what became of each send."`
	Migrate   migrateCmd   `cmd:"" help:"Copy an installation from SQLite to PostgreSQL."`
	Version   versionCmd   `cmd:"" help:"Print the version."`
	Help      helpCmd      `cmd:"" help:"Explain a command, with examples."`
}

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var c cli
	parser := kong.Must(&c,
		kong.Name("parley"),
		kong.Description("Customer conversations behind one API.\n\nStart with: parley demo"),
		kong.Writers(stdout, stderr),
		kong.Vars{"permissions": desk.JoinPermissions(desk.Permissions), "bindings": joinBindings()},
		kong.Help(printHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)
	chosen, err := parser.Parse(args)
	if err == nil {
		chosen.BindTo(ctx, (*context.Context)(nil))
		err = chosen.Run(&session{c.Shared, stdin, stdout, stderr})
	}
	if err == nil {
		return exitDone
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

// A usageError is a wrong call that only the command itself could notice.
type usageError string

func (e usageError) Error() string { return string(e) }

// sentence words an error for the operator, on one line. Unlike an API's client,
// the operator is told the cause.
func sentence(err error) string {
	text := err.Error()
	var e *desk.Error
	if errors.As(err, &e) {
		text = e.Message
		if e.Err != nil {
			text += " (" + e.Err.Error() + ")"
		}
	}
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSpace(line))
	}
	// A database that can't be reached is told line by line, for TLS and again without.
	return strings.ReplaceAll(strings.Join(slices.Compact(lines), "; "), ":; ", ": ")
}
