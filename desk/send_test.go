package desk_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/desk"
)

func TestCheckIdempotencyKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"a", "order-17/confirm", " ", "~!\"{}", strings.Repeat("k", 200)} {
		if err := desk.CheckIdempotencyKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{"", strings.Repeat("k", 201), "tab\t", "line\n", "\x00", "\x7f", "ş", "\xff"} {
		if err := desk.CheckIdempotencyKey(key); !desk.IsType(err, desk.InvalidRequest) || !strings.Contains(err.Error(), desk.AtIdempotencyKey) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestContactWrite_Contradicts(t *testing.T) {
	t.Parallel()
	const to = "905321111111"
	for _, c := range []struct {
		name  string
		parts []part
		want  *desk.Identity
	}{
		{"nothing", nil, nil},
		{"other handles", []part{email("ada@x.example"), external(to), further("whatsapp_user", "u2", "telegram", "1")}, nil},
		{"the number itself", []part{phone(to)}, nil},
		{"as a chat account", []part{further("whatsapp", to)}, nil},
		{"another phone", []part{email("ada@x.example"), phone("905322222222")}, &desk.Identity{Kind: "phone", Value: "905322222222"}},
		{"another further phone", []part{phone(to), further("phone", "905322222222")}, &desk.Identity{Kind: "phone", Value: "905322222222"}},
		{"another chat account", []part{further("whatsapp", "905322222222")}, &desk.Identity{Kind: "whatsapp", Value: "905322222222"}},
	} {
		w := write(c.parts...)
		if got := w.Contradicts(to); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestContact_Address(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, phone string
		further     []desk.Identity
		want        string
	}{
		{"nothing", "", nil, ""},
		{"no number", "", handles("email", "a@x.example", "whatsapp_user", "u2"), ""},
		{"the phone comes first", "1", handles("phone", "2", "whatsapp", "3"), "1"},
		{"then the chat account", "", handles("phone", "2", "whatsapp", "3", "whatsapp", "4"), "3"},
		{"then a further phone", "", handles("email", "a@x.example", "phone", "2", "phone", "5"), "2"},
	} {
		if got := (&desk.Contact{Phone: c.phone, Further: c.further}).Address(); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestPhase_Settled(t *testing.T) {
	t.Parallel()
	for phase, settled := range map[desk.Phase]bool{
		desk.Dispatching: false, desk.InDoubt: false, desk.Done: true, desk.Refused: true, desk.Released: true,
	} {
		if phase.Settled() != settled {
			t.Errorf("%s: %v", phase, !settled)
		}
	}
}

// TestRefusal: the caller gets the provider's refusal as an error, with the provider's reason
// as its details.
func TestRefusal(t *testing.T) {
	t.Parallel()
	r := &desk.Refusal{Type: desk.ProviderUnavailable, Message: "later", Advice: desk.Advice{Kind: desk.SeeDetails}, Failure: undeliverable, RetryAfter: 30}
	var asError *desk.Refusal
	if err := error(r); !errors.As(err, &asError) || err.Error() != "provider_unavailable: later" {
		t.Errorf("as an error: %v", err)
	}
	want := &desk.Error{Type: desk.ProviderUnavailable, Message: "later", Advice: desk.Advice{Kind: desk.SeeDetails}, Details: *undeliverable, RetryAfter: 30}
	if got := r.Answer(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if got := (&desk.Refusal{Type: desk.Unavailable, Message: "late"}).Answer(); got.Details != nil {
		t.Errorf("details of nothing: %v", got.Details)
	}
}

// TestAttempt_Failed: Failed is true if the message certainly did not reach the person.
func TestAttempt_Failed(t *testing.T) {
	t.Parallel()
	bounced, queued := &desk.Message{Delivery: desk.Failed}, &desk.Message{Delivery: desk.Queued}
	for _, c := range []struct {
		phase desk.Phase
		m     *desk.Message
		want  bool
	}{
		{desk.Refused, nil, true}, {desk.Released, nil, true}, {desk.Dispatching, nil, false}, {desk.InDoubt, nil, false},
		{desk.Done, nil, false}, {desk.Done, queued, false}, {desk.Done, bounced, true},
	} {
		if got := (&desk.Attempt{Phase: c.phase}).Failed(c.m); got != c.want {
			t.Errorf("%s with %+v: %v", c.phase, c.m, got)
		}
	}
}

func TestAttempt_Expired(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		at   desk.Attempt
		want bool
	}{
		{"a moment before", desk.Attempt{Phase: desk.Done, Age: 30 * 24}, false},
		{"after 30 days and the hour that had begun", desk.Attempt{Phase: desk.Done, Age: 30*24 + 1}, true},
		{"settled ages ago, by a clock", desk.Attempt{Phase: desk.Done, SettledAt: 1}, false},
		{"on its way", desk.Attempt{Phase: desk.Dispatching, Age: 1 << 50}, false},
		{"in doubt", desk.Attempt{Phase: desk.InDoubt, Age: 1 << 50}, false},
	} {
		if got := c.at.Expired(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestContact_Numbers: attempts are found by these numbers and by the contact's id.
func TestContact_Numbers(t *testing.T) {
	t.Parallel()
	person := &desk.Contact{ID: id(1), Phone: "1", Email: "a@x.example", Further: handles("phone", "2", "whatsapp", "3", "whatsapp_user", "4")}
	if got, want := person.Numbers(), []string{"1", "2", "3"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for number, want := range map[string]string{"": "", "905321112233": "905321112233"} {
		if got := (&desk.Plan{Number: number}).Canonical(); got != want {
			t.Errorf("%q: %q, want %q", number, got, want)
		}
	}
}

// TestAttempt_Erase_and_Settle: some fields are removed, the others stay.
func TestAttempt_Erase_and_Settle(t *testing.T) {
	t.Parallel()
	plan := desk.Plan{
		Channel: desk.ID{1}, Contact: id(1), Conversation: desk.ID{2}, Message: desk.ID{3}, Template: "hello", Language: "tr",
		Text: "Merhaba Ayşe", OptIn: desk.OptIn{Key: desk.ID{4}, At: 5, Request: desk.ID{6}}, Number: "1", Profile: &desk.ContactWrite{},
	}
	erased := desk.Attempt{Phase: desk.InDoubt, Lease: 9, Plan: plan}
	erased.Erase()
	rest := plan
	rest.Text, rest.Number, rest.Profile = "", "", nil
	nobody := rest
	nobody.OptIn = desk.OptIn{Request: desk.ID{6}}
	if want := (desk.Attempt{Phase: desk.InDoubt, Lease: 9, Plan: nobody, Erased: true}); !reflect.DeepEqual(erased, want) {
		t.Errorf("erased: %+v", erased)
	}
	late := desk.Attempt{Phase: desk.Done, Plan: plan, ExternalID: "wamid.1", Response: []byte("kept"), Notes: []string{"the assignee was removed meanwhile", "none"}}
	late.Notes[1] = late.TookAnother("wamid.2")
	late.Erase()
	again := late.TookAnother("wamid.3")
	if want := (desk.Attempt{Phase: desk.Done, Plan: nobody, Erased: true, Response: []byte("kept"), Notes: []string{"the assignee was removed meanwhile", again}}); !reflect.DeepEqual(late, want) {
		t.Errorf("erased when it was settled: %+v", late)
	}
	settled := desk.Attempt{Phase: desk.Dispatching, Lease: 9, Plan: plan, Response: []byte("kept")}
	settled.Settle(desk.Done, 8)
	if want := (desk.Attempt{Phase: desk.Done, SettledAt: 8, Plan: rest, Response: []byte("kept")}); !reflect.DeepEqual(settled, want) {
		t.Errorf("settled: %+v", settled)
	}
}
