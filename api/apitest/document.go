// Package apitest checks the server against its API description. Tests pass it every
// request and answer, and it reports those that the description does not allow.
//
//	document.go   Load: reads and compiles openapi.json; Operations
//	check.go      Check: one request and its answer against the description
//	rows.go       the part of Check for a batch, row by row
//	delivery.go   CheckDelivery: a request to an endpoint of a webhook
//	mutate.go     Mutator: generates requests from the description and damages them
//	request.go    a generated request before it is encoded
//
// The description is compiled once. A Document is safe for concurrent use, a
// Mutator is not. Nothing here is linked into the binary.
package apitest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// resource is the description's name in the compiler.
const resource = "file:///openapi.json"

// A Document is a compiled API description.
type Document struct {
	root       map[string]any
	base       string       // the path prefix of every operation: /v1
	operations []*operation // literal path segments before parameters
	deliveries []*operation // of the section webhooks
	unrouted   map[int]*answer
	compiler   *jsonschema.Compiler
}

// An Operation is one method on one path, as the description lists it.
type Operation struct {
	Method     string
	Path       string // with the server's prefix: /v1/contacts/{id}
	Permission string
}

type operation struct {
	Operation
	pattern []string // the segments after the prefix
	path    map[string]*parameter
	query   map[string]*parameter
	header  map[string]*parameter
	body    *jsonschema.Schema // nil if the operation has no body
	rows    *rows              // nil if the operation is not a batch
	answers map[int]*answer
	source  map[string]any // the JSON, for the Mutator
}

type parameter struct {
	name       string
	permission string // needed in addition to the operation's
	required   bool
	integer    bool // the text is converted to a number before the schema checks it
	schema     *jsonschema.Schema
	source     map[string]any // the schema's JSON
}

type answer struct {
	schema  *jsonschema.Schema // nil if the answer has no body
	tried   *jsonschema.Schema // of a dry run's body, if it is another; in the description this is the extension x-dry-run
	stream  bool               // it may also be an event stream
	bytes   bool               // the body is not JSON: any bytes are allowed
	headers []*parameter
}

// Load reads an OpenAPI 3.1 description. It returns an error if doc is not valid, if an
// operation has no x-permission, or if the components lack one of the answers that apply
// to any other path: Unauthorized, NotFound, MethodNotAllowed.
func Load(doc []byte) (*Document, error) {
	if err := validate(doc); err != nil {
		return nil, err
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return nil, fmt.Errorf("read the description: %w", err)
	}
	d := &Document{root: tree.(map[string]any), unrouted: map[int]*answer{}, compiler: jsonschema.NewCompiler()}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource(resource, d.root); err != nil {
		return nil, fmt.Errorf("read the description: %w", err)
	}
	servers, _ := d.root["servers"].([]any)
	if len(servers) != 1 {
		return nil, fmt.Errorf("the description names %d servers, not one", len(servers))
	}
	d.base, _ = servers[0].(map[string]any)["url"].(string)
	for status, name := range map[int]string{
		http.StatusUnauthorized: "Unauthorized", http.StatusNotFound: "NotFound", http.StatusMethodNotAllowed: "MethodNotAllowed",
	} {
		if d.unrouted[status], err = d.answer("/components/responses/" + name); err != nil {
			return nil, err
		}
	}
	paths, _ := d.root["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		methods, _ := paths[path].(map[string]any)
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			op, err := d.operation(path, method)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", strings.ToUpper(method), path, err)
			}
			d.operations = append(d.operations, op)
		}
	}
	if err := d.addDeliveries(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(d.operations, func(a, b *operation) int {
		return slices.CompareFunc(a.pattern, b.pattern, func(s, t string) int {
			if isParameter(s) != isParameter(t) {
				return map[bool]int{true: 1, false: -1}[isParameter(s)]
			}
			return strings.Compare(s, t)
		})
	})
	return d, nil
}

// validate checks doc against the OpenAPI specification. The schema compiler does not do
// this.
func validate(doc []byte) error {
	spec, err := openapi3.NewLoader().LoadFromData(doc)
	if err != nil {
		return fmt.Errorf("read the description: %w", err)
	}
	// This validator does not fully support JSON Schema 2020-12, so a test of the
	// description checks the examples instead.
	if err := spec.Validate(context.Background(), openapi3.DisableExamplesValidation()); err != nil {
		return fmt.Errorf("the description is no valid OpenAPI document: %w", err)
	}
	return nil
}

// Operations lists every operation of the description.
func (d *Document) Operations() []Operation {
	list := make([]Operation, len(d.operations))
	for i, op := range d.operations {
		list[i] = op.Operation
	}
	return list
}

