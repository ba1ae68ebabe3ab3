package desk

import "time"

// A Time is a moment in milliseconds since 1970 UTC, the precision of the wire
// and of both stores.
type Time int64

// TimeOf truncates t to a Time.
func TimeOf(t time.Time) Time { return Time(t.UnixMilli()) }

// Append appends the RFC 3339 form in UTC with milliseconds (contract §2).
func (t Time) Append(b []byte) []byte {
	return time.UnixMilli(int64(t)).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
}

func (t Time) String() string { return string(t.Append(nil)) }

// ParseTime reads an RFC 3339 time. It is cut to milliseconds.
func ParseTime(s string) (Time, bool) {
	t, err := time.Parse(time.RFC3339, s)
	return TimeOf(t), err == nil
}
