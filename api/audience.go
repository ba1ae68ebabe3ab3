package api

import (
	"math"
	"strconv"

	"parley/desk"
)

// appendAudience appends who the people of a broadcast are; nil: its rows.
func appendAudience(b []byte, v *desk.Audience) []byte {
	if v == nil {
		return append(b, `{"rows":true}`...)
	}
	switch {
	case v.Segment != "":
		return append(desk.AppendJSONString(append(b, `{"segment":`...), v.Segment), '}')
	case v.Filter != nil:
		return append(v.Filter.AppendJSON(append(b, `{"filter":`...)), '}')
	}
	b = appendID(append(b, `{"broadcast":`...), v.Broadcast)
	b = appendArray(append(b, `,"status":`...), v.Status, func(b []byte, s desk.RowStatus) []byte {
		return append(append(append(b, '"'), s...), '"')
	})
	if v.Code != 0 {
		b = strconv.AppendInt(append(b, `,"code":`...), int64(v.Code), 10)
	}
	if v.Replied != nil {
		b = strconv.AppendBool(append(b, `,"replied":`...), *v.Replied)
	}
	return append(b, '}')
}

// audience reads who the people of a broadcast are. Its rows are no audience.
func (d *decoder) audience(in *desk.Field[desk.Audience]) error {
	members, rows := 0, desk.Field[bool]{}
	err := field(d, in, func() (v desk.Audience, err error) {
		err = d.object(func(name string) error {
			members++
			switch name {
			case "rows":
				return field(d, &rows, d.bool)
			case "segment":
				if v.Segment, err = d.text(); err == nil && v.Segment == "" {
					err = d.wrong("an empty text is no key")
				}
			case "filter":
				v.Filter, err = pointer(d.filter)
			case "broadcast":
				v.Broadcast, err = d.id()
			case "status":
				err = d.array(func(int) error {
					status, err := d.text()
					v.Status = append(v.Status, desk.RowStatus(status))
					return err
				})
			case "code":
				var code int64
				code, err = d.integer()
				v.Code = int(max(-1, min(code, math.MaxInt32)))
				if code == 0 {
					v.Code = -1
				}
			case "replied":
				v.Replied, err = pointer(d.bool)
			default:
				err = d.unknown(name, "rows", "segment", "filter", "broadcast", "status", "code", "replied")
			}
			return err
		})
		return v, err
	})
	switch {
	case err != nil || !in.Has():
		return err
	case rows.Set && (members > 1 || !rows.Value):
		return d.wrong("send {\"rows\":true}, or another audience without rows")
	case rows.Set:
		*in = desk.Field[desk.Audience]{Set: true, Null: true}
	case members == 0:
		return d.wrong("send rows, segment, filter, or broadcast with status")
	}
	return nil
}
