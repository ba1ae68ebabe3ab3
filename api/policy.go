package api

import (
	"net/http"
	"strconv"

	"parley/desk"
)

// Policy is the JSON of a reply policy. nil stands for a policy in which everything is off.
func Policy(p *desk.Policy) []byte { return appendPolicy(nil, p) }

func appendPolicy(b []byte, p *desk.Policy) []byte {
	if p == nil {
		p = &desk.Policy{}
	}
	b = appendID(append(b, `{"channel_id":`...), p.Channel)
	b = appendAssign(append(b, `,"assign":`...), p.Assign)
	b = appendText(append(b, `,"owner_away":`...), string(p.OwnerAway))
	b = appendHours(append(b, `,"hours":`...), p.Hours)
	b = append(b, `,"auto_reply":`...)
	if r := p.AutoReply; r == nil {
		b = append(b, "null"...)
	} else {
		b = appendText(append(b, `{"away":`...), r.Away)
		b = appendText(append(b, `,"queued":`...), r.Queued)
		b = strconv.AppendInt(append(b, `,"every_hours":`...), int64(r.EveryHours), 10)
		b = append(strconv.AppendBool(append(b, `,"when_held":`...), r.WhenHeld), '}')
	}
	return append(appendTime(append(b, `,"updated_at":`...), p.UpdatedAt), '}')
}

func appendAssign(b []byte, a *desk.Assign) []byte {
	if a == nil {
		return append(b, "null"...)
	}
	b = append(append(append(b, `{"mode":"`...), a.Mode...), `","members":`...)
	b = append(appendArray(b, a.Members, appendID), `,"max_open":`...)
	if a.MaxOpen == 0 {
		return append(b, "null}"...)
	}
	return append(strconv.AppendInt(b, int64(a.MaxOpen), 10), '}')
}

func appendHours(b []byte, h *desk.Hours) []byte {
	if h == nil {
		return append(b, "null"...)
	}
	b = append(desk.AppendJSONString(append(b, `{"time_zone":`...), h.TimeZone), `,"week":{`...)
	first := true
	for _, day := range desk.Weekdays {
		spans, there := h.Week[day]
		if !there {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendArray(append(append(append(b, '"'), day...), `":`...), spans, appendSpan)
	}
	b = appendArray(append(b, `},"exceptions":`...), h.Exceptions, func(b []byte, e desk.Exception) []byte {
		b = append(append(append(b, `{"date":"`...), e.Date...), `","open":`...)
		return append(appendArray(b, e.Open, appendSpan), '}')
	})
	return append(b, '}')
}

func appendSpan(b []byte, s desk.Span) []byte {
	b = append(append(append(b, `["`...), s[0].String()...), `","`...)
	return append(append(b, s[1].String()...), `"]`...)
}

// ReadPolicy reads the body of PUT /policy.
func ReadPolicy(body []byte) (in desk.PolicyInput, err error) {
	err = decode(body, readPolicy(&in))
	return in, err
}

// readPolicy reads a policy.
func readPolicy(in *desk.PolicyInput) func(*decoder) error {
	return func(d *decoder) error {
		return d.object(func(name string) error {
			switch name {
			case "assign":
				return optional(d, &in.Assign, d.assign)
			case "owner_away":
				return optional(d, &in.OwnerAway, d.text)
			case "hours":
				return optional(d, &in.Hours, d.hours)
			case "auto_reply":
				return optional(d, &in.AutoReply, d.autoReply)
			}
			return d.unknown(name, "assign", "owner_away", "hours", "auto_reply")
		})
	}
}

// optional reads a value that may be null. Null counts as absent.
func optional[T any](d *decoder, into **T, read func() (T, error)) error {
	null, err := d.null()
	if null || err != nil {
		return err
	}
	v, err := read()
	*into = &v
	return err
}

func (d *decoder) assign() (in desk.AssignInput, err error) {
	err = d.object(func(name string) (err error) {
		switch name {
		case "mode":
			return optional(d, &in.Mode, d.text)
		case "members":
			if null, err := d.null(); null || err != nil {
				return err
			}
			texts, err := d.texts()
			for _, text := range texts {
				in.Members = append(in.Members, desk.ReferTo(text))
			}
			return err
		case "max_open":
			return optional(d, &in.MaxOpen, d.integer)
		}
		return d.unknown(name, "mode", "members", "max_open")
	})
	return in, err
}

func (d *decoder) hours() (in desk.HoursInput, err error) {
	err = d.object(func(name string) (err error) {
		switch name {
		case "time_zone":
			return optional(d, &in.TimeZone, d.text)
		case "week":
			if null, err := d.null(); null || err != nil {
				return err
			}
			in.Week = map[string][][]string{}
			return d.object(func(day string) (err error) {
				if err := d.storable(day); err != nil {
					return err
				}
				in.Week[day], err = d.spans()
				return err
			})
		case "exceptions":
			if null, err := d.null(); null || err != nil {
				return err
			}
			return d.array(func(int) error {
				e, err := d.exception()
				in.Exceptions = append(in.Exceptions, e)
				return err
			})
		}
		return d.unknown(name, "time_zone", "week", "exceptions")
	})
	return in, err
}

func (d *decoder) exception() (in desk.ExceptionInput, err error) {
	err = d.object(func(name string) (err error) {
		switch name {
		case "date":
			in.Date, err = pointer(d.text)
		case "open":
			in.Open, err = d.spans()
		default:
			err = d.unknown(name, "date", "open")
		}
		return err
	})
	return in, err
}

// spans reads the hours of a day; never nil.
func (d *decoder) spans() ([][]string, error) {
	list := [][]string{}
	err := d.array(func(int) error {
		span, err := d.texts()
		list = append(list, span)
		return err
	})
	return list, err
}

func (d *decoder) autoReply() (in desk.AutoReplyInput, err error) {
	err = d.object(func(name string) error {
		switch name {
		case "away":
			return optional(d, &in.Away, d.text)
		case "queued":
			return optional(d, &in.Queued, d.text)
		case "every_hours":
			return optional(d, &in.EveryHours, d.integer)
		case "when_held":
			var held *bool
			err := optional(d, &held, d.bool)
			in.WhenHeld = held != nil && *held
			return err
		}
		return d.unknown(name, "away", "queued", "every_hours", "when_held")
	})
	return in, err
}

func (s *Server) getPolicy(c *call) (answer, error) { return s.policyOf(c, desk.ID{}) }

func (s *Server) getChannelPolicy(c *call) (answer, error) {
	id, err := c.channel()
	if err != nil {
		return answer{}, err
	}
	return s.policyOf(c, id)
}

// channel returns the id of the channel in the path. It returns NotFound for an id that no
// channel has. That includes the zero id, which would otherwise stand for the workspace.
func (c *call) channel() (desk.ID, error) {
	id := c.id()
	if c.principal.Settings.Channel(id) == nil {
		return id, desk.NoChannel()
	}
	return id, nil
}

func (s *Server) policyOf(c *call, channel desk.ID) (answer, error) {
	p, err := s.app.Policy(c.principal, channel)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, p, appendPolicy)}, nil
}

