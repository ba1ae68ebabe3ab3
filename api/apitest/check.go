package apitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	contentType = "application/json; charset=utf-8"
	eventStream = "text/event-stream"
	anyBytes    = "*/*" // the type of a body that is not JSON
	requestID   = "X-Request-Id"
	dryRun      = "Dry-Run"
	maxDepth    = 32 // the deepest nesting that a request body may have
)

// Check returns an error if the description does not allow a request or its answer: a
// status, header or body that it does not list, or a request that it refuses but the
// server accepted. A path or method outside the description must be answered with 401,
// 404 or 405 and the body of the shared errors. HEAD may be answered like GET, or
// refused like any other method; its answers have no body.
func (d *Document) Check(req *http.Request, reqBody []byte, status int, header http.Header, body []byte) error {
	if err := d.check(req, reqBody, status, header, body); err != nil {
		return fmt.Errorf("%s %s answered %d: %w", req.Method, req.URL.RequestURI(), status, err)
	}
	return nil
}

func (d *Document) check(req *http.Request, reqBody []byte, status int, header http.Header, body []byte) error {
	head := req.Method == http.MethodHead
	found := d.find(req.Method, req.URL)
	a := d.expected(found, head, status)
	if a == nil && found.op != nil {
		return errors.New("the description does not list this status")
	}
	if a == nil {
		return errors.New("the description has no such operation: only 401, 404 for an unknown path and 405 for a known one are allowed")
	}
	if err := a.check(header, body, head, typed(status)); err != nil {
		return err
	}
	switch {
	case status == http.StatusMethodNotAllowed:
		return found.checkAllow(header.Get("Allow"))
	case status == http.StatusForbidden && found.op != nil && !head:
		return checkForbidden(body, found.op.permissions(req.URL.Query()))
	case status/100 == 2:
		return found.op.checkRequest(found.values, req.URL.RawQuery, req.Header, reqBody, body)
	}
	return nil
}

// expected returns the answer that the description has for a status, or nil.
func (d *Document) expected(found route, head bool, status int) *answer {
	if found.op != nil {
		if a := found.op.answers[status]; a != nil {
			return a
		}
		if !head && !found.loose {
			return nil
		}
	}
	known := len(found.methods) > 0
	if !found.loose && (status == http.StatusNotFound && known || status == http.StatusMethodNotAllowed && !known) {
		return nil
	}
	return d.unrouted[status]
}

// A route is what the description says about a request's method and path.
type route struct {
	op      *operation
	values  map[string]string // the path parameters
	methods []string          // of the most specific path that matches; empty if no path does
	others  []string          // of all paths that match
	// The path can be read in two ways, and both are allowed: a literal segment has an
	// escaped letter, a segment contains a slash or dots, or a more specific path lacks
	// the method (GET /contacts/batch, where batch may be an id).
	loose bool
}

func (d *Document) find(method string, u *url.URL) route {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var found route
	rest, ok := strings.CutPrefix(u.EscapedPath(), d.base+"/")
	if !ok {
		return found
	}
	escaped := strings.Split(rest, "/")
	segments := make([]string, len(escaped))
	for i, s := range escaped {
		var err error
		if segments[i], err = url.PathUnescape(s); err != nil || s == "" || s == "." || s == ".." {
			return found
		}
		if segments[i] == "." || segments[i] == ".." || strings.Contains(segments[i], "/") {
			found.loose = true
		}
	}
	specific := ""
	for _, op := range d.operations {
		values, plain, ok := op.match(segments, escaped)
		if !ok {
			continue
		}
		if specific == "" {
			specific = op.Path
		}
		if op.Path == specific {
			found.methods = append(found.methods, op.Method)
		}
		found.others = append(found.others, op.Method)
		found.loose = found.loose || !plain
		if op.Method == method && found.op == nil {
			found.op, found.values = op, values
			found.loose = found.loose || op.Path != specific
		}
	}
	return found
}

// match tells whether the path matches, and whether its literal segments contain no
// escapes.
func (op *operation) match(segments, escaped []string) (values map[string]string, plain, ok bool) {
	if len(segments) != len(op.pattern) {
		return nil, false, false
	}
	plain = true
	for i, want := range op.pattern {
		if isParameter(want) {
			if values == nil {
				values = map[string]string{}
			}
			values[strings.Trim(want, "{}")] = segments[i]
			continue
		}
		if segments[i] != want {
			return nil, false, false
		}
		plain = plain && escaped[i] == want
	}
	return values, plain, true
}

