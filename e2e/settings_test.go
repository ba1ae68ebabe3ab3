package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
)

// TestLargeBodyAfterSettingsChanged: the settings of a workspace change. The first
// request after that gets the same response as any other request. This also holds for a
// body that is too large and whose length was not announced.
func TestLargeBodyAfterSettingsChanged(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	workspace, key := newWorkspace(t, dir)
	s := serve(t, dir)
	s.want(t, 201, key, "POST", "/contacts", `{"external_id":"1"}`)
	must(t, dir, "member", "add", "--workspace", workspace, "--name", "Ada", "--email", "ada@example.com")

	body := io.MultiReader(strings.NewReader(strings.Repeat(" ", 1<<20+1)), strings.NewReader(`{"external_id":"2"}`))
	request, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/v1/contacts", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		answer, _ := io.ReadAll(response.Body)
		t.Errorf("a body of more than 1 MiB: status %d: %s", response.StatusCode, answer)
	}
}

// TestDeletedUnderWay: a workspace is deleted while its calls are running. Each call,
// even a send, gets the same response as a call with a deleted key. Neither the response
// nor the log shows that the workspace existed.
func TestDeletedUnderWay(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, d deployment) {
		workspace, key := d.workspace(t)
		channel := d.sandbox(t, workspace)
		wrote := d.must(t, "sandbox", "inbound", "--channel", channel, "--from", "+1 202 555 0143", "--text", "Hello")
		conversation, contact := wrote["conversation_id"].(string), wrote["contact_id"].(string)
		s := serve(t, d.dir, "--database", d.database)
		const (
			send = `{"to":{"phone":"%"},"opt_in_confirmed":true,"template":{"name":"hello","language":"en_US","variables":[]}}`
			text = `{"text":"Two left."}`
		)
		calls := []struct{ method, path, body string }{
			{"POST", "/conversations/outbound", strings.Replace(send, "%", "+1 202 555 0144", 1)},
			{"POST", "/conversations/outbound", strings.Replace(send, `"phone":"%"`, `"contact_id":"`+contact+`"`, 1)},
			{"POST", "/conversations/" + conversation + "/messages", text},
			{"POST", "/conversations/" + conversation + "/notes", text},
			{"PUT", "/conversations/" + conversation + "/status", `{"status":"closed"}`},
			{"POST", "/contacts", `{"external_id":"1"}`},
			{"PATCH", "/contacts/" + contact, `{"name":"Ada"}`},
			{"POST", "/attributes", `{"key":"plan","type":"text"}`},
			{"POST", "/media?name=a.txt", "text"},
		}
		type given struct {
			call, body string
			status     int
		}
		heard, deleted, answers := make(chan bool, len(calls)), make(chan struct{}), make(chan given, len(calls))
		begin := func(method, path, body string) {
			trace := &httptrace.ClientTrace{Got100Continue: func() { heard <- true }} // the server has accepted the key
			request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), method, s.url+"/v1"+path, &after{deleted, strings.NewReader(body)})
			if err != nil {
				t.Error(err)
				return
			}
			for name, value := range map[string]string{"Authorization": "Bearer " + key, "Idempotency-Key": body, "Content-Type": "text/plain", "Expect": "100-continue"} {
				request.Header.Set(name, value)
			}
			response, err := (&http.Transport{ExpectContinueTimeout: patience}).RoundTrip(request)
			if err != nil {
				t.Errorf("%s %s: %v", method, path, err)
				answers <- given{}
				return
			}
			defer response.Body.Close()
			answer, _ := io.ReadAll(response.Body)
			answers <- given{method + " " + path, string(answer), response.StatusCode}
		}
		for _, c := range calls {
			go begin(c.method, c.path, c.body)
		}
		waitFor(t, "all keys are accepted", func() bool { return len(heard) == len(calls) })
		if r := parley(t, nil, "workspace", "delete", workspace, "--name", "Test", "--data", d.dir, "--database", d.database); r.code != 0 {
			t.Fatalf("exit code %d: %s", r.code, r.stderr)
		}
		close(deleted)
		_, gone := s.call(t, key, "GET", "/me", "")
		for range calls {
			if a := <-answers; a.status != http.StatusUnauthorized || a.body != gone {
				t.Errorf("%s: %d, want 401: %s", a.call, a.status, a.body)
			}
		}
		if log := s.stderr.String(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "level=WARN") {
			t.Errorf("the log: %s", log)
		}
	})
}

// An after is a body that begins when a channel is closed.
type after struct {
	begin <-chan struct{}
	body  io.Reader
}

func (a *after) Read(p []byte) (int, error) {
	<-a.begin
	return a.body.Read(p)
}
