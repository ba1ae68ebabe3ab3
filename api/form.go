package api

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	"parley/app"
	"parley/desk"
)

// A form is the JSON of a channel's templates without the values of hints. The values
// differ between requests, and everything else is the same for all. It is shared and
// never changed.
type form struct {
	library *desk.Library
	channel *desk.Channel // the bindings are the channel's
	text    []byte
	gaps    []gap
	count   []int // number of gaps of each binding
}

// A gap is a place for a hint's value.
type gap struct {
	at      int // in the form's text
	binding int // its index in desk.Bindings
}

// appendTemplate appends one template as GET /templates lists it, without values of
// hints.
func appendTemplate(b []byte, channel *desk.Channel, t *desk.Template) []byte {
	f := &form{channel: channel, count: make([]int, len(desk.Bindings))}
	f.add(t, false)
	from := 0
	for _, g := range f.gaps {
		b = append(append(b, f.text[from:g.at]...), `null,"source":null}`...)
		from = g.at
	}
	return append(b, f.text[from:]...)
}

func newForm(channel *desk.Channel, library *desk.Library, which listed) *form {
	f := &form{library: library, channel: channel, count: make([]int, len(desk.Bindings))}
	for _, t := range library.Templates {
		if which.all || t.Sendable() || which.needs && t.Fillable() {
			f.add(t, which.needs)
		}
	}
	f.text, f.gaps = slices.Clip(f.text), slices.Clip(f.gaps)
	return f
}

func (f *form) add(t *desk.Template, needs bool) {
	b := f.text
	if len(b) > 0 {
		b = append(b, ',')
	}
	b = desk.AppendJSONString(append(b, `{"name":`...), t.Name)
	b = desk.AppendJSONString(append(b, `,"language":`...), t.Language)
	b = appendText(append(b, `,"category":`...), t.Category)
	b = desk.AppendJSONString(append(b, `,"status":`...), t.Status)
	b = appendText(append(b, `,"header":`...), t.Header)
	b = desk.AppendJSONString(append(b, `,"body":`...), t.Body)
	b = appendArray(append(b, `,"variables":`...), t.Variables, func(b []byte, v desk.Variable) []byte {
		return desk.AppendJSONString(b, v.Address())
	})
	b = append(b, `,"variable_hints":[`...)
	for i, binding := range f.channel.Binds(t) {
		if i > 0 {
			b = append(b, ',')
		}
		v := t.Variables[i]
		b = desk.AppendJSONString(append(b, `{"address":`...), v.Address())
		b = desk.AppendJSONString(append(b, `,"key":`...), v.Key)
		b = append(append(b, `,"part":"`...), v.Part...)
		b = append(append(b, `","binding":"`...), binding...)
		b = append(b, `","value":`...)
		n := slices.Index(desk.Bindings, binding)
		f.gaps = append(f.gaps, gap{len(b), n})
		f.count[n]++
	}
	b = strconv.AppendBool(append(b, `],"sendable":`...), t.Sendable())
	if needs {
		b = appendNeeds(append(b, `,"needs":`...), t.Needs)
	}
	b = append(b, '}')
	f.text = b
}

// appendNeeds appends what a send of a template supplies besides the values of its
// variables, or null.
func appendNeeds(b []byte, needs []desk.Need) []byte {
	if needs == nil {
		return append(b, "null"...)
	}
	return appendArray(b, needs, func(b []byte, n desk.Need) []byte {
		b = desk.AppendJSONString(append(b, `{"address":`...), n.Address)
		b = desk.AppendJSONString(append(b, `,"kind":`...), cmp.Or(string(n.Kind), "link"))
		return append(appendText(append(b, `,"url":`...), n.URL), '}')
	})
}

// fill returns the form's templates with a list's values in the gaps.
func (f *form) fill(c *call, l *app.TemplateList) []byte {
	head := appendID([]byte(`{"channel_id":`), l.Channel.ID)
	head = append(head, `,"agent":`...)
	if l.Agent == nil {
		head = append(head, "null"...)
	} else {
		head = append(appendMemberFields(head, l.Agent), '}')
	}
	head = append(head, `,"contact":`...)
	switch {
	case l.Customer == nil:
		head = append(head, "null"...)
	case l.Customer.ID.IsZero():
		head = append(appendText(append(head, `{"contact_id":null,"name":`...), l.Customer.Name), '}')
	default:
		head = appendID(append(head, `{"contact_id":`...), l.Customer.ID)
		head = append(appendText(append(head, `,"name":`...), l.Customer.Name), '}')
	}
	head = append(head, `,"data":[`...)

	const end = "]}"
	values := make([][]byte, len(desk.Bindings))
	size := len(head) + len(f.text) + len(end)
	for i, binding := range desk.Bindings {
		v := l.Values[binding]
		values[i] = appendText(values[i], v.Value)
		values[i] = append(appendText(append(values[i], `,"source":`...), string(v.Source)), '}')
		size += f.count[i] * len(values[i])
	}
	b, from := append(c.room(size), head...), 0
	for _, g := range f.gaps {
		b = append(append(b, f.text[from:g.at]...), values[g.binding]...)
		from = g.at
	}
	return append(append(b, f.text[from:]...), end...)
}

// maxForms is the greatest size of the forms that are kept in memory, in bytes.
const maxForms = 32 << 20

// forms keeps the newest form of each list of templates.
type forms struct {
	mu    sync.RWMutex
	kept  map[formKey]*form
	bytes int
}

type formKey struct {
	channel desk.ID
	which   listed
}

// listed says which templates a list has besides those that are sendable.
type listed struct {
	all   bool // all others
	needs bool // those that can be sent with what they need, which the list names
}

// of returns the form of a list. The library and the channel have the same version, so a
// form made from them is up to date.
func (f *forms) of(l *app.TemplateList, which listed) *form {
	key := formKey{l.Channel.ID, which}
	f.mu.RLock()
	known := f.kept[key]
	f.mu.RUnlock()
	if known != nil && known.library == l.Library && known.channel == l.Channel {
		return known
	}
	made := newForm(l.Channel, l.Library, which)
	f.mu.Lock()
	defer f.mu.Unlock()
	if known = f.kept[key]; known != nil {
		f.bytes -= len(known.text)
	}
	if f.kept == nil || f.bytes+len(made.text) > maxForms {
		f.kept, f.bytes = map[formKey]*form{}, 0
	}
	f.kept[key] = made
	f.bytes += len(made.text)
	return made
}
