package whatsapptest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// How long the address of a file works, and how long an upload is kept.
const (
	addressLife = 5 * time.Minute
	mediaLife   = 30 * 24 * time.Hour
)

// mediaTypes are the types of files that can be uploaded, each with its greatest size in
// bytes and its kind of message. Every type can be sent as a document.
var mediaTypes = map[string]struct {
	kind string
	most int
}{
	"image/jpeg": {"image", 5 << 20}, "image/png": {"image", 5 << 20}, "image/webp": {"sticker", 500 << 10},
	"video/mp4": {"video", 16 << 20}, "video/3gpp": {"video", 16 << 20},
	"audio/aac": {"audio", 16 << 20}, "audio/amr": {"audio", 16 << 20}, "audio/mpeg": {"audio", 16 << 20}, "audio/mp4": {"audio", 16 << 20}, "audio/ogg": {"audio", 16 << 20},
	"text/plain": {"document", 100 << 20}, "application/pdf": {"document", 100 << 20},
	"application/msword": {"document", 100 << 20}, "application/vnd.ms-excel": {"document", 100 << 20}, "application/vnd.ms-powerpoint": {"document", 100 << 20},
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   {"document", 100 << 20},
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         {"document", 100 << 20},
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": {"document", 100 << 20},
}

// mostUpload is the greatest number of bytes that are read of an upload.
const mostUpload = 101 << 20

// A Media is a file: uploaded, or sent by a person.
type Media struct {
	ID       string    `json:"id"`
	MIME     string    `json:"mime_type"`
	Name     string    `json:"name,omitempty"`
	Size     int       `json:"size"`
	Uploaded bool      `json:"uploaded"`
	Tries    int       `json:"tries"` // how often its content was requested
	At       time.Time `json:"at"`
	Content  []byte    `json:"-"`

	fault fault
}

// A fault says what goes wrong when a file is fetched.
type fault struct {
	fail, truncate, corrupt int // how many tries fail, are cut short, or get wrong bytes
	expired                 int // how many tries get an expired address
	gone                    bool
	size                    int64 // how many bytes are announced and sent
	slow                    time.Duration
	redirect, url           string // the URL to which the file redirects, or the URL that is returned as its address
}

const faultHelp = "fail:N, truncate:N, corrupt:N, expired:N, gone, size:BYTES, slow:10s, redirect:URL or url:URL"

func parseFault(s string) (f fault, err error) {
	what, value, _ := strings.Cut(s, ":")
	switch what {
	case "":
	case "fail":
		f.fail, err = strconv.Atoi(value)
	case "truncate":
		f.truncate, err = strconv.Atoi(value)
	case "corrupt":
		f.corrupt, err = strconv.Atoi(value)
	case "expired":
		f.expired, err = strconv.Atoi(value)
	case "gone":
		f.gone = true
	case "size":
		f.size, err = strconv.ParseInt(value, 10, 64)
	case "slow":
		f.slow, err = time.ParseDuration(value)
	case "redirect":
		f.redirect = value
	case "url":
		f.url = value
	default:
		err = errors.New("unknown")
	}
	if err != nil {
		return f, fmt.Errorf("a fault is %s, not %q", faultHelp, s)
	}
	return f, nil
}

// Media returns the files, oldest first.
func (s *Simulator) Media() []Media {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Media, len(s.media))
	for i, m := range s.media {
		list[i] = *m
	}
	return list
}

// SetFault sets the fault that occurs when a file is fetched from now on (see
// Inbound.Fault).
func (s *Simulator) SetFault(id, how string) error {
	f, err := parseFault(how)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.file(id)
	if m == nil {
		return fmt.Errorf("there is no file %s", id)
	}
	m.fault = f
	return nil
}

// ForgetUploads makes the ids of all uploads invalid, as if they had expired.
func (s *Simulator) ForgetUploads() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.media {
		if m.Uploaded {
			m.At = s.c.Now().Add(-2 * mediaLife)
		}
	}
}

// file returns a file, or nil if it does not exist any more. The caller holds s.mu.
func (s *Simulator) file(id string) *Media {
	i := slices.IndexFunc(s.media, func(m *Media) bool { return m.ID == id })
	if i < 0 || s.c.Now().Sub(s.media[i].At) > mediaLife {
		return nil
	}
	return s.media[i]
}

