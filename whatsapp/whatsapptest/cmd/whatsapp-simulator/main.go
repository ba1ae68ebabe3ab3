// Command whatsapp-simulator simulates the WhatsApp Business Cloud API on a port, so that
// a channel can be tried without an account. Run it with --help for examples.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"parley/whatsapp/whatsapptest" //nolint:depguard // this program is the simulator, by hand
)

const usage = `Usage: whatsapp-simulator [flags] [TEMPLATES.json ...]

Plays the WhatsApp Business Cloud API: templates, messages, webhooks.

  --listen ADDRESS      where (default 127.0.0.1:9555)
  --webhook-url URL     where webhooks go; /_sim/webhook can say it later
  --token TOKEN         the access token (default EAATESTTOKEN)
  --app-secret SECRET   signs the webhooks (default app-secret-for-tests)
  --verify-token TOKEN  of the webhook's handshake (default verify-me)
  --templates FILE      a page of templates as Graph gives it, or an array of them; may
                        be repeated (default: 18 templates of all kinds)
  --quiet               no line for each call and webhook

Examples:

  whatsapp-simulator
  whatsapp-simulator --listen 127.0.0.1:9000 --templates page1.json --templates page2.json
  curl -X POST localhost:9555/_sim/inbound -d '{"from":"905321112233","name":"Ayşe","text":"Merhaba"}'
  curl -X POST localhost:9555/_sim/rules -d '{"match":{"next":1},"outcome":"accept_lose_response"}'
  curl -X POST localhost:9555/_sim/rules -d '{"match":{"template":"order_update"},"outcome":{"kind":"refuse","code":132015}}'
  curl -X POST localhost:9555/_sim/templates/order_update/en_US -d '{"status":"PAUSED"}'
  curl localhost:9555/_sim/sends

The control API, with the body that each call takes:

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "whatsapp-simulator:", err)
		os.Exit(1)
	}
}

// run runs the simulator until ctx ends.
func run(ctx context.Context, args []string, out, errs io.Writer) error {
	c := whatsapptest.Config{Token: "EAATESTTOKEN", AppSecret: "app-secret-for-tests", VerifyToken: "verify-me"}
	listen, err := parse(&c, args, out, errs)
	if err != nil {
		return err
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	sim := whatsapptest.New(c)
	server := &http.Server{Handler: sim, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	if _, err := io.WriteString(out, greeting(sim, c, "http://"+ln.Addr().String())); err != nil {
		return errors.Join(err, server.Close())
	}
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	sim.Close()
	return errors.Join(err, server.Close())
}

func parse(c *whatsapptest.Config, args []string, out, errs io.Writer) (listen string, err error) {
	flags := flag.NewFlagSet("whatsapp-simulator", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&listen, "listen", "127.0.0.1:9555", "")
	flags.StringVar(&c.WebhookURL, "webhook-url", "", "")
	flags.StringVar(&c.Token, "token", c.Token, "")
	flags.StringVar(&c.AppSecret, "app-secret", c.AppSecret, "")
	flags.StringVar(&c.VerifyToken, "verify-token", c.VerifyToken, "")
	quiet := flags.Bool("quiet", false, "")
	load := func(file string) error { return addTemplates(c, file) }
	flags.Func("templates", "", load)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		_, werr := io.WriteString(out, usage+whatsapptest.ControlHelp())
		return "", errors.Join(err, werr)
	} else if err != nil {
		return "", fmt.Errorf("%w; --help explains", err)
	}
	for _, file := range flags.Args() {
		if err := load(file); err != nil {
			return "", err
		}
	}
	if !*quiet {
		c.Log = slog.New(slog.NewTextHandler(errs, nil))
	}
	return listen, nil
}

func addTemplates(c *whatsapptest.Config, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	list, err := whatsapptest.ReadTemplates(f)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	c.Templates = append(c.Templates, list...)
	return nil
}

// greeting describes the simulated account, and how to connect to it.
func greeting(sim *whatsapptest.Simulator, c whatsapptest.Config, at string) string {
	ids := sim.IDs()
	return fmt.Sprintf(`The simulator listens on %[1]s

  business account id (WABA)  %[2]s
  phone-number id             %[3]s
  app id                      %[4]s
  sender                      +%[5]s
  templates                   %[6]d

Paste this where parley runs; WORKSPACE is the id of a workspace:

  export WHATSAPP_TOKEN='%[7]s' WHATSAPP_APP_SECRET='%[8]s' WHATSAPP_VERIFY_TOKEN='%[9]s'
  parley channel add whatsapp --workspace "$WORKSPACE" --phone-number-id %[3]s --waba-id %[2]s --app-secret-env WHATSAPP_APP_SECRET --token-env WHATSAPP_TOKEN --verify-token-env WHATSAPP_VERIFY_TOKEN --graph-url %[1]s

Then say where the webhooks go; CHANNEL is the id that it printed:

  curl -X POST %[1]s/_sim/webhook -d '{"url":"http://127.0.0.1:8480/hooks/whatsapp/'"$CHANNEL"'","verify":true}'
  curl -X POST %[1]s/_sim/inbound -d '{"from":"905321112233","name":"Ayşe","text":"Merhaba"}'

%[1]s/_sim/ lists what else it does. Ctrl-C ends it.
`, at, ids.BusinessID, ids.PhoneNumberID, ids.AppID, ids.DisplayNumber, len(sim.Templates()), c.Token, c.AppSecret, c.VerifyToken)
}
