package apitest

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A Mutator generates requests from the description and damages most of them. The same
// seed and the same calls give the same requests. It is not safe for concurrent use.
type Mutator struct {
	doc     *Document
	rng     *rand.Rand
	known   map[string][]string
	current *draft
	applied []string
}

// NewMutator returns a Mutator of the description's operations.
func (d *Document) NewMutator(seed uint64) *Mutator {
	return &Mutator{doc: d, rng: rand.New(rand.NewPCG(seed, 0x9a71e4)), known: map[string][]string{}}
}

// keep is how many learned values of each kind are kept. The newest values are kept.
const keep = 500

// Learn adds a value that exists on the server. kind is the name of the parameter or
// member for which it can be used: id (of a contact), key (of an attribute), owner, assignee, member and agent (a member's id or e-mail address),
// channel_id, contact_id, cursor, external_id, email, phone, value.
func (m *Mutator) Learn(kind, value string) {
	if len(m.known[kind]) == keep {
		m.known[kind] = m.known[kind][1:]
	}
	m.known[kind] = append(m.known[kind], value)
}

// Next returns the next request. target is a path with a query, and can always be parsed.
// header is never nil. It contains Authorization only if a mutation damaged it; an empty
// list then means that the caller must not send one. Otherwise the caller sets it.
func (m *Mutator) Next() (method, target string, header http.Header, body []byte) {
	d := m.draft()
	m.current, m.applied = d, nil
	for range [...]int{0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 4}[m.rng.IntN(11)] {
		m.mutate(d)
	}
	target, body = d.render(m.doc.base)
	return d.method, target, d.header, body
}

// Last returns a description of the newest request that Next returned: the operation, and
// the mutations in the order in which they were applied.
func (m *Mutator) Last() (Operation, []string) { return m.current.op.Operation, m.applied }

// A mutation changes a request, and reports whether it could.
type mutation struct {
	name   string
	weight int // low for mutations that hide the effects of others
	do     func(*Mutator, *draft) bool
}

var mutations = []mutation{
	{"drop a member", 4, (*Mutator).dropMember},
	{"duplicate a member", 4, (*Mutator).duplicateMember},
	{"rename a member", 4, (*Mutator).renameMember},
	{"change a type", 6, (*Mutator).changeType},
	{"null", 4, (*Mutator).null},
	{"odd number", 4, (*Mutator).oddNumber},
	{"deep nesting", 4, (*Mutator).nest},
	{"long string", 4, (*Mutator).longString},
	{"length at its limit", 6, (*Mutator).lengthAtLimit},
	{"list at its limit", 6, (*Mutator).listAtLimit},
	{"odd unicode", 6, (*Mutator).oddUnicode},
	{"U+0000", 3, (*Mutator).nul},
	{"lone surrogate", 3, (*Mutator).loneSurrogate},
	{"invalid UTF-8", 3, (*Mutator).invalidUTF8},
	{"swap values", 4, (*Mutator).swapValues},
	{"empty body", 2, (*Mutator).emptyBody},
	{"no object", 2, (*Mutator).noObject},
	{"truncated body", 3, (*Mutator).truncate},
	{"trailing data", 3, (*Mutator).trail},
	{"leading bytes", 2, (*Mutator).lead},
	{"unasked body", 2, (*Mutator).unaskedBody},
	{"odd Content-Type", 2, (*Mutator).oddContentType},
	{"unknown query parameter", 3, (*Mutator).unknownParameter},
	{"repeated query parameter", 3, (*Mutator).repeatedParameter},
	{"bad query value", 5, (*Mutator).badParameter},
	{"missing query parameter", 2, (*Mutator).missingParameter},
	{"bad cursor", 4, (*Mutator).badCursor},
	{"odd query encoding", 3, (*Mutator).oddQuery},
	{"bad header", 12, (*Mutator).badHeader}, // few operations have one
	{"swap ids", 5, (*Mutator).swapID},
	{"odd path encoding", 3, (*Mutator).oddPath},
	{"double slash", 2, (*Mutator).doubleSlash},
	{"dots", 2, (*Mutator).dots},
	{"unknown path", 2, (*Mutator).unknownPath},
	{"wrong method", 3, (*Mutator).wrongMethod},
	{"bad Authorization", 3, (*Mutator).badAuthorization},
}

var weights = func() (total int) {
	for _, mu := range mutations {
		total += mu.weight
	}
	return total
}()