// addFile adds a file. The caller holds s.mu.
func (s *Simulator) addFile(m Media) *Media {
	s.made++
	orElse(&m.ID, strconv.Itoa(3_000_000_000+s.made))
	m.Size, m.At = len(m.Content), s.c.Now()
	s.media = append(s.media, &m)
	return &m
}

// postMedia receives an upload.
func (s *Simulator) postMedia(c *call) {
	fail := s.allowed(c)
	if fail == nil && c.id != s.c.PhoneNumberID {
		fail = missingObject("post", c.id)
	}
	if fail == nil {
		fail = s.settings().UploadFault
	}
	var m Media
	if fail == nil {
		m, fail = upload(c.r)
	}
	if fail != nil {
		s.answer(c, nil, fail)
		return
	}
	s.mu.Lock()
	id := s.addFile(m).ID
	s.mu.Unlock()
	s.answer(c, map[string]any{"id": id}, nil)
}

// upload reads the form of an upload.
func upload(r *http.Request) (m Media, fail *Failure) {
	form, err := r.MultipartReader()
	if err != nil {
		return m, refusal(100, "the body is no multipart/form-data")
	}
	fields := map[string]string{}
	claimed := ""
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return m, refusal(100, "the form can't be read")
		}
		name := part.FormName()
		if _, twice := fields[name]; twice || !slices.Contains([]string{"messaging_product", "type", "file"}, name) {
			return m, refusal(100, "Unexpected key %q on param %s", name, jsonText(""))
		}
		b, err := io.ReadAll(io.LimitReader(part, mostUpload))
		if err != nil {
			return m, refusal(100, "the form can't be read")
		}
		fields[name] = ""
		if name != "file" {
			fields[name] = string(b)
			continue
		}
		m = Media{MIME: part.Header.Get("Content-Type"), Name: part.FileName(), Content: b, Uploaded: true}
	}
	claimed = fields["type"]
	kind, _, err := mime.ParseMediaType(claimed)
	limit, known := mediaTypes[kind]
	switch {
	case fields["messaging_product"] != "whatsapp":
		return m, refusal(100, "The parameter messaging_product is required.")
	case claimed == "":
		return m, refusal(100, "The parameter type is required.")
	case err != nil || !known || claimed != m.MIME:
		return m, refusal(100, "Param file must be a file with one of the following types: audio/aac, …, image/webp. Received file of type %q.", m.MIME)
	case m.Name == "":
		return m, refusal(100, "The parameter file is required.")
	case len(m.Content) == 0:
		return m, refusal(131053, "the file is empty")
	case len(m.Content) > limit.most:
		return m, refusal(131053, "the file is too large")
	}
	return m, nil
}

// mediaNode describes a file, with its address for the next five minutes.
func (s *Simulator) mediaNode(c *call) (any, *Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.file(c.id)
	if m == nil || m.fault.gone {
		return nil, missingObject("get", c.id)
	}
	until := seconds(s.c.Now().Add(addressLife))
	base := s.c.MediaURL
	if base == "" {
		base = "http://" + c.r.Host
		if c.r.TLS != nil {
			base = "https://" + c.r.Host
		}
	}
	query := url.Values{"ext": {until}, "hash": {sum(s.c.AppSecret, []byte(m.ID+" "+until))}}
	hash := sha256.Sum256(m.Content)
	answer := map[string]any{
		"messaging_product": "whatsapp", "url": base + "/_media/" + m.ID + "?" + query.Encode(), "mime_type": m.MIME,
		"sha256": hex.EncodeToString(hash[:]), "file_size": m.Size, "id": m.ID,
	}
	if m.fault.size > 0 {
		delete(answer, "sha256")
		answer["file_size"] = m.fault.size
	}
	if m.fault.url != "" {
		answer["url"] = m.fault.url
	}
	return answer, nil
}

