package api

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"parley/app/broadcast"
	"parley/desk"
)

// appendBroadcast appends a broadcast with its counts.
func appendBroadcast(b []byte, v *desk.Broadcast, s *desk.Settings) []byte {
	b = appendID(append(b, `{"id":`...), v.ID)
	b = desk.AppendJSONString(append(b, `,"name":`...), v.Name)
	b = append(append(append(b, `,"state":"`...), v.State...), '"')
	b = appendText(append(b, `,"reason":`...), string(v.Reason))
	b = appendTime(append(b, `,"resumes_at":`...), v.ResumesAt)
	b = appendID(append(b, `,"channel_id":`...), v.Channel)
	b = desk.AppendJSONString(append(b, `,"template":{"name":`...), v.Template)
	b = desk.AppendJSONString(append(b, `,"language":`...), v.Language)
	b = appendText(append(b, `,"category":`...), v.Category)
	b = append(b, `},"variables":{`...)
	for i, value := range v.Values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(desk.AppendJSONString(b, value.Address), ':')
		if value.Value != "" {
			b = append(desk.AppendJSONString(append(b, `{"value":`...), value.Value), '}')
			continue
		}
		b = desk.AppendJSONString(append(b, `{"from":`...), value.From)
		if value.Else != "" {
			b = desk.AppendJSONString(append(b, `,"else":`...), value.Else)
		}
		b = append(b, '}')
	}
	b = appendAudience(append(b, `},"audience":`...), v.Audience)
	b = append(b, `,"consent":`...)
	switch {
	case v.Consent == nil:
		b = append(b, "null"...)
	case v.Consent.Confirmed:
		b = append(b, `{"confirmed":true}`...)
	default:
		b = append(desk.AppendJSONString(append(b, `{"attribute":`...), v.Consent.Attribute), '}')
	}
	b = append(b, `,"at_most":`...)
	if v.AtMost == 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, v.AtMost, 10)
	}
	b = append(b, `,"skip_open":`...)
	if v.SkipOpen == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendBool(b, *v.SkipOpen)
	}
	b = appendTime(append(b, `,"send_at":`...), v.SendAt)
	b = appendTime(append(b, `,"stop_at":`...), v.StopAt)
	b = append(b, `,"hours":`...)
	if v.Hours == nil {
		b = append(b, "null"...)
	} else {
		b = appendHours(b, v.Hours)
	}
	b = append(b, `,"pace":`...)
	if v.Pace == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(append(b, `{"people":`...), int64(v.Pace.People), 10)
		b = append(strconv.AppendInt(append(b, `,"minutes":`...), int64(v.Pace.Minutes), 10), '}')
	}
	b = strconv.AppendInt(append(b, `,"max_failed_percent":`...), int64(v.MaxFailed), 10)
	b = appendBroadcastCounts(append(b, `,"counts":`...), v)
	b = appendActor(append(b, `,"created_by":`...), v.CreatedBy, s)
	b = append(b, `,"started_by":`...)
	if v.StartedBy == (desk.Actor{}) {
		b = append(b, "null"...)
	} else {
		b = appendActor(b, v.StartedBy, s)
	}
	b = appendTime(append(b, `,"created_at":`...), v.CreatedAt)
	b = appendTime(append(b, `,"started_at":`...), v.StartedAt)
	b = appendTime(append(b, `,"ended_at":`...), v.EndedAt)
	return append(appendTime(append(b, `,"updated_at":`...), v.UpdatedAt), '}')
}

// Broadcast is the JSON of a broadcast, for the command line.
func Broadcast(v *desk.Broadcast, s *desk.Settings) []byte { return appendBroadcast(nil, v, s) }

