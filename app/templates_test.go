package app_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"parley/app"
	"parley/desk"
)

// hinted returns a template whose variables are guessed in every way.
func hinted() desk.TemplateSource {
	return desk.TemplateSource{Name: "meet", Language: "en", Source: `{"name":"meet","language":"en","status":"APPROVED","parameter_format":"NAMED",
		"components":[{"type":"BODY","text":"Hi {{first_name}} {{last_name}}, {{full_name}}! {{agent}} ({{agent_first_name}}, {{agent_last_name}}) on {{topic}}."}]}`}
}

// TestTemplates_hints tries the ways in which a caller can name the agent and the customer
// (contract §6).
func TestTemplates_hints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.put(named("Mary Ann Evans"), phoned(number))
	nameless := w.put(phoned("905321110002"))
	const unknown = "905321110099"

	agent := func(full, first, last string) map[desk.Binding]desk.HintValue {
		return map[desk.Binding]desk.HintValue{desk.AgentName: {Value: full, Source: desk.FromMember}, desk.AgentFirstName: {Value: first, Source: desk.FromMember}, desk.AgentLastName: {Value: last, Source: desk.FromMember}}
	}
	customer := func(full, first, last string, source desk.HintSource) map[desk.Binding]desk.HintValue {
		m := map[desk.Binding]desk.HintValue{desk.CustomerName: {Value: full, Source: source}, desk.CustomerFirstName: {Value: first, Source: source}}
		if last != "" {
			m[desk.CustomerLastName] = desk.HintValue{Value: last, Source: source}
		}
		return m
	}
	both := func(a, b map[desk.Binding]desk.HintValue) map[desk.Binding]desk.HintValue {
		m := maps.Clone(a)
		maps.Copy(m, b)
		return m
	}
	ada := agent("Ada Lovelace", "Ada", "Lovelace")
	stored := customer("Mary Ann Evans", "Mary Ann", "Evans", desk.FromContact)
	given := customer("Bob", "Bob", "", desk.FromRequest)
	email, id, nobody := "ADA@example.com", w.ada.ID.String(), "nobody@example.com"
	for _, c := range []struct {
		name     string
		query    app.TemplateQuery
		agent    desk.ID
		customer *app.TemplateContact
		want     map[desk.Binding]desk.HintValue
	}{
		{"nothing", app.TemplateQuery{}, desk.ID{}, nil, nil},
		{"an agent", app.TemplateQuery{Agent: &email}, w.ada.ID, nil, ada},
		{"an agent by id", app.TemplateQuery{Agent: &id}, w.ada.ID, nil, ada},
		{"an unknown agent", app.TemplateQuery{Agent: &nobody}, desk.ID{}, nil, nil},
		{"a contact", app.TemplateQuery{Contact: &ann.ID}, desk.ID{}, &app.TemplateContact{ID: ann.ID, Name: ann.Name}, stored},
		{"a phone", app.TemplateQuery{Phone: phoneOf(number)}, desk.ID{}, &app.TemplateContact{ID: ann.ID, Name: ann.Name}, stored},
		{"an unknown phone", app.TemplateQuery{Phone: phoneOf(unknown)}, desk.ID{}, &app.TemplateContact{}, nil},
		{"a contact without a name", app.TemplateQuery{Contact: &nameless.ID}, desk.ID{}, &app.TemplateContact{ID: nameless.ID}, nil},
		{"a name alone", app.TemplateQuery{Name: "Bob"}, desk.ID{}, &app.TemplateContact{Name: "Bob"}, nil},
		{"a name of blanks", app.TemplateQuery{Name: " \t"}, desk.ID{}, nil, nil},
		{"a name over the stored one", app.TemplateQuery{Contact: &ann.ID, Name: " Bob "}, desk.ID{}, &app.TemplateContact{ID: ann.ID, Name: "Bob"}, given},
		{"blanks over the stored one", app.TemplateQuery{Contact: &ann.ID, Name: "  "}, desk.ID{}, &app.TemplateContact{ID: ann.ID, Name: ann.Name}, stored},
		{"a name where none is stored", app.TemplateQuery{Contact: &nameless.ID, Name: "Bob"}, desk.ID{}, &app.TemplateContact{ID: nameless.ID, Name: "Bob"}, given},
		{"a name for a known phone", app.TemplateQuery{Phone: phoneOf(number), Name: "Bob"}, desk.ID{}, &app.TemplateContact{ID: ann.ID, Name: "Bob"}, given},
		{"a name for an unknown phone", app.TemplateQuery{Phone: phoneOf(unknown), Name: "Bob"}, desk.ID{}, &app.TemplateContact{Name: "Bob"}, given},
		{"an agent and a name", app.TemplateQuery{Agent: &email, Name: "Bob"}, w.ada.ID, &app.TemplateContact{Name: "Bob"}, both(ada, given)},
		{"an unknown agent and a name", app.TemplateQuery{Agent: &nobody, Name: "Bob"}, desk.ID{}, &app.TemplateContact{Name: "Bob"}, given},
		{"an unknown agent and a contact", app.TemplateQuery{Agent: &nobody, Contact: &ann.ID}, desk.ID{}, &app.TemplateContact{ID: ann.ID, Name: ann.Name}, stored},
		{"an agent and a contact", app.TemplateQuery{Agent: &email, Contact: &ann.ID}, w.ada.ID, &app.TemplateContact{ID: ann.ID, Name: ann.Name}, both(ada, stored)},
	} {
		l, err := w.Templates(t.Context(), w.caller(), c.query)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if l.Channel.ID != w.channel || len(l.Library.Templates) != 4 {
			t.Errorf("%s: channel %s, %d templates", c.name, l.Channel.ID, len(l.Library.Templates))
		}
		if (l.Agent == nil) != c.agent.IsZero() || l.Agent != nil && l.Agent.ID != c.agent {
			t.Errorf("%s: agent %+v", c.name, l.Agent)
		}
		if (l.Customer == nil) != (c.customer == nil) || l.Customer != nil && *l.Customer != *c.customer {
			t.Errorf("%s: customer %+v, want %+v", c.name, l.Customer, c.customer)
		}
		if !maps.Equal(l.Values, c.want) {
			t.Errorf("%s: values %v, want %v", c.name, l.Values, c.want)
		}
	}
	_, err := w.Templates(t.Context(), w.caller(), app.TemplateQuery{Contact: &desk.ID{9}})
	refused(t, err, desk.NotFound)
}

