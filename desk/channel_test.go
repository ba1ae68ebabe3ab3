package desk_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/desk"
)

func TestParseBindingPlace(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]struct {
		place desk.BindingPlace
		bound desk.Binding
	}{
		"order_update/en_US/1=customer_name":                 {desk.BindingPlace{Template: "order_update", Language: "en_US", Address: "1"}, desk.CustomerName},
		"order_update/en_US/header.1=agent_first_name":       {desk.BindingPlace{Template: "order_update", Language: "en_US", Address: "header.1"}, desk.AgentFirstName},
		"siparis_hazir/tr/temsilci_adi=free":                 {desk.BindingPlace{Template: "siparis_hazir", Language: "tr", Address: "temsilci_adi"}, desk.Free},
		"siparis_hazir/tr/temsilci_adi=guess":                {desk.BindingPlace{Template: "siparis_hazir", Language: "tr", Address: "temsilci_adi"}, ""},
		"welcome/zh_Hant_TW/header.Name=customer_first_name": {desk.BindingPlace{Template: "welcome", Language: "zh_Hant_TW", Address: "header.Name"}, desk.CustomerFirstName},
	} {
		if place, b, err := desk.ParseBindingPlace(sent); place != want.place || b != want.bound || err != nil {
			t.Errorf("%q: %v %q %v", sent, place, b, err)
		}
	}
	for _, sent := range []string{
		"", "=", "a/b/c", "a/b=free", "a/b/c/d=free", "/b/c=free", "a//c=free", "a/b/=free", "a/b/c=", "a/b/c=nobody", "a/b/c=Free", "a/b/c=free=free",
	} {
		if _, b, err := desk.ParseBindingPlace(sent); b != "" || !desk.IsType(err, desk.InvalidRequest) {
			t.Errorf("%q: %q, %v", sent, b, err)
		}
	}
}

