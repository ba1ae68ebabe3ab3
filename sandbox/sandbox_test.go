package sandbox_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"parley/desk"
	"parley/provider"
	"parley/sandbox"
)

// began is the time of the tests' clock, which stands still unless a test has its own.
var began = time.UnixMilli(1_700_000_000_000)

const pace = 250 * time.Millisecond

// A library keeps the templates of the tests in memory.
type library []desk.TemplateSource

func (l library) SandboxTemplates(_ context.Context, _, channel desk.ID) ([]desk.TemplateSource, error) {
	if channel != (desk.ID{0xCA}) {
		return nil, desk.NoChannel()
	}
	return l, nil
}

func (library) PutSandboxTemplate(context.Context, desk.ID, desk.ID, desk.TemplateSource) error {
	return errors.New("this library is read only")
}

func newSandbox(now func() time.Time) *sandbox.Sandbox {
	made := byte(0)
	return sandbox.New(sandbox.Config{
		Library: library{{Name: "hello", Language: "en", Source: "{}"}}, Now: now, Pace: pace,
		NewID: func() desk.ID { made++; return desk.ID{0x1D, made} },
	})
}

func still() time.Time { return began }

// dispatch returns a message to a number.
func dispatch(number string) provider.Dispatch {
	return provider.Dispatch{
		Access:  provider.Access{Workspace: desk.ID{0x15}, Channel: &desk.Channel{ID: desk.ID{0xCA}, Kind: desk.SandboxChannel}},
		Attempt: desk.ID{0xA7}, By: began.Add(time.Second), Number: number, Template: &desk.Template{Name: "hello"},
	}
}

func TestSend_refuses(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]desk.Refusal{
		"905321110001": {Type: desk.ProviderRejected},
		"0001":         {Type: desk.ProviderRejected},
		"905321110002": {Type: desk.ProviderUnavailable, RetryAfter: 30},
	} {
		receipt, err := newSandbox(still).Send(t.Context(), dispatch(number))
		var r *desk.Refusal
		if !errors.As(err, &r) || r.Type != want.Type || r.RetryAfter != want.RetryAfter {
			t.Errorf("%s: %v", number, err)
			continue
		}
		if r.Message == "" || r.Failure == nil || r.Failure.Code == 0 || r.Failure.Title == "" || r.Failure.Fix == "" {
			t.Errorf("%s does not say why, and what to do: %+v", number, r)
		}
		if receipt.ExternalID != "" || receipt.Later != nil {
			t.Errorf("%s: %+v", number, receipt)
		}
	}
}

// TestSend_loses_the_answer: the outcome stays unknown.
func TestSend_loses_the_answer(t *testing.T) {
	t.Parallel()
	receipt, err := newSandbox(still).Send(t.Context(), dispatch("905321110003"))
	unknown(t, err)
	if receipt.Later != nil {
		t.Errorf("%d inbound items", len(receipt.Later))
	}
}

// unknown checks that an error means an unknown outcome: the message is neither accepted
// nor refused.
func unknown(t *testing.T, err error) {
	t.Helper()
	var r *desk.Refusal
	if err == nil || errors.As(err, &r) {
		t.Errorf("the outcome is known: %v", err)
	}
}

// TestSend_too_late: a call after the deadline fails for any number.
func TestSend_too_late(t *testing.T) {
	t.Parallel()
	for _, number := range []string{"905321110000", "905321110001", "905321110003", "905321110005"} {
		late := dispatch(number)
		late.By = began.Add(-time.Millisecond)
		receipt, err := newSandbox(still).Send(t.Context(), late)
		var r *desk.Refusal
		if !errors.As(err, &r) || r.Type != desk.Unavailable || receipt.Later != nil {
			t.Errorf("%s: %v, %d inbound items", number, err, len(receipt.Later))
		}
	}
}