// TestTemplates_picks_the_channel: the channel is picked as for a send, but the error is
// InvalidRequest if there are several.
func TestTemplates_picks_the_channel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	another := w.addChannel()
	templates := func(channel *desk.ID) (desk.ID, error) {
		l, err := w.Templates(t.Context(), w.caller(), app.TemplateQuery{Channel: channel})
		if err != nil {
			return desk.ID{}, err
		}
		return l.Channel.ID, nil
	}
	_, err := templates(nil)
	refused(t, err, desk.InvalidRequest)
	_, err = templates(&desk.ID{9})
	refused(t, err, desk.NotFound)
	if got, err := templates(&another); got != another || err != nil {
		t.Errorf("by id: %s, %v", got, err)
	}
	no := false
	_, err = w.EditChannel(t.Context(), w.operator(), another, app.ChannelEdit{Enabled: &no})
	must(t, err)
	if got, err := templates(nil); got != w.channel || err != nil {
		t.Errorf("the one that is enabled: %s, %v", got, err)
	}
	if got, err := templates(&another); got != another || err != nil {
		t.Errorf("the one that is not: %s, %v", got, err)
	}
}

// TestSyncChannel: the fetched library is used from the next call on, on each node. An
// unchanged library does not get a new version.
func TestSyncChannel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.node(&faultyStore{Store: w.file}, app.Bounds{})
	names := func(a *app.App) (list []string) {
		t.Helper()
		l, err := a.Templates(t.Context(), w.caller(), app.TemplateQuery{})
		must(t, err)
		for _, tmpl := range l.Library.Templates {
			list = append(list, tmpl.Name+"/"+tmpl.Language)
		}
		return list
	}
	versions := func() [2]int64 {
		s := w.caller().Settings
		return [2]int64{s.Version, s.Channel(w.channel).Library}
	}
	want := []string{"hello/en", "hello/tr", "order_update/en_US", "sale/en"}
	for _, a := range []*app.App{w.App, other} {
		if got := names(a); !slices.Equal(got, want) {
			t.Errorf("at first: %v", got)
		}
	}
	before := versions()
	slices.Reverse(w.provider.library)
	if n, unreadable, err := w.SyncChannel(t.Context(), w.operator(), w.channel); n != 4 || unreadable != 0 || err != nil {
		t.Errorf("synced %d, %d unreadable, %v", n, unreadable, err)
	}
	if after := versions(); after != before {
		t.Errorf("nothing changed, and the versions went from %v to %v", before, after)
	}
	w.provider.library = []desk.TemplateSource{
		template("hello", "en", "UTILITY", "", "Good day!"), hinted(), {Name: "broken", Language: "en", Source: `{"name":"broken"}`},
	}
	if n, unreadable, err := w.SyncChannel(t.Context(), w.operator(), w.channel); n != 2 || unreadable != 1 || err != nil {
		t.Errorf("synced %d, %d unreadable, %v", n, unreadable, err)
	}
	if after := versions(); after[0] <= before[0] || after[1] <= before[1] {
		t.Errorf("the versions went from %v to %v", before, after)
	}
	for _, a := range []*app.App{w.App, other} {
		if got, want := names(a), []string{"hello/en", "hello/tr", "meet/en", "order_update/en_US", "sale/en"}; !slices.Equal(got, want) {
			t.Errorf("then: %v", got)
		}
	}
	library, err := w.TemplatesOf(t.Context(), w.operator(), w.channel)
	must(t, err)
	for _, tmpl := range library.Templates { // templates that the provider no longer has are kept, but can't be sent
		if vanished := tmpl.Name != "hello" && tmpl.Name != "meet" || tmpl.Language == "tr"; vanished != (tmpl.Status == "deleted") || vanished == tmpl.Sendable() {
			t.Errorf("%s/%s is %s, sendable: %v", tmpl.Name, tmpl.Language, tmpl.Status, tmpl.Sendable())
		}
	}
	if m := w.sent("k"); m.Message.Text != "Good day!" {
		t.Errorf("sent %q", m.Message.Text)
	}
	refused(t, w.send("2", of("sale", "en")).err, desk.TemplateNotSendable)
	if lines := w.logged(1, "broken"); len(lines) != 1 {
		t.Errorf("logged: %q", lines)
	}
	_, _, err = w.SyncChannel(t.Context(), w.operator(), desk.ID{9})
	refused(t, err, desk.NotFound)
}

