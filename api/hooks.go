package api

import (
	"io"
	"net/http"
	"time"

	"parley/desk"
)

// hooks adds where providers report to (contract §7). They are asked for no key: a token
// answers the handshake, and a signature admits a webhook. Answers have no body, but for
// the handshake's challenge, and say nothing of what is there.
func (s *Server) hooks() {
	const pattern = "/hooks/whatsapp/{channel}"
	s.mux.Handle("GET "+pattern, s.hook("GET "+pattern, s.handshake))
	s.mux.Handle("POST "+pattern, s.hook("POST "+pattern, s.webhook))
}

// hook observes the answers of a hook, and makes its errors into statuses.
func (s *Server) hook(pattern string, do func(http.ResponseWriter, *http.Request, desk.ID) error) http.Handler {
	observe := s.metrics.route(pattern)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, code := time.Now(), http.StatusOK
		channel, _ := desk.ParseID(r.PathValue("channel")) // what is no id is the zero one, which nobody has
		if err := do(w, r, channel); err != nil {
			e := desk.AsError(err)
			if code = status[e.Type]; code >= http.StatusInternalServerError {
				if r.Context().Err() == nil { // else the provider has left, and will come again
					s.log.ErrorContext(r.Context(), "a webhook can't be stored", "channel_id", channel, "err", err)
				}
				w.Header().Set("Retry-After", "1")
			}
			w.WriteHeader(code)
		}
		observe(code, time.Since(began))
	})
}

// maxChallenge is how much of a handshake's challenge is answered, in bytes.
const maxChallenge = 256

// handshake answers a provider that asks whether the address is ours.
func (s *Server) handshake(w http.ResponseWriter, r *http.Request, channel desk.ID) error {
	q := r.URL.Query()
	challenge := q.Get("hub.challenge")
	if q.Get("hub.mode") != "subscribe" || len(challenge) > maxChallenge {
		return desk.Errorf(desk.Forbidden, "this is no handshake")
	}
	if err := s.app.VerifyWebhook(r.Context(), channel, q.Get("hub.verify_token")); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, challenge) // who has left needs no answer
	return nil
}

// webhook stores what a provider reports, and answers once it is durable.
func (s *Server) webhook(_ http.ResponseWriter, r *http.Request, channel desk.ID) error {
	return s.app.TakeWebhook(r.Context(), channel, r.Header.Get("X-Hub-Signature-256"), r.Body)
}