// TestSend_takes: the statuses come one after the other, each when it is due. They have
// the attempt's id.
func TestSend_takes(t *testing.T) {
	t.Parallel()
	type told struct {
		after    time.Duration
		delivery desk.DeliveryStatus
		failed   bool
	}
	reads := []told{{pace, desk.Delivered, false}, {3 * pace, desk.Read, false}}
	for number, want := range map[string][]told{
		"905321110000": reads,
		"905321110006": reads,
		"905321100010": reads, // 0001 is not at the end
		"905321110004": {{pace, desk.Failed, true}},
	} {
		t.Run(number, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(still)
			receipt, err := s.Send(t.Context(), dispatch(number))
			if err != nil || receipt.ExternalID == "" || len(receipt.Later) != 1 {
				t.Fatalf("%+v, %v", receipt, err)
			}
			var got []told
			due := desk.TimeOf(began)
			for next := &receipt.Later[0]; next != nil; {
				due += desk.Time(next.Wait.Milliseconds())
				n := desk.InboundItem{Body: next.Body}
				happened, rest, err := s.Read(n)
				if err != nil {
					t.Fatal(err)
				}
				// Reading again gives the same result, for example after a restart, or if two
				// processes read at once.
				if again, restAgain, _ := s.Read(n); !reflect.DeepEqual(again, happened) || !reflect.DeepEqual(restAgain, rest) {
					t.Errorf("read again, it tells %+v and leaves %+v, not %+v", again, restAgain, rest)
				}
				for _, h := range happened {
					status := *h.Status
					if status.At != due || status.ExternalID != receipt.ExternalID || status.Attempt != (desk.ID{0xA7}) {
						t.Errorf("due at %s: %+v", due, status)
					}
					got = append(got, told{time.Duration(status.At-desk.TimeOf(began)) * time.Millisecond, status.Delivery, status.Failure != nil})
				}
				if rest != nil && rest.Wait <= 0 {
					t.Fatalf("the rest comes after %v", rest.Wait)
				}
				next = rest
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}

// TestSend_replies: a reply to a person who wrote too long ago is accepted, and fails
// afterwards.
func TestSend_replies(t *testing.T) {
	t.Parallel()
	s := newSandbox(still)
	for number, want := range map[string]desk.StatusUpdate{
		"905321110006": {Delivery: desk.Failed, Failure: &desk.Failure{Code: 131047}},
		"905321110004": {Delivery: desk.Failed, Failure: &desk.Failure{Code: 131026}},
		"905321110000": {Delivery: desk.Delivered},
	} {
		d := dispatch(number)
		d.Template, d.Text = nil, "Hi"
		receipt, err := s.Send(t.Context(), d)
		if err != nil || len(receipt.Later) != 1 || receipt.Later[0].Wait != pace {
			t.Errorf("%s: %+v, %v", number, receipt, err)
			continue
		}
		told, _, err := s.Read(desk.InboundItem{Body: receipt.Later[0].Body})
		if err != nil || len(told) != 1 || told[0].Status.Delivery != want.Delivery {
			t.Errorf("%s: %+v, %v", number, told, err)
			continue
		}
		if f := told[0].Status.Failure; (f == nil) != (want.Failure == nil) || f != nil && (f.Code != want.Failure.Code || f.Fix == "") {
			t.Errorf("%s: %+v", number, f)
		}
	}
}

// TestSend_gives_each_message_its_own_id: the stores require unique ids.
func TestSend_gives_each_message_its_own_id(t *testing.T) {
	t.Parallel()
	s, seen := newSandbox(still), map[string]bool{}
	for range 10 {
		receipt, err := s.Send(t.Context(), dispatch("905321110000"))
		if err != nil || seen[receipt.ExternalID] {
			t.Errorf("%q, %v", receipt.ExternalID, err)
		}
		seen[receipt.ExternalID] = true
	}
}

// TestSend_slowly: a send to a number ending 0005 takes three seconds, or ends earlier
// when the caller's time is over.
func TestSend_slowly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		patience, took time.Duration
		taken          bool
	}{"in time": {20 * time.Second, 3 * time.Second, true}, "too slow": {2 * time.Second, 2 * time.Second, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.patience)
				defer cancel()
				start := time.Now()
				slow := dispatch("905321110005")
				slow.By = start.Add(time.Second)
				receipt, err := newSandbox(time.Now).Send(ctx, slow)
				if took := time.Since(start); took != c.took {
					t.Errorf("it took %v", took)
				}
				if !c.taken {
					if unknown(t, err); receipt.Later != nil {
						t.Errorf("%d inbound items", len(receipt.Later))
					}
					return
				}
				if err != nil || receipt.ExternalID == "" || len(receipt.Later) != 1 || receipt.Later[0].Wait != pace {
					t.Errorf("%+v, %v", receipt, err)
				}
			})
		})
	}
}

func TestRead_refuses(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "nonsense", `{"steps":1}`, `[]`} {
		if told, rest, err := newSandbox(still).Read(desk.InboundItem{Body: []byte(body)}); err == nil || told != nil || rest != nil {
			t.Errorf("%q: %+v, %+v, %v", body, told, rest, err)
		}
	}
	if told, rest, err := newSandbox(still).Read(desk.InboundItem{Body: []byte(`{}`)}); err != nil || told != nil || rest != nil {
		t.Errorf("a story at its end: %+v, %+v, %v", told, rest, err)
	}
}

func TestPace_has_a_default(t *testing.T) {
	t.Parallel()
	s := sandbox.New(sandbox.Config{Now: still, NewID: func() desk.ID { return desk.ID{1} }})
	if r, err := s.Send(t.Context(), dispatch("905321110000")); err != nil || r.Later[0].Wait != time.Second {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestTemplates_and_Check(t *testing.T) {
	t.Parallel()
	s := newSandbox(still)
	list, err := s.Templates(t.Context(), provider.Access{Workspace: desk.ID{0x15}, Channel: &desk.Channel{ID: desk.ID{0xCA}}})
	if err != nil || len(list) != 1 || list[0].Name != "hello" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := s.Templates(t.Context(), provider.Access{Workspace: desk.ID{0x15}, Channel: &desk.Channel{}}); !desk.IsType(err, desk.NotFound) {
		t.Errorf("of no channel: %v", err)
	}
	if problems, err := s.Check(t.Context(), provider.Access{}); problems != nil || err != nil {
		t.Errorf("%v, %v", problems, err)
	}
}
