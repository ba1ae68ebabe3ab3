package app_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
)

// TestStuckReads: the rows of one workspace can't be read, like those on a database server
// that does not answer. Others still read their templates. Their large dry runs, of which
// only one runs at a time, wait only as long as the caller does.
func TestStuckReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.another()
	channel, others := w.connect(metaNumber, metaBusiness), other.connect("200300400500601", "100200300400501")
	answers := make(chan struct{})
	hung := make(chan struct{}, 10)
	slow := &faultyStore{Store: w.file, hang: func(ws desk.ID) {
		if ws == w.ws {
			hung <- struct{}{}
			<-answers
		}
	}}
	a := w.node(slow, app.Bounds{})
	ops := func() (list []*desk.Op) { // those of a call are its own
		for n := range 20 {
			id := fmt.Sprint("c", n)
			list = append(list, &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{ExternalID: text(id), Sent: []desk.Identity{{Kind: desk.KindExternalID, Value: id}}}})
		}
		return list
	}
	p, reader := w.caller(), other.caller()
	ended := make(chan error, 10)
	go func() { _, err := a.TemplatesOf(context.Background(), w.operator(), channel); ended <- err }()
	<-hung
	patient, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	_, err := a.TemplatesOf(patient, other.operator(), others)
	must(t, err)
	for range 4 {
		go func() { _, _, err := a.TryAll(context.Background(), p, ops()); ended <- err }()
	}
	<-hung
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, _, err = a.TryAll(ctx, reader, ops())
	refused(t, err, desk.Unavailable)
	_, err = a.TemplatesOf(ctx, w.operator(), channel)
	refused(t, err, desk.Unavailable)
	if len(hung) > 0 {
		t.Error("two large dry runs run at the same time")
	}
	close(answers)
	for range 5 {
		must(t, <-ended)
	}
	_, _, err = a.TryAll(t.Context(), reader, ops())
	must(t, err)
}
