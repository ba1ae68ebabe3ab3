package desk_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/desk"
)

// roomy returns the settings of a workspace with as many text attributes as there can be.
func roomy() *desk.Settings {
	var list []desk.Attribute
	for n := range desk.MaxAttributes {
		list = append(list, desk.Attribute{Key: fmt.Sprintf("k%03d", n), Type: desk.TextAttribute})
	}
	return desk.NewSettings(desk.Workspace{ID: desk.ID{1}}, 1, list, nil, nil, nil)
}

// TestMaxAttributeBytes: the limit of a contact's attributes is 256 KiB of JSON, to the
// byte. Attributes that were larger before may change as long as they do not grow.
func TestMaxAttributeBytes(t *testing.T) {
	t.Parallel()
	key := func(n int) string { return fmt.Sprintf("k%03d", n) }
	full := make([]part, 0, 66)
	for n := range 65 {
		full = append(full, attr(key(n), str(strings.Repeat("x", 4000))))
	}
	// 65 members of `"k000":"…"` with a comma or brace each, an opening brace, and one more
	// member: `"k065":"…"}`.
	rest := desk.MaxAttributeBytes - 1 - 65*(4000+10) - 10
	with := func(n int) []part { return append(slices.Clone(full), attr(key(65), str(strings.Repeat("x", n)))) }
	refused := func(keys ...string) (list []desk.AttributeProblem) {
		for _, k := range keys {
			list = append(list, desk.AttributeProblem{Key: k, Message: "the contact's attributes would hold more than 256 KiB"})
		}
		return list
	}
	var all []string
	for n := range 66 {
		all = append(all, key(n))
	}
	fresh := func(stored ...desk.ContactWrite) *bench {
		b := &bench{Book: desk.NewBook(roomy(), 1), now: 100}
		for _, w := range stored {
			b.must(t, &desk.Op{Kind: desk.OpUpsert, Write: w})
		}
		return b
	}
	who := external("crm-1")
	c := fresh().must(t, upsert(append(with(rest), who)...))
	if n := len(c.Attributes.JSON()); n != desk.MaxAttributeBytes {
		t.Fatalf("%d bytes", n)
	}
	fresh().refuses(t, upsert(append(with(rest+1), who)...), desk.InvalidAttributes, refused(all...))
	fresh().refuses(t, upsert(append(with(rest-1), attr(key(66), desk.Value{}), attr("k067", str("x")), who)...), desk.InvalidAttributes, refused(append(slices.Clone(all), key(66), key(67))...))

	stored := write(append(with(rest), who)...)
	for name, op := range map[string]func(...part) *desk.Op{
		"upsert": func(p ...part) *desk.Op { return upsert(append(p, who)...) },
		"patch":  func(p ...part) *desk.Op { return patch(id(1), p...) },
	} {
		b := fresh(stored)
		b.refuses(t, op(attr(key(100), str("")), attr(key(66), str("x"))), desk.InvalidAttributes, refused(key(100), key(66)))
		b.must(t, op(attr(key(66), str("x")), attr(key(0), str("y")))) // smaller in all
		b.must(t, op(attr(key(67), str(strings.Repeat("x", 3000)))))
		if t.Failed() {
			t.Fatal(name)
		}
	}

	// As an older release stored it.
	old := desk.Contact{ID: id(1), ExternalID: "crm-1", Attributes: desk.StoredAttributes(`{"k000":"` + strings.Repeat("x", 2*desk.MaxAttributeBytes) + `","k001":"a"}`)}
	for value, ok := range map[string]bool{"b": true, "bb": false} {
		b := &bench{Book: desk.NewBook(roomy(), 1), now: 100}
		b.Load(&old)
		if _, err := b.apply(upsert(who, attr("k001", str(value)))); (err == nil) != ok {
			t.Errorf("a value of %d characters in place of one: %v", len(value), err)
		}
		b.must(t, upsert(who, attr("k001", str(""))))
	}
}

