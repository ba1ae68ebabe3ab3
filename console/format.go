package console

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	_ "time/tzdata" // a server may have no list of time zones
	"unicode"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
	"golang.org/x/text/unicode/norm"

	"parley/desk"
)

// funcs are the functions for templates.
var funcs = template.FuncMap{
	"initials": initials,
	"dict":     dict,
}

// dict returns a map of pairs: the data for a template that needs several values.
func dict(pairs ...any) (map[string]any, error) {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: %v is no name", pairs[i])
		}
		m[key] = pairs[i+1]
	}
	return m, nil
}

// A moment is a time as a page shows it.
type moment struct {
	Text  string // short: 14:05, Tue 14:05, 12 Mar, 12 Mar 2025
	Title string // with seconds and time zone
	ISO   string
}

// when returns a time as a page shows it, in the reader's time zone. For the zero time,
// it returns the zero moment.
func (c *call) when(t desk.Time) moment {
	if t == 0 {
		return moment{}
	}
	at, now := time.UnixMilli(int64(t)).In(c.zone), c.now.In(c.zone)
	layout := "2 Jan 2006"
	switch days := daysBetween(at, now); {
	case days == 0:
		layout = "15:04"
	case days > -7 && days < 7:
		layout = "Mon 15:04"
	case at.Year() == now.Year():
		layout = "2 Jan"
	}
	return moment{Text: at.Format(layout), Title: at.Format("Mon 2 Jan 2006 15:04:05 MST"), ISO: at.UTC().Format(time.RFC3339)}
}

// named returns a time within a text, where no title can have its zone.
func (c *call) named(t desk.Time) string {
	if t == 0 {
		return ""
	}
	return c.when(t).Text + " (" + time.UnixMilli(int64(t)).In(c.zone).Format("MST") + ")"
}

// clock is like when, but the short text is always the time of day.
func (c *call) clock(t desk.Time) moment {
	m := c.when(t)
	if t != 0 {
		m.Text = time.UnixMilli(int64(t)).In(c.zone).Format("15:04")
	}
	return m
}

// span returns a duration as text: 12 min, 3 h, 2 d.
func span(d desk.Time) string {
	const minute, hour = 60_000, 60 * 60_000
	switch {
	case d < hour:
		return strconv.FormatInt(int64(max(d/minute, 1)), 10) + " min"
	case d < 48*hour:
		return strconv.FormatInt(int64(d/hour), 10) + " h"
	}
	return strconv.FormatInt(int64(d/(24*hour)), 10) + " d"
}

// spanLasts returns how long the text of span stays the same for a duration d: by how
// much d must become longer, or shorter, until span returns another text.
func spanLasts(d desk.Time) (longer, shorter desk.Time) {
	const minute, hour = 60_000, 60 * 60_000
	d = max(d, 0)
	unit := desk.Time(24 * hour)
	switch {
	case d < hour:
		unit = minute
	case d < 48*hour:
		unit = hour
	}
	return unit - d%unit, d%unit + 1
}

// day returns the name of a time's day: Today, Yesterday, Tuesday 3 March.
func (c *call) day(t desk.Time) string {
	at, now := time.UnixMilli(int64(t)).In(c.zone), c.now.In(c.zone)
	switch daysBetween(at, now) {
	case 0:
		return "Today"
	case 1:
		return "Yesterday"
	}
	if at.Year() == now.Year() {
		return at.Format("Monday 2 January")
	}
	return at.Format("2 January 2006")
}

// daysBetween counts the midnights between two times in one time zone.
func daysBetween(at, now time.Time) int {
	midnight := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	return int(midnight(now).Sub(midnight(at)) / (24 * time.Hour))
}

// zoneOf returns the time zone of the reader's browser, which the script stores in a
// cookie. It returns nil if the zone is not known.
func zoneOf(r *http.Request) *time.Location {
	cookie, err := r.Cookie("tz")
	if err != nil {
		return nil
	}
	return knownZone(cookie.Value)
}

// knownZone returns the time zone with a name; nil if there is none.
func knownZone(name string) *time.Location {
	if name == "" || name == "Local" || len(name) > 64 {
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return zone
}

// teamZone returns the time zone of the workspace's hours, or UTC.
func teamZone(s *desk.Settings) *time.Location {
	if p := s.OwnPolicy(desk.ID{}); p != nil && p.Hours != nil {
		if zone, err := time.LoadLocation(p.Hours.TimeZone); err == nil {
			return zone
		}
	}
	return time.UTC
}

// count returns a number as text, with commas: 12,400.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// several returns a number with its noun: 1 reason, 2 reasons.
func several(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return count(n) + " " + noun
}

// upTo99 returns a number as text. From 100, the text is 99+.
func upTo99(n int) string {
	if n > 99 {
		return "99+"
	}
	return strconv.Itoa(n)
}

// phone returns digits in the form of an international number: +34 612 34 56 78.
func phone(digits string) string {
	if digits == "" {
		return ""
	}
	n, err := phonenumbers.Parse("+"+digits, "")
	if err != nil {
		return "+" + digits
	}
	return phonenumbers.Format(n, phonenumbers.INTERNATIONAL)
}

// apart puts invisible marks around a name. A name that is written from right to left
// then does not change the order of the sentence around it.
func apart(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
		return name
	}
	return "\u2068" + name + "\u2069"
}

