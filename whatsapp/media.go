package whatsapp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"parley/desk"
	"parley/provider"
)

// The time limits for uploading and fetching a file.
const (
	uploadTimeout = 60 * time.Second
	stallTimeout  = 30 * time.Second // without a byte of a response
	fetchTimeout  = 10 * time.Minute
)

// newMediaClient returns a client for files. Each request has its own connection,
// because a request with a stream can't be repeated if a reused connection turns out to
// be dead.
func newMediaClient(guarded guard) *http.Client {
	c := newClient(guarded)
	transport, _ := c.Transport.(*http.Transport)
	transport.DisableKeepAlives = true
	transport.DisableCompression = true // length and hash must be those of the file
	return c
}

// Upload uploads a file, and returns the id by which a message can name it (see
// provider.Talker).
func (p *Provider) Upload(ctx context.Context, at provider.Access, kind, name string, size int64, content io.Reader) (ref string, err error) {
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	before, after, boundary := multipart(kind, name)
	file := &source{from: io.LimitReader(content, size)}
	defer func() { _ = file.close() }()
	c := call{
		at: at, method: http.MethodPost, path: []string{at.Channel.ExternalID, "media"},
		stream: io.MultiReader(strings.NewReader(before), file, strings.NewReader(after)), length: int64(len(before)+len(after)) + size,
		form: mime.FormatMediaType("multipart/form-data", map[string]string{"boundary": boundary}),
	}
	request, err := c.request(ctx)
	if err != nil {
		return "", notUploaded(at, nil)
	}
	response, err := p.clients(at).files.Do(request)
	if err != nil {
		if ours := file.close(); ours != nil {
			return "", ours
		}
		return "", notUploaded(at, nil)
	}
	defer response.Body.Close()
	a := answerOf(response, maxAnswer)
	var taken struct {
		ID text `json:"id"`
	}
	if 200 <= a.status && a.status <= 299 && a.whole && decodeObject(a.body, &taken) && externalIDOf(taken.ID) != "" {
		return externalIDOf(taken.ID), nil
	}
	e := errorOf(a, p.now())
	if e != nil {
		p.log.LogAttrs(ctx, slog.LevelInfo, "WhatsApp did not take a file", slog.Any("channel_id", at.Channel.ID), slog.Int("status", e.status),
			slog.Int("code", e.code), slog.Int("subcode", e.subcode), slog.String("fbtrace_id", presentableTrace(string(e.Trace))))
	}
	return "", notUploaded(at, e)
}

// notUploaded returns the refusal of a message whose file was not accepted. e is the
// provider's error, or nil.
func notUploaded(at provider.Access, e *graphError) *desk.Refusal {
	if e == nil {
		return &desk.Refusal{
			Type: desk.ProviderUnavailable, RetryAfter: retryTransient,
			Message: "the file could not be handed over to WhatsApp, so nothing was sent: send it again later, with the same Idempotency-Key",
			Advice:  desk.Advice{Kind: desk.CheckChannel, Arg: at.Channel.ID.String()},
		}
	}
	r := e.refusal()
	if r.Type == desk.ProviderRejected {
		r.Message = "WhatsApp does not take this file, so nothing was sent"
	}
	r.Advice = adviceOn(r, at.Channel.ID)
	return r
}

// multipart returns the parts of an upload's body before and after the content of the
// file.
func multipart(kind, name string) (before, after, boundary string) {
	boundary = "parley-" + rand.Text()
	var b strings.Builder
	field := func(name, value string) {
		fmt.Fprintf(&b, "--%s\r\nContent-Disposition: form-data; name=%q\r\n\r\n%s\r\n", boundary, name, value)
	}
	kind = headerText.Replace(kind)
	field("messaging_product", "whatsapp")
	field("type", kind)
	fmt.Fprintf(&b, "--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"%s\"\r\nContent-Type: %s\r\n\r\n", boundary, headerText.Replace(cmp.Or(name, "file")), kind)
	return b.String(), "\r\n--" + boundary + "--\r\n", boundary
}

// headerText escapes a text in the header of a part, as browsers do.
var headerText = strings.NewReplacer("\r", "%0D", "\n", "%0A", `"`, "%22", "\x00", "")

// A source is the content of a file that is uploaded. It remembers the error of a failed
// read. After close, it is not read any more, although net/http may still try.
type source struct {
	mu   sync.Mutex
	from io.Reader
	err  error
}

func (s *source) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from == nil {
		return 0, io.ErrClosedPipe
	}
	n, err := s.from.Read(b)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// close ends the reading, and returns the error of a failed read, if any.
func (s *source) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = nil
	return s.err
}