// TestChannel_Binds: a configured binding replaces the guess, only for that variable of
// that template.
func TestChannel_Binds(t *testing.T) {
	t.Parallel()
	tmpl := textTemplate(t, "Hi {{first_name}}", "Dear {{first_name}}, {{agent}} has news of {{order}}.", `{"parameter_format":"NAMED"}`)
	place := func(name, language, address string) desk.BindingPlace {
		return desk.BindingPlace{Template: name, Language: language, Address: address}
	}
	for _, c := range []struct {
		name     string
		bindings map[desk.BindingPlace]desk.Binding
		want     []desk.Binding
	}{
		{"nothing", nil, []desk.Binding{desk.CustomerFirstName, desk.CustomerFirstName, desk.AgentName, desk.Free}},
		{"one of two alike", map[desk.BindingPlace]desk.Binding{place(tmpl.Name, tmpl.Language, "header.first_name"): desk.AgentFirstName},
			[]desk.Binding{desk.AgentFirstName, desk.CustomerFirstName, desk.AgentName, desk.Free}},
		{"free over a guess, a name over none", map[desk.BindingPlace]desk.Binding{
			place(tmpl.Name, tmpl.Language, "agent"): desk.Free, place(tmpl.Name, tmpl.Language, "order"): desk.CustomerLastName,
		}, []desk.Binding{desk.CustomerFirstName, desk.CustomerFirstName, desk.Free, desk.CustomerLastName}},
		{"elsewhere", map[desk.BindingPlace]desk.Binding{
			place("another", tmpl.Language, "order"): desk.CustomerName, place(tmpl.Name, "tr", "order"): desk.CustomerName,
			place(tmpl.Name, tmpl.Language, "header.order"): desk.CustomerName,
		}, []desk.Binding{desk.CustomerFirstName, desk.CustomerFirstName, desk.AgentName, desk.Free}},
	} {
		channel := desk.Channel{Bindings: c.bindings}
		if got := channel.Binds(tmpl); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestPickChannel(t *testing.T) {
	t.Parallel()
	old := desk.Channel{ID: desk.ID{9}, Enabled: true, CreatedAt: 1}
	young := desk.Channel{ID: desk.ID{1}, Enabled: true, CreatedAt: 2}
	off := desk.Channel{ID: desk.ID{5}, CreatedAt: 1}
	alsoOff := desk.Channel{ID: desk.ID{6}, CreatedAt: 3}
	for _, c := range []struct {
		name     string
		channels []desk.Channel
		ask      desk.ID // zero: none
		want     desk.ID // zero: refused
		refusal  desk.ErrorType
		choices  []desk.ID
	}{
		{"by id", []desk.Channel{old, young}, young.ID, young.ID, "", nil},
		{"by id, disabled", []desk.Channel{old, off}, off.ID, off.ID, "", nil},
		{"an unknown id", []desk.Channel{old}, young.ID, desk.ID{}, desk.NotFound, nil},
		{"the only one", []desk.Channel{old}, desk.ID{}, old.ID, "", nil},
		{"the only one, disabled", []desk.Channel{off}, desk.ID{}, off.ID, "", nil},
		{"the only one enabled", []desk.Channel{off, young, alsoOff}, desk.ID{}, young.ID, "", nil},
		{"none", nil, desk.ID{}, desk.ID{}, desk.NotFound, nil},
		{"several enabled", []desk.Channel{young, off, old}, desk.ID{}, desk.ID{}, desk.AmbiguousChannel, []desk.ID{old.ID, young.ID}},
		{"several, none enabled", []desk.Channel{alsoOff, off}, desk.ID{}, desk.ID{}, desk.AmbiguousChannel, []desk.ID{off.ID, alsoOff.ID}},
	} {
		s := desk.NewSettings(desk.Workspace{}, 1, nil, nil, nil, c.channels)
		var ask *desk.ID
		if !c.ask.IsZero() {
			ask = &c.ask
		}
		got, err := s.PickChannel(ask)
		if c.refusal == "" {
			if err != nil || got.ID != c.want {
				t.Errorf("%s: %v, %v", c.name, got, err)
			}
			continue
		}
		var e *desk.Error
		if got != nil || !errors.As(err, &e) || e.Type != c.refusal {
			t.Errorf("%s: %v, %v", c.name, got, err)
			continue
		}
		var choices []desk.ID
		list, _ := e.Details.([]*desk.Channel)
		for _, channel := range list {
			choices = append(choices, channel.ID)
		}
		if !reflect.DeepEqual(choices, c.choices) {
			t.Errorf("%s: to choose from %v", c.name, choices)
		}
	}
}

func TestChannels_by_age(t *testing.T) {
	t.Parallel()
	s := desk.NewSettings(desk.Workspace{}, 1, nil, nil, nil, []desk.Channel{
		{ID: desk.ID{2}, CreatedAt: 5, Kind: desk.WhatsAppChannel}, {ID: desk.ID{3}, CreatedAt: 4, Kind: desk.SandboxChannel}, {ID: desk.ID{1}, CreatedAt: 5},
	})
	var order []desk.ID
	for _, c := range s.Channels() {
		order = append(order, c.ID)
		if s.Channel(c.ID) != c || !c.SupportsTemplates() {
			t.Errorf("%s", c.ID)
		}
	}
	if want := []desk.ID{{3}, {1}, {2}}; !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
	if s.Channel(desk.ID{}) != nil || s.Channel(desk.ID{9}) != nil {
		t.Error("there is a channel that nobody added")
	}
}

// TestTemplateSource_WithStatus: only the status changes, in the provider's own form. The
// same status changes nothing.
func TestTemplateSource_WithStatus(t *testing.T) {
	t.Parallel()
	source := desk.TemplateSource{Name: "hello", Language: "en", Source: `{"name":"hello","language":"en","status":"APPROVED","category":"UTILITY","id":900719925474099123,"components":[{"type":"BODY","text":"<b>Hi</b> & \u015f"}]}`}
	same, err := source.WithStatus("APPROVED")
	if err != nil || same != source {
		t.Errorf("the same: %+v, %v", same, err)
	}
	for _, status := range []string{"DELETED", "PAUSED", `"`} {
		changed, err := source.WithStatus(status)
		if err != nil || changed.Name != source.Name || changed.Language != source.Language {
			t.Fatalf("%s: %+v, %v", status, changed, err)
		}
		parsed, err := desk.ParseTemplate([]byte(changed.Source))
		if err != nil || parsed.Status != strings.ToLower(status) || parsed.Body != "<b>Hi</b> & ş" || parsed.Sendable() {
			t.Errorf("%s: %+v, %v", status, parsed, err)
		}
		if !strings.Contains(changed.Source, "900719925474099123") {
			t.Errorf("%s: %s", status, changed.Source)
		}
		if again, err := changed.WithStatus(status); err != nil || again != changed {
			t.Errorf("%s again: %+v, %v", status, again, err)
		}
		if back, err := changed.WithStatus("APPROVED"); err != nil || !sendable(back) {
			t.Errorf("back from %s: %+v, %v", status, back, err)
		}
	}
	without := desk.TemplateSource{Name: "hello", Language: "en", Source: `{}`}
	if changed, err := without.WithStatus("PAUSED"); err != nil || changed.Source != `{"status":"PAUSED"}` {
		t.Errorf("of one without: %+v, %v", changed, err)
	}
	for _, broken := range []string{"", "null", "[]", "{"} {
		source := desk.TemplateSource{Source: broken}
		if changed, err := source.WithStatus("PAUSED"); err == nil || changed != source {
			t.Errorf("%q: %+v, %v", broken, changed, err)
		}
	}
}

func sendable(s desk.TemplateSource) bool {
	t, err := desk.ParseTemplate([]byte(s.Source))
	return err == nil && t.Sendable()
}

func TestAccountStatus_BlockedAt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status desk.AccountStatus
		now    desk.Time
		want   string
	}{
		{desk.AccountStatus{}, 10, ""},
		{desk.AccountStatus{Until: 20}, 10, ""},
		{desk.AccountStatus{Blocked: "why"}, 10, "why"},
		{desk.AccountStatus{Blocked: "why", Until: 20}, 19, "why"},
		{desk.AccountStatus{Blocked: "why", Until: 20}, 20, ""},
	} {
		if got := c.status.BlockedAt(c.now); got != c.want || c.status.Refuses(c.now) != (c.want != "") {
			t.Errorf("%+v at %d: %q, want %q", c.status, c.now, got, c.want)
		}
		if c.status.RepliesBlockedAt(c.now) != c.want || c.status.RefusesReplies(c.now) != (c.want != "") {
			t.Errorf("%+v at %d: replies", c.status, c.now)
		}
		c.status.Replies = true
		if c.status.RepliesBlockedAt(c.now) != "" || c.status.RefusesReplies(c.now) || c.status.BlockedAt(c.now) != c.want {
			t.Errorf("%+v at %d: replies", c.status, c.now)
		}
		c.status.ByCall = true
		if c.status.Refuses(c.now) || c.status.RefusesReplies(c.now) {
			t.Errorf("%+v at %d: the next call is not tried", c.status, c.now)
		}
	}
}

