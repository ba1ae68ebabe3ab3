package apitest

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
)

// description loads the API description that the server publishes.
func description(t testing.TB) *Document {
	t.Helper()
	text, err := os.ReadFile("../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	d, err := Load(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDescription(t *testing.T) {
	t.Parallel()
	d := description(t)
	info := d.root["info"].(map[string]any)
	if info["version"] != "1.1.0" || d.root["openapi"] != "3.1.0" {
		t.Errorf("revision %v of OpenAPI %v", info["version"], d.root["openapi"])
	}
	want := []Operation{
		{"GET", "/v1/attempts", "attempts:read"},
		{"GET", "/v1/attempts/{id}", "attempts:read"},
		{"POST", "/v1/attempts/{id}/release", "attempts:write"},
		{"GET", "/v1/attributes", "attributes:read"},
		{"POST", "/v1/attributes", "attributes:write"},
		{"DELETE", "/v1/attributes/{key}", "attributes:write"},
		{"GET", "/v1/broadcasts", "broadcasts:read"},
		{"POST", "/v1/broadcasts", "broadcasts:write"},
		{"DELETE", "/v1/broadcasts/{id}", "broadcasts:write"},
		{"GET", "/v1/broadcasts/{id}", "broadcasts:read"},
		{"PATCH", "/v1/broadcasts/{id}", ""},
		{"POST", "/v1/broadcasts/{id}/cancel", "broadcasts:write"},
		{"POST", "/v1/broadcasts/{id}/check", "broadcasts:read"},
		{"POST", "/v1/broadcasts/{id}/pause", "broadcasts:write"},
		{"POST", "/v1/broadcasts/{id}/release", "attempts:write"},
		{"POST", "/v1/broadcasts/{id}/resume", "broadcasts:send"},
		{"DELETE", "/v1/broadcasts/{id}/rows", "broadcasts:write"},
		{"GET", "/v1/broadcasts/{id}/rows", "broadcasts:read"},
		{"POST", "/v1/broadcasts/{id}/rows", "broadcasts:write"},
		{"POST", "/v1/broadcasts/{id}/start", "broadcasts:send"},
		{"POST", "/v1/broadcasts/{id}/unschedule", "broadcasts:write"},
		{"GET", "/v1/channels", "channels:read"},
		{"GET", "/v1/channels/{id}", "channels:read"},
		{"GET", "/v1/channels/{id}/hours", "channels:read"},
		{"DELETE", "/v1/channels/{id}/policy", "policy:write"},
		{"GET", "/v1/channels/{id}/policy", "channels:read"},
		{"PUT", "/v1/channels/{id}/policy", "policy:write"},
		{"GET", "/v1/conflicts", "contacts:read"},
		{"GET", "/v1/conflicts/{id}", "contacts:read"},
		{"POST", "/v1/conflicts/{id}/resolve", "contacts:merge"},
		{"GET", "/v1/contacts", "contacts:read"},
		{"POST", "/v1/contacts", "contacts:write"},
		{"POST", "/v1/contacts/batch", "contacts:write"},
		{"DELETE", "/v1/contacts/{id}", "contacts:write"},
		{"GET", "/v1/contacts/{id}", "contacts:read"},
		{"PATCH", "/v1/contacts/{id}", "contacts:write"},
		{"GET", "/v1/contacts/{id}/conversations", "conversations:read"},
		{"GET", "/v1/contacts/{id}/export", "contacts:read"},
		{"GET", "/v1/contacts/{id}/history", "contacts:read"},
		{"DELETE", "/v1/contacts/{id}/identities", "contacts:write"},
		{"GET", "/v1/contacts/{id}/identities", "contacts:read"},
		{"POST", "/v1/contacts/{id}/merge", "contacts:merge"},
		{"DELETE", "/v1/contacts/{id}/owner", "contacts:write"},
		{"PUT", "/v1/contacts/{id}/owner", "contacts:write"},
		{"GET", "/v1/conversations", "conversations:read"},
		{"POST", "/v1/conversations/outbound", "messages:send"},
		{"GET", "/v1/conversations/{id}", "conversations:read"},
		{"DELETE", "/v1/conversations/{id}/assignee", "conversations:write"},
		{"PUT", "/v1/conversations/{id}/assignee", "conversations:write"},
		{"GET", "/v1/conversations/{id}/messages", "conversations:read"},
		{"POST", "/v1/conversations/{id}/messages", "messages:send"},
		{"GET", "/v1/conversations/{id}/notes", "conversations:read"},
		{"POST", "/v1/conversations/{id}/notes", "conversations:write"},
		{"DELETE", "/v1/conversations/{id}/notes/{note_id}", "conversations:write"},
		{"PUT", "/v1/conversations/{id}/read", "conversations:write"},
		{"GET", "/v1/conversations/{id}/state", "conversations:read"},
		{"PUT", "/v1/conversations/{id}/status", "conversations:write"},
		{"GET", "/v1/events", "events:read"},
		{"GET", "/v1/inbox", "conversations:read"},
		{"GET", "/v1/me", ""},
		{"POST", "/v1/media", "messages:send"},
		{"DELETE", "/v1/media/{id}", "messages:send"},
		{"GET", "/v1/media/{id}", "conversations:read"},
		{"GET", "/v1/media/{id}/content", "conversations:read"},
		{"GET", "/v1/members", "members:read"},
		{"PUT", "/v1/members/{id}/availability", "members:write"},
		{"GET", "/v1/merges", "contacts:read"},
		{"GET", "/v1/merges/{id}", "contacts:read"},
		{"POST", "/v1/merges/{id}/undo", "contacts:merge"},
		{"GET", "/v1/policy", "channels:read"},
		{"PUT", "/v1/policy", "policy:write"},
		{"GET", "/v1/segments", "contacts:read"},
		{"DELETE", "/v1/segments/{key}", "segments:write"},
		{"PUT", "/v1/segments/{key}", "segments:write"},
		{"GET", "/v1/snippets", "templates:read"},
		{"DELETE", "/v1/snippets/{shortcut}", "snippets:write"},
		{"PUT", "/v1/snippets/{shortcut}", "snippets:write"},
		{"GET", "/v1/templates", "templates:read"},
		{"GET", "/v1/webhooks", "webhooks:read"},
		{"POST", "/v1/webhooks", "webhooks:write"},
		{"DELETE", "/v1/webhooks/{id}", "webhooks:write"},
		{"GET", "/v1/webhooks/{id}", "webhooks:read"},
		{"PATCH", "/v1/webhooks/{id}", "webhooks:write"},
		{"GET", "/v1/webhooks/{id}/deliveries", "webhooks:read"},
		{"POST", "/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver", "webhooks:write"},
		{"POST", "/v1/webhooks/{id}/ping", "webhooks:write"},
		{"POST", "/v1/webhooks/{id}/replay", "webhooks:write"},
		{"POST", "/v1/webhooks/{id}/rotate", "webhooks:write"},
	}
	if got := d.Operations(); !slices.Equal(got, want) {
		t.Errorf("operations:\n%v\nwant\n%v", got, want)
	}
}

// TestDescription_generators: no component has the name of another one, and no property is
// true or false in place of a schema. Either is allowed, and generators of clients fail.
func TestDescription_generators(t *testing.T) {
	t.Parallel()
	d := description(t)
	section := map[string]string{}
	for kind, components := range d.root["components"].(map[string]any) {
		for name := range components.(map[string]any) {
			if other, found := section[name]; found {
				t.Errorf("%s is among the %s and the %s", name, kind, other)
			}
			section[name] = kind
		}
	}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(at, e)
			}
		case map[string]any:
			for name, e := range v {
				if properties, ok := e.(map[string]any); ok && name == "properties" {
					for property, schema := range properties {
						if _, ok := schema.(bool); ok {
							t.Errorf("%s: the property %s is %v", at, property, schema)
						}
					}
				}
				walk(at+"/"+name, e)
			}
		}
	}
	walk("", d.root["components"].(map[string]any)["schemas"])
	if len(section) < 100 {
		t.Errorf("%d components", len(section))
	}
}