func appendBroadcastCounts(b []byte, v *desk.Broadcast) []byte {
	counts := v.Counts
	if counts == nil {
		counts = &desk.BroadcastCounts{}
	}
	counts = counts.As(v.State)
	b = strconv.AppendInt(append(b, `{"rows":`...), counts.Total(), 10)
	for _, status := range desk.RowStatuses {
		b = append(append(append(b, `,"`...), status...), `":`...)
		b = strconv.AppendInt(b, counts.ByStatus[status], 10)
	}
	b = appendSkips(b, counts.Skips)
	b = appendArray(append(b, `,"failures":`...), counts.Failures, func(b []byte, f desk.FailureCount) []byte {
		b = strconv.AppendInt(append(b, `{"code":`...), int64(f.Code), 10)
		b = desk.AppendJSONString(append(b, `,"title":`...), f.Title)
		return append(strconv.AppendInt(append(b, `,"count":`...), f.N, 10), '}')
	})
	b = appendArray(append(b, `,"choices":`...), counts.Choices, func(b []byte, c desk.ChoiceCount) []byte {
		b = desk.AppendJSONString(append(b, `{"title":`...), c.Title)
		return append(strconv.AppendInt(append(b, `,"count":`...), c.N, 10), '}')
	})
	b = strconv.AppendInt(append(b, `,"replied":`...), counts.Replied, 10)
	return append(strconv.AppendInt(append(b, `,"opted_out":`...), counts.OptedOut, 10), '}')
}

// appendBroadcast is appendBroadcast with the caller's settings.
func (c *call) appendBroadcast(b []byte, v *desk.Broadcast) []byte {
	return appendBroadcast(b, v, c.principal.Settings)
}

// broadcast answers with one broadcast, or with the error.
func (c *call) broadcast(status int, v *desk.Broadcast, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return answer{status, dataOf(c.out, v, c.appendBroadcast)}, nil
}

func (s *Server) listBroadcasts(c *call) (answer, error) {
	q, page, err := listQuery(c.r.URL.RawQuery, "state")
	if err != nil {
		return answer{}, err
	}
	var state desk.BroadcastState
	if q.Has("state") {
		if state, err = desk.ParseBroadcastState(q.Get("state")); err != nil {
			return answer{}, err
		}
	}
	list, next, err := s.app.Broadcasts.List(c.r.Context(), c.principal, state, page.cursor, page.limit)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, list, c.appendBroadcast, next)}, nil
}

func (s *Server) getBroadcast(c *call) (answer, error) {
	b, err := s.app.Broadcasts.Get(c.r.Context(), c.principal, c.id())
	return c.broadcast(http.StatusOK, b, err)
}

func (s *Server) createBroadcast(c *call) (answer, error) {
	var in desk.BroadcastInput
	if err := c.decode(maxBody, func(d *decoder) error { return d.broadcast(&in) }); err != nil {
		return answer{}, err
	}
	b, err := s.app.Broadcasts.Create(c.r.Context(), c.principal, &in)
	return c.broadcast(http.StatusCreated, b, err)
}

// patchBroadcast needs broadcasts:write for a draft, and broadcasts:send later. Both are checked
// before the body is read, as on every route.
func (s *Server) patchBroadcast(c *call) (answer, error) {
	if c.principal.Allow(desk.BroadcastsSend) != nil {
		if err := c.principal.Allow(desk.BroadcastsWrite); err != nil {
			return answer{}, err
		}
	}
	var in desk.BroadcastInput
	if err := c.decode(maxBody, func(d *decoder) error { return d.broadcast(&in) }); err != nil {
		return answer{}, err
	}
	b, err := s.app.Broadcasts.Edit(c.r.Context(), c.principal, c.id(), &in)
	return c.broadcast(http.StatusOK, b, err)
}

func (s *Server) deleteBroadcast(c *call) (answer, error) {
	if err := s.app.Broadcasts.Delete(c.r.Context(), c.principal, c.id()); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}

// move reads an empty object and then moves a broadcast to another state.
func (s *Server) move(do func(*call) (*desk.Broadcast, error)) handler {
	return func(c *call) (answer, error) {
		err := c.decode(maxBody, func(d *decoder) error {
			return d.object(func(name string) error { return d.unknown(name) })
		})
		if err != nil {
			return answer{}, needsNone(err)
		}
		b, err := do(c)
		return c.broadcast(http.StatusOK, b, err)
	}
}

