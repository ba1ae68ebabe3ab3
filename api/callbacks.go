package api

import (
	"io"
	"net/http"

	"parley/app"
	"parley/desk"
	"parley/web"
)

// callbackRoutes adds the routes for callbacks of providers (contract §7). They need no
// key: a token answers the handshake, and a signature admits a callback. Answers have no
// body, except the handshake's, and do not show which channels exist.
func (s *Server) callbackRoutes() {
	for _, kind := range s.app.CallbackKinds() {
		pattern := app.CallbackPath(kind, "{channel}")
		s.web.Handle("GET "+pattern, callbackHandler(kind, s.handshake), failBare)
		s.web.Handle("POST "+pattern, callbackHandler(kind, s.callback), failBare)
	}
}

// callbackHandler returns a handler that calls do with the kind and the id of the channel
// in the path.
func callbackHandler(kind desk.ChannelKind, do func(*web.Response, *http.Request, desk.ChannelKind, desk.ID) error) web.Handler {
	return func(w *web.Response, r *http.Request) error {
		channel, _ := desk.ParseID(r.PathValue("channel")) // a text that is not an id becomes the zero id, which no channel has
		w.Actor("channel_id", channel)
		return do(w, r, kind, channel)
	}
}

// failBare answers an error without a body.
func failBare(w *web.Response, e *desk.Error) {
	code := web.Status(e.Type)
	if code >= http.StatusInternalServerError {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
}

// handshake answers a provider that verifies a callback URL.
func (s *Server) handshake(w *web.Response, r *http.Request, kind desk.ChannelKind, channel desk.ID) error {
	answer, err := s.app.VerifyCallback(r.Context(), kind, channel, r.URL.Query().Get)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff") // the text is the caller's own
	_, _ = io.WriteString(w, answer)                    // a client that has left needs no answer
	return nil
}

// callback stores a callback, and answers once it is durable. It reads the body for any
// channel id, so that an unsigned request does not show which channels exist.
func (s *Server) callback(w *web.Response, r *http.Request, kind desk.ChannelKind, channel desk.ID) error {
	body, err := w.UncheckedBody(app.MaxCallback)
	if err != nil {
		return err
	}
	return s.app.ReceiveCallback(r.Context(), kind, channel, r.Header.Get, body)
}