// mutate applies one mutation that fits the request.
func (m *Mutator) mutate(d *draft) {
	for {
		at := m.rng.IntN(weights)
		for _, mu := range mutations {
			if at -= mu.weight; at >= 0 {
				continue
			}
			if mu.do(m, d) {
				m.applied = append(m.applied, mu.name)
				return
			}
			break
		}
	}
}

// odd has strings that programs often handle wrongly: letters whose length changes with
// their case, combining marks, direction marks, wide and invisible spaces, digits of other
// scripts, and characters that are special in JavaScript and SQL.
var odd = []string{
	"İstanbul", "ırmak", "I\u0307", "ß", "ẞ", "ſ", "K", "Ǆ", "ﬀ", "e\u0301", "é", "a\u0300\u0301\u0302\u0303\u0304",
	"\u202Eabc", "\u200Fשלום", "مرحبا", "\u2066x\u2069", "\u200B", "\uFEFFx", "\u00A0x\u00A0", "\u3000x", "\u0085x", "\u2028", "\u2029",
	"\U0001F469\u200D\U0001F4BB", "\U0001F1F9\U0001F1F7", "\uFFFD", "\uFFFF", "\U0010FFFF", "١٢٣٤٥٦٧٨", "１２３４５６７８", "x\ty", "x\ny", "\x7f", "\x1b[31m",
	" x ", "%", "_", "'", "\"", "\\", "null", "true", "0", "-1", "NaN", "__proto__", "<script>", "../..", "${x}", "{{1}}", "a@b@c", "@", "ada@",
	"Ada@EXAMPLE.com", "İ@example.com", "ada@exämple.com", "+", "00", "+0", "+123456", "+1234567", "+123456789012345", "+1234567890123456",
	"011442079460018", "00 44 20 7946 0018", "(202) 555-0147", "2025550147", "5550147", "0x10", "1e400", "+5", "1e5", "-0", "0.0", "2026-02-30", "2024-02-29", "0000-01-01",
	"2026-03-02T09:30:12Z", "2026-03-02t09:30:12.5+02:00", "2026-12-31T23:59:60Z", "javascript:alert(1)", "//example.com", "http://[::1", "https://example.com/%zz",
}

// Bodies

func (m *Mutator) nodes(d *draft, kinds string) []*node {
	var list []*node
	if d.body != nil {
		d.body.walk(func(n *node) {
			if strings.IndexByte(kinds, n.kind) >= 0 {
				list = append(list, n)
			}
		})
	}
	return list
}

// node picks one value of the body, or returns nil.
func (m *Mutator) node(d *draft, kinds string) *node {
	list := m.nodes(d, kinds)
	if len(list) == 0 {
		return nil
	}
	return list[m.rng.IntN(len(list))]
}

const allKinds = string(scalarNode) + string(stringNode) + string(arrayNode) + string(objectNode)

// membered picks an object that has members, and one of its members.
func (m *Mutator) membered(d *draft) (*node, int) {
	list := slices.DeleteFunc(m.nodes(d, string(objectNode)), func(n *node) bool { return len(n.members) == 0 })
	if len(list) == 0 {
		return nil, 0
	}
	n := list[m.rng.IntN(len(list))]
	return n, m.rng.IntN(len(n.members))
}

func (m *Mutator) dropMember(d *draft) bool {
	n, i := m.membered(d)
	if n == nil {
		return false
	}
	n.members = slices.Delete(n.members, i, i+1)
	return true
}

func (m *Mutator) duplicateMember(d *draft) bool {
	n, i := m.membered(d)
	if n == nil {
		return false
	}
	again := n.members[i]
	again.value = again.value.copy()
	if m.chance(2) {
		again.value = m.anything()
	}
	if name := again.name; name != "" && name[0] < 0x80 && m.chance(4) { // the same name, spelled differently
		again.rawName = `"\u00` + hex(name) + quoteInner(name[1:]) + `"`
	}
	n.members = append(n.members, again)
	return true
}

func (m *Mutator) renameMember(d *draft) bool {
	n, i := m.membered(d)
	if n == nil {
		return false
	}
	name := n.members[i].name
	n.members[i].name = m.pickText(strings.ToUpper(name), strings.ToUpper(name[:min(1, len(name))])+name[min(1, len(name)):], name+"_", " "+name, name+"\u200B",
		"", "id", "created_at", "updated_at", "op", "owner", "workspace_id", "~/~0", odd[m.rng.IntN(len(odd))])
	return true
}

