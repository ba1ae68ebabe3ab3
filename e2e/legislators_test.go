package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lines reads a file of testdata with a JSON object on each line.
func lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// TestLegislators does the main job with real input: it writes the members of the United
// States Congress as a client would write its customers, and then writes them again.
func TestLegislators(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	_, key := newWorkspace(t, dir, "--country", "US")
	c := serve(t, dir).client(t, key, 1)
	for _, attribute := range lines(t, "attributes.jsonl") {
		c.must(t, 201, "POST", "/attributes", attribute)
	}
	people := lines(t, "legislators.jsonl")
	batch := upserts(people)

	n := len(people)
	if got, want := summaryOf(t, c.must(t, 200, "POST", "/contacts/batch", batch)), (summary{Total: n, Created: n}); n != 537 || got != want {
		t.Fatalf("the first time: %+v, want %+v of 537", got, want)
	}
	first := c.contacts(t)
	if got, want := summaryOf(t, c.must(t, 200, "POST", "/contacts/batch", batch)), (summary{Total: n, Updated: n}); got != want {
		t.Fatalf("the second time: %+v, want %+v", got, want)
	}
	second := c.contacts(t)
	if len(first) != n || len(second) != n {
		t.Fatalf("%d contacts, then %d; want %d", len(first), len(second), n)
	}
	byExternalID := map[string]contact{}
	for i, was := range first {
		if second[i] != was { // this also compares the order of the contacts
			t.Errorf("the second time changed a contact:\n%+v\n%+v", was, second[i])
		}
		byExternalID[was.ExternalID] = was
	}

	cantwell := byExternalID["C000127"]
	if got := contactOf(t, c.must(t, 200, "POST", "/contacts", `{"phone":"+1 (202) 224-3441"}`)); got != cantwell {
		t.Errorf("by phone in another spelling: %+v, want %+v", got, cantwell)
	}

	const twoPeople = `{"external_id":"C000127","phone":"(202) 224-3244"}`
	conflict := decode[struct {
		Error struct {
			Type    string
			Details []struct{ Kind, Value string }
		}
	}](t, c.must(t, 409, "POST", "/contacts", twoPeople)).Error
	if d := conflict.Details; conflict.Type != "identity_conflict" || len(d) != 2 ||
		d[0].Kind != "external_id" || d[0].Value != "C000127" || d[1].Kind != "phone" || d[1].Value != "12022243244" {
		t.Errorf("two people in one write: %+v", conflict)
	}
	for i, now := range c.contacts(t) {
		if now != first[i] {
			t.Errorf("what changes nothing changed a contact:\n%+v\n%+v", first[i], now)
		}
	}
}
