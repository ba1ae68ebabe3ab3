package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	out, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"--listen", "127.0.0.1:0", "--quiet", "--token", "T1", "../../testdata/templates_page1.json"}, w, io.Discard)
		w.CloseWithError(io.EOF)
		ended <- err
	}()
	lines := bufio.NewScanner(out)
	lines.Scan()
	_, at, _ := strings.Cut(lines.Text(), "listens on ")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/v26.0/100200300400500/message_templates", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer T1")
	greeting := make(chan string)
	go func() {
		var all []string
		for lines.Scan() {
			all = append(all, lines.Text())
		}
		greeting <- strings.Join(all, "\n")
	}()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || strings.Count(string(body), `"id"`) != 5 {
		t.Errorf("%v %s", err, body)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	text := <-greeting
	for _, part := range []string{
		"parley channel add whatsapp --workspace", "--phone-number-id 200300400500600 --waba-id 100200300400500", "--graph-url " + at + "\n", "WHATSAPP_TOKEN='T1'",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := run(t.Context(), []string{"--help"}, &out, io.Discard)
	if !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "/_sim/inbound") || !strings.Contains(out.String(), "Examples:") {
		t.Errorf("%v\n%s", err, out.String())
	}
	for _, args := range [][]string{{"--colour"}, {"nothing.json"}, {"--listen", "nowhere:x"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v", args)
		}
	}
}
