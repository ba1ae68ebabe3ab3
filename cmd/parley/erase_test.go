package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"parley/app"
	"parley/app/merges"
	"parley/config"
	"parley/desk"
)

// TestErase_kept: all contacts are named that can't be deleted, with the contacts of which they are
// part, and the others are deleted and counted.
func TestErase_kept(t *testing.T) {
	t.Parallel()
	i := newImportTest(t)
	i.words(0, i.file("people.csv", "external_id,name\na,Ada\nb,Bob\nc,Cem\nd,Dot\n"))
	ids := map[string]string{}
	exported := i.file("exported.jsonl", "")
	i.parley(t, 0, "export", "contacts", "--workspace", i.ws, "--format", "jsonl", "--out", exported)
	text, err := os.ReadFile(exported)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var row struct {
			ExternalID string `json:"external_id"`
			ID         string `json:"parley_id"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		ids[row.ExternalID] = row.ID
	}
	s := &session{flags: shared{Data: i.dir}, typed: typed{data: true}, stdout: new(bytes.Buffer), stderr: new(bytes.Buffer)}
	if err := s.inWorkspace(t.Context(), i.ws, func(a *app.App, p desk.Principal) error {
		for _, from := range []string{"b", "c"} {
			if _, err := a.Merges.Do(t.Context(), p, merges.Request{Into: idOf(ids["a"]), From: idOf(ids[from])}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", config.Storage{Dir: i.dir}.Database())
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `UPDATE merges SET at = at - ?`, desk.UndoMerge.Milliseconds()+1000)
	if err != nil || db.Close() != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for _, id := range []string{ids["b"], ids["c"], ids["d"], (desk.ID{9}).String()} {
		_, _ = fmt.Fprintf(&list, `{"id":%q,"at":"2026-01-31T09:30:00.000Z"}`+"\n", id)
	}
	file := i.file("erasures.jsonl", list.String())
	answer, problem, _ := strings.Cut(i.parley(t, 1, "erase", "--workspace", i.ws, file), "\n")
	var got erased
	if err := json.Unmarshal([]byte(answer), &got); err != nil || got.Erased != 1 || got.Absent != 1 || !slices.Equal(got.Kept, []string{ids["b"], ids["c"]}) {
		t.Errorf("%+v, %v", got, err)
	}
	wantWords(t, problem, "not deleted: 2 contacts")
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"erase", "--workspace", i.ws, "--data", i.dir, file}, nil, &stdout, &stderr); code != 1 {
		t.Errorf("exit %d", code)
	}
	wantWords(t, stdout.String(), "Deleted 0 contacts. 2 others are not there.", "the contact "+ids["b"]+" is part of "+ids["a"], "the contact "+ids["c"]+" is part of "+ids["a"])
}