// Fetch writes a file that a person sent (see provider.Talker). It asks for the file's
// address each time, because an address works only for a few minutes.
func (p *Provider) Fetch(ctx context.Context, at provider.Access, ref string, told func(provider.FetchedMedia) error, w io.Writer) (file provider.FetchedMedia, err error) {
	if ref == "" {
		return file, provider.ErrMediaFailed
	}
	var m struct {
		URL    text `json:"url"`
		MIME   text `json:"mime_type"`
		SHA256 text `json:"sha256"`
		Size   text `json:"file_size"`
	}
	a, err := p.get(ctx, call{at: at, path: []string{ref}}, &m)
	if err != nil {
		return file, p.notFetched(ctx, at, a, err)
	}
	file = provider.FetchedMedia{MIME: oneLine(storedText(m.MIME), desk.MaxName), SHA256: hashOf(m.SHA256)}
	if size, ok := m.Size.number(); ok && size > 0 {
		file.Size = size
	}
	if err := told(file); err != nil {
		return file, err
	}
	return file, p.download(ctx, at, string(m.URL), w)
}

// notFetched returns the error for a file that the provider did not describe.
func (p *Provider) notFetched(ctx context.Context, at provider.Access, a answer, err error) error {
	var e *graphError
	switch {
	case errors.As(err, &e) && e.code == codeNoDownload:
		return provider.ErrMediaFailed
	case e == nil && (a.status == http.StatusNotFound || a.status == http.StatusGone):
		return provider.ErrMediaGone
	case e == nil || e.code != 100 || e.subcode != subcodeMissing:
		return err
	}
	// The provider gives the same error for an id that no longer exists and for one that
	// the token may not use. The file is gone only if the token may use the number.
	var number struct{}
	if _, other := p.get(ctx, call{at: at, path: []string{at.Channel.ExternalID}, query: url.Values{"fields": {"id"}}}, &number); other != nil {
		return err
	}
	return provider.ErrMediaGone
}

// mediaHosts is the domain where the provider keeps files, besides the host of its API.
const mediaHosts = ".fbsbx.com"

// mayHaveToken tells whether the token may be sent to a URL: the URL must be on the host
// of the API, or where the provider keeps files.
func mayHaveToken(api, u *url.URL) bool {
	if u.User != nil {
		return false
	}
	if u.Scheme == api.Scheme && strings.EqualFold(u.Host, api.Host) {
		return true
	}
	return u.Scheme == "https" && (u.Port() == "" || u.Port() == "443") && strings.HasSuffix(strings.ToLower(u.Hostname()), mediaHosts)
}

// download writes the file at an address of the provider to w.
func (p *Provider) download(ctx context.Context, at provider.Access, address string, w io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTimeout, errSlow)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stall := time.AfterFunc(stallTimeout, func() { stop(errSlow) })
	defer stall.Stop()

	c := call{at: at, method: http.MethodGet}
	request, err := c.request(ctx)
	if err != nil {
		return err
	}
	file, err := url.Parse(address)
	if err != nil || !mayHaveToken(request.URL, file) {
		return errForeign
	}
	request.URL, request.Host = file, ""
	request.Header.Set("User-Agent", "parley")
	response, err := p.clients(at).files.Do(request)
	if err != nil {
		return shown(ctx, err)
	}
	defer response.Body.Close()
	// Only the file's id can tell that the file is gone. An address that is not found has
	// expired, and the next try asks for another.
	if s := response.StatusCode; s != http.StatusOK {
		if e := errorOf(answerOf(response, maxAnswer), p.now()); e != nil && e.code == codeNoDownload {
			return provider.ErrMediaFailed
		}
		return fmt.Errorf("whatsapp: HTTP %d instead of a file", s)
	}
	buffer := make([]byte, 64<<10)
	for {
		stall.Reset(stallTimeout)
		n, err := response.Body.Read(buffer)
		stall.Stop() // writing may take any time
		if _, err := w.Write(buffer[:n]); err != nil {
			return err
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return shown(ctx, err)
		}
	}
}

var (
	errSlow    = errors.New("whatsapp: the file came too slowly")
	errForeign = errors.New("whatsapp: the file is at an address that must not get the token")
)

// shown returns the error of a request, but without the URL, which can contain a secret.
func shown(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	return fmt.Errorf("whatsapp: %w", err)
}

// MarkRead tells the provider that a message was read (see provider.Talker).
func (p *Provider) MarkRead(ctx context.Context, at provider.Access, externalID string) error {
	body, err := json.Marshal(map[string]string{"messaging_product": "whatsapp", "status": "read", "message_id": externalID})
	if err != nil { // strings can always be encoded
		return err
	}
	var done struct{}
	_, err = p.get(ctx, call{at: at, method: http.MethodPost, path: []string{at.Channel.ExternalID, "messages"}, body: body}, &done)
	return err
}
