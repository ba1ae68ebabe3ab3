package app_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/app/segments"
	"parley/desk"
	"parley/store"
)

var (
	filters        = flag.Int("filters", 120, "how many random filters TestSegments_model tries. Long run: -filters 20000 -filter-contacts 2000 -timeout 60m")
	filterContacts = flag.Int("filter-contacts", 150, "how many contacts TestSegments_model has; see -filters")
)

const dayLength = 24 * time.Hour

// A modelPerson is a contact as TestSegments_model made it. Its fields have the values that
// are compared: texts in one spelling, moments as milliseconds, numbers as thousandths. A
// field that it lacks is not in its map.
type modelPerson struct {
	id      desk.ID
	wrote   []int64 // by channel
	texts   map[string][]string
	moments map[string]int64
	numbers map[string]int64
}

// A modelFilter decides by what was drawn, not by the rules of desk.
type modelFilter struct {
	text string // JSON
	fits func(p *modelPerson) bool
}

// spellings are texts, each in several spellings that are compared alike.
var spellings = [][]string{{"elan", "Élan", "ELAN"}, {"strasse", "Straße", "STRASSE"}, {"obrien", "O'Brien", "O’BRIEN"}, {"plain", "Plain"}, {"a \"b\" \\c", "A \"B\" \\C"}}

// A model draws people and filters.
type model struct {
	*rand.Rand
	now     int64
	members []string
}

func (m *model) spelled(n int) string { return spellings[n][m.IntN(len(spellings[n]))] }

// some draws up to two thirds of the numbers below n, at least one.
func (m *model) some(n int) []int { return m.Perm(n)[:1+m.IntN(max(1, n*2/3))] }

// near draws a moment around now; often on a border of days.
func (m *model) near() int64 {
	at := m.now + int64(m.IntN(41)-20)*dayLength.Milliseconds()
	switch m.IntN(3) {
	case 0:
		at += int64(m.IntN(3) - 1)
	case 1:
		at += m.Int64N(dayLength.Milliseconds())
	}
	return at
}