// initials returns the first letters of the first and the last word of a name.
func initials(name string) string {
	var first []rune
	for word := range strings.FieldsSeq(norm.NFC.String(name)) {
		if r := []rune(word)[0]; unicode.IsLetter(r) || unicode.IsDigit(r) {
			first = append(first, unicode.ToUpper(r))
		}
	}
	switch len(first) {
	case 0:
		return "#"
	case 1:
		return string(first)
	}
	return string([]rune{first[0], first[len(first)-1]})
}

// nameOf returns a contact's name. If the contact has none, it returns an address.
func nameOf(c *desk.Contact) string {
	switch {
	case c == nil:
		return "Deleted contact"
	case c.Name != "":
		return c.Name
	case c.Phone != "":
		return phone(c.Phone)
	case c.Email != "":
		return c.Email
	case c.ExternalID != "":
		return c.ExternalID
	case len(c.Further) > 0:
		return c.Further[0].Value
	}
	return "Nameless contact"
}

// attributeFacts returns a contact's attributes in words, except archived ones.
func (c *call) attributeFacts(contact *desk.Contact) (list []fact) {
	values := attributesOf(contact)
	for _, a := range c.p.Settings.SortedAttributes() {
		if v, ok := values[a.Key]; ok && !a.Archived {
			f := fact{Label: a.Label, Value: c.attributeText(a, v), Name: attributeName(a.Key)}
			if a.Type == desk.URLAttribute && (strings.HasPrefix(f.Value, "https://") || strings.HasPrefix(f.Value, "http://")) {
				f.Site, f.Value = f.Value, undirected(f.Value)
			}
			list = append(list, f)
		}
	}
	return list
}

func (c *call) attributeText(a *desk.Attribute, value any) string {
	switch v := value.(type) {
	case bool:
		if v {
			return "Yes"
		}
		return "No"
	case []any:
		words := make([]string, len(v))
		for i, item := range v {
			words[i] = fmt.Sprint(item)
		}
		return strings.Join(words, ", ")
	case string:
		switch a.Type {
		case desk.DateAttribute:
			if at, err := time.Parse(time.DateOnly, v); err == nil {
				return at.Format("2 Jan 2006")
			}
		case desk.DatetimeAttribute:
			if at, err := time.Parse(time.RFC3339, v); err == nil {
				return at.In(c.zone).Format("2 Jan 2006 15:04 MST")
			}
		}
		return v
	}
	return fmt.Sprint(value)
}

// languageName returns the name of a template's language: German (de).
func languageName(code string) string {
	tag, err := language.Parse(strings.ReplaceAll(code, "_", "-"))
	if err != nil {
		return code
	}
	return display.English.Tags().Name(tag) + " (" + code + ")"
}

// A fact is a label and a value. In a thread, Edit links to the form that changes the
// value.
type fact struct {
	Label, Value string
	Mail         string // an e-mail address, escaped: it could otherwise add headers to the mailto URL
	Tel          string // a phone number, with +
	Site         string // an http or https URL
	Name         string // the name of the form's field
	Edit         string
}

// beginning returns the first characters of a text, at most this many.
func beginning(text string, most int) string {
	if len(text) > most {
		if list := []rune(text); len(list) > most {
			return string(list[:most]) + "…"
		}
	}
	return text
}

// attributeName returns the name of an attribute's field in forms. It is the name that
// fieldOf returns for an error of the attribute.
func attributeName(key string) string { return "attributes." + key }

// attributesOf returns a contact's values by key. Numbers keep their stored form.
func attributesOf(contact *desk.Contact) map[string]any {
	var values map[string]any
	decoder := json.NewDecoder(strings.NewReader(contact.Attributes.JSON()))
	decoder.UseNumber()
	if decoder.Decode(&values) != nil {
		return nil // not possible: stored values are JSON
	}
	return values
}

// mostNamed is how many names a list names.
const mostNamed = 3

// firstFew joins names, and says how many more there are.
func firstFew(list []string) string {
	if more := len(list) - mostNamed; more > 0 {
		list = append(slices.Clone(list[:mostNamed]), fmt.Sprintf("and %s more", count(more)))
	}
	return strings.Join(list, ", ")
}

// broadcastPath is the page of a broadcast.
func broadcastPath(id desk.ID) string { return "/broadcasts/" + id.String() }

// attributeLabel returns the name of an attribute.
func (c *call) attributeLabel(key string) string {
	if a := c.p.Settings.Attributes[key]; a != nil {
		return apart(a.Label)
	}
	return key
}
