package apitest

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// addDeliveries compiles the section webhooks: the requests that the server makes.
func (d *Document) addDeliveries() error {
	webhooks, _ := d.root["webhooks"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(webhooks)) {
		at, source, err := d.at(pointer("", "webhooks", name, "post"))
		if err != nil {
			return err
		}
		op := &operation{Operation: Operation{Method: http.MethodPost, Path: name}, header: map[string]*parameter{}, source: source}
		if err := d.parameters(op, at, source); err != nil {
			return fmt.Errorf("webhook %s: %w", name, err)
		}
		if op.body, err = d.compile(pointer(at, "requestBody", "content", "application/json", "schema")); err != nil {
			return err
		}
		d.deliveries = append(d.deliveries, op)
	}
	return nil
}

// CheckDelivery returns an error unless a request that the server has made to an endpoint
// is one of the description's webhooks. It returns the webhook's name.
func (d *Document) CheckDelivery(req *http.Request, body []byte) (name string, err error) {
	if req.Method != http.MethodPost {
		return "", fmt.Errorf("a delivery by %s", req.Method)
	}
	if got := req.Header.Get("Content-Type"); got != "application/json" {
		return "", fmt.Errorf("Content-Type is %q", got)
	}
	value, err := read(body)
	if err != nil {
		return "", fmt.Errorf("the body of a delivery: %w", err)
	}
	errs := []error{errors.New("the description has no such webhook")}
	for _, op := range d.deliveries {
		err := op.body.Validate(value)
		if err == nil {
			return op.Path, op.checkHeader(req.Header)
		}
		errs = append(errs, fmt.Errorf("%s: %w", op.Path, err))
	}
	return "", errors.Join(errs...)
}