func quoted(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func rfc3339(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

func startOfDay(ms int64) int64 { return ms - ms%dayLength.Milliseconds() }

// value draws a value of a field that takes in and not_in: as it is sent, and as it is compared.
func (m *model) value(field string) (sent any, compared string) {
	switch field {
	case "owner":
		n := m.IntN(len(m.members))
		return m.members[n], m.members[n]
	case "country":
		c := []string{"TR", "ES", "GB", "US", "CA"}[m.IntN(5)]
		if m.IntN(2) == 0 {
			return strings.ToLower(c), c
		}
		return c, c
	case "attributes.flag":
		b := m.IntN(2) == 0
		return b, strconv.FormatBool(b)
	case "attributes.page":
		return []string{"https://x.example/A", "HTTPS://X.example/a"}[m.IntN(2)], "https://x.example/a"
	}
	n := m.IntN(len(spellings))
	return m.spelled(n), spellings[n][0]
}

func (m *model) condition() (string, func(p *modelPerson) bool) {
	days := []int{0, 1, 5, 19, 3650}[m.IntN(5)]
	length := int64(days) * dayLength.Milliseconds()
	present := func(p *modelPerson, field string) bool {
		_, moment := p.moments[field]
		_, number := p.numbers[field]
		return moment || number || len(p.texts[field]) > 0
	}
	texts := []string{"owner", "country", "attributes.word", "attributes.page", "attributes.plan", "attributes.tags", "attributes.flag"}
	moments := []string{"created_at", "wrote_at", "attributes.birthday", "attributes.visit"}
	every := slices.Concat([]string{"name", "email", "external_id", "phone", "attributes.score"}, texts, moments)
	switch kind := m.IntN(10); {
	case kind < 2:
		field := every[m.IntN(len(every))]
		if field == "country" || field == "created_at" {
			field = "name"
		}
		if m.IntN(2) == 0 {
			return fmt.Sprintf(`{"field":%q,"is":"present"}`, field), func(p *modelPerson) bool { return present(p, field) }
		}
		return fmt.Sprintf(`{"field":%q,"is":"absent"}`, field), func(p *modelPerson) bool { return !present(p, field) }
	case kind < 6:
		field := texts[m.IntN(len(texts))]
		var sent []any
		var compared []string
		for range 1 + m.IntN(3) {
			v, c := m.value(field)
			sent, compared = append(sent, v), append(compared, c)
		}
		in := func(p *modelPerson) bool {
			for _, v := range p.texts[field] {
				if slices.Contains(compared, v) {
					return true
				}
			}
			return false
		}
		if m.IntN(2) == 0 {
			return fmt.Sprintf(`{"field":%q,"is":"in","values":%s}`, field, quoted(sent)), in
		}
		return fmt.Sprintf(`{"field":%q,"is":"not_in","values":%s}`, field, quoted(sent)), func(p *modelPerson) bool { return !in(p) }
	case kind < 7:
		bound := m.Int64N(7000) - 3500
		is := []string{"at_least", "below"}[m.IntN(2)]
		return fmt.Sprintf(`{"field":"attributes.score","is":%q,"value":%s}`, is, thousandths(bound)), func(p *modelPerson) bool {
			n, ok := p.numbers["attributes.score"]
			return ok && (n >= bound) == (is == "at_least")
		}
	}
	field := moments[m.IntN(len(moments))]
	is := []string{"at_least", "below", "within", "older", "ahead"}[m.IntN(5)]
	if is == "at_least" || is == "below" {
		bound := m.near()
		value := rfc3339(bound)
		if field == "attributes.birthday" {
			bound = startOfDay(bound)
			value = value[:len("2006-01-02")]
		}
		return fmt.Sprintf(`{"field":%q,"is":%q,"value":%q}`, field, is, value), func(p *modelPerson) bool {
			at, ok := p.moments[field]
			return ok && (at >= bound) == (is == "at_least")
		}
	}
	return fmt.Sprintf(`{"field":%q,"is":%q,"days":%d}`, field, is, days), func(p *modelPerson) bool {
		at, ok := p.moments[field]
		switch ago := m.now - at; {
		case !ok:
			return false
		case is == "within":
			return ago >= 0 && ago <= length
		case is == "older":
			return ago > length
		default:
			return -ago >= 0 && -ago <= length
		}
	}
}

// thousandths writes a number of thousandths as JSON, sometimes with an exponent.
func thousandths(n int64) string {
	if n%2 == 0 {
		return fmt.Sprintf("%de-3", n)
	}
	return strconv.FormatFloat(float64(n)/1000, 'f', 3, 64)
}

func (m *model) filter() modelFilter {
	var clauses []string
	var all []func(p *modelPerson) bool
	for range 1 + m.IntN(3) {
		text, fits := m.condition()
		if m.IntN(3) > 0 {
			clauses, all = append(clauses, text), append(all, fits)
			continue
		}
		any, either := []string{text}, []func(p *modelPerson) bool{fits}
		for range m.IntN(3) {
			text, fits := m.condition()
			any, either = append(any, text), append(either, fits)
		}
		clauses = append(clauses, `{"any":[`+strings.Join(any, ",")+`]}`)
		all = append(all, func(p *modelPerson) bool {
			return slices.ContainsFunc(either, func(f func(p *modelPerson) bool) bool { return f(p) })
		})
	}
	return modelFilter{`{"all":[` + strings.Join(clauses, ",") + `]}`, func(p *modelPerson) bool {
		return !slices.ContainsFunc(all, func(f func(p *modelPerson) bool) bool { return !f(p) })
	}}
}

// person draws a person, with the write that makes it.
func (m *model) person(n int) (*modelPerson, *desk.Op) {
	p := &modelPerson{texts: map[string][]string{}, moments: map[string]int64{}, numbers: map[string]int64{}}
	op := &desk.Op{Kind: desk.OpUpsert}
	often := func() bool { return m.IntN(3) > 0 }
	has := func(field, compared string, edit func(*desk.ContactWrite)) {
		p.texts[field] = []string{compared}
		edit(&op.Write)
	}
	attribute := func(key string, v desk.Value) {
		op.Write.Attributes.Set = true
		op.Write.Attributes.Value = append(op.Write.Attributes.Value, desk.AttributeWrite{Key: key, Value: v})
	}
	has("external_id", "own", identified("external_id", fmt.Sprint("own-", n))) // without a handle, no contact is made
	if often() {
		has("name", "Ann", named("Ann"))
	}
	if often() {
		has("email", "a", identified("email", fmt.Sprintf("a%d@example.com", n)))
	}
	if k := m.IntN(8); k < 6 {
		number := fmt.Sprintf([]string{"90532%07d", "34612%06d", "447400%06d", "1212555%04d", "1416555%04d", "88812%07d"}[k], n)
		has("phone", number, identified([]string{"phone", "whatsapp"}[m.IntN(2)], "+"+number))
		if k < 5 { // the last is of no country
			p.texts["country"] = []string{[]string{"TR", "ES", "GB", "US", "CA"}[k]}
		}
	}
	if often() {
		owner := m.members[m.IntN(len(m.members))]
		has("owner", owner, func(w *desk.ContactWrite) { w.Owner = refer(owner) })
	}
	for _, key := range []string{"word", "page", "flag", "plan"} {
		if !often() {
			continue
		}
		sent, compared := m.value("attributes." + key)
		p.texts["attributes."+key] = []string{compared}
		switch v := sent.(type) {
		case bool:
			attribute(key, desk.Value{Kind: desk.BoolValue, Bool: v})
		case string:
			if key == "plan" { // one of the options
				v = compared
			}
			attribute(key, desk.Value{Kind: desk.StringValue, Text: v})
		}
	}
	if often() {
		list := ""
		for _, n := range m.some(len(spellings)) {
			list += spellings[n][0] + desk.ListEnd
			p.texts["attributes.tags"] = append(p.texts["attributes.tags"], spellings[n][0])
		}
		attribute("tags", desk.Value{Kind: desk.ListValue, Text: list})
	}
	if often() {
		n := m.Int64N(7000) - 3500
		p.numbers["attributes.score"] = n
		attribute("score", desk.Value{Kind: desk.NumberValue, Text: thousandths(n)})
	}
	if often() {
		at := startOfDay(m.near())
		p.moments["attributes.birthday"] = at
		attribute("birthday", desk.Value{Kind: desk.StringValue, Text: rfc3339(at)[:len("2006-01-02")]})
	}
	if often() {
		at := m.near()
		p.moments["attributes.visit"] = at
		attribute("visit", desk.Value{Kind: desk.StringValue, Text: rfc3339(at)})
	}
	for range m.IntN(3) {
		p.wrote = append(p.wrote, m.near())
	}
	return p, op
}

// lists reads the contacts of a segment, in pages of any size.
func (w *world) lists(filter string, m *model, want []desk.ID) {
	w.t.Helper()
	e := segments.Edit{Key: "s", Name: "S"}
	must(w.t, json.Unmarshal([]byte(filter), &e.Filter))
	_, _, err := w.Segments.Put(w.t.Context(), w.operator(), e)
	must(w.t, err)
	cursor, limit := "", 1+m.IntN(40)
	var got []desk.ID
	var last desk.ContactPlace
	for {
		page, next, err := w.Segments.Contacts(w.t.Context(), w.operator(), "s", cursor, limit)
		must(w.t, err)
		for _, c := range page {
			if !c.Place().After(last) {
				w.t.Error("a contact does not come after the one before it")
			}
			got, last = append(got, c.ID), c.Place()
		}
		if len(page) > limit {
			w.t.Errorf("%d contacts in a page of %d", len(page), limit)
		}
		if cursor = next; next == "" {
			break
		}
	}
	slices.SortFunc(got, func(a, b desk.ID) int { return slices.Compare(a[:], b[:]) })
	if !slices.Equal(got, want) {
		w.t.Errorf("%s\nlists %d contacts, want %d", filter, len(got), len(want))
	}
}

// TestSegments_model: which contacts fit a random filter is as an independent model says, in
// steps of any size.
func TestSegments_model(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var options []string
	for _, list := range spellings {
		options = append(options, list[0])
	}
	for key, kind := range map[string]desk.AttributeType{"word": "text", "page": "url", "plan": "select", "tags": "multiselect", "flag": "boolean", "score": "number", "birthday": "date", "visit": "datetime"} {
		in := desk.AttributeInput{Key: key, Type: text(string(kind))}
		if kind == desk.SelectAttribute || kind == desk.MultiselectAttribute {
			in.Options = desk.Field[[]string]{Set: true, Value: options}
		}
		_, _, err := w.PutAttribute(t.Context(), w.operator(), in)
		must(t, err)
	}
	now := time.Now()
	m := &model{Rand: rand.New(rand.NewPCG(1, uint64(*filters))), now: now.UnixMilli(), members: []string{w.ada.ID.String(), w.grace.ID.String()}}
	var people []*modelPerson
	channels := []desk.ID{w.channel, w.addChannel()}
	for len(people) < *filterContacts {
		at := m.near() // contacts are made together, at several times
		w.clock.server.Store(int64(time.UnixMilli(at).Sub(now)))
		var ops []*desk.Op
		for range min(50, *filterContacts-len(people)) {
			p, op := m.person(len(people))
			people, ops = append(people, p), append(ops, op)
		}
		outcomes, errs, err := w.WriteAll(t.Context(), w.operator(), ops)
		must(t, err)
		for i, p := range people[len(people)-len(ops):] {
			must(t, errs[i])
			p.id = outcomes[i].ID
		}
	}
	w.clock.server.Store(0)
	must(t, w.store.InTx(t.Context(), w.ws, func(tx store.Tx) error {
		for _, p := range people {
			c, err := tx.Contact(p.id)
			if err != nil {
				return err
			}
			p.moments["created_at"] = int64(c.CreatedAt)
			for i, at := range p.wrote {
				p.moments["wrote_at"] = max(p.moments["wrote_at"], at)
				if err := tx.PutWindow(channels[i], p.id, desk.Window{OpenedAt: desk.Time(at)}); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	slices.SortFunc(people, func(a, b *modelPerson) int { return slices.Compare(a.id[:], b.id[:]) })
	for n := range *filters {
		f := m.filter()
		var filter desk.Filter
		must(t, json.Unmarshal([]byte(f.text), &filter))
		matcher, err := filter.Matcher(w.operator().Settings)
		if err != nil {
			t.Fatal(f.text, err)
		}
		var got, want []desk.ID
		after, more := desk.ID{}, true
		for more {
			most := 1 + m.IntN(*filterContacts)
			part, err := w.Segments.Next(t.Context(), w.ws, matcher, after, most, desk.Time(m.now))
			must(t, err)
			if part.Looked > most || part.More && part.Looked == 0 {
				t.Fatalf("it looked at %d of %d", part.Looked, most)
			}
			for _, c := range part.Fit {
				got = append(got, c.ID)
			}
			after, more = part.Last, part.More
		}
		for _, p := range people {
			if f.fits(p) {
				want = append(want, p.id)
			}
		}
		if n%4 == 0 && !strings.Contains(f.text, `"days"`) { // the list has a clock of its own
			w.lists(f.text, m, want)
		}
		if !slices.Equal(got, want) {
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			odd := slices.Concat(got[i:], want[i:])
			slices.SortFunc(odd, func(a, b desk.ID) int { return slices.Compare(a[:], b[:]) })
			n := slices.IndexFunc(people, func(p *modelPerson) bool { return p.id == odd[0] })
			t.Fatalf("%s\nfits %d contacts, and %d by the model; the first that differs is\n%+v", f.text, len(got), len(want), people[n])
		}
	}
}
