package apitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// rows describes how a batch is answered: element by element. The server takes any element,
// because an invalid one fails in its row, not the whole request. The schema of a batch
// allows operations only, because that is what a client should send. So Check compares only
// the elements that succeeded with the schema of an operation. It compares the whole
// request with its schema after it has replaced each failed element by a valid one. In the
// description this is the extension x-rows.
type rows struct {
	operations string // the request's member that holds the elements
	results    string // the answer's member that holds a row for each
	schema     *jsonschema.Schema
	valid      any // an element that fits schema
}

func (d *Document) rows(extension any) (*rows, error) {
	source, ok := extension.(map[string]any)
	if !ok {
		return nil, nil
	}
	r := &rows{}
	r.operations, _ = source["operations"].(string)
	r.results, _ = source["results"].(string)
	ref, _ := source["schema"].(string)
	r.valid = source["valid"]
	if r.operations == "" || r.results == "" || len(ref) < 2 || r.valid == nil {
		return nil, errors.New("x-rows needs operations, results, schema and valid")
	}
	var err error
	r.schema, err = d.compile(ref[1:])
	return r, err
}

// check compares the elements of a request with the rows of its answer. The answer has
// been checked against its own schema before. It returns the request with a valid element in
// place of each one that failed.
func (r *rows) check(request any, answer []byte) (any, error) {
	members, _ := request.(map[string]any)
	elements, ok := members[r.operations].([]any)
	if !ok {
		return request, nil
	}
	var answered map[string]json.RawMessage
	if err := json.Unmarshal(answer, &answered); err != nil {
		return nil, err
	}
	var results []struct {
		Index  int
		Op     *string
		Status string
	}
	if err := json.Unmarshal(answered[r.results], &results); err != nil {
		return nil, err
	}
	if len(results) != len(elements) && len(elements) > 0 {
		return nil, fmt.Errorf("%d elements got %d rows", len(elements), len(results))
	}
	taken := slices.Clone(elements)
	for i := range taken {
		row := results[i]
		if row.Index != i {
			return nil, fmt.Errorf("row %d has the index %d", i, row.Index)
		}
		object, _ := elements[i].(map[string]any)
		if op, ok := object["op"].(string); ok != (row.Op != nil) || ok && op != *row.Op {
			return nil, fmt.Errorf("row %d does not echo the op %v", i, object["op"])
		}
		if row.Status == "error" {
			taken[i] = r.valid
			continue
		}
		if err := fits(r.schema, elements[i]); err != nil {
			return nil, fmt.Errorf("the server accepted row %d: %w", i, err)
		}
		if hasNUL(elements[i]) {
			return nil, fmt.Errorf("the server accepted row %d: a string holds U+0000", i)
		}
	}
	mended := maps.Clone(members)
	mended[r.operations] = taken
	return mended, nil
}