func (m *Mutator) changeType(d *draft) bool {
	n := m.node(d, allKinds)
	if n == nil {
		return false
	}
	was := n.kind
	for range 20 {
		if *n = *m.anything(); n.kind != was {
			break
		}
	}
	return true
}

func (m *Mutator) null(d *draft) bool {
	n := m.node(d, allKinds)
	if n == nil {
		return false
	}
	*n = *scalar("null")
	return true
}

func (m *Mutator) oddNumber(d *draft) bool {
	n := m.node(d, string(scalarNode))
	if n == nil || m.chance(2) {
		n = m.node(d, allKinds)
	}
	if n == nil {
		return false
	}
	*n = *scalar(m.pickText("1e400", "-1e400", "1e-400", "0e999999999", "1e999999999", "-0", "-0.0", "0.1", "1E+2", "1.0", "-1", "0",
		"2147483647", "2147483648", "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551616", "-9223372036854775809",
		strings.Repeat("9", 38), strings.Repeat("9", 39), "0."+strings.Repeat("3", 38), "0."+strings.Repeat("3", 39), strings.Repeat("9", 400), "1"+strings.Repeat("0", 37)+"e1",
		"01", "+1", ".5", "1.", "1e", "0x10", "NaN", "Infinity"))
	return true
}

func (m *Mutator) nest(d *draft) bool {
	n := m.node(d, allKinds)
	if n == nil {
		return false
	}
	levels := 30 + m.rng.IntN(11)
	if m.chance(20) {
		levels = 100_000 // too deep for a recursive reader's stack
	}
	if m.chance(2) {
		*n = *scalar(strings.Repeat("[", levels) + strings.Repeat("]", levels))
	} else {
		*n = *scalar(strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels))
	}
	return true
}

func (m *Mutator) longString(d *draft) bool {
	n := m.node(d, string(stringNode))
	if n == nil {
		return false
	}
	size := m.pick(254, 255, 256, 4000, 4001, 10_000, 10_001, 70_000)
	if m.chance(40) {
		size = 1<<20 + m.rng.IntN(64) // more than the limit of all bodies, except batches
	}
	n.text = m.fill(size)
	return true
}

// fill makes a string of this many characters, sometimes of several bytes each.
func (m *Mutator) fill(size int) string {
	return strings.Repeat(m.pickText("a", "a", "7", "é", "😀", "İ", "\u0301", " "), size)
}

func (m *Mutator) lengthAtLimit(d *draft) bool {
	list := slices.DeleteFunc(m.nodes(d, string(stringNode)), func(n *node) bool { return n.maxLength == 0 })
	if len(list) == 0 {
		return false
	}
	n := list[m.rng.IntN(len(list))]
	n.text = m.fill(m.pick(0, 1, n.maxLength, n.maxLength+1))
	if tail := "@example.com"; m.chance(3) && len(n.text) > len(tail) { // for an address of that length
		n.text = n.text[len(tail):] + tail
	}
	return true
}

func (m *Mutator) listAtLimit(d *draft) bool {
	list := slices.DeleteFunc(m.nodes(d, string(arrayNode)), func(n *node) bool { return n.maxItems == 0 || len(n.list) == 0 })
	if len(list) == 0 {
		return false
	}
	n := list[m.rng.IntN(len(list))]
	size := m.pick(0, 1, n.maxItems, n.maxItems+1)
	if n.maxItems >= 1000 && !m.chance(8) {
		size = m.pick(0, 1, 2) // a full batch takes a hundred times as long as another request
	}
	some := n.list
	n.list = make([]*node, size)
	for i := range n.list {
		n.list[i] = some[i%len(some)].copy()
		n.list[i].walk(func(e *node) {
			if e.kind == stringNode {
				e.text = m.vary(e.text)
			}
		})
	}
	return true
}

func (m *Mutator) oddUnicode(d *draft) bool {
	s := odd[m.rng.IntN(len(odd))]
	if n := m.node(d, string(stringNode)); n != nil {
		n.text = m.pickText(s, n.text+s, s+n.text)
		return true
	}
	return m.queryValue(d, s)
}