func (s *Server) putPolicy(c *call) (answer, error) {
	return s.setPolicy(c, func() (desk.ID, error) { return desk.ID{}, nil })
}

func (s *Server) putChannelPolicy(c *call) (answer, error) { return s.setPolicy(c, c.channel) }

func (s *Server) setPolicy(c *call, channel func() (desk.ID, error)) (answer, error) {
	var in desk.PolicyInput
	if err := c.decode(maxBody, readPolicy(&in)); err != nil {
		return answer{}, err
	}
	if err := in.Check(); err != nil {
		return answer{}, err
	}
	id, err := channel()
	if err != nil {
		return answer{}, err
	}
	p, err := s.app.SetPolicy(c.r.Context(), c.principal, id, in)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, p, appendPolicy)}, nil
}

func (s *Server) deleteChannelPolicy(c *call) (answer, error) {
	id, err := c.channel()
	if err == nil {
		err = s.app.ClearPolicy(c.r.Context(), c.principal, id)
	}
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}

func (s *Server) getHours(c *call) (answer, error) {
	q, err := query(c.r.URL.RawQuery, "at")
	if err != nil {
		return answer{}, err
	}
	var at *desk.Time
	if q.Has("at") {
		t, ok := desk.ParseTime(q.Get("at"))
		if at = &t; !ok {
			return answer{}, desk.InvalidAt("/at", "send a time as RFC 3339, such as 2026-03-04T16:02:55Z")
		}
	}
	id, err := c.channel()
	if err != nil {
		return answer{}, err
	}
	open, until, changes, err := s.app.Hours(c.principal, id, at)
	if err != nil {
		return answer{}, err
	}
	b := strconv.AppendBool(append(c.out, `{"data":{"open":`...), open)
	b = append(b, `,"until":`...)
	if changes {
		b = append(until.Append(append(b, '"')), '"')
	} else {
		b = append(b, "null"...)
	}
	return answer{http.StatusOK, append(b, "}}"...)}, nil
}
