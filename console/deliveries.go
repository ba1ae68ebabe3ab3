package console

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"parley/app/deliver"
	"parley/desk"
)

// deliveryRows is the number of deliveries that the page of a webhook lists.
const deliveryRows = 20

// A deliveryRow is a delivery in a list.
type deliveryRow struct {
	ID       desk.ID
	Href     string
	Type     string
	State    pill
	At       moment
	Attempts int
	Last     string
	Next     moment
	Pending  bool
}

// An attemptRow is one attempt of a delivery.
type attemptRow struct {
	At       moment
	Good     bool
	Text     string
	Response string
}

// attemptWords say why an attempt failed.
var attemptWords = map[string]string{
	"address_refused": "The address is not a public one, and whoever runs this server has not allowed it",
	"dns":             "The host's name was not found",
	"connect":         "It could not be connected",
	"tls":             "The certificate, or what comes before the request, failed",
	"timeout":         "It did not answer in time",
	"protocol":        "The connection was cut, or the answer was no HTTP",
	"redirect":        "It answered with a redirect, which is not followed",
	desk.TryGone:      "It answered that it is gone",
	"status":          "It answered with an error",
	desk.TryExpired:   "The event had expired",
}

func (c *call) attemptRow(a desk.WebhookTry) attemptRow {
	row := attemptRow{At: c.when(a.At), Good: a.Error == "", Text: attemptWords[a.Error], Response: a.Response}
	if row.Good {
		row.Text = "Taken"
	} else if row.Text == "" {
		row.Text = capital(changeWord(a.Error))
	}
	if a.StatusCode != 0 {
		row.Text += " (" + strconv.Itoa(a.StatusCode) + ")"
	}
	row.Text += ", in " + count(int(a.Took)) + " ms."
	return row
}

func (c *call) deliveryRow(webhook desk.ID, d *deliver.Delivery) deliveryRow {
	row := deliveryRow{
		ID: d.ID, Href: "/settings/webhooks/" + webhook.String() + "/deliveries/" + d.ID.String(), Type: typesOf([]string{string(d.Type)}),
		At: c.when(d.CreatedAt), Attempts: len(d.Tries), Next: c.when(d.Next), Pending: d.Status == desk.DeliveryPending,
	}
	switch d.Status {
	case desk.DeliveryDelivered:
		row.State = pill{"Delivered", "good"}
	case desk.DeliveryFailed:
		row.State = pill{"Failed", "bad"}
	default:
		row.State = pill{"Waiting", "warn"}
	}
	if n := len(d.Tries); n > 0 {
		row.Last = c.attemptRow(d.Tries[n-1]).Text
	}
	return row
}

// A deliveryPage is the page of a delivery.
type deliveryPage struct {
	deliveryRow
	Back, URL string
	Event     string // the event's id
	List      []attemptRow
	Body      string // "": the event is not stored any more
}

func (s *Server) delivery(c *call) error {
	page, err := c.deliveryView()
	if err != nil {
		return err
	}
	return c.show("delivery", page)
}

func (c *call) deliveryView() (view, error) {
	w, err := c.aWebhook()
	if err != nil {
		return view{}, err
	}
	d, body, err := c.s.app.Deliver.Delivery(c.r.Context(), c.p, w.ID, c.id("delivery"))
	if err != nil {
		return view{}, err
	}
	page := deliveryPage{deliveryRow: c.deliveryRow(w.ID, &d), Back: "/settings/webhooks/" + w.ID.String(), URL: w.URL, Event: d.EventID}
	for _, a := range slices.Backward(d.Tries) {
		page.List = append(page.List, c.attemptRow(a))
	}
	var indented bytes.Buffer
	if json.Indent(&indented, body, "", "  ") == nil {
		page.Body = indented.String()
	}
	return view{Title: "Delivery", Data: page}, nil
}

func (s *Server) redeliver(c *call) error {
	if _, err := s.app.Deliver.Redeliver(c.r.Context(), c.p, c.id("id"), c.id("delivery")); err != nil {
		page, readErr := c.deliveryView()
		if readErr != nil {
			return err
		}
		return c.again("delivery", page, err)
	}
	return c.see("/settings/webhooks/"+c.id("id").String()+"/deliveries/"+c.id("delivery").String(), "redelivering")
}