// TestMaxDetails: an error has at most 100 details in 16 KiB, but always the first one, and
// says how many there are.
func TestMaxDetails(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\u0001", 20<<10)
	for _, c := range []struct {
		name  string
		keys  int
		key   func(int) string
		named int
	}{
		{"few", 100, func(n int) string { return fmt.Sprint("u", n) }, 100},
		{"many", 5000, func(n int) string { return fmt.Sprint("u", n) }, 100},
		{"long", 50, func(n int) string { return fmt.Sprint("u", n, strings.Repeat("x", 900)) }, 17},
		{"escaped", 50, func(n int) string { return fmt.Sprint("u", n, strings.Repeat("\u0001", 150)) }, 17},
		{"one that is longer than all may be", 2, func(n int) string { return fmt.Sprint("u", n, long) }, 1},
		{"a long one in between", 90, func(n int) string { return fmt.Sprint("u", n, long[:n/80*len(long)]) }, 80},
	} {
		w := write(external("crm-1"))
		w.Attributes.Set = true
		for n := range c.keys {
			w.Attributes.Value = append(w.Attributes.Value, desk.AttributeWrite{Key: c.key(n)})
		}
		b := bookOf()
		_, err := b.apply(&desk.Op{Kind: desk.OpUpsert, Write: w})
		var e *desk.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		list := e.Details.([]desk.AttributeProblem)
		if len(list) != c.named || list[len(list)-1].Key != c.key(c.named-1) {
			t.Errorf("%s: %d named", c.name, len(list))
		}
		if text := e.Message + e.Advice.Arg; !strings.Contains(text, fmt.Sprint(c.keys)) || strings.Contains(text, "the first") != (c.named < c.keys) {
			t.Errorf("%s: %s", c.name, e.Message)
		}
		if n, _ := json.Marshal(list); c.named > 1 && len(n) > desk.MaxDetailBytes {
			t.Errorf("%s: %d bytes", c.name, len(n))
		}
	}

	b := bookOf(write(external("crm-1")), write(external("crm-2")))
	var mine []desk.Identity
	for n := range desk.MaxIdentities {
		mine = append(mine, handle("telegram", fmt.Sprint(n, strings.Repeat("\U0001F600", 250))))
	}
	b.must(t, upsert(append([]part{external("crm-1")}, further(flat(mine)...))...))
	_, err := b.apply(upsert(external("crm-2"), further(flat(mine)...)))
	var e *desk.Error
	if !errors.As(err, &e) || e.Type != desk.IdentityConflict || len(e.Details.([]desk.Identity)) != 16 || !strings.Contains(e.Advice.Arg, "the first 16 of 51") {
		t.Errorf("%v: %v", err, e)
	}
}

// TestMaxDetails_of_lists: the channels to choose from, and the languages of a template, are as few.
func TestMaxDetails_of_lists(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n    int
		text string
		want int
	}{{100, "", 100}, {101, "", 100}, {40, strings.Repeat("\U0001F600", 250), 15}} {
		var channels []desk.Channel
		library := &desk.Library{}
		for n := range c.n {
			name := fmt.Sprintf("%03d%s", n, c.text)
			channels = append(channels, desk.Channel{ID: desk.ID{15: byte(n)}, Kind: desk.SandboxChannel, ExternalID: name, Enabled: true})
			library.Templates = append(library.Templates, &desk.Template{Name: "hello", Language: name})
		}
		_, err := desk.NewSettings(desk.Workspace{}, 1, nil, nil, nil, channels).PickChannel(nil)
		e := desk.AsError(err)
		if n := len(e.Details.([]*desk.Channel)); n != c.want || !strings.Contains(e.Message, fmt.Sprint(c.n)) {
			t.Errorf("%d channels: %d are named, want %d: %s", c.n, n, c.want, e.Message)
		}
		e = desk.AsError(library.NoTemplate("hello", "tr"))
		if n := len(e.Details.(desk.Languages).Languages); n < c.want || n > desk.MaxDetails || n < c.n != strings.Contains(e.Message, fmt.Sprint(c.n)) {
			t.Errorf("%d languages: %d are named, want %d: %s", c.n, n, c.want, e.Message)
		}
	}
}

func flat(list []desk.Identity) (pairs []string) {
	for _, i := range list {
		pairs = append(pairs, i.Kind, i.Value)
	}
	return pairs
}
