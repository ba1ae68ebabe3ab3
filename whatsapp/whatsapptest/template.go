package whatsapptest

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

//go:embed testdata/templates_page*.json testdata/phone_number.json testdata/debug_token.json
var testdata embed.FS

// A Template is a template in the form of the list: a JSON object.
type Template map[string]any

func (t Template) text(key string) string {
	text, _ := t[key].(string)
	return text
}

// Library returns the templates that a simulator has by default: 18, of all kinds.
func Library() []Template {
	var list []Template
	for page := range 3 {
		f, err := testdata.Open(fmt.Sprintf("testdata/templates_page%d.json", page+1))
		if err != nil {
			panic(err) // it is embedded in the program
		}
		more, err := ReadTemplates(f)
		if err != nil {
			panic(err)
		}
		list = append(list, more...)
	}
	return list
}

// ReadTemplates reads a page of the list of templates, or a bare array of them.
func ReadTemplates(r io.Reader) ([]Template, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var page struct {
		Data []Template `json:"data"`
	}
	into := any(&page)
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("[")) {
		into = &page.Data
	}
	if err := numbers(b, into); err != nil {
		return nil, fmt.Errorf("templates: %w", err)
	}
	if page.Data == nil {
		return nil, fmt.Errorf("templates: neither an array nor a page with data")
	}
	for i, t := range page.Data {
		if t.text("name") == "" || t.text("language") == "" {
			return nil, fmt.Errorf("templates: number %d has no name or no language", i+1)
		}
	}
	return page.Data, nil
}

// numbers is like json.Unmarshal, but keeps numbers as they are written.
func numbers(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("more than one JSON value")
	}
	return nil
}

// Templates returns the library.
func (s *Simulator) Templates() []Template {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.templates)
}

// SetTemplates replaces the library. A template without an id gets an id, and a template
// without a status is approved.
func (s *Simulator) SetTemplates(list []Template) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.templates = nil
	for _, t := range list {
		t = asRead(t)
		if t.text("id") == "" {
			t["id"] = s.newTemplateID()
		}
		if t.text("status") == "" {
			t["status"] = "APPROVED"
		}
		s.templates = append(s.templates, t)
	}
}

// asRead returns a template as if it was decoded from JSON. A test may have used other Go
// types.
func asRead(t Template) Template {
	b, err := json.Marshal(t)
	if err == nil {
		t = nil
		err = numbers(b, &t)
	}
	if err != nil {
		panic(err) // a test used a value that is not allowed in JSON
	}
	return t
}

func (s *Simulator) newTemplateID() string {
	s.made++
	return fmt.Sprint(910000000000000 + s.made)
}

// find returns the index of a template, or -1. The caller holds s.mu.
func (s *Simulator) find(name, language string) int {
	return slices.IndexFunc(s.templates, func(t Template) bool { return t.text("name") == name && t.text("language") == language })
}

// A TemplatePatch changes a template. Empty fields do not change it.
type TemplatePatch struct {
	Status     string           `json:"status,omitempty"`
	Reason     string           `json:"reason,omitempty"` // of a rejection
	Category   string           `json:"category,omitempty"`
	Quality    string           `json:"quality,omitempty"`
	Components []map[string]any `json:"components,omitempty"`

	Quiet        bool `json:"quiet,omitempty"`         // no webhook is posted
	WebhookFirst bool `json:"webhook_first,omitempty"` // the webhook is posted and answered before the list changes
}

// TemplateSet changes a template, and posts a webhook for each changed field. The status
// may also be one that exists only in webhooks, such as FLAGGED.
func (s *Simulator) TemplateSet(name, language string, p TemplatePatch) error {
	s.mu.Lock()
	i := s.find(name, language)
	if i < 0 {
		s.mu.Unlock()
		return fmt.Errorf("there is no template %s in %s", name, language)
	}
	before := s.templates[i]
	s.mu.Unlock()
	after := p.applied(before)
	if p.WebhookFirst && !p.Quiet {
		for _, d := range s.tellTemplate(before, after, p) {
			d.Wait()
		}
	}
	s.mu.Lock()
	if i := s.find(name, language); i >= 0 {
		s.templates[i] = after
	}
	s.mu.Unlock()
	if !p.WebhookFirst && !p.Quiet {
		s.tellTemplate(before, after, p)
	}
	return nil
}

