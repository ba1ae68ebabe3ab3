package main

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"parley/desk"
)

func TestDemoTemplates(t *testing.T) {
	t.Parallel()
	library := demoLibrary(t)
	if len(library.Templates) != 10 {
		t.Errorf("%d templates, want 10", len(library.Templates))
	}
	var sendable int
	unseen := slices.Clone(desk.TemplateReasons)
	for _, template := range library.Templates {
		if template.Sendable() {
			sendable++
		}
		unseen = slices.DeleteFunc(unseen, func(reason string) bool { return slices.Contains(template.Reasons, reason) })
	}
	if sendable != 5 || len(unseen) > 0 {
		t.Errorf("%d can be sent, want 5; none can't be because of %v", sendable, unseen)
	}
	for _, text := range demoBindings {
		place, b, err := desk.ParseBindingPlace(text)
		if err != nil {
			t.Fatal(err)
		}
		template := library.Find(place.Template, place.Language)
		if template == nil || b == "" || !slices.ContainsFunc(template.Variables, func(v desk.Variable) bool { return v.Address() == place.Address }) {
			t.Errorf("there is nothing that %s could bind", text)
		}
	}
}

func TestDemoTalks(t *testing.T) {
	t.Parallel()
	library := demoLibrary(t)
	held := map[int]bool{}
	for _, talk := range demoTalks {
		who := demoPerson(talk.person).Write
		if held[talk.person] || who.Phone.Value == "" {
			t.Errorf("person %d has no phone, or two conversations", talk.person)
		}
		held[talk.person] = true
		said := false
		for _, line := range talk.lines {
			if line.said != "" || line.photo != "" {
				said = true
				continue
			}
			if line.template == "" {
				if line.answered != "" && talk.ago > 23*time.Hour {
					t.Errorf("person %d can't be answered after a day", talk.person)
				}
				if !who.Owner.Has() && talk.given == "" && (line.answered != "" || line.noted != "") {
					t.Errorf("nobody speaks with person %d", talk.person)
				}
				continue
			}
			template := library.Find(line.template, line.language)
			if template == nil || !template.Sendable() {
				t.Fatalf("person %d: %s can't be sent", talk.person, line.template)
			}
			if _, err := template.Values(desk.TemplateValues{List: line.values}); err != nil {
				t.Errorf("person %d: %v", talk.person, err)
			}
			// A variable that is bound to the contact's name must have the recipient's name.
			for i, v := range template.Variables {
				b := (&desk.Channel{Bindings: demoPlaces(t)}).Binds(template)[i]
				if hint, ok := desk.HintValues(nil, who.Name.Value, desk.FromContact)[b]; ok && hint.Value != line.values[i] {
					t.Errorf("person %d is called %s %s, want %s", talk.person, v.Address(), line.values[i], hint.Value)
				}
			}
		}
		if (talk.given != "" || talk.status != "") && !said {
			t.Errorf("person %d says nothing, so the conversation can't be given or closed", talk.person)
		}
	}
}

func demoLibrary(t *testing.T) *desk.Library {
	t.Helper()
	var sources []json.RawMessage
	if err := json.Unmarshal(demoTemplates, &sources); err != nil {
		t.Fatal(err)
	}
	var list []*desk.Template
	for _, source := range sources {
		template, err := desk.ParseTemplate(source)
		if err != nil {
			t.Fatalf("%v: %s", err, source)
		}
		list = append(list, template)
	}
	return desk.NewLibrary(1, list)
}

func demoPlaces(t *testing.T) map[desk.BindingPlace]desk.Binding {
	t.Helper()
	places := map[desk.BindingPlace]desk.Binding{}
	for _, text := range demoBindings {
		place, b, err := desk.ParseBindingPlace(text)
		if err != nil {
			t.Fatal(err)
		}
		places[place] = b
	}
	return places
}