// TestSyncChannel_of_a_list_that_moved: a template that the provider lists twice, because one
// was added while its pages were read, is stored once.
func TestSyncChannel_of_a_list_that_moved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.library = append(w.provider.library, w.provider.library[0])
	if n, _, err := w.SyncChannel(t.Context(), w.operator(), w.channel); n != 4 || err != nil {
		t.Errorf("synced %d, %v", n, err)
	}
}

// TestPutTemplate: a template can be used in the next call. It replaces one with the same name
// and language.
func TestPutTemplate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.library = nil
	for _, body := range []string{"Hello!", "Hello again!"} {
		tmpl, err := w.PutTemplate(t.Context(), w.operator(), w.channel, []byte(template("hello", "en", "UTILITY", "", body).Source))
		must(t, err)
		if tmpl.Name != "hello" || !tmpl.Sendable() {
			t.Errorf("put %+v", tmpl)
		}
		if m := w.sent(body); m.Message.Text != body {
			t.Errorf("sent %q", m.Message.Text)
		}
	}
	l, err := w.Templates(t.Context(), w.caller(), app.TemplateQuery{})
	sendable := slices.DeleteFunc(slices.Clone(l.Library.Templates), func(t *desk.Template) bool { return !t.Sendable() })
	if err != nil || len(sendable) != 1 {
		t.Errorf("the library: %+v, %v", sendable, err)
	}
	_, err = w.PutTemplate(t.Context(), w.operator(), w.channel, []byte(`{}`))
	refused(t, err, desk.InvalidRequest)
	_, err = w.PutTemplate(t.Context(), w.operator(), desk.ID{9}, []byte(`{}`))
	refused(t, err, desk.NotFound)
}

// TestEditChannel_bindings: a configured binding replaces the guess until it is removed. Only
// existing variables can be configured.
func TestEditChannel_bindings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.library = []desk.TemplateSource{hinted()}
	_, _, err := w.SyncChannel(t.Context(), w.operator(), w.channel)
	must(t, err)
	binds := func() []desk.Binding {
		t.Helper()
		l, err := w.Templates(t.Context(), w.caller(), app.TemplateQuery{})
		must(t, err)
		return l.Channel.Binds(l.Library.Find("meet", "en"))
	}
	guess := []desk.Binding{desk.CustomerFirstName, desk.CustomerLastName, desk.CustomerName, desk.AgentName, desk.AgentFirstName, desk.AgentLastName, desk.Free}
	configured := slices.Clone(guess)
	configured[0], configured[6] = desk.Free, desk.AgentName
	place := func(address string) desk.BindingPlace {
		return desk.BindingPlace{Template: "meet", Language: "en", Address: address}
	}
	edit := func(bindings map[desk.BindingPlace]desk.Binding) error {
		_, err := w.EditChannel(t.Context(), w.operator(), w.channel, app.ChannelEdit{Bindings: bindings})
		return err
	}
	if got := binds(); !slices.Equal(got, guess) {
		t.Errorf("at first: %v", got)
	}
	must(t, edit(map[desk.BindingPlace]desk.Binding{place("first_name"): desk.Free, place("topic"): desk.AgentName}))
	if got := binds(); !slices.Equal(got, configured) {
		t.Errorf("configured: %v", got)
	}
	for _, wrong := range []desk.BindingPlace{place("nothing"), place("header.first_name"), {Template: "meet", Language: "tr", Address: "topic"}, {Template: "hello", Language: "en", Address: "topic"}} {
		err := edit(map[desk.BindingPlace]desk.Binding{place("agent"): desk.Free, wrong: desk.AgentName})
		refused(t, err, desk.InvalidRequest)
	}
	must(t, edit(nil))
	if got := binds(); !slices.Equal(got, configured) {
		t.Errorf("after edits of nothing, and of places that are not there: %v", got)
	}
	earlier := w.caller().Settings.Channel(w.channel)
	must(t, edit(map[desk.BindingPlace]desk.Binding{place("first_name"): "", place("topic"): ""}))
	if len(earlier.Bindings) != 2 { // settings are shared between readers
		t.Errorf("settings that were read before have become %v", earlier.Bindings)
	}
	if got := binds(); !slices.Equal(got, guess) {
		t.Errorf("taken back: %v", got)
	}
	_, err = w.EditChannel(t.Context(), w.operator(), desk.ID{9}, app.ChannelEdit{})
	refused(t, err, desk.NotFound)
}