// TestDescription_defaults: no member of a request has a default in the description. If it
// had one, generators of types would require the member. Instead, its description says what
// happens without it.
func TestDescription_defaults(t *testing.T) {
	t.Parallel()
	var walk func(at string, value any)
	walk = func(at string, value any) {
		switch v := value.(type) {
		case []any:
			for i, e := range v {
				walk(pointer(at, strconv.Itoa(i)), e)
			}
		case map[string]any:
			if _, ok := v["default"]; ok && v["type"] != nil {
				t.Errorf("%s has a default", at)
			}
			for name, e := range v {
				walk(pointer(at, name), e)
			}
		}
	}
	components := description(t).root["components"].(map[string]any)
	walk("/components/schemas", components["schemas"])
}

// TestDescription_examples: every example fits its schema, because readers copy examples.
func TestDescription_examples(t *testing.T) {
	t.Parallel()
	d := description(t)
	count := 0
	check := func(at string, schema string, value any) {
		count++
		compiled, err := d.compile(schema)
		if err != nil {
			t.Fatal(err)
		}
		if err := fits(compiled, value); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	var walk func(at string, value any)
	walk = func(at string, value any) {
		switch v := value.(type) {
		case []any:
			for i, e := range v {
				walk(pointer(at, strconv.Itoa(i)), e)
			}
		case map[string]any:
			switch examples := v["examples"].(type) {
			case []any: // of a schema
				for _, e := range examples {
					check(at, at, e)
				}
			case map[string]any: // of a request or an answer
				for _, name := range slices.Sorted(maps.Keys(examples)) {
					check(at+" "+name, pointer(at, "schema"), examples[name].(map[string]any)["value"])
				}
			}
			if example, ok := v["example"]; ok && v["schema"] != nil {
				check(at, pointer(at, "schema"), example)
			}
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if name != "example" && name != "examples" {
					walk(pointer(at, name), v[name])
				}
			}
		}
	}
	walk("/paths", d.root["paths"])
	walk("/webhooks", d.root["webhooks"])
	walk("/components", d.root["components"])
	if count < 50 {
		t.Errorf("only %d examples were found", count)
	}
}