func (s *Server) startBroadcast(c *call) (*desk.Broadcast, error) {
	return s.app.Broadcasts.Start(c.r.Context(), c.principal, c.id())
}

func (s *Server) resumeBroadcast(c *call) (*desk.Broadcast, error) {
	return s.app.Broadcasts.Resume(c.r.Context(), c.principal, c.id())
}

func (s *Server) unscheduleBroadcast(c *call) (*desk.Broadcast, error) {
	return s.app.Broadcasts.Unschedule(c.r.Context(), c.principal, c.id())
}

func (s *Server) pauseBroadcast(c *call) (*desk.Broadcast, error) {
	return s.app.Broadcasts.Pause(c.r.Context(), c.principal, c.id())
}

func (s *Server) cancelBroadcast(c *call) (*desk.Broadcast, error) {
	return s.app.Broadcasts.Cancel(c.r.Context(), c.principal, c.id())
}

func (s *Server) releaseBroadcast(c *call) (answer, error) {
	sent, err := c.decodeSent()
	if err != nil {
		return answer{}, err
	}
	r, err := s.app.Broadcasts.Release(c.r.Context(), c.principal, c.id(), sent)
	if err != nil {
		return answer{}, err
	}
	b := strconv.AppendInt(append(c.out, `{"data":{"released":`...), r.Released, 10)
	return answer{http.StatusOK, append(strconv.AppendInt(append(b, `,"left":`...), r.Left, 10), "}}"...)}, nil
}

func (s *Server) checkBroadcast(c *call) (answer, error) {
	if err := c.principal.Allow(desk.ContactsRead); err != nil {
		return answer{}, err
	}
	var cursor desk.Field[string]
	err := c.decode(maxBody, func(d *decoder) error {
		return d.object(func(name string) error {
			if name != "cursor" {
				return d.unknown(name, "cursor")
			}
			return field(d, &cursor, d.text)
		})
	})
	if err == nil && cursor.Has() && cursor.Value == "" {
		err = desk.InvalidAt("/cursor", "it is empty; leave it out for the first page")
	}
	if err != nil {
		return answer{}, needsNone(err)
	}
	checked, next, err := s.app.Broadcasts.Check(c.r.Context(), c.principal, c.id(), cursor.Value)
	if err != nil {
		return answer{}, err
	}
	b := appendChecked(append(c.out, `{"data":`...), &checked)
	if next != "" {
		b = desk.AppendJSONString(append(b, `,"next_cursor":`...), next)
	}
	return answer{http.StatusOK, append(b, '}')}, nil
}

