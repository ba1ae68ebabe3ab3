package desk

import "strings"

// A DailyKind says which of a day's messages are counted.
type DailyKind string

// The kinds. Counts of sends have the template as their key, see Message.TemplateKey. A
// message counts on the day on which it was sent, even if its status came later.
const (
	DailyReceived  DailyKind = "received"
	DailySent      DailyKind = "sent"
	DailyDelivered DailyKind = "delivered"
	DailyRead      DailyKind = "read"
	DailyFailed    DailyKind = "failed"
	DailyReason    DailyKind = "reason" // why it failed: the key is the provider's code, the label its title
)

// A DailyCount is the number of messages of a kind on one day. It names no person.
type DailyCount struct {
	Day   int64 // since 1970, in UTC
	Kind  DailyKind
	Key   string
	Label string
	N     int64
}

// KeepDays is the number of days whose counts are kept.
const KeepDays = 400

const millisecondsOfDay = 24 * 60 * 60 * 1000

// DayOf is the number of a time's day since 1970, in UTC.
func DayOf(t Time) int64 { return int64(t) / millisecondsOfDay }

// DayTime is the beginning of a day.
func DayTime(day int64) Time { return Time(day * millisecondsOfDay) }

// TemplateKey names the template of a message as events do: CHANNEL/NAME/LANGUAGE; "" if
// the message has none.
func (m *Message) TemplateKey() string {
	if m.Template == "" {
		return ""
	}
	return strings.Join([]string{m.ChannelID.String(), m.Template}, "/")
}
