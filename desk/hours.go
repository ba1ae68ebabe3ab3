package desk

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Hours say when a team answers (contract-talk §5), by the wall clock of the time zone. The
// nil Hours are always open.
type Hours struct {
	TimeZone   string            `json:"time_zone"`
	Week       map[string][]Span `json:"week"` // by the names in Weekdays; closed on a day that is missing
	Exceptions []Exception       `json:"exceptions"`
}

// Weekdays are the names of days, in the order in which they are shown.
var Weekdays = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// An Exception replaces the hours of a date.
type Exception struct {
	Date string `json:"date"` // YYYY-MM-DD
	Open []Span `json:"open"`
}

// A Span is a part of a day. It begins with the first minute and ends before the second
// one.
type Span [2]Minute

// A Minute is a minute of a day, by the wall clock.
type Minute int

// String is the minute as HH:MM.
func (m Minute) String() string { return fmt.Sprintf("%02d:%02d", m/60, m%60) }

const (
	endOfDay      Minute = 24 * 60
	maxSpans             = 4   // of a day
	maxExceptions        = 366 // of a policy
)

// parseMinute reads HH:MM, 24:00 included.
func parseMinute(s string) (Minute, bool) {
	if len(s) != len("HH:MM") || s[2] != ':' {
		return 0, false
	}
	hour, minute := scanInt(s[:2]), scanInt(s[3:])
	m := Minute(60*hour + minute)
	return m, within(hour, 24) && within(minute, 59) && m <= endOfDay
}

// HoursInput are hours as they were sent.
type HoursInput struct {
	TimeZone   *string
	Week       map[string][][]string
	Exceptions []ExceptionInput
}

// An ExceptionInput is an exception as it was sent.
type ExceptionInput struct {
	Date *string
	Open [][]string // nil: missing
}

func (in *HoursInput) parse() (*Hours, error) {
	if in.TimeZone == nil || zone(*in.TimeZone) == nil {
		return nil, InvalidAt("/hours/time_zone", "give the name of a time zone, such as Europe/Istanbul, in this spelling")
	}
	h := &Hours{TimeZone: *in.TimeZone, Week: make(map[string][]Span, len(in.Week)), Exceptions: make([]Exception, 0, len(in.Exceptions))}
	for _, day := range slices.Sorted(maps.Keys(in.Week)) {
		at := "/hours/week/" + day
		if !slices.Contains(Weekdays, day) {
			return nil, InvalidAt("/hours/week", "%s is no day: use %s", Quote(day), strings.Join(Weekdays, ", "))
		}
		spans, err := parseSpans(at, in.Week[day])
		if err != nil {
			return nil, err
		}
		h.Week[day] = spans
	}
	if len(in.Exceptions) > maxExceptions {
		return nil, InvalidAt("/hours/exceptions", "at most %d dates have hours of their own; these are %d", maxExceptions, len(in.Exceptions))
	}
	dates := make(map[string]bool, len(in.Exceptions))
	for i, e := range in.Exceptions {
		at := fmt.Sprintf("/hours/exceptions/%d", i)
		if e.Date == nil {
			return nil, InvalidAt(at+"/date", "missing; give a date as YYYY-MM-DD")
		}
		if _, ok := scanDate(*e.Date); !ok {
			return nil, InvalidAt(at+"/date", "give a date as YYYY-MM-DD")
		}
		if dates[*e.Date] {
			return nil, InvalidAt(at+"/date", "this date is there twice")
		}
		dates[*e.Date] = true
		if e.Open == nil {
			return nil, InvalidAt(at+"/open", "missing; give the hours of this date, [] if it is closed")
		}
		spans, err := parseSpans(at+"/open", e.Open)
		if err != nil {
			return nil, err
		}
		h.Exceptions = append(h.Exceptions, Exception{*e.Date, spans})
	}
	return h, nil
}

// The errors of well-formed spans of a day.
var (
	ErrSpanEnds     = errors.New("a span ends before it begins")
	ErrSpanOverlaps = errors.New("a span overlaps the one before it")
)