// serveMedia sends the content of a file.
func (s *Simulator) serveMedia(c *call) {
	id := strings.TrimPrefix(c.r.URL.Path, "/_media/")
	until := c.r.URL.Query().Get("ext")
	expiry, _ := strconv.ParseInt(until, 10, 64)
	s.mu.Lock()
	m := s.file(id)
	var f fault
	var content []byte
	try := 0
	if m != nil {
		m.Tries++
		f, content, try = m.fault, m.Content, m.Tries
	}
	expired := s.c.Now().Unix() > expiry || c.r.URL.Query().Get("hash") != sum(s.c.AppSecret, []byte(id+" "+until))
	s.mu.Unlock()
	switch {
	case c.r.Header.Get("Authorization") != "Bearer "+s.c.Token:
		s.raw(c, http.StatusUnauthorized, "text/plain", "")
		return
	case c.r.Method != http.MethodGet || m == nil || f.gone || expired || try <= f.expired:
		s.raw(c, http.StatusNotFound, "text/plain", "Not Found")
		return
	case try <= f.fail:
		s.raw(c, http.StatusInternalServerError, "text/html; charset=utf-8", "<!DOCTYPE html><html><body><h1>Sorry, something went wrong.</h1></body></html>")
		return
	case f.redirect != "":
		c.w.Header().Set("Location", f.redirect)
		s.raw(c, http.StatusFound, "", "")
		return
	case try <= f.truncate:
		head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", m.MIME, len(content)+1)
		s.cut(c, append([]byte(head), content[:len(content)/2]...), false)
		return
	case try <= f.corrupt:
		content = slices.Clone(content)
		for i := range content {
			content[i] ^= 1
		}
	}
	if f.slow > 0 {
		s.wait(c, f.slow)
	}
	c.w.Header().Set("Content-Type", m.MIME)
	c.w.Header().Set("Content-Length", strconv.FormatInt(max(f.size, int64(len(content))), 10))
	_, _ = c.w.Write(content)
	_, _ = io.CopyN(c.w, zeros{}, max(0, f.size-int64(len(content))))
	s.logCall(c, http.StatusOK)
}

// zeros is a reader that returns zeros without end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// samples are small files of each kind that a person can send.
var samples = map[string]struct{ mime, content string }{
	"image":    {"image/jpeg", "\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xd9"},
	"video":    {"video/mp4", "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom"},
	"audio":    {"audio/ogg; codecs=opus", "OggS\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x13OpusHead"},
	"document": {"application/pdf", "%PDF-1.4\n%%EOF\n"},
	"sticker":  {"image/webp", "RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"},
}

// attach makes the file of a person's message, and returns its description for the
// message.
func (s *Simulator) attach(in *Inbound) map[string]any {
	sample := samples[in.Type]
	m := Media{MIME: in.MIME, Name: in.Filename, Content: in.File}
	m.ID, _ = in.Content["id"].(string)
	orElse(&m.MIME, sample.mime)
	if m.Content == nil {
		m.Content = []byte(sample.content)
	}
	var err error
	if m.fault, err = parseFault(in.Fault); err != nil {
		panic("whatsapptest: " + err.Error())
	}
	added := s.addFile(m)
	in.media = added.ID
	hash := sha256.Sum256(m.Content)
	told := map[string]any{"id": added.ID, "mime_type": m.MIME, "sha256": base64.StdEncoding.EncodeToString(hash[:])}
	if m.fault.size > 0 {
		delete(told, "sha256") // the content will be different, so its hash is not known
	}
	return told
}

// checkMedia refuses a message whose file does not exist, or has another kind. The
// caller holds s.mu.
func (s *Simulator) checkMedia(m *message) *Failure {
	if m.media == "" {
		return nil
	}
	return s.checkFile(m.media, m.kind)
}

// checkHeader makes the same check for the file in a template's header, where a document
// must be a PDF. The caller holds s.mu.
func (s *Simulator) checkHeader(m *message) *Failure {
	for _, c := range m.components {
		for _, p := range c.params {
			if p.Media == "" {
				continue
			}
			if fail := s.checkFile(p.Media, p.Type); fail != nil {
				return fail
			}
			if file := s.file(p.Media); p.Type == "document" && file.MIME != "application/pdf" {
				return refusal(131053, "a file of type %s can't be in a header", file.MIME)
			}
		}
	}
	return nil
}

func (s *Simulator) checkFile(id, as string) *Failure {
	file := s.file(id)
	if file == nil {
		return refusal(100, "Param %s['id'] is not a valid whatsapp business account media attachment ID", as)
	}
	kind, _, _ := mime.ParseMediaType(file.MIME)
	if as != "document" && mediaTypes[kind].kind != as {
		return refusal(131053, "a file of type %s can't be sent as %s", kind, as)
	}
	return nil
}

// A ReadReceipt says that a person's message was marked as read.
type ReadReceipt struct {
	ID string    `json:"wamid"`
	At time.Time `json:"at"`
}

// Reads returns the messages that were marked as read, in order.
func (s *Simulator) Reads() []ReadReceipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reads)
}
