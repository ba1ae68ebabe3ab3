package e2e_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// The first request after a change of the workspace's settings is answered like
// any other, also when its body is too large and its length was not announced.
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