func (d *Document) operation(path, method string) (*operation, error) {
	at, source, err := d.at(pointer("", "paths", path, method))
	if err != nil {
		return nil, err
	}
	permission, ok := source["x-permission"].(string)
	if !ok {
		return nil, fmt.Errorf("x-permission is missing")
	}
	op := &operation{
		Operation: Operation{Method: strings.ToUpper(method), Path: d.base + path, Permission: permission},
		pattern:   strings.Split(strings.TrimPrefix(path, "/"), "/"),
		path:      map[string]*parameter{},
		query:     map[string]*parameter{},
		header:    map[string]*parameter{},
		answers:   map[int]*answer{},
		source:    source,
	}
	if err := d.parameters(op, at, source); err != nil {
		return nil, err
	}
	body, _ := source["requestBody"].(map[string]any)
	content, _ := body["content"].(map[string]any)
	if _, bytes := content[anyBytes]; body != nil && !bytes {
		schema := pointer(at, "requestBody", "content", "application/json", "schema")
		if op.body, err = d.compile(schema); err != nil {
			return nil, err
		}
	}
	if op.rows, err = d.rows(source["x-rows"]); err != nil {
		return nil, err
	}
	responses, _ := source["responses"].(map[string]any)
	for code := range responses {
		status, err := strconv.Atoi(code)
		if err != nil {
			return nil, fmt.Errorf("the status %q is no number", code)
		}
		if op.answers[status], err = d.answer(pointer(at, "responses", code)); err != nil {
			return nil, err
		}
	}
	return op, nil
}

func (d *Document) parameters(op *operation, at string, source map[string]any) error {
	list, _ := source["parameters"].([]any)
	for i := range list {
		at, source, err := d.at(pointer(at, "parameters", strconv.Itoa(i)))
		if err != nil {
			return err
		}
		name, _ := source["name"].(string)
		p, err := d.parameter(name, at, source)
		if err != nil {
			return err
		}
		switch source["in"] {
		case "path":
			op.path[name] = p
		case "query":
			op.query[name] = p
		case "header":
			op.header[name] = p
		default:
			return fmt.Errorf("the parameter %s is in %v, which Check does not know", name, source["in"])
		}
	}
	return nil
}

// parameter reads a parameter, or a header of an answer.
func (d *Document) parameter(name, at string, source map[string]any) (*parameter, error) {
	schema, err := d.compile(pointer(at, "schema"))
	if err != nil {
		return nil, err
	}
	_, written, err := d.at(pointer(at, "schema"))
	if err != nil {
		return nil, err
	}
	required, _ := source["required"].(bool)
	permission, _ := source["x-permission"].(string)
	return &parameter{name: name, permission: permission, required: required, integer: written["type"] == "integer", schema: schema, source: written}, nil
}

func (d *Document) answer(at string) (*answer, error) {
	at, source, err := d.at(at)
	if err != nil {
		return nil, err
	}
	a := &answer{}
	content, _ := source["content"].(map[string]any)
	if content != nil {
		_, a.stream = content[eventStream]
		if _, a.bytes = content[anyBytes]; a.bytes {
			content = nil
		}
	}
	if content != nil {
		if a.schema, err = d.compile(pointer(at, "content", "application/json", "schema")); err != nil {
			return nil, err
		}
	}
	if ref, ok := source["x-dry-run"].(string); ok {
		if a.tried, err = d.compile(strings.TrimPrefix(ref, "#")); err != nil {
			return nil, err
		}
	}
	headers, _ := source["headers"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		at, source, err := d.at(pointer(at, "headers", name))
		if err != nil {
			return nil, err
		}
		h, err := d.parameter(name, at, source)
		if err != nil {
			return nil, err
		}
		a.headers = append(a.headers, h)
	}
	return a, nil
}

// at follows a JSON pointer and the references in its path, and returns the place of the
// object.
func (d *Document) at(ptr string) (string, map[string]any, error) {
	var here any = d.root
	for _, token := range strings.Split(ptr, "/")[1:] {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch v := here.(type) {
		case map[string]any:
			here = v[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i >= len(v) {
				return "", nil, fmt.Errorf("nothing at %s", ptr)
			}
			here = v[i]
		default:
			return "", nil, fmt.Errorf("nothing at %s", ptr)
		}
	}
	object, ok := here.(map[string]any)
	if !ok {
		return "", nil, fmt.Errorf("no object at %s", ptr)
	}
	if ref, ok := object["$ref"].(string); ok && len(object) == 1 {
		return d.at(strings.TrimPrefix(ref, "#"))
	}
	return ptr, object, nil
}

func (d *Document) compile(ptr string) (*jsonschema.Schema, error) {
	schema, err := d.compiler.Compile(resource + "#" + (&url.URL{Path: ptr}).EscapedPath())
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", ptr, err)
	}
	return schema, nil
}

// pointer extends a JSON pointer by tokens.
func pointer(ptr string, tokens ...string) string {
	for _, token := range tokens {
		ptr += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
	}
	return ptr
}

func isParameter(segment string) bool { return strings.HasPrefix(segment, "{") }
