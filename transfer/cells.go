package transfer

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"parley/desk"
)

// A Dates says how dates like 31.12.2026 are read.
type Dates string

// How dates are read; "" only as 2026-12-31.
const (
	DayFirst   Dates = "DMY"
	MonthFirst Dates = "MDY"
)

var (
	fractionOfPhone = regexp.MustCompile(`^\s*(\+?[0-9]+)\.0+\s*$`)
	rounded         = regexp.MustCompile(`^\s*[0-9]+([.,][0-9]+)?[eE]\+?[0-9]+\s*$`)
	writtenDate     = regexp.MustCompile(`^\s*([0-9]{1,2})[./]([0-9]{1,2})[./]([0-9]{4})\s*$`)
	commaNumber     = regexp.MustCompile(`^\s*([+-]?(?:[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]+)(?:,[0-9]+)?)\s*$`)
)

// A refusal says why a row can't be taken.
type refusal struct{ message string }

func (r refusal) Error() string { return r.message }

// A converter makes the body of a row from its cells.
type converter struct {
	fields       []field
	attributes   map[string]*desk.Attribute
	clearBlank   bool
	decimalComma bool
	dates        Dates
	undated      bool // a date was written like 31.12.2026, and dates does not say how to read it
}

// body returns the JSON of a contact.
func (c *converter) body(cells []string) ([]byte, error) {
	var members, attributes, handles []string
	var names [2]string
	named, blankName := false, false
	clearsAttributes := []string{}
	for i, f := range c.fields {
		if f.name == skipped {
			continue
		}
		cell := unguard(cells[i])
		a := c.attributes[f.key]
		blank := strings.TrimSpace(cell) == ""
		if f.name == attribute && a != nil && a.Type == desk.TextAttribute {
			blank = cell == ""
		}
		if f.name == attribute && isOption(a, cell) {
			blank = false
		}
		switch {
		case f.name == firstName || f.name == lastName:
			named = true
			if n := map[string]int{firstName: 0, lastName: 1}[f.name]; !blank {
				names[n] = strings.TrimSpace(cell)
			}
			blankName = names == [2]string{}
		case blank && (!c.clearBlank || f.name == identityOf):
		case blank && f.name == attribute:
			clearsAttributes = append(clearsAttributes, quote(f.key)+":null")
		case blank:
			members = append(members, quote(f.name)+":null")
		case f.name == attribute:
			value, err := c.value(a, cell)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f, err)
			}
			if value == "[]" && !c.clearBlank && !isJSONList(cell) { // only separators
				continue
			}
			attributes = append(attributes, quote(f.key)+":"+value)
		case f.name == identities:
			list, err := identityList(cell)
			if err != nil {
				return nil, err
			}
			handles = append(handles, list...)
		case f.name == identityOf:
			value := strings.TrimSpace(cell)
			if f.key == desk.KindPhone || f.key == desk.KindWhatsApp {
				var err error
				if value, err = phoneCell(value); err != nil {
					return nil, err
				}
			}
			handles = append(handles, `{"kind":`+quote(f.key)+`,"value":`+quote(value)+`}`)
		case f.name == since:
			members = append(members, quote(f.name)+":"+quote(c.date(strings.TrimSpace(cell))))
		case f.name == desk.KindPhone:
			number, err := phoneCell(cell)
			if err != nil {
				return nil, err
			}
			members = append(members, quote(f.name)+":"+quote(number))
		default:
			members = append(members, quote(f.name)+":"+quote(cell))
		}
	}
	switch {
	case !named:
	case !blankName:
		members = append(members, `"name":`+quote(strings.TrimSpace(names[0]+" "+names[1])))
	case c.clearBlank:
		members = append(members, `"name":null`)
	}
	if attributes = append(attributes, clearsAttributes...); len(attributes) > 0 {
		members = append(members, `"attributes":{`+strings.Join(attributes, ",")+`}`)
	}
	if len(handles) > 0 {
		members = slices.DeleteFunc(members, func(m string) bool { return m == `"identities":null` })
		members = append(members, `"identities":[`+strings.Join(handles, ",")+`]`)
	}
	return []byte("{" + strings.Join(members, ",") + "}"), nil
}

// person returns the JSON of a broadcast's row.
func (c *converter) person(cells []string) (_ []byte, err error) {
	to, contact, values := "", "", []string{}
	for i, f := range c.fields {
		cell := strings.TrimSpace(unguard(cells[i]))
		switch {
		case f.name == skipped:
		case f.name == variable && cell != "":
			values = append(values, quote(f.key)+":"+quote(cell))
		case f.name == "name" && cell != "":
			contact = `,"contact":{"name":` + quote(cell) + `}`
		case f.name == desk.KindPhone:
			if cell, err = phoneCell(cell); err != nil {
				return nil, err
			}
			to = quote(f.name) + ":" + quote(cell)
		case slices.Contains(who, f.name):
			to = quote(f.name) + ":" + quote(cell)
		}
	}
	return []byte(`{"to":{` + to + `},"variables":{` + strings.Join(values, ",") + `}` + contact + `}`), nil
}

