package api

import (
	"errors"
	"net/http"
	"strconv"

	"parley/desk"
)

// A row is one element of a batch: an operation, or an error.
type row struct {
	op    desk.Op
	named string // the value of "op"
	noOp  bool   // "op" is absent or not a string: the answer has null for it
	err   error
}

// batchDetails limits the size of the error details of all rows in a batch's answer. The
// first entry of each row does not count.
const batchDetails = 4 << 20

// rowsOfTurn is how many rows of a batch count as one write: see web.Response.Turn.
const rowsOfTurn = 33 // so four batches of 1,000 rows are under way at a time

func (s *Server) batch(c *call) (answer, error) {
	var rows []row
	dry := false
	err := c.decode(maxBatchBody, func(d *decoder) error { return d.batch(&rows, &dry, c.principal.Settings.Country) })
	if err == nil {
		err = c.w.Turn(c.principal.Workspace(), 1+len(rows)/rowsOfTurn)
	}
	if err != nil {
		return answer{}, err
	}
	ops := make([]*desk.Op, 0, len(rows))
	for i := range rows {
		if rows[i].err == nil {
			rows[i].op.DetailBytes = min(desk.MaxDetailBytes, batchDetails/len(rows))
			ops = append(ops, &rows[i].op)
		}
	}
	write := s.app.WriteAll
	if dry {
		write = s.app.TryAll
	}
	outcomes, errs, err := write(c.r.Context(), c.principal, ops)
	if err != nil {
		return answer{}, err
	}
	if dry {
		c.dryRun()
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
		return append(appendError(append(b, `,"status":"error","error":`...), desk.AsError(r.err), inBody), '}')
	}
	b = append(append(b, `,"status":"`...), o.Status...)
	return append(appendID(append(b, `","id":`...), o.ID), '}')
}

// batch reads the body of a batch. An error in an element is its row's error. An error
// in the JSON text, or outside of the elements, is the request's error (contract §3).
func (d *decoder) batch(rows *[]row, dry *bool, country string) error {
	there := false
	n := 0
	err := d.object(func(name string) (err error) {
		switch name {
		case "operations":
		case dryRun:
			*dry, err = d.bool()
			return err
		default:
			return d.unknown(name, "operations", dryRun)
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
		err = desk.InvalidAt("/operations", "missing; send an array of 1 to %d operations", desk.MaxOperations)
	}
	if err == nil {
		err = desk.CheckBatch(n)
	}
	return err
}

// row reads one element. The members may come in any order. So it reads all members that
// any operation has, and afterwards refuses the members that this operation does not have.
func (d *decoder) row(i int, r *row, country string) error {
	r.noOp = true
	depth := d.StackDepth()
	var id, external, email, phone desk.Field[string]
	var list desk.Field[[]desk.Identity]
	var data, owner bool
	foreign := "" // a member that this operation may not have
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
				return d.contact(&r.op.Write, country, nil)
			case "id":
				err = field(d, &id, d.text)
			case desk.KindExternalID:
				err = d.handle(&external, &r.op.Find, name, country, false)
			case desk.KindEmail:
				err = d.handle(&email, &r.op.Find, name, country, false)
			case desk.KindPhone:
				err = d.handle(&phone, &r.op.Find, name, country, false)
			case "identities":
				err = field(d, &list, func() ([]desk.Identity, error) { return d.identities(country) })
				for _, i := range list.Value {
					r.op.Find = desk.AddIdentity(r.op.Find, i)
				}
			case "owner":
				owner = true
				err = field(d, &r.op.Owner, d.member)
			default:
				return d.refuse(unknownMember(name, operationMembers))
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
			r.err = desk.InvalidAt(at+"/"+foreign, "an upsert has op and data; contact fields stand inside data")
		case owner:
			r.err = desk.InvalidAt(at+"/owner", "an upsert has op and data; contact fields stand inside data")
		case !data:
			r.err = desk.InvalidAt(at+"/data", "missing; send the fields of the contact")
		}
	case "assign", "delete":
		r.op.Kind = desk.OpAssign
		if r.named == "delete" {
			r.op.Kind = desk.OpDelete
		}
		r.op.ByID = id.Has()
		if id.Has() {
			r.op.Target, _ = desk.ParseID(id.Value) // a malformed id counts as an unknown one
		}
		switch {
		case data:
			r.err = desk.InvalidAt(at+"/data", "only an upsert has data")
		case owner && r.op.Kind == desk.OpDelete:
			r.err = desk.InvalidAt(at+"/owner", "a delete has no owner")
		}
	default:
		r.err = desk.InvalidAt(at+"/op", "use upsert, assign or delete")
	}
	if r.err == nil {
		r.err = r.locate(i, r.op.Check())
	}
	return nil
}

// locate adds the operation's place in the batch to an error: the row, or the data of
// an upsert.
func (r *row) locate(i int, err error) error {
	at := "/operations/" + strconv.Itoa(i)
	if r.op.Kind == desk.OpUpsert {
		at += "/data"
	}
	return desk.Within(at, err)
}

// keep stores an error that concerns only this row in the row, unless it has one
// already, and skips the unread values below depth. It returns any other error.
func (r *row) keep(d *decoder, err error, depth int) error {
	var e *desk.Error
	if err == nil || errors.As(err, new(bodyError)) || !errors.As(err, &e) {
		return err
	}
	if r.err == nil {
		r.err = e
	}
	return d.skipTo(depth)
}

// refuse skips the next value and returns an error about it.
func (d *decoder) refuse(why string) error {
	if err := d.skip(); err != nil {
		return err
	}
	return d.wrong("%s", why)
}

// operationMembers are the members of all operations.
var operationMembers = []string{"op", "data", "id", desk.KindExternalID, desk.KindEmail, desk.KindPhone, "identities", "owner"}