// appendSkips appends how many people are passed over, by reason.
func appendSkips[N int | int64](b []byte, skips map[desk.RowReason]N) []byte {
	b = append(b, `,"skips":{`...)
	first := true
	for _, reason := range desk.RowReasons {
		if skips[reason] == 0 {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = strconv.AppendInt(append(append(append(b, '"'), reason...), `":`...), int64(skips[reason]), 10)
	}
	return append(b, '}')
}

func appendChecked(b []byte, v *broadcast.Checked) []byte {
	b = strconv.AppendInt(append(b, `{"looked_at":`...), int64(v.LookedAt), 10)
	b = strconv.AppendInt(append(b, `,"sendable":`...), int64(v.Sendable), 10)
	b = appendSkips(b, v.Skips)
	b = appendArray(append(b, `,"samples":`...), v.Samples, func(b []byte, s broadcast.Sample) []byte {
		b = appendID(append(b, `{"contact_id":`...), s.Contact)
		return append(desk.AppendJSONString(append(b, `,"text":`...), s.Text), '}')
	})
	return append(b, '}')
}

func appendRow(b []byte, r desk.BroadcastRow) []byte {
	b = appendID(append(b, `{"id":`...), r.ID)
	b = appendID(append(b, `,"contact_id":`...), r.Contact)
	b = append(b, `,"to":`...)
	if r.To == "" {
		b = append(b, "null"...)
	} else {
		b = append(append(append(b, `"+`...), r.To...), '"')
	}
	b = append(append(append(b, `,"status":"`...), r.Status...), '"')
	b = appendText(append(b, `,"reason":`...), string(r.Reason))
	b = append(b, `,"failure":`...)
	if r.Failure == nil {
		b = append(b, "null"...)
	} else {
		b = appendFailure(b, r.Failure)
	}
	b = appendID(append(b, `,"attempt_id":`...), r.Attempt)
	b = appendID(append(b, `,"message_id":`...), r.Message)
	b = appendID(append(b, `,"conversation_id":`...), r.Conversation)
	b = appendTime(append(b, `,"at":`...), r.At)
	b = appendTime(append(b, `,"replied_at":`...), r.Data.Reply.At)
	return append(appendText(append(b, `,"choice":`...), r.Data.Reply.Choice), '}')
}

func (s *Server) listRows(c *call) (answer, error) {
	if err := c.principal.Allow(desk.ContactsRead); err != nil {
		return answer{}, err
	}
	q, page, err := listQuery(c.r.URL.RawQuery, "status", "reason", "contact_id")
	if err != nil {
		return answer{}, err
	}
	f := desk.RowFilter{Status: desk.RowStatus(q.Get("status")), Reason: desk.RowReason(q.Get("reason"))}
	if q.Has("status") && !slices.Contains(desk.RowStatuses, f.Status) {
		return answer{}, desk.InvalidAt("/status", "send %s", desk.Alternatives(desk.RowStatuses))
	}
	if q.Has("reason") && !slices.Contains(desk.RowReasons, f.Reason) {
		return answer{}, desk.InvalidAt("/reason", "send %s", desk.Alternatives(desk.RowReasons))
	}
	if f.Contact, err = idParameter(q, "contact_id"); err != nil {
		return answer{}, err
	}
	list, next, err := s.app.Broadcasts.Rows(c.r.Context(), c.principal, c.id(), f, page.cursor, page.limit)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, list, appendRow, next)}, nil
}

func (s *Server) clearRows(c *call) (answer, error) {
	if err := s.app.Broadcasts.Clear(c.r.Context(), c.principal, c.id()); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}

// maxRows is how many rows a request may add.
const maxRows = 1000

func (s *Server) addRows(c *call) (answer, error) {
	if err := c.principal.Allow(desk.ContactsRead); err != nil {
		return answer{}, err
	}
	var rows []desk.RowInput
	err := c.decode(maxBatchBody, func(d *decoder) error { return d.rows(&rows, c.principal.Settings.Country) })
	if err == nil {
		err = c.w.Turn(c.principal.Workspace(), 1+len(rows)/rowsOfTurn)
	}
	if err != nil {
		return answer{}, err
	}
	results, err := s.app.Broadcasts.Add(c.r.Context(), c.principal, c.id(), rows)
	if err != nil {
		return answer{}, err
	}
	n := map[string]int{}
	for _, r := range results {
		n[r.Status]++
	}
	b := strconv.AppendInt(append(c.out, `{"summary":{"total":`...), int64(len(results)), 10)
	for _, status := range []string{"added", "replaced", "unchanged"} {
		b = strconv.AppendInt(append(append(append(b, `,"`...), status...), `":`...), int64(n[status]), 10)
	}
	b = append(strconv.AppendInt(append(b, `,"errors":`...), int64(n[""]), 10), `},"results":[`...)
	for i, r := range results {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"index":`...), int64(i), 10)
		if r.Err != nil {
			e := desk.AsError(desk.Within("/rows/"+strconv.Itoa(i), r.Err))
			if rows[i].Err != nil { // its place is known already
				e = desk.AsError(r.Err)
			}
			b = append(appendError(append(b, `,"status":"error","id":null,"error":`...), e, inBody), '}')
			continue
		}
		b = append(append(b, `,"status":"`...), r.Status...)
		b = append(appendID(append(b, `","id":`...), r.ID), '}')
	}
	return answer{http.StatusOK, append(b, "]}"...)}, nil
}

