package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"parley/api"
	"parley/desk"
	"parley/mcp"
	"parley/web"
)

// keyEnv is the variable with the assistant's API key. There is no flag for it, because
// other users could read it in the list of processes.
const keyEnv = "PARLEY_API_KEY"

type mcpCmd struct{}

// Help explains the key, and shows examples.
func (*mcpCmd) Help() string {
	return paragraphs("Speaks the Model Context Protocol, for a program that runs assistants and starts this command. The assistant uses the API key in "+keyEnv+
		", and sees the tools that the permissions of the key allow. Give it a key of its own, with few permissions. docs/mcp.md says how to add parley to an assistant.", examples(
		`parley key create --workspace 01980000-0000-7000-8000-000000000001 --name assistant --permissions contacts:read,conversations:read,templates:read`,
		`PARLEY_API_KEY=prl_live_… parley mcp`,
		`PARLEY_API_KEY=prl_live_… parley mcp --data /var/lib/parley`,
	))
}

// Run serves one assistant until the assistant closes the connection, or a signal
// arrives.
func (*mcpCmd) Run(ctx context.Context, s *session) error {
	key := os.Getenv(keyEnv)
	if key == "" {
		return usageError(fmt.Sprintf("set %s to an API key of the workspace; %s makes one", keyEnv, s.command("key create --workspace ID --name assistant --permissions contacts:read,conversations:read")))
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	return s.on(ctx, makesNot, func(in installation, log *slog.Logger) error {
		if _, err := in.app.Access.Authenticate(ctx, key); desk.IsType(err, desk.Unauthorized) {
			return fmt.Errorf("%s holds no valid API key of %s: it may be revoked, expired, or of another installation; %s shows the keys", keyEnv, in.storage, s.command("key list --workspace ID"))
		} else if err != nil {
			return err
		}
		server := web.New(web.Config{Log: log, NewID: newID, Ready: in.app.Ready, Drain: in.app.Drain, Version: versionOf()})
		api.New(api.Config{App: in.app, Web: server})
		assistant, err := mcp.New(mcp.Config{API: server.Handler(), Description: api.Description(), Version: versionOf(), Key: key})
		if err != nil {
			return err
		}
		err = assistant.Run(ctx, s.stdin, s.stdout)
		in.app.Drain() // ends calls that wait for the send of another call
		in.app.Close()
		if err := in.app.Access.StoreKeyUses(context.WithoutCancel(ctx)); err != nil {
			log.WarnContext(ctx, "when the key was last used is not stored", "err", err)
		}
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // stopped by a signal
		}
		return err
	})
}