// inString puts raw JSON text into a string or a member's name of the body, or
// escaped bytes into a query value.
func (m *Mutator) inString(d *draft, raw, escaped string) bool {
	if n, i := m.membered(d); n != nil && m.chance(5) {
		n.members[i].rawName = `"` + raw + `"`
		return true
	}
	if n := m.node(d, string(stringNode)); n != nil {
		*n = *scalar(`"` + quoteInner(n.text) + raw + `"`)
		return true
	}
	if len(d.query) == 0 {
		return false
	}
	q := &d.query[m.rng.IntN(len(d.query))]
	if q.raw != "" {
		return false
	}
	q.raw = url.QueryEscape(q.name) + "=x" + escaped
	return true
}

func (m *Mutator) nul(d *draft) bool { return m.inString(d, `\u0000`, "%00") }

func (m *Mutator) loneSurrogate(d *draft) bool {
	return m.inString(d, m.pickText(`\ud800`, `\udfff`, `\ud83dx`, `\ude00\ud83d`, `\uD800\uD800`), "%ED%A0%80")
}

func (m *Mutator) invalidUTF8(d *draft) bool {
	return m.inString(d, m.pickText("\xff", "\xc0\xaf", "\xed\xa0\x80", "\xe2\x82", "\xf4\x90\x80\x80"), "%FF")
}

func (m *Mutator) swapValues(d *draft) bool {
	a, b := m.node(d, allKinds), m.node(d, allKinds)
	if a == nil || a == b {
		return false
	}
	if a.kind == objectNode || a.kind == arrayNode || b.kind == objectNode || b.kind == arrayNode {
		return false // one could be part of the other
	}
	*a, *b = *b, *a
	return true
}

func (m *Mutator) emptyBody(d *draft) bool {
	if d.body == nil {
		return false
	}
	blank := m.pickText("", "", " ", "\n")
	d.rebody = append(d.rebody, func([]byte) []byte { return []byte(blank) })
	return true
}

func (m *Mutator) noObject(d *draft) bool {
	if d.body == nil {
		return false
	}
	d.body = scalar(m.pickText("null", "true", "1", `"x"`, "[]", "[{}]", "{}", "x", "{'a':1}", "{a:1}", "external_id=x"))
	return true
}

func (m *Mutator) truncate(d *draft) bool {
	if d.body == nil {
		return false
	}
	part := m.rng.Float64()
	d.rebody = append(d.rebody, func(b []byte) []byte { return b[:int(part*float64(len(b)))] })
	return true
}

func (m *Mutator) trail(d *draft) bool {
	if d.body == nil {
		return false
	}
	tail := m.pickText("{}", "x", "\x00", ",", "}", "null", "\n\n{}", " ", "\r\n\t", "//", "\xEF\xBB\xBF")
	d.rebody = append(d.rebody, func(b []byte) []byte { return append(b, tail...) })
	return true
}

func (m *Mutator) lead(d *draft) bool {
	if d.body == nil {
		return false
	}
	first := m.pickText("\xEF\xBB\xBF", " \n", "\x00", "//\n", ")]}'\n", "\x1f\x8b", "\xff\xfe")
	d.rebody = append(d.rebody, func(b []byte) []byte { return append([]byte(first), b...) })
	return true
}

func (m *Mutator) unaskedBody(d *draft) bool {
	if d.body != nil {
		return false
	}
	d.body = scalar(m.pickText("{}", "x", "null", `{"external_id":"x"}`, strings.Repeat(" ", 70_000)))
	return true
}

func (m *Mutator) oddContentType(d *draft) bool {
	d.header["Content-Type"] = []string{m.pickText("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/json; charset=utf-16", "x", ";", "application/JSON")}
	return true
}

// Queries

func (m *Mutator) unknownParameter(d *draft) bool {
	d.query = append(d.query, pair{name: m.pickText("x", "page", "Limit", "LIMIT", "limit[]", "workspace_id", "archived", "restore", "", odd[m.rng.IntN(len(odd))]), value: m.pickText("", "1", "true")})
	return true
}

func (m *Mutator) repeatedParameter(d *draft) bool {
	if len(d.query) == 0 {
		return false
	}
	q := d.query[m.rng.IntN(len(d.query))]
	if m.chance(3) {
		q.value += "1"
	}
	d.query = append(d.query, q)
	return true
}

