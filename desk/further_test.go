package desk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/desk"

	"pgregory.net/rapid"
)

// handleWrite is a write of n further handles, numbered from first.
func handleWrite(first, n int) *desk.Op {
	op := &desk.Op{Kind: desk.OpUpsert}
	op.Write.Sent = []desk.Identity{{Kind: "anchor", Value: "a"}}
	for i := range n {
		op.Write.Sent = append(op.Write.Sent, desk.Identity{Kind: "handle", Value: fmt.Sprintf("%06d", first+i)})
	}
	op.Write.Identities = desk.Field[[]desk.Identity]{Set: true, Value: op.Write.Sent}
	return op
}

// TestAContactHoldsSoManyHandles: a contact's handles are limited, because each of its
// changes reads all of them. A contact at the limit can still be written.
func TestAContactHoldsSoManyHandles(t *testing.T) {
	t.Parallel()
	book := desk.NewBook(desk.NewSettings(desk.Workspace{}, 1, nil, nil, nil, nil), 1)
	apply := func(op *desk.Op) (desk.Outcome, error) {
		return book.Apply(op, desk.Actor{}, 1, func() desk.ID { return desk.ID{1} })
	}
	for n := 0; n < desk.MaxFurther-1; n += 49 {
		if _, err := apply(handleWrite(n, min(49, desk.MaxFurther-1-n))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := apply(handleWrite(desk.MaxFurther, 1)); !desk.IsType(err, desk.InvalidRequest) {
		t.Errorf("one handle too many: %v", err)
	}
	full := handleWrite(0, 1)
	full.Write.Name = desk.Field[string]{Set: true, Value: "Ada"}
	o, err := apply(full)
	if err != nil || o.Contact.Name != "Ada" || len(o.Contact.Further) != desk.MaxFurther {
		t.Errorf("a contact at the limit: %v, %d handles", err, len(o.Contact.Further))
	}
}

// TestStoredFurther: the result of FurtherText is read back the same, with escapes and
// without. Any other text is an error, or is read as encoding/json reads it.
func TestStoredFurther(t *testing.T) {
	t.Parallel()
	words := []string{"crm", "a,b", "x", "", "[", "]", ",", "😀", "İ", `"`, `\`, "\n", "\x01", `",`, `","`, "u0022"}
	rapid.Check(t, func(t *rapid.T) {
		var want []desk.Identity
		for range rapid.IntRange(0, 5).Draw(t, "n") {
			word := rapid.Custom(func(t *rapid.T) string {
				return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 3).Draw(t, "words"), "")
			})
			want = append(want, desk.Identity{Kind: word.Draw(t, "kind"), Value: word.Draw(t, "value")})
		}
		text := desk.FurtherText(want)
		if got, err := desk.StoredFurther(text); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%s is read as %q, %v", text, got, err)
		}
	})
	for text, want := range map[string]int{`["a", "b"]`: 1, `[ "a","b","c","d" ]`: 2, `["a","b"`: -1, `["a","b"]]`: -1, `["a","b";"c","d"]`: -1, `["a"]`: 0, `[]`: 0, `x`: -1, `[`: -1, `["`: -1, `["a",`: -1, `["a","b",]`: -1} {
		if got, err := desk.StoredFurther(text); (err != nil) != (want < 0) || err == nil && len(got) != want {
			t.Errorf("%s is read as %q, %v", text, got, err)
		}
	}
}
