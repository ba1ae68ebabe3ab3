package api

import (
	"net/http"

	"parley/app"
	"parley/desk"
)

// appendSendAttempt appends the record of parley attempt list --json.
func appendSendAttempt(b []byte, at *desk.Attempt, s *desk.Settings) []byte {
	b = appendID(append(b, `{"attempt_id":`...), at.ID)
	key := at.Key
	if !at.Broadcast.IsZero() {
		key = "" // callers can't send it
	}
	b = appendText(append(b, `,"key":`...), key)
	b = append(append(append(b, `,"phase":"`...), at.Phase...), '"')
	b = appendTime(append(b, `,"created_at":`...), at.CreatedAt)
	b = appendTime(append(b, `,"settled_at":`...), at.SettledAt)
	b = appendID(append(b, `,"channel_id":`...), at.Plan.Channel)
	b = appendID(append(b, `,"contact_id":`...), at.Plan.Contact)
	b = appendText(append(b, `,"address":`...), at.Address())
	b = appendText(append(b, `,"template":`...), at.Plan.Template)
	b = appendText(append(b, `,"language":`...), at.Plan.Language)
	b = appendText(append(b, `,"external_id":`...), at.ExternalID)
	b = appendRefusal(append(b, `,"refusal":`...), at.Refusal)
	b = appendArray(append(b, `,"notes":`...), at.Notes, desk.AppendJSONString)
	var message desk.ID
	if at.Stored() {
		message = at.Plan.Message
	}
	b = appendID(append(b, `,"conversation_id":`...), at.InConversation())
	b = appendID(append(b, `,"message_id":`...), message)
	b = append(append(append(b, `,"kind":"`...), at.Plan.Kind()...), `","opt_in":`...)
	b = appendOptIn(b, at.OptIn(), s)
	return append(appendID(append(b, `,"broadcast_id":`...), at.Broadcast), '}')
}

// appendOptIn appends when an opt-in was asserted, and by whom; null if there is none.
func appendOptIn(b []byte, o *desk.OptIn, s *desk.Settings) []byte {
	if o == nil {
		return append(b, "null"...)
	}
	b = appendTime(append(b, `{"confirmed_at":`...), o.At)
	b = appendActor(append(b, `,"actor":`...), o.Actor(), s)
	return append(appendText(append(b, `,"attribute":`...), o.Attribute), '}')
}

// appendRefusal appends why a message was not sent; null if it was sent. The object has a
// code, a title and a fix only if the provider refused.
func appendRefusal(b []byte, r *desk.Refusal) []byte {
	if r == nil {
		return append(b, "null"...)
	}
	b = append(append(b, `{"type":"`...), r.Type...)
	b = desk.AppendJSONString(append(b, `","message":`...), r.Answer().Worded("", advice))
	if r.Failure == nil {
		return append(b, `,"code":null,"title":null,"fix":null}`...)
	}
	return append(append(b, ','), appendFailure(nil, r.Failure)[1:]...)
}

func (s *Server) listAttempts(c *call) (answer, error) {
	q, page, err := listQuery(c.r.URL.RawQuery, "phase", "broadcast_id")
	if err != nil {
		return answer{}, err
	}
	var f app.AttemptFilter
	if q.Has("phase") {
		if f.Phase, err = desk.ParsePhase(q.Get("phase")); err != nil {
			return answer{}, err
		}
	}
	if q.Get("broadcast_id") == "none" {
		f.Broadcast = &desk.ID{}
	} else if f.Broadcast, err = idParameter(q, "broadcast_id"); err != nil {
		return answer{}, err
	}
	if q.Get("broadcast_id") != "none" && f.Broadcast != nil && f.Broadcast.IsZero() { // no broadcast has this id
		return answer{http.StatusOK, listOf(c.out, nil, c.appendAttempt, "")}, nil
	}
	list, next, err := s.app.Attempts(c.r.Context(), c.principal, f, page.cursor, page.limit)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, list, c.appendAttempt, next)}, nil
}

func (s *Server) getAttempt(c *call) (answer, error) {
	return c.attempt(s.app.Attempt(c.r.Context(), c.principal, c.id()))
}

func (s *Server) releaseAttempt(c *call) (answer, error) {
	sent, err := c.decodeSent()
	if err != nil {
		return answer{}, err
	}
	return c.attempt(s.app.Release(c.r.Context(), c.principal, c.id(), sent))
}

// decodeSent reads a person's decision whether messages were sent.
func (c *call) decodeSent() (bool, error) {
	var sent desk.Field[bool]
	err := c.decode(maxBody, func(d *decoder) error {
		return d.object(func(name string) (err error) {
			if name != "sent" {
				return d.unknown(name, "sent")
			}
			sent.Set = true
			sent.Value, err = d.bool()
			return err
		})
	})
	if err == nil && !sent.Set {
		err = desk.InvalidAt("/sent", "missing; true if the provider has the message, false if it has not")
	}
	return sent.Value, err
}

// appendAttempt is appendSendAttempt with the caller's settings.
func (c *call) appendAttempt(b []byte, at *desk.Attempt) []byte {
	return appendSendAttempt(b, at, c.principal.Settings)
}

// attempt answers with one attempt, or with the error.
func (c *call) attempt(at *desk.Attempt, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, at, c.appendAttempt)}, nil
}