// TestEditChannel_binding_that_lost_its_place: a binding can be removed even if its
// variable no longer exists.
func TestEditChannel_binding_that_lost_its_place(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.library = []desk.TemplateSource{hinted()}
	_, _, err := w.SyncChannel(t.Context(), w.operator(), w.channel)
	must(t, err)
	place := desk.BindingPlace{Template: "meet", Language: "en", Address: "topic"}
	_, err = w.EditChannel(t.Context(), w.operator(), w.channel, app.ChannelEdit{Bindings: map[desk.BindingPlace]desk.Binding{place: desk.AgentName}})
	must(t, err)
	w.provider.library = []desk.TemplateSource{template("hello", "en", "UTILITY", "", "Hello!")}
	_, _, err = w.SyncChannel(t.Context(), w.operator(), w.channel)
	must(t, err)
	c, err := w.EditChannel(t.Context(), w.operator(), w.channel, app.ChannelEdit{Bindings: map[desk.BindingPlace]desk.Binding{place: ""}})
	if err != nil || len(c.Bindings) != 0 {
		t.Errorf("bindings %v, %v", c.Bindings, err)
	}
}

// TestSandbox_only: messages can't be simulated on a channel with real customers.
func TestSandbox_only(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	real := desk.Channel{ID: w.clock.newID(), Kind: desk.WhatsAppChannel, ExternalID: "1", Enabled: true, Library: 1}
	must(t, w.file.UpdateSettings(t.Context(), w.ws, func(*desk.Settings) (desk.Change, error) { return desk.Change{Channel: &real}, nil }))
	_, err := w.PutTemplate(t.Context(), w.operator(), real.ID, []byte(template("hello", "en", "UTILITY", "", "Hello!").Source))
	refused(t, err, desk.InvalidRequest)
	_, err = w.ReceiveSimulated(t.Context(), w.operator(), real.ID, "+"+number, "", "Hi")
	refused(t, err, desk.InvalidRequest)
	w.holds(0, 0, 0)
}

// TestChannels: an operator adds, lists, checks, enables and disables channels.
func TestChannels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at, _, err := w.AddChannel(t.Context(), w.operator(), app.NewChannel{Kind: desk.SandboxChannel, ExternalID: "my-number"})
	must(t, err)
	made := at.Channel
	if made.Kind != desk.SandboxChannel || made.ExternalID != "my-number" || !made.Enabled {
		t.Errorf("added %+v", made)
	}
	for _, taken := range []string{"my-number", "\x00", fmt.Sprintf("%0256d", 1)} {
		_, _, err := w.AddChannel(t.Context(), w.operator(), app.NewChannel{Kind: desk.SandboxChannel, ExternalID: taken})
		refused(t, err, desk.InvalidRequest)
	}
	_, err = w.Operator(t.Context(), desk.ID{9})
	refused(t, err, desk.NotFound)
	list := w.operator().Settings.Channels()
	if len(list) != 2 || list[0].ID != w.channel || list[1].ID != made.ID || list[0].ExternalID == "" {
		t.Errorf("listed %+v", list)
	}
	if problems, err := w.CheckChannel(t.Context(), w.operator(), made.ID); len(problems) != 0 || err != nil {
		t.Errorf("problems: %v, %v", problems, err)
	}
	no := false
	edited, err := w.EditChannel(t.Context(), w.operator(), made.ID, app.ChannelEdit{Enabled: &no})
	if err != nil || edited.Enabled {
		t.Errorf("edited %+v, %v", edited, err)
	}
	if problems, err := w.CheckChannel(t.Context(), w.operator(), made.ID); len(problems) != 1 || err != nil {
		t.Errorf("problems: %v, %v", problems, err)
	}
	_, err = w.CheckChannel(t.Context(), w.operator(), desk.ID{9})
	refused(t, err, desk.NotFound)
	_, err = w.CheckChannel(t.Context(), w.operator(), w.ada.ID) // the id is that of a member, not of a channel
	refused(t, err, desk.NotFound)
}
