package poster_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"parley/poster"
)

// BenchmarkPost compares an attempt with a bare client that signs and posts.
func BenchmarkPost(b *testing.B) {
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer sink.Close()
	r := to(sink.URL)
	r.Body = bytes.Repeat([]byte("x"), 1000)
	b.Run("poster", func(b *testing.B) {
		p, err := poster.New(poster.Config{Allow: loopback})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if got := p.Post(b.Context(), r); got.Error != "" {
				b.Fatal(got)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			webhook, err := standardwebhooks.NewWebhookRaw(r.Secrets[0])
			if err != nil {
				b.Fatal(err)
			}
			signature, err := webhook.Sign(r.ID, r.At, r.Body)
			if err != nil {
				b.Fatal(err)
			}
			req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, r.URL, bytes.NewReader(r.Body))
			if err != nil {
				b.Fatal(err)
			}
			req.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	})
}
