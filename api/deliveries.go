package api

import (
	"net/http"
	"strconv"

	"parley/app/deliver"
	"parley/desk"
)

// Delivery is the JSON of a delivery. Commands also print it.
func Delivery(d *deliver.Delivery) []byte { return appendDelivery(nil, *d) }

func appendDelivery(b []byte, d deliver.Delivery) []byte {
	b = appendID(append(b, `{"id":`...), d.ID)
	b = desk.AppendJSONString(append(b, `,"event_id":`...), d.EventID)
	b = desk.AppendJSONString(append(b, `,"type":`...), string(d.Type))
	b = desk.AppendJSONString(append(b, `,"status":`...), string(d.Status))
	b = appendTime(append(b, `,"created_at":`...), d.CreatedAt)
	b = append(b, `,"next_attempt_at":`...)
	if d.Next == 0 {
		b = append(b, "null"...)
	} else {
		b = appendTime(b, d.Next)
	}
	return append(appendArray(append(b, `,"attempts":`...), d.Tries, appendTry), '}')
}

// WebhookTry is the JSON of a try. Commands also print it.
func WebhookTry(a desk.WebhookTry) []byte { return appendTry(nil, a) }

func appendTry(b []byte, a desk.WebhookTry) []byte {
	b = appendTime(append(b, `{"at":`...), a.At)
	b = strconv.AppendInt(append(b, `,"duration_ms":`...), int64(a.Took), 10)
	b = append(b, `,"status_code":`...)
	if a.StatusCode == 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, int64(a.StatusCode), 10)
	}
	b = appendText(append(b, `,"error":`...), a.Error)
	return append(appendText(append(b, `,"response":`...), a.Response), '}')
}

func (s *Server) pingWebhook(c *call) (answer, error) {
	attempt, err := s.app.Deliver.Ping(c.r.Context(), c.principal, c.id())
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, attempt, appendTry)}, nil
}

func (s *Server) replayWebhook(c *call) (answer, error) {
	w, err := c.webhook()
	if err != nil {
		return answer{}, err
	}
	cursor, err := c.decodeOnly("cursor", "send the id of an event, a cursor of an answer, oldest or latest")
	if err != nil {
		return answer{}, err
	}
	changed, err := s.app.Deliver.Replay(c.r.Context(), c.principal, w.ID, cursor)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, &changed, appendWebhook)}, nil
}

func (s *Server) listDeliveries(c *call) (answer, error) {
	w, err := c.webhook()
	if err != nil {
		return answer{}, err
	}
	q, page, err := listQuery(c.r.URL.RawQuery, "status", "event_id")
	if err != nil {
		return answer{}, err
	}
	f := deliver.Query{EventID: q.Get("event_id"), Cursor: page.cursor, Limit: page.limit}
	if q.Has("event_id") && f.EventID == "" {
		return answer{}, desk.InvalidAt("/event_id", "it is empty; send the id of an event")
	}
	if q.Has("status") {
		if f.Status, err = desk.ParseWebhookDeliveryStatus(q.Get("status")); err != nil {
			return answer{}, err
		}
	}
	list, next, err := s.app.Deliver.Deliveries(c.r.Context(), c.principal, w.ID, f)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, list, appendDelivery, next)}, nil
}

func (s *Server) redeliver(c *call) (answer, error) {
	delivery, _ := desk.ParseID(c.r.PathValue("delivery_id"))
	d, err := s.app.Deliver.Redeliver(c.r.Context(), c.principal, c.id(), delivery)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, d, appendDelivery)}, nil
}