// parseSpans reads the hours of a day.
func parseSpans(at string, list [][]string) ([]Span, error) {
	if len(list) > maxSpans {
		return nil, InvalidAt(at, "a day has at most %d spans; these are %d", maxSpans, len(list))
	}
	spans := make([]Span, 0, len(list))
	for i, words := range list {
		at := fmt.Sprintf("%s/%d", at, i)
		if len(words) != 2 {
			return nil, InvalidAt(at, "give two times, from and to, as in [\"09:00\", \"18:00\"]")
		}
		var s Span
		for j, word := range words {
			m, ok := parseMinute(word)
			if !ok || j == 0 && m == endOfDay {
				last := endOfDay - 1
				if j == 1 {
					last = endOfDay
				}
				return nil, InvalidAt(fmt.Sprintf("%s/%d", at, j), "give a time as HH:MM, at most %s", last)
			}
			s[j] = m
		}
		if s[0] >= s[1] {
			e := InvalidAt(at, "%s is not before %s; for hours past midnight, end one day at 24:00 and begin the next at 00:00", s[0], s[1])
			e.Err = ErrSpanEnds
			return nil, e
		}
		if i > 0 && s[0] < spans[i-1][1] {
			e := InvalidAt(at, "it begins before the span before it has ended: give them in order, and apart")
			e.Err = ErrSpanOverlaps
			return nil, e
		}
		spans = append(spans, s)
	}
	return spans, nil
}

// on returns the spans of a date.
func (h *Hours) on(year int, month time.Month, day int) []Span {
	date := fmt.Sprintf("%04d-%02d-%02d", year, month, day)
	for i := range h.Exceptions {
		if h.Exceptions[i].Date == date {
			return h.Exceptions[i].Open
		}
	}
	weekday := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Weekday()
	return h.Week[Weekdays[(weekday+6)%7]]
}

func (h *Hours) zone() *time.Location {
	if z := zone(h.TimeZone); z != nil {
		return z
	}
	return time.UTC // another release stored a zone that this release does not know
}

// Open tells whether an instant is within the hours.
func (h *Hours) Open(at Time) bool {
	return h == nil || h.openAt(time.UnixMilli(int64(at)).In(h.zone()))
}

func (h *Hours) openAt(local time.Time) bool {
	m := Minute(60*local.Hour() + local.Minute())
	return slices.ContainsFunc(h.on(local.Date()), func(s Span) bool { return s[0] <= m && m < s[1] })
}

// farthest is how far into the future the method Until looks.
const farthest = 15 * 24 * time.Hour

// Until returns the next instant, later than at, when the hours begin or end. It returns
// false if that is more than 15 days away, or after the year 9999. If clocks are set
// forward or back, the instant may be the moment of that change.
func (h *Hours) Until(at Time) (Time, bool) {
	if h == nil {
		return 0, false
	}
	z := h.zone()
	begin := time.UnixMilli(int64(at)).In(z)
	end, open := begin.Add(farthest), h.openAt(begin)
	if end.UTC().Year() > 9999 { // RFC 3339 has no later years
		end = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC).In(z)
	}
	// Between two shifts of the zone's clock, local times are a fixed offset from UTC.
	for from := begin; !from.After(end); {
		_, offset := from.Zone()
		shift, shifts := nextShift(from, end)
		last := end
		if shifts {
			last = shift
		}
		midnight := time.Date(from.Year(), from.Month(), from.Day(), 0, 0, 0, 0, time.UTC).Add(-time.Duration(offset) * time.Second)
		for ; !midnight.After(last); midnight = midnight.Add(24 * time.Hour) {
			for _, s := range h.on(midnight.Add(time.Duration(offset) * time.Second).UTC().Date()) {
				for _, m := range s {
					t := midnight.Add(time.Duration(m) * time.Minute)
					if t.After(begin) && !t.Before(from) && !t.After(last) && h.openAt(t.In(z)) != open {
						return TimeOf(t), true
					}
				}
			}
		}
		if !shifts {
			break
		}
		if h.openAt(shift) != open {
			return TimeOf(shift), true
		}
		from = shift
	}
	return 0, false
}

// nextShift returns the first instant after from, up to end, when the zone's clock is set
// forward or back. No zone does that twice within step. (time.ZoneBounds can return the
// same time again.)
func nextShift(from, end time.Time) (time.Time, bool) {
	const step = 6 * time.Hour
	_, offset := from.Zone()
	differs := func(t time.Time) bool { _, o := t.Zone(); return o != offset }
	for low := from; low.Before(end); {
		high := low.Add(step)
		if high.After(end) {
			high = end
		}
		if !differs(high) {
			low = high
			continue
		}
		for high.Unix()-low.Unix() > 1 {
			if middle := low.Add(high.Sub(low) / 2).Truncate(time.Second); differs(middle) {
				high = middle
			} else {
				low = middle
			}
		}
		return high.Truncate(time.Second), true
	}
	return time.Time{}, false
}
