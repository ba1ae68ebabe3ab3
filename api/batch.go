package api

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"parley/desk"
)

// A row is one element of a batch: an operation, or why it is none.
type row struct {
	op    desk.Op
	named string // what "op" was sent as
	noOp  bool   // "op" is absent or no string: it is answered as null
	err   error
}

func (s *Server) batch(c *call) (answer, error) {
	var rows []row
	err := c.decode(maxBatchBody, func(d *decoder) error { return d.batch(&rows, c.principal.Settings.Country) })
	if err != nil {
		return answer{}, err
	}
	ops := make([]*desk.Op, 0, len(rows))
	for i := range rows {
		if rows[i].err == nil {
			ops = append(ops, &rows[i].op)
		}
	}
	outcomes, errs, err := s.app.WriteAll(c.r.Context(), c.principal, ops)
	if err != nil {
		return answer{}, err
	}
	var summary desk.Summary
	results := make([]desk.Outcome, len(rows))
	n := 0
	for i := range rows {
		if rows[i].err == nil {
			results[i], rows[i].err = outcomes[n], rows[i].locate(i, errs[n])
			n++
		}
		summary.Count(results[i].Status)
	}
	b := appendSummary(append(c.out, `{"summary":`...), summary)
	b = append(b, `,"results":[`...)
	for i := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendResult(b, i, &rows[i], results[i])
	}
	return answer{http.StatusOK, append(b, "]}"...)}, nil
}

func appendSummary(b []byte, s desk.Summary) []byte {
	b = strconv.AppendInt(append(b, `{"total":`...), int64(s.Total), 10)
	b = strconv.AppendInt(append(b, `,"created":`...), int64(s.Created), 10)
	b = strconv.AppendInt(append(b, `,"updated":`...), int64(s.Updated), 10)
	b = strconv.AppendInt(append(b, `,"deleted":`...), int64(s.Deleted), 10)
	b = strconv.AppendInt(append(b, `,"assigned":`...), int64(s.Assigned), 10)
	b = strconv.AppendInt(append(b, `,"errors":`...), int64(s.Errors), 10)
	return append(b, '}')
}

func appendResult(b []byte, index int, r *row, o desk.Outcome) []byte {
	b = strconv.AppendInt(append(b, `{"index":`...), int64(index), 10)
	b = append(b, `,"op":`...)
	if r.noOp {
		b = append(b, "null"...)
	} else {
		b = desk.AppendJSONString(b, r.named)
	}
	if r.err != nil {
		return append(appendError(append(b, `,"status":"error","error":`...), desk.AsError(r.err)), '}')
	}
	b = append(append(b, `,"status":"`...), o.Status...)
	return append(appendID(append(b, `","id":`...), o.Contact.ID), '}')
}

// batch reads the body of a batch. What is wrong with an element is its row's
// error; what is wrong with the JSON text, or around the elements, is the
// request's (contract §3).
func (d *decoder) batch(rows *[]row, country string) error {
	there := false
	n := 0
	err := d.object(func(name string) error {
		if name != "operations" {
			return d.unknown()
		}
		there = true
		return d.array(func(i int) error {
			if n = i + 1; n > desk.MaxOperations {
				return d.skip() // only counted
			}
			*rows = append(*rows, row{})
			return d.row(i, &(*rows)[i], country)
		})
	})
	if err == nil && !there {
		err = desk.Invalidf("/operations is missing: send an array of 1 to %d operations", desk.MaxOperations)
	}
	if err == nil {
		err = desk.CheckBatch(n)
	}
	return err
}

// row reads one element. The members may come in any order, so all that any
// operation takes are read, and those that this one does not take are refused after.
func (d *decoder) row(i int, r *row, country string) error {
	r.noOp = true
	depth := d.StackDepth()
	var id, external, email, phone desk.Field[string]
	var list desk.Field[[]desk.Identity]
	var data, owner bool
	foreign := "" // a member that only an upsert, or only the others, take
	err := d.object(func(name string) error {
		err := func() (err error) {
			switch name {
			case "op":
				if d.PeekKind() != '"' {
					return d.refuse("expected a string")
				}
				t, err := d.token()
				r.named, r.noOp = t.String(), false
				return err
			case "data":
				data = true
				return d.contact(&r.op.Write, country)
			case "id":
				err = field(d, &id, d.text)
			case desk.KindExternalID:
				err = d.handle(&external, &r.op.Find, name, country)
			case desk.KindEmail:
				err = d.handle(&email, &r.op.Find, name, country)
			case desk.KindPhone:
				err = d.handle(&phone, &r.op.Find, name, country)
			case "identities":
				err = field(d, &list, func() ([]desk.Identity, error) { return d.identities(country) })
				for _, i := range list.Value {
					r.op.Find = desk.AddIdentity(r.op.Find, i)
				}
			case "owner":
				owner = true
				err = field(d, &r.op.Owner, d.text)
			default:
				return d.refuse("unknown field; /docs lists those that this endpoint takes")
			}
			if foreign == "" && name != "owner" {
				foreign = name
			}
			return err
		}()
		return r.keep(d, err, depth+1)
	})
	if err := r.keep(d, err, depth); err != nil {
		return err
	}
	if r.err != nil {
		return nil
	}
	at := "/operations/" + strconv.Itoa(i)
	switch r.named {
	case "upsert":
		r.op.Kind = desk.OpUpsert
		switch {
		case foreign != "":
			r.err = desk.Invalidf("%s/%s: an upsert has op and data; contact fields stand inside data", at, foreign)
		case owner:
			r.err = desk.Invalidf("%s/owner: an upsert has op and data; contact fields stand inside data", at)
		case !data:
			r.err = desk.Invalidf("%s/data is missing: the fields of the contact", at)
		}
	case "assign", "delete":
		r.op.Kind = desk.OpAssign
		if r.named == "delete" {
			r.op.Kind = desk.OpDelete
		}
		r.op.ByID = id.Has()
		if id.Has() {
			r.op.Target, _ = desk.ParseID(id.Value) // a malformed one is an unknown one
		}
		switch {
		case data:
			r.err = desk.Invalidf("%s/data: only an upsert has data", at)
		case owner && r.op.Kind == desk.OpDelete:
			r.err = desk.Invalidf("%s/owner: a delete has no owner", at)
		}
	default:
		r.err = desk.Invalidf("%s/op: use upsert, assign or delete", at)
	}
	if r.err == nil {
		r.err = r.locate(i, r.op.Check())
	}
	return nil
}

// locate completes the JSON pointer of an error that names a member of its own
// request: here that is a row, or the data of an upsert.
func (r *row) locate(i int, err error) error {
	var e *desk.Error
	if !errors.As(err, &e) || !strings.HasPrefix(e.Message, "/") {
		return err
	}
	located := *e
	located.Message = "/operations/" + strconv.Itoa(i) + e.Message
	if r.op.Kind == desk.OpUpsert {
		located.Message = "/operations/" + strconv.Itoa(i) + "/data" + e.Message
	}
	return &located
}

// keep makes an error that concerns only this row the row's, unless it has one
// already, and passes over what it left unread below depth. Others it returns.
func (r *row) keep(d *decoder, err error, depth int) error {
	var e *desk.Error
	if err == nil || errors.Is(err, errTooDeep) || !errors.As(err, &e) {
		return err
	}
	if r.err == nil {
		r.err = e
	}
	return d.skipTo(depth)
}

// refuse passes over the value that comes next and says what is wrong with it.
func (d *decoder) refuse(format string) error {
	if err := d.skip(); err != nil {
		return err
	}
	return d.wrong("%s", format)
}
