package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A description is the description of the API, an OpenAPI document.
type description map[string]any

// An object is a JSON object.
type object = map[string]any

func parseDescription(document []byte) (d description, err error) {
	if err = json.Unmarshal(document, &d); err != nil {
		return nil, fmt.Errorf("the API description: %w", err)
	}
	return d, nil
}

// at returns the object at a path of names. The description must have it.
func (d description) at(path ...string) object {
	here := object(d)
	for _, name := range path {
		next, ok := here[name].(object)
		if !ok {
			panic(fmt.Sprintf("the API description has no %q", path))
		}
		here = next
	}
	return here
}

func (d description) operation(method, path string) object {
	return d.at("paths", path, strings.ToLower(method))
}

// body returns the schema of an operation's request body.
func (d description) body(method, path string) object {
	op := description(d.operation(method, path))
	return d.plain(op.at("requestBody", "content", "application/json", "schema")).(object)
}

// forURLs matches the sentences of a description that concern only URLs.
var forURLs = regexp.MustCompile(" ?Write [^.]*`%2B`\\.")

// query returns a schema of an operation's query parameters, except the given ones.
func (d description) query(method, path string, without ...string) object {
	properties := object{}
	list, _ := d.operation(method, path)["parameters"].([]any)
	for _, entry := range list {
		p := d.plain(entry).(object)
		name := p["name"].(string)
		if p["in"] != "query" || slices.Contains(without, name) {
			continue
		}
		schema := maps.Clone(p["schema"].(object))
		if text, ok := p["description"].(string); ok {
			schema["description"] = forURLs.ReplaceAllString(text, "")
		}
		properties[name] = schema
	}
	return object{"type": "object", "properties": properties, "additionalProperties": false}
}

// plain copies a part of the description in a form that models read well. References are
// replaced by their targets, and keywords that only some validators know are left out.
func (d description) plain(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = d.plain(e)
		}
		return list
	case object:
		plain := object{}
		if ref, ok := v["$ref"].(string); ok {
			plain = d.plain(d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)).(object)
		}
		for name, value := range v {
			switch name {
			case "$ref", "not", "if", "then", "else", "discriminator":
			default:
				plain[name] = d.plain(value)
			}
		}
		return plain
	}
	return v
}