// checkAllow compares the header Allow with the methods of the path. GET implies HEAD,
// and any path may allow OPTIONS.
func (r route) checkAllow(allow string) error {
	listed := strings.Split(strings.ReplaceAll(allow, " ", ""), ",")
	for _, m := range r.methods {
		if !slices.Contains(listed, m) {
			return fmt.Errorf("the header Allow is %q and lacks %s", allow, m)
		}
	}
	for _, m := range listed {
		if !r.loose && !slices.Contains(r.others, m) && m != http.MethodHead && m != http.MethodOptions {
			return fmt.Errorf("the header Allow is %q, and the description has no %s there", allow, m)
		}
	}
	return nil
}

// permissions are the permissions that a request needs, for the operation and for its
// parameters.
func (op *operation) permissions(query url.Values) []string {
	list := []string{op.Permission}
	for name, p := range op.query {
		if p.permission != "" && query.Has(name) {
			list = append(list, p.permission)
		}
	}
	return list
}

func checkForbidden(body []byte, permissions []string) error {
	var refusal struct {
		Error struct{ Message string }
	}
	if err := json.Unmarshal(body, &refusal); err != nil {
		return err
	}
	if !slices.ContainsFunc(permissions, func(p string) bool { return strings.Contains(refusal.Error.Message, p) }) {
		return fmt.Errorf("the message %q does not name the permission %s", refusal.Error.Message, strings.Join(permissions, " or "))
	}
	return nil
}

// typed tells whether an answer with a status has a Content-Type.
func typed(status int) bool {
	switch status {
	case http.StatusNoContent, http.StatusNotModified, http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable:
		return false
	}
	return true
}

// check returns an error if the headers or the body of an answer are wrong. typed is false
// for answers without a Content-Type.
func (a *answer) check(header http.Header, body []byte, head, typed bool) error {
	if header.Get(requestID) == "" {
		return fmt.Errorf("%s is missing", requestID)
	}
	if got := header.Get("Content-Type"); typed && !a.bytes && got != contentType && (!a.stream || got != eventStream) {
		return fmt.Errorf("Content-Type is %q", got)
	}
	for _, h := range a.headers {
		text := header.Get(h.name)
		if text == "" && h.required {
			return fmt.Errorf("%s is missing", h.name)
		}
		if text == "" {
			continue
		}
		if err := h.check(text); err != nil {
			return err
		}
	}
	if a.bytes {
		return nil
	}
	if a.schema == nil || head {
		if len(body) > 0 {
			return fmt.Errorf("the body must be empty and has %d bytes", len(body))
		}
		return nil
	}
	if header.Get("Content-Type") == eventStream {
		return a.checkStream(body)
	}
	value, err := read(body)
	if err != nil {
		return fmt.Errorf("the body of the answer: %w", err)
	}
	if a.tried != nil && header.Get(dryRun) == "true" {
		return a.tried.Validate(value)
	}
	return a.schema.Validate(value)
}

// checkStream checks the events of a stream, each as the only one of a page.
func (a *answer) checkStream(body []byte) error {
	for block := range strings.SplitSeq(string(body), "\n\n") {
		fields := map[string]string{}
		for line := range strings.SplitSeq(block, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			if fields[name] != "" {
				return fmt.Errorf("two lines of %s in one block: %s", name, block)
			}
			fields[name] = value
		}
		if fields["data"] == "" || fields["event"] == "cursor" {
			continue
		}
		value, err := read([]byte(`{"data":[` + fields["data"] + `],"cursor":"` + fields["id"] + `","more":true}`))
		if err != nil {
			return fmt.Errorf("an event of the stream: %w", err)
		}
		if err := a.schema.Validate(value); err != nil {
			return err
		}
	}
	return nil
}

