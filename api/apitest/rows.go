package apitest

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// rows describes how a batch is answered: element by element. The schema of a batch
// allows any element, because an invalid one fails in its row, not the whole request. So
// Check compares the elements that succeeded with the schema of an operation. In the
// description this is the extension x-rows.
type rows struct {
	operations string // the request's member that holds the elements
	results    string // the answer's member that holds a row for each
	schema     *jsonschema.Schema
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
	if r.operations == "" || r.results == "" || len(ref) < 2 {
		return nil, errors.New("x-rows needs operations, results and schema")
	}
	var err error
	r.schema, err = d.compile(ref[1:])
	return r, err
}

// check compares the elements of a request with the rows of its answer. The answer has
// been checked against its own schema before.
func (r *rows) check(request any, answer []byte) error {
	elements, _ := request.(map[string]any)[r.operations].([]any)
	var members map[string]json.RawMessage
	if err := json.Unmarshal(answer, &members); err != nil {
		return err
	}
	var results []struct {
		Index  int
		Op     *string
		Status string
	}
	if err := json.Unmarshal(members[r.results], &results); err != nil {
		return err
	}
	if len(results) != len(elements) {
		return fmt.Errorf("%d elements got %d rows", len(elements), len(results))
	}
	for i, row := range results {
		if row.Index != i {
			return fmt.Errorf("row %d has the index %d", i, row.Index)
		}
		object, _ := elements[i].(map[string]any)
		if op, ok := object["op"].(string); ok != (row.Op != nil) || ok && op != *row.Op {
			return fmt.Errorf("row %d does not echo the op %v", i, object["op"])
		}
		if row.Status == "error" {
			continue
		}
		if err := fits(r.schema, elements[i]); err != nil {
			return fmt.Errorf("the server accepted row %d: %w", i, err)
		}
		if hasNUL(elements[i]) {
			return fmt.Errorf("the server accepted row %d: a string holds U+0000", i)
		}
	}
	return nil
}