// rows reads rows. What is wrong within a row is the row's error.
func (d *decoder) rows(rows *[]desk.RowInput, country string) error {
	there, n := false, 0
	err := d.object(func(name string) error {
		if name != "rows" {
			return d.unknown(name, "rows")
		}
		there = true
		return d.array(func(i int) error {
			if n = i + 1; n > maxRows {
				return d.skip() // only counted
			}
			*rows = append(*rows, desk.RowInput{})
			return d.broadcastRow("/rows/"+strconv.Itoa(i), &(*rows)[i], country)
		})
	})
	switch {
	case err != nil:
		return err
	case !there:
		return desk.InvalidAt("/rows", "missing; send an array of 1 to %d rows", maxRows)
	case n == 0 || n > maxRows:
		return desk.InvalidAt("/rows", "send 1 to %d rows; these are %d", maxRows, n)
	}
	return nil
}

// ReadRow reads a row of POST /broadcasts/{id}/rows, for an import.
func ReadRow(body []byte, s *desk.Settings) (r desk.RowInput, err error) {
	err = decode(body, func(d *decoder) error { return d.broadcastRow("", &r, s.Country) })
	return r, cmp.Or(err, r.Err)
}

// broadcastRow reads one row, whose place in the body is at.
func (d *decoder) broadcastRow(at string, r *desk.RowInput, country string) error {
	depth, begin, to := d.StackDepth(), d.beginning(), false
	// keep stores an error that concerns only this row, and skips the rest of the value.
	keep := func(err error, depth int) error {
		var e *desk.Error
		if err == nil || errors.As(err, new(bodyError)) || !errors.As(err, &e) {
			return err
		}
		if r.Err == nil {
			r.Err = e
		}
		return d.skipTo(depth)
	}
	err := d.object(func(name string) error {
		err := func() error {
			switch name {
			case "to":
				to = true
				return d.rowRecipient(r, country)
			case "variables":
				var v desk.Field[desk.TemplateValues]
				err := field(d, &v, d.variables)
				if err == nil && v.Has() && !v.Value.Object {
					err = desk.InvalidAt(at+"/variables", "send an object, by the variables' addresses")
				}
				r.Values = v.Value.Named
				return err
			case "contact":
				var person desk.Field[desk.ContactWrite]
				err := field(d, &person, func() (w desk.ContactWrite, err error) {
					err = d.contact(&w, country, nil)
					return w, err
				})
				if person.Has() {
					r.Person = &person.Value
				}
				return err
			}
			return d.refuse(unknownMember(name, []string{"to", "variables", "contact"}))
		}()
		return keep(err, depth+1)
	})
	if err := keep(err, depth); err != nil {
		return err
	}
	switch {
	case r.Err != nil:
	case !to:
		r.Err = desk.InvalidAt(at+"/to", "missing; name the person by phone, contact_id, external_id or email")
	case d.InputOffset()-begin > desk.MaxRowBytes:
		r.Err = desk.InvalidAt(at, "a row has at most %d bytes", desk.MaxRowBytes)
	case r.Person != nil && r.Find.Kind == desk.KindPhone && r.Person.Contradicts(r.Find.Value) != nil:
		r.Err = desk.InvalidAt(at+"/contact", "it has another number than the row; leave it out, or write to it instead")
	}
	return nil
}

// rowRecipient reads whom a row names.
func (d *decoder) rowRecipient(r *desk.RowInput, country string) error {
	n := 0
	err := d.object(func(name string) error {
		switch name {
		case desk.KindPhone, desk.KindExternalID, desk.KindEmail:
			var f desk.Field[desk.Identity]
			err := field(d, &f, func() (i desk.Identity, err error) {
				_, err = d.parsed(func(s string) (string, error) {
					i, err = desk.ParseIdentity(name, s, country)
					return i.Value, err
				})
				return i, err
			})
			if f.Has() {
				n++
				r.Find = f.Value
			}
			return err
		case "contact_id":
			var id desk.Field[desk.ID]
			err := field(d, &id, d.id)
			if id.Has() {
				n++
				r.Contact = &id.Value
			}
			return err
		}
		return d.unknown(name, desk.KindPhone, "contact_id", desk.KindExternalID, desk.KindEmail)
	})
	if err == nil && n != 1 {
		err = d.wrong("name the person by exactly one of phone, contact_id, external_id and email")
	}
	return err
}