// applied returns a copy of the template with the changes.
func (p TemplatePatch) applied(t Template) Template {
	t = maps.Clone(t)
	switch p.Status {
	case "":
	case "FLAGGED", "LOCKED":
	case "REINSTATED", "UNARCHIVED":
		t["status"] = "APPROVED"
	default:
		t["status"] = p.Status
		t["rejected_reason"] = "NONE"
	}
	if p.Reason != "" {
		t["rejected_reason"] = p.Reason
	}
	if p.Category != "" {
		t["previous_category"], t["category"] = t["category"], p.Category
	}
	if p.Quality != "" {
		t["quality_score"] = map[string]any{"score": p.Quality}
	}
	if p.Components != nil {
		t["components"] = p.Components
	}
	return asRead(t)
}

func (s *Simulator) tellTemplate(before, after Template, p TemplatePatch) (told []*Delivery) {
	tell := func(field string, more map[string]any) {
		value := named(after)
		maps.Copy(value, more)
		told = append(told, s.Change(field, value))
	}
	if p.Status != "" {
		tell("message_template_status_update", statusOf(after, p))
	}
	if p.Category != "" {
		tell("template_category_update", map[string]any{"new_category": p.Category, "previous_category": before["category"]})
	}
	if p.Quality != "" {
		tell("message_template_quality_update", map[string]any{"previous_quality_score": quality(before), "new_quality_score": p.Quality})
	}
	if p.Components != nil {
		tell("message_template_components_update", elements(after))
	}
	return told
}

// named returns the fields that every webhook about a template has. In webhooks, the id
// is a number.
func named(t Template) map[string]any {
	id := any(t.text("id"))
	if digits(t.text("id")) == id {
		id = json.Number(t.text("id"))
	}
	return map[string]any{
		"message_template_id": id, "message_template_name": t["name"], "message_template_language": t["language"],
	}
}

func statusOf(t Template, p TemplatePatch) map[string]any {
	reason := p.Reason
	orElse(&reason, "NONE")
	value := map[string]any{"event": p.Status, "reason": reason, "message_template_category": t["category"]}
	switch {
	case p.Status == "PAUSED":
		value["other_info"] = map[string]any{"title": "FIRST_PAUSE", "description": "Paused because of low quality."}
	case p.Status == "REJECTED" && p.Reason == "INVALID_FORMAT":
		value["rejection_info"] = map[string]any{"reason": "Two variables stand side by side.", "recommendation": "Put words between them."}
	}
	return value
}

func quality(t Template) any {
	score, _ := t["quality_score"].(map[string]any)
	if score["score"] == nil {
		return "UNKNOWN"
	}
	return score["score"]
}

// elements returns the components in the form of a webhook, which has fewer fields than
// the list.
func elements(t Template) map[string]any {
	value := map[string]any{}
	for _, c := range t.components() {
		switch c.text("type") {
		case "BODY":
			value["message_template_element"] = c["text"]
		case "HEADER":
			if c["text"] != nil {
				value["message_template_title"] = c["text"]
			}
		case "FOOTER":
			value["message_template_footer"] = c["text"]
		}
	}
	return value
}

// components returns the template's components, with their types in upper case.
func (t Template) components() []Template { return t.objects("components") }

func (t Template) objects(key string) (list []Template) {
	items, _ := t[key].([]any)
	for _, item := range items {
		if c, ok := item.(map[string]any); ok {
			c = maps.Clone(c)
			c["type"] = strings.ToUpper(Template(c).text("type"))
			list = append(list, c)
		}
	}
	return list
}

// TemplateDelete deletes a template, and posts a webhook.
func (s *Simulator) TemplateDelete(name, language string) error {
	s.mu.Lock()
	i := s.find(name, language)
	if i < 0 {
		s.mu.Unlock()
		return fmt.Errorf("there is no template %s in %s", name, language)
	}
	gone := s.templates[i]
	s.templates = slices.Delete(slices.Clone(s.templates), i, i+1)
	s.mu.Unlock()
	s.tellTemplate(gone, gone, TemplatePatch{Status: "DELETED"})
	return nil
}

// TemplateRecreate deletes a template and creates it again. It returns the new id.
func (s *Simulator) TemplateRecreate(name, language string) (string, error) {
	s.mu.Lock()
	i := s.find(name, language)
	if i < 0 {
		s.mu.Unlock()
		return "", fmt.Errorf("there is no template %s in %s", name, language)
	}
	gone, again := s.templates[i], maps.Clone(s.templates[i])
	again["id"] = s.newTemplateID()
	s.templates[i] = again
	s.mu.Unlock()
	s.tellTemplate(gone, gone, TemplatePatch{Status: "DELETED"})
	s.tellTemplate(again, again, TemplatePatch{Status: again.text("status")})
	return again.text("id"), nil
}