func TestAccountStatus_Next(t *testing.T) {
	t.Parallel()
	type status = desk.AccountStatus
	for name, c := range map[string]struct {
		s, news status
		changes bool
	}{
		"first news":                        {status{}, status{Blocked: "why", Since: 5}, true},
		"all is well, first":                {status{}, status{Since: 5}, true},
		"late news":                         {status{Since: 9}, status{Blocked: "why", Since: 5}, false},
		"the same again":                    {status{Blocked: "why", Since: 5}, status{Blocked: "why", Since: 5}, false},
		"at the same time, another":         {status{Since: 5}, status{Blocked: "why", Since: 5}, true},
		"it may reply again":                {status{Blocked: "why", Since: 5}, status{Blocked: "why", Replies: true, Since: 5}, true},
		"it may again":                      {status{Blocked: "why", Since: 5}, status{Since: 6}, true},
		"a call fails":                      {status{}, status{Blocked: "token", Code: 190, Since: 5, ByCall: true}, true},
		"the next call fails, too":          {status{Blocked: "token", Code: 190, Since: 5, ByCall: true}, status{Blocked: "token", Code: 190, Since: 6, ByCall: true}, false},
		"it fails for something else":       {status{Blocked: "token", Code: 190, Since: 5, ByCall: true}, status{Blocked: "locked", Code: 368, Since: 6, ByCall: true}, true},
		"a call succeeds":                   {status{Blocked: "token", Code: 190, Since: 5, ByCall: true}, status{Since: 6, ByCall: true}, true},
		"the next call succeeds, too":       {status{Since: 5, ByCall: true}, status{Since: 6, ByCall: true}, false},
		"a call says less than news":        {status{Blocked: "why", Since: 5}, status{Blocked: "token", Since: 6, ByCall: true}, false},
		"a call does not end what news say": {status{Blocked: "why", Since: 5}, status{Since: 6, ByCall: true}, false},
		"news of what a call said":          {status{Blocked: "token", Since: 5, ByCall: true}, status{Blocked: "why", Since: 6}, true},
	} {
		want := c.s
		if c.changes {
			want = c.news
		}
		if got, changed := c.s.Next(c.news); got != want || changed != c.changes {
			t.Errorf("%s: %+v, %v", name, got, changed)
		}
	}
}

// TestChannel_Up: a channel is up if it is enabled and its account may send.
func TestChannel_Up(t *testing.T) {
	t.Parallel()
	expired := &desk.AccountRefusal{Code: 190, Title: "Access token expired", Token: true}
	c := desk.Channel{Enabled: true}
	for i, up := range []bool{true, false, false, false} {
		switch i {
		case 1:
			c.Status = expired.Status(5)
		case 2:
			c.Status = desk.AccountStatus{Blocked: "a violation"}
		case 3:
			c.Status, c.Enabled = desk.AccountStatus{}, false
		}
		if c.Up(1) != up {
			t.Errorf("case %d: up is %v", i, !up)
		}
	}
}

// TestAccount_Guarded: connects to a tenant's address are guarded. An address whose setter
// was not stored counts as a tenant's only if addresses are opened to webhooks.
func TestAccount_Guarded(t *testing.T) {
	t.Parallel()
	const base = "https://graph.example.com"
	for _, c := range []struct {
		account      desk.Account
		shut, opened bool
	}{
		{desk.Account{}, false, false},
		{desk.Account{BaseOf: desk.SetByTenant}, false, false},
		{desk.Account{BaseURL: base}, false, true},
		{desk.Account{BaseURL: base, BaseOf: desk.SetByOperator}, false, false},
		{desk.Account{BaseURL: base, BaseOf: desk.SetByTenant}, true, true},
	} {
		if shut, opened := c.account.Guarded(false), c.account.Guarded(true); shut != c.shut || opened != c.opened {
			t.Errorf("%+v: %v, %v", c.account, shut, opened)
		}
	}
}