func quote(s string) string { return string(desk.AppendJSONString(nil, s)) }

// phoneCell returns a number from a cell. Spreadsheets take numbers for amounts.
func phoneCell(cell string) (string, error) {
	if m := fractionOfPhone.FindStringSubmatch(cell); m != nil {
		return m[1], nil
	}
	if rounded.MatchString(cell) {
		return "", refusal{"phone: a spreadsheet has rounded this number; format the column as text there, and save the file again"}
	}
	return cell, nil
}

// value returns the JSON of an attribute's value.
func (c *converter) value(a *desk.Attribute, cell string) (string, error) {
	if a == nil {
		return quote(cell), nil
	}
	trimmed := strings.TrimSpace(cell)
	if isOption(a, cell) {
		return quote(cell), nil
	}
	switch a.Type {
	case desk.BooleanAttribute:
		switch strings.ToLower(trimmed) {
		case "1", "yes", "true":
			return "true", nil
		case "0", "no", "false":
			return "false", nil
		}
	case desk.NumberAttribute:
		if c.decimalComma && commaNumber.MatchString(trimmed) {
			trimmed = strings.ReplaceAll(strings.ReplaceAll(trimmed, ".", ""), ",", ".")
		}
		return quote(trimmed), nil
	case desk.DateAttribute:
		return quote(c.date(trimmed)), nil
	case desk.MultiselectAttribute:
		list, err := listCell(trimmed)
		if err != nil {
			return "", err
		}
		for i, option := range list {
			list[i] = quote(option)
		}
		return "[" + strings.Join(list, ",") + "]", nil
	case desk.SelectAttribute, desk.DatetimeAttribute, desk.URLAttribute:
		return quote(trimmed), nil
	}
	return quote(cell), nil
}

// isOption tells whether a cell is an option of a select, with all its spaces.
func isOption(a *desk.Attribute, cell string) bool {
	return a != nil && a.Type == desk.SelectAttribute && slices.Contains(a.Options, cell)
}

// date returns a date as parley takes it, if it is written in the order that --dates says.
func (c *converter) date(cell string) string {
	m := writtenDate.FindStringSubmatch(cell)
	if m == nil || c.dates == "" {
		c.undated = c.undated || m != nil
		return cell
	}
	day, month := m[1], m[2]
	if c.dates == MonthFirst {
		day, month = month, day
	}
	two := func(s string) string { return strings.Repeat("0", 2-len(s)) + s }
	date := m[3] + "-" + two(month) + "-" + two(day)
	if _, err := time.Parse(time.DateOnly, date); err != nil {
		return cell // the reason of the refusal shows it as it is in the file
	}
	return date
}

// listCell returns the elements of a list: JSON, or texts separated by | or else by ;.
func listCell(cell string) (list []string, err error) {
	if isJSONList(cell) {
		if err := json.Unmarshal([]byte(cell), &list); err != nil {
			return nil, refusal{"this is no JSON list of texts; separate values by | or ;"}
		}
		return list, nil
	}
	separator := ";"
	if strings.Contains(cell, "|") {
		separator = "|"
	}
	for part := range strings.SplitSeq(cell, separator) {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list, nil
}

// isJSONList tells whether a cell is a list in JSON.
func isJSONList(cell string) bool {
	return strings.HasPrefix(strings.TrimSpace(cell), "[") && json.Valid([]byte(cell))
}

// identityList returns the identities of a cell as JSON: a JSON list, or KIND:VALUE, several
// separated by | or else by ;.
func identityList(cell string) (list []string, err error) {
	if strings.HasPrefix(strings.TrimSpace(cell), "[") {
		var raw []json.RawMessage
		if err := json.Unmarshal([]byte(cell), &raw); err != nil {
			return nil, refusal{"identities: this is no JSON list"}
		}
		for _, one := range raw {
			list = append(list, string(one))
		}
		return list, nil
	}
	parts, err := listCell(cell)
	for _, part := range parts {
		kind, value, ok := strings.Cut(part, ":")
		if !ok {
			return nil, refusal{"identities: write KIND:VALUE, several separated by |, or a JSON list"}
		}
		list = append(list, `{"kind":`+quote(strings.TrimSpace(kind))+`,"value":`+quote(strings.TrimSpace(value))+`}`)
	}
	return list, err
}