// checkRequest returns why the description refuses a request that the server accepted.
func (op *operation) checkRequest(path map[string]string, rawQuery string, header http.Header, body, answer []byte) error {
	for name, text := range path {
		if err := op.path[name].check(text); err != nil {
			return fmt.Errorf("the server accepted this: %w", err)
		}
	}
	if err := op.checkQuery(rawQuery); err != nil {
		return fmt.Errorf("the server accepted this: %w", err)
	}
	if err := op.checkHeader(header); err != nil {
		return fmt.Errorf("the server accepted this: %w", err)
	}
	if op.body == nil {
		return nil
	}
	value, err := read(body)
	if err != nil {
		return fmt.Errorf("the server accepted this: the body of the request: %w", err)
	}
	if depth(value) > maxDepth {
		return fmt.Errorf("the server accepted this: the body is nested deeper than %d", maxDepth)
	}
	if op.rows != nil {
		if value, err = op.rows.check(value, answer); err != nil {
			return err
		}
	}
	if err := fits(op.body, value); err != nil {
		return fmt.Errorf("the server accepted this: %w", err)
	}
	if hasNUL(value) {
		return errors.New("the server accepted this: a string holds U+0000")
	}
	return nil
}

// checkQuery checks the query of an operation that defines parameters. Other operations
// ignore their query.
func (op *operation) checkQuery(raw string) error {
	if len(op.query) == 0 {
		return nil
	}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return fmt.Errorf("the query: %w", err)
	}
	for name, values := range query {
		p := op.query[name]
		if p == nil {
			return fmt.Errorf("the query parameter %q does not exist", name)
		}
		if len(values) > 1 {
			return fmt.Errorf("the query parameter %s is repeated", name)
		}
		if err := p.check(values[0]); err != nil {
			return err
		}
	}
	for name, p := range op.query {
		if p.required && !query.Has(name) {
			return fmt.Errorf("the query parameter %s is missing", name)
		}
	}
	return nil
}

// checkHeader checks the header lines that the operation defines.
func (op *operation) checkHeader(header http.Header) error {
	for name, p := range op.header {
		lines := header.Values(name)
		switch {
		case len(lines) > 1:
			return fmt.Errorf("the header %s is repeated", name)
		case len(lines) == 1:
			if err := p.check(strings.Trim(lines[0], " \t")); err != nil { // as HTTP servers do
				return err
			}
		case p.required:
			return fmt.Errorf("the header %s is missing", name)
		}
	}
	return nil
}

var integer = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

func (p *parameter) check(text string) error {
	var value any = text
	switch {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0) && p.name != "name": // what can't be in a file's name is left out
		return fmt.Errorf("%s: invalid UTF-8 or U+0000", p.name)
	case p.integer && !integer.MatchString(text):
		return fmt.Errorf("%s: %q is no integer", p.name, text)
	case p.integer:
		value = json.Number(text)
	}
	if err := fits(p.schema, value); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// fits checks a value as it was sent and, if that fails, again with white space trimmed
// from its strings, because the server trims before it applies the limits.
func fits(schema *jsonschema.Schema, value any) error {
	err := schema.Validate(value)
	if err != nil && schema.Validate(trimmed(value)) == nil {
		return nil
	}
	return err
}

func trimmed(value any) any {
	switch v := value.(type) {
	case string:
		return strings.TrimSpace(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = trimmed(v[i])
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name := range v {
			object[name] = trimmed(v[name])
		}
		return object
	}
	return value
}

// read decodes one JSON text as strictly as the API: it allows no duplicate members, no
// invalid UTF-8, no lone surrogates and nothing after the value.
func read(text []byte) (any, error) {
	if !jsontext.Value(text).IsValid() {
		return nil, fmt.Errorf("not one strict JSON text: %.200q", text)
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(text))
}

func depth(value any) int {
	deepest := -1
	switch v := value.(type) {
	case []any:
		deepest = 0
		for _, e := range v {
			deepest = max(deepest, depth(e))
		}
	case map[string]any:
		deepest = 0
		for _, e := range v {
			deepest = max(deepest, depth(e))
		}
	}
	return max(deepest+1, 0)
}

func hasNUL(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.ContainsRune(v, 0)
	case []any:
		return slices.ContainsFunc(v, hasNUL)
	case map[string]any:
		for name, e := range v {
			if strings.ContainsRune(name, 0) || hasNUL(e) {
				return true
			}
		}
	}
	return false
}
