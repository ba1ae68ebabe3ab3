package console

import (
	"cmp"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"parley/desk"
)

// A form is the data of a POST, with its errors. The zero form has not been sent: its
// fields have the values that the page gives.
type form struct {
	values  url.Values
	file    *sentFile         // nil: no file
	errors  map[string]string // by field
	called  map[string]string // the fields' names in the summary of errors, for fields that labels lacks
	Message string            // the error of the form as a whole
	Advice  string
}

// A fieldError is a line of the summary of errors.
type fieldError struct{ ID, Label, Text string }

// text returns a field without white space around it.
func (f *form) text(name string) string { return strings.TrimSpace(f.values.Get(name)) }

// raw returns a field as it was typed, with newlines as \n.
func (f *form) raw(name string) string {
	return strings.ReplaceAll(f.values.Get(name), "\r\n", "\n")
}

// has reports whether a box is ticked, or a button was clicked.
func (f *form) has(name string) bool { return f.values.Has(name) }

// list returns all values of a field.
func (f *form) list(name string) []string { return f.values[name] }

// refuse records an error, beside its field or for the form as a whole.
func (f *form) refuse(e *desk.Error) {
	name := fieldOf(e.At)
	if name != "" && f.values.Has(name) {
		f.wrong(name, message(e))
	} else {
		f.Message = message(e)
	}
	f.Advice = advise(e)
}

// wrong records an error of one field.
func (f *form) wrong(name, text string) {
	if f.errors == nil {
		f.errors = map[string]string{}
	}
	f.errors[name] = text
}

// call gives a field a name for the summary of errors.
func (f *form) call(name, label string) {
	if f.called == nil {
		f.called = map[string]string{}
	}
	f.called[name] = label
}

// fieldOf returns the name of the field to which the place of an error belongs: for
// /email it returns email, for /attributes/plan attributes.plan.
func fieldOf(at string) string {
	return strings.ReplaceAll(strings.TrimPrefix(at, "/"), "/", ".")
}

// Refused reports whether the form has an error.
func (f *form) Refused() bool { return f.Message != "" || len(f.errors) > 0 }

// Errors lists the errors of fields, for the summary.
func (f *form) Errors() (list []fieldError) {
	for _, name := range slices.Sorted(maps.Keys(f.errors)) {
		list = append(list, fieldError{ID: idOf(name), Label: cmp.Or(f.called[name], labelOf(name)), Text: f.errors[name]})
	}
	return list
}

// A field is one input of a form.
type field struct {
	ID, Name, Label, Hint string
	Value                 string
	Error                 string
	Type                  string // the type of an input
	Complete              string // the value of autocomplete
	Required, Checked     bool
	Max, Rows             int
	Choices               []choice
}

// A choice is one option of a select.
type choice struct {
	Value, Label string
	Selected     bool
}

// Field makes a field. It shows the text that was sent with the form. If the form was not
// sent, it shows value.
func (f *form) Field(name, label, hint, value string) *field {
	out := &field{ID: idOf(name), Name: name, Label: label, Hint: hint, Value: value, Error: f.errors[name], Type: "text", Rows: 3, Complete: "off"}
	if f.values != nil {
		out.Value = f.values.Get(name)
	}
	return out
}

// Box makes a checkbox.
func (f *form) Box(name, label, hint string, ticked bool) *field {
	out := f.Field(name, label, hint, "")
	out.Checked = ticked
	if f.values != nil {
		out.Checked = f.values.Has(name)
	}
	return out
}

// As is a method that sets the type of an input, and the matching autocomplete.
func (d *field) As(kind string) *field {
	d.Type = kind
	return d
}

// Fill is a method that sets autocomplete.
func (d *field) Fill(what string) *field {
	d.Complete = what
	return d
}

// Need marks the field as required.
func (d *field) Need() *field {
	d.Required = true
	return d
}

// Tall sets the rows of a text area.
func (d *field) Tall(rows int) *field {
	d.Rows = rows
	return d
}

// Of is a method that sets the choices of a select. It selects the field's value.
func (d *field) Of(choices []choice) *field {
	d.Choices = make([]choice, len(choices))
	for i, c := range choices {
		c.Selected = c.Value == d.Value
		d.Choices[i] = c
	}
	return d
}

// idOf returns the id of a field's element.
func idOf(name string) string { return "f-" + strings.ReplaceAll(name, ".", "-") }

// A sentFile is the file of a form. It is read while it arrives.
type sentFile struct {
	Name, Type string // as the browser gives them
	Content    io.Reader
	Size       int64 // 0: not known
}

type hiddenField struct{ Name, Value string }
