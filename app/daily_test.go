package app_test

import (
	"fmt"
	"testing"
	"time"

	"parley/app"
	"parley/app/daily"
	"parley/desk"
)

// TestCountDays: messages are counted on the days on which they were sent. Each event
// counts once, even if several processes count, several times.
func TestCountDays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, err := w.Access.Member(t.Context(), w.ws, w.ada.ID)
	must(t, err)
	now := w.clock.now()
	w.clock.advance(now.Truncate(24 * time.Hour).Add(25 * time.Hour).Sub(now)) // not close to midnight
	today := desk.DayOf(desk.TimeOf(w.clock.now()))
	count := func() {
		t.Helper()
		w.clock.advance(time.Minute) // the lease of the last count ends
		must(t, w.Daily.Count(t.Context()))
		must(t, w.node(w.file, app.Bounds{}).Daily.Count(t.Context()))
	}
	read := func(days int) daily.Report {
		t.Helper()
		d, err := w.Daily.Last(t.Context(), p, days)
		must(t, err)
		return d
	}
	count()
	if d := read(30); len(d.Days) != 30 || d.Sends != (daily.Funnel{}) || d.Reasons != nil || d.Templates != nil {
		t.Errorf("of nothing: %+v", d)
	}
	w.writes(number, "Hi")
	one, two, three := w.sent("1"), w.sent("2"), w.sent("3")
	count()
	w.tell(desk.StatusUpdate{ExternalID: one.Message.ExternalID, Delivery: desk.Delivered, At: desk.TimeOf(w.clock.now())},
		desk.StatusUpdate{ExternalID: two.Message.ExternalID, Delivery: desk.Delivered, At: desk.TimeOf(w.clock.now())},
		desk.StatusUpdate{ExternalID: two.Message.ExternalID, Delivery: desk.Read, At: desk.TimeOf(w.clock.now())})
	w.takeIn()
	w.clock.advance(24 * time.Hour)
	w.tell(desk.StatusUpdate{ExternalID: three.Message.ExternalID, Delivery: desk.Failed, Failure: &desk.Failure{Code: 131026, Title: "Undeliverable: to this one"}, At: desk.TimeOf(w.clock.now())})
	w.takeIn()
	count()
	var d daily.Report
	want := daily.Funnel{Sent: 3, Delivered: 2, Read: 1, Failed: 1}
	waitFor(t, "the counts", func() bool { d = read(2); return d.Sends == want }) // the background work counts, too
	if d.Days[0] != (daily.DayOfMessages{Day: desk.DayTime(today), Received: 1, Sent: 3}) || d.Days[1] != (daily.DayOfMessages{Day: desk.DayTime(today + 1)}) {
		t.Errorf("%+v", d)
	}
	if fmt.Sprint(d.Reasons) != "[{131026 Undeliverable 1}]" {
		t.Errorf("reasons %v", d.Reasons)
	}
	if len(d.Templates) != 1 || d.Templates[0] != (daily.TemplateUse{Channel: w.channel, Name: "hello", Language: "en", Funnel: want}) {
		t.Errorf("templates %+v", d.Templates)
	}
	if d := read(1); d.Sends != (daily.Funnel{}) {
		t.Errorf("today: %+v", d)
	}
	w.clock.advance((desk.KeepDays + 2) * 24 * time.Hour)
	must(t, w.Forget(t.Context()))
	if counts, err := w.file.Daily(t.Context(), w.ws, 0); err != nil || len(counts) != 0 {
		t.Errorf("counts that are too old: %v, %v", counts, err)
	}
	key := w.caller()
	key.Key.Permissions = nil
	_, err = w.Daily.Last(t.Context(), key, 1)
	refused(t, err, desk.Forbidden)
}
