package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"parley/app"
	"parley/desk"
	"parley/web"
)

// TestPageTurns: the size of a page is only known after it is made, so only few pages of
// a workspace are made at a time. The page of a refused form also needs a turn. A handler
// that waits for a provider has no turn while it waits. Another workspace has its own
// turns.
func TestPageTurns(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(d *app.Deps) { d.PlainHTTP = true }) // the simulator is on this machine
	_, graph := meta(t)
	b := w.as(w.nora)
	conversation, lost := w.writes("34600000001", "Ana", "hello"), b.looks(w.writes("+34612340003", "Lucía", "hello"), "")
	const turns = 64
	held, free := make(chan error), make(chan struct{})
	w.server.web.Handle("GET /hog", func(r *web.Response, _ *http.Request) error {
		held <- r.PageTurn(w.ws)
		<-free
		return nil
	}, func(*web.Response, *desk.Error) { t.Error("no turn") })
	var hogs sync.WaitGroup
	for range turns {
		hogs.Go(func() { w.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/hog", nil)) })
		if err := <-held; err != nil {
			t.Fatal(err)
		}
	}
	b.get("/inbox").want(503)
	b.post("/settings/members/new", "name", "", "email", "nobody").want(503)
	b.post("/inbox/"+conversation.ID.String()+"/reply", "reply", "").want(503) // refused, so it would show the thread
	// What was done, or may have been, is told.
	b.post(lost.path+"/reply", lost.fields(t, "reply", "Hi")...).want(409, "It may have been sent", "Do not send it again.", "/sends?doubt=yes").lacks("Not saved", "send this one again")
	b.post("/settings/channels/new", "phone_number_id", "200300400500600", "waba_id", "100200300400500", "token", "EAATESTTOKEN", "app_secret", "app-secret-for-tests", "graph_url", graph).want(200, "is connected", "Copy it now")
	close(free)
	hogs.Wait()
	b.get("/inbox").want(200)
	b.post("/settings/members/new", "name", "", "email", "nobody").want(422)
}

// TestPartsTwice: a request that names the same part many times does not get it many
// times.
func TestPartsTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(w.nora)
	b.header.Set("Parley-Part", "list views")
	b.get("/inbox").want(200)
	b.header.Set("Parley-Part", strings.Repeat("list ", maxParts))
	b.get("/inbox").want(404)
}