func (m *Mutator) badParameter(d *draft) bool {
	return m.queryValue(d, m.pickText("", "0", "1", "200", "201", "-1", "1.5", "1e2", "007", "+5", " 5", "5 ", "0x10", "99999999999999999999", "abc", "null", "TRUE", "True", "yes", "all", "none", "true,false",
		"2026-02-30T00:00:00Z", "2026-03-01", "2026-03-01T00:00:00", "2026-03-01 00:00:00Z", "0000-00-00T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "1772440212", m.fill(256), odd[m.rng.IntN(len(odd))]))
}

// queryValue sets or adds a parameter of the operation.
func (m *Mutator) queryValue(d *draft, value string) bool {
	if len(d.op.query) == 0 {
		return false
	}
	names := make([]string, 0, len(d.op.query))
	for name := range d.op.query {
		names = append(names, name)
	}
	slices.Sort(names)
	m.set(d, names[m.rng.IntN(len(names))], value)
	return true
}

func (m *Mutator) set(d *draft, name, value string) {
	for i := range d.query {
		if d.query[i].name == name {
			d.query[i].value, d.query[i].raw = value, ""
			return
		}
	}
	d.query = append(d.query, pair{name: name, value: value})
}

func (m *Mutator) missingParameter(d *draft) bool {
	if len(d.query) == 0 {
		return false
	}
	i := m.rng.IntN(len(d.query))
	d.query = slices.Delete(d.query, i, i+1)
	return true
}

func (m *Mutator) badCursor(d *draft) bool {
	if d.op.query["cursor"] == nil {
		return false
	}
	cursor := m.pickText("", "x", "AAAA", "AAAA.AAAA", "eyJwIjowfQ", "null", "../..", m.fill(3000))
	if known := m.known["cursor"]; len(known) > 0 && !m.chance(3) {
		cursor = known[m.rng.IntN(len(known))]
		at := m.rng.IntN(len(cursor) + 1)
		cursor = m.pickText(cursor, cursor[:at], cursor+"A", cursor+"=", strings.ToLower(cursor), cursor[:at]+"_"+cursor[min(at+1, len(cursor)):])
	}
	m.set(d, "cursor", cursor)
	return true
}

func (m *Mutator) oddQuery(d *draft) bool {
	odd := pair{raw: m.pickText("%zz", "%", "limit=%", "a;b", "limit=1;cursor=x", "=", "&", "&&=", "limit", "limit=%31", "l%69mit=1", "restore=tru%65", "x=%00", "x=%FF", "%00=x", "cursor=%2B", "?", "limit==1", "x=%u0041")}
	at := m.rng.IntN(len(d.query) + 1)
	d.query = slices.Insert(d.query, at, odd)
	return true
}

// badHeader damages a header line that the operation defines. It makes no lines that HTTP
// forbids, because net/http would answer them.
func (m *Mutator) badHeader(d *draft) bool {
	if len(d.op.header) == 0 {
		return false
	}
	for name := range d.op.header { // none has two
		values := [][]string{nil, {""}, {" "}, {"a", "a"}, {"a", "b"}, {m.fill(200)}, {m.fill(201)}, {strings.Repeat("~", 200)}, {strings.Repeat("~", 201)}, {"a\tb"}, {"\xff"}, {"İ"}, {"a, b"}, {" a "}}
		d.header[name] = values[m.rng.IntN(len(values))]
	}
	return true
}

// Paths

func (m *Mutator) swapID(d *draft) bool {
	for i := range d.segments {
		s := &d.segments[i]
		if s.parameter == "" {
			continue
		}
		kind := m.pickText("id", "key", "owner", "external_id", "email", "phone")
		other := "019a8f3c-0000-7000-8000-000000000000"
		if known := m.known[kind]; len(known) > 0 {
			other = known[m.rng.IntN(len(known))]
		}
		s.text = m.pickText(other, strings.ToUpper(s.text), strings.ReplaceAll(s.text, "-", ""), "{"+s.text+"}", "urn:uuid:"+s.text, s.text+" ", " "+s.text, s.text+"0",
			"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "0", "-1", "null", "batch", "x", "'", m.fill(3000), odd[m.rng.IntN(len(odd))])
		return true
	}
	return false
}

// path changes the path of the target.
func (d *draft) path(rewrite func(string) string) bool {
	d.retarget = append(d.retarget, func(target string) string {
		path, query, found := strings.Cut(target, "?")
		path = rewrite(path)
		if found {
			path += "?" + query
		}
		return path
	})
	return true
}

// slash returns the index of one of the path's slashes at or after from, or the length of
// the path if there is none.
func (m *Mutator) slash(path string, from int) int {
	var places []int
	for i := from; i < len(path); i++ {
		if path[i] == '/' {
			places = append(places, i)
		}
	}
	if len(places) == 0 {
		return len(path)
	}
	return places[m.rng.IntN(len(places))]
}

func (m *Mutator) oddPath(d *draft) bool {
	return d.path(func(path string) string {
		at := m.slash(path, len(m.doc.base)) // after the version: other paths do not belong to the API
		next := min(at+1, len(path))
		if next < len(path) && path[next] != '%' && path[next] != '/' && m.chance(2) { // an ordinary letter, escaped
			return path[:next] + "%" + hex(path[next:next+1]) + path[next+1:]
		}
		odd := m.pickText("%2F", "%2f", "%2e%2e", "%2E", "%00", "%FF", "%C0%AF", "%ED%A0%80", "%25", "%252F", "%20", "%09", "%0d%0a", "%3F", "%23", "%5C", "+", ";", ":", "@", "=")
		return m.pickText(path+odd, path[:next]+odd+path[next:], path[:at]+odd+path[at:])
	})
}

func (m *Mutator) doubleSlash(d *draft) bool {
	return d.path(func(path string) string {
		at := m.slash(path, 0)
		return m.pickText(path[:at]+"/"+path[at:], path+"/", path+"//")
	})
}

func (m *Mutator) dots(d *draft) bool {
	return d.path(func(path string) string {
		at := m.slash(path, len(m.doc.base))
		dots := m.pickText("/.", "/..", "/../..", "/x/..", "/../v1", "/./.")
		return m.pickText(path[:at]+dots+path[at:], path+dots, m.doc.base+"/../docs", m.doc.base+"/../healthz")
	})
}

func (m *Mutator) unknownPath(d *draft) bool {
	if len(d.segments) == 0 {
		return false
	}
	switch m.rng.IntN(4) {
	case 0:
		d.segments = append(d.segments, segment{text: m.pickText("x", "owner", "identities", "conversations", "batch")})
	case 1:
		d.segments = nil
	case 2:
		d.segments[0].text = m.pickText("Contacts", "contact", "customers", "v1", "admin", "openapi.json", "docs", "metrics", "")
	default:
		last := &d.segments[len(d.segments)-1]
		if last.parameter != "" {
			return false // just another unknown id
		}
		last.text += m.pickText("s", ".json", " ", "X")
	}
	return true
}

func (m *Mutator) wrongMethod(d *draft) bool {
	others := slices.DeleteFunc([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY", "get", "Post"}, func(s string) bool { return s == d.op.Method })
	d.method = others[m.rng.IntN(len(others))]
	return true
}

func (m *Mutator) badAuthorization(d *draft) bool {
	key := "prl_live_0123456789_0123456789ABCDEFGHIJabcdefghijkl000000"
	values := [][]string{nil, {""}, {"Bearer"}, {"Bearer "}, {"bearer x"}, {"Basic eDp5"}, {key}, {"Bearer " + key}, {"Bearer " + key + " x"}, {"Bearer  " + key}, {"Bearer\t" + key},
		{"Bearer " + key, "Bearer " + key}, {"Bearer prl_test_" + key[9:]}, {"Bearer " + strings.Repeat("a", 8000)}, {"Bearer \xff\xfe"}, {"Token " + key}, {"Bearer,Bearer"}, {"Bearer null"}}
	d.header["Authorization"] = values[m.rng.IntN(len(values))]
	return true
}

// Choices

// chance is true once in n times.
func (m *Mutator) chance(n int) bool { return m.rng.IntN(n) == 0 }

func (m *Mutator) pick(of ...int) int           { return of[m.rng.IntN(len(of))] }
func (m *Mutator) pickText(of ...string) string { return of[m.rng.IntN(len(of))] }

func decimal(i int) string { return strconv.Itoa(i) }

// hex is the first byte of s as two hexadecimal digits.
func hex(s string) string {
	return string("0123456789ABCDEF"[s[0]>>4]) + string("0123456789ABCDEF"[s[0]&15])
}

// quoteInner is the content of s as a JSON string, without the quotes.
func quoteInner(s string) string {
	b := text(s).append(nil)
	return string(b[1 : len(b)-1])
}

// number returns a schema's number as an int, or the value absent if there is no number.
func number(value any, absent int) int {
	n, ok := value.(json.Number)
	if !ok {
		return absent
	}
	i, err := strconv.Atoi(n.String())
	if err != nil {
		return absent
	}
	return i
}