// broadcast reads the members of a broadcast.
func (d *decoder) broadcast(in *desk.BroadcastInput) error {
	time := func() (desk.Time, error) {
		text, err := d.text()
		if err != nil {
			return 0, err
		}
		at, ok := desk.ParseTime(text)
		if !ok {
			return 0, d.wrong("send a time as RFC 3339, such as 2026-03-04T16:02:55Z")
		}
		return at, nil
	}
	return d.object(func(name string) error {
		switch name {
		case "name":
			return field(d, &in.Name, d.text)
		case "channel_id":
			return field(d, &in.Channel, func() (id desk.ID, err error) {
				if id, err = d.id(); err == nil && id.IsZero() { // stored, it would mean "the only channel"
					err = d.wrong("this is not the id of a channel; see GET /v1/channels")
				}
				return id, err
			})
		case "template":
			return field(d, &in.Template, d.templateName)
		case "variables":
			return field(d, &in.Values, d.broadcastValues)
		case "audience":
			return d.audience(&in.Audience)
		case "consent":
			return field(d, &in.Consent, d.consent)
		case "at_most":
			return field(d, &in.AtMost, d.integer)
		case "skip_open":
			return field(d, &in.SkipOpen, d.bool)
		case "send_at":
			return field(d, &in.SendAt, time)
		case "stop_at":
			return field(d, &in.StopAt, time)
		case "hours":
			return field(d, &in.Hours, d.hours)
		case "pace":
			return field(d, &in.Pace, d.pace)
		case "max_failed_percent":
			return field(d, &in.MaxFailed, d.integer)
		}
		return d.unknown(name, "name", "channel_id", "template", "variables", "audience", "consent", "at_most", "skip_open", "send_at", "stop_at", "hours", "pace", "max_failed_percent")
	})
}

func (d *decoder) templateName() (t desk.TemplateName, err error) {
	err = d.object(func(name string) (err error) {
		switch name {
		case "name":
			t.Name, err = d.text()
		case "language":
			t.Language, err = d.text()
		default:
			err = d.unknown(name, "name", "language")
		}
		return err
	})
	return t, err
}

func (d *decoder) broadcastValues() (list []desk.BroadcastValue, err error) {
	err = d.object(func(address string) error {
		if err := d.storable(address); err != nil {
			return err
		}
		v := desk.BroadcastValue{Address: address}
		err := d.object(func(name string) (err error) {
			switch name {
			case "value":
				v.Value, err = d.text()
			case "from":
				v.From, err = d.text()
			case "else":
				var other desk.Field[string]
				err = field(d, &other, d.text)
				v.Else = other.Value
			default:
				err = d.unknown(name, "value", "from", "else")
			}
			return err
		})
		list = append(list, v)
		return err
	})
	return list, err
}

func (d *decoder) consent() (v desk.Consent, err error) {
	err = d.object(func(name string) (err error) {
		switch name {
		case "confirmed":
			v.Confirmed, err = d.bool()
		case "attribute":
			v.Attribute, err = d.text()
		default:
			err = d.unknown(name, "confirmed", "attribute")
		}
		return err
	})
	return v, err
}

func (d *decoder) pace() (p desk.BroadcastPace, err error) {
	err = d.object(func(name string) error {
		n, err := int64(0), error(nil)
		switch name {
		case "people":
			n, err = d.integer()
			p.People = int(max(0, min(n, desk.MaxBroadcastPeople+1)))
		case "minutes":
			n, err = d.integer()
			p.Minutes = int(max(0, min(n, desk.MaxBroadcastMinutes+1)))
		default:
			err = d.unknown(name, "people", "minutes")
		}
		return err
	})
	return p, err
}
