package desk

import "time"

// A Time is a moment in milliseconds since 1970 UTC. The API and both stores have the same
// precision.
type Time int64

// TimeOf truncates t to a Time.
func TimeOf(t time.Time) Time { return Time(t.UnixMilli()) }

// Append appends the RFC 3339 form in UTC with milliseconds (contract §2). It is
// written by hand for speed: every contact has two times.
func (t Time) Append(b []byte) []byte {
	at := time.UnixMilli(int64(t)).UTC()
	year, month, day := at.Date()
	if year < 0 || year > 9999 {
		return at.AppendFormat(b, "2006-01-02T15:04:05.000Z")
	}
	hour, minute, second := at.Clock()
	b = append(appendDigits(b, year, 1000), '-')
	b = append(appendDigits(b, int(month), 10), '-')
	b = append(appendDigits(b, day, 10), 'T')
	b = append(appendDigits(b, hour, 10), ':')
	b = append(appendDigits(b, minute, 10), ':')
	b = append(appendDigits(b, second, 10), '.')
	return append(appendDigits(b, at.Nanosecond()/int(time.Millisecond), 100), 'Z')
}

// appendDigits appends n with as many digits as unit has; unit is a power of ten.
func appendDigits(b []byte, n, unit int) []byte {
	for ; unit > 0; unit /= 10 {
		b = append(b, byte('0'+n/unit%10))
	}
	return b
}

// Ago is the time that is at least age in the past by the database's clock and by the server's. Whatever is
// deleted by its age asks it: one clock that is far ahead must delete nothing new.
func Ago(age time.Duration, database, server Time) Time {
	return min(database, server) - Time(age.Milliseconds())
}

func (t Time) String() string { return string(t.Append(nil)) }

// Second returns the start of the second that contains t, and the start of the next one.
func (t Time) Second() (from, before Time) {
	from = t - t%1000
	return from, from + 1000
}

// A day is a day of the calendar, in the years 1 to 9999.
type day struct{ year, month, day int }

// IsDate tells whether a text is a date, such as 2026-12-31.
func IsDate(s string) bool {
	_, ok := scanDate(s)
	return ok
}

// scanDate reads YYYY-MM-DD and nothing else.
func scanDate(s string) (d day, ok bool) {
	if len(s) != len("YYYY-MM-DD") || s[4] != '-' || s[7] != '-' {
		return d, false
	}
	d.year, d.month, d.day = scanInt(s[:4]), scanInt(s[5:7]), scanInt(s[8:])
	return d, d.year >= 1 && 1 <= d.month && d.month <= 12 && 1 <= d.day && d.day <= daysIn(d.year, d.month)
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// ParseTime reads a date-time of RFC 3339 §5.6 and cuts it to milliseconds. time.Parse
// accepts more (hours of one digit, a comma before the fraction). A leap second, and a
// time outside of the years 1 to 9999 in UTC, are refused.
func ParseTime(s string) (Time, bool) {
	const shortest = len("YYYY-MM-DDThh:mm:ssZ")
	if len(s) < shortest || s[10]|0x20 != 't' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	d, ok := scanDate(s[:10])
	hour, minute, second := scanInt(s[11:13]), scanInt(s[14:16]), scanInt(s[17:19])
	if !ok || !within(hour, 23) || !within(minute, 59) || !within(second, 59) {
		return 0, false
	}
	milliseconds, zone, ok := scanFraction(s[19:])
	if !ok {
		return 0, false
	}
	offset, ok := scanOffset(zone)
	if !ok {
		return 0, false
	}
	t := time.Date(d.year, time.Month(d.month), d.day, hour, minute-offset, second, milliseconds*int(time.Millisecond), time.UTC)
	return TimeOf(t), 1 <= t.Year() && t.Year() <= 9999
}

// scanFraction reads an optional point and digits, cut to milliseconds.
func scanFraction(s string) (milliseconds int, rest string, ok bool) {
	s, point := cutByte(s, '.')
	if !point {
		return 0, s, true
	}
	digits, rest := cutDigits(s)
	for i, unit := 0, 100; i < min(len(digits), 3); i, unit = i+1, unit/10 {
		milliseconds += int(digits[i]-'0') * unit
	}
	return milliseconds, rest, digits != ""
}

// scanOffset reads Z or ±hh:mm as minutes east of UTC.
func scanOffset(s string) (minutes int, ok bool) {
	if s == "Z" || s == "z" {
		return 0, true
	}
	if len(s) != len("+hh:mm") || s[3] != ':' || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	hour, minute := scanInt(s[1:3]), scanInt(s[4:])
	minutes = hour*60 + minute
	if s[0] == '-' {
		minutes = -minutes
	}
	return minutes, within(hour, 23) && within(minute, 59)
}

// scanInt reads a few digits, or returns -1 if s has another character.
func scanInt(s string) int {
	n := 0
	for i := range len(s) {
		if !isDigit(s[i]) {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}

func within(n, most int) bool { return 0 <= n && n <= most }
