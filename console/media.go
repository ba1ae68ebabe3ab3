package console

import (
	"cmp"
	"path"
	"strings"

	"parley/desk"
)

// A file is an attachment of a message.
type file struct {
	Show   string // image, sticker, audio, video or document; "": the file is not available (see Why)
	Href   string
	Name   string // the file's name or, if it has none, its kind
	Size   string
	Why    string // why the file is not available
	Failed bool
	Belied string // the real type of the file in words, if its name suggests another type
}

// media sends the content of a file, as the API does.
func (s *Server) media(c *call) error {
	m, content, err := s.app.Media.Open(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return err
	}
	return c.w.File(m, content)
}

// caption returns the text of a message with a file, without the words in brackets that
// stand for the file.
func caption(m *desk.Message) string {
	if m.Attachment != nil {
		if rest, ok := strings.CutPrefix(m.Text, "["+string(m.Kind)+": "+m.Attachment.Name+"]"); ok {
			return strings.TrimSpace(rest)
		}
	}
	if strings.HasPrefix(m.Text, "[") {
		if _, rest, ok := strings.Cut(m.Text, "]"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return m.Text
}

// fileKinds are the words for files without a name.
var fileKinds = map[desk.MessageKind]string{desk.KindImage: "Photo", desk.KindVideo: "Video", desk.KindAudio: "Audio", desk.KindSticker: "Sticker", desk.KindDocument: "Document"}

// mediaReasons say why a file could not be fetched.
var mediaReasons = map[desk.MediaReason]string{
	desk.MediaGone:     "the provider has it no more",
	desk.MediaTooLarge: "it is larger than this server takes",
	desk.MediaProvider: "the provider could not get it from the sender's phone",
	desk.MediaExpired:  "the provider did not give it out for a week",
}

// named has the file extensions whose type can be checked, because such files can be
// recognized by their content.
var named = map[string]struct{ word, family string }{
	".jpg": {"photo", "image/"}, ".jpeg": {"photo", "image/"}, ".png": {"photo", "image/"}, ".webp": {"photo", "image/"}, ".pdf": {"PDF", "application/pdf"},
}

// belied describes the real type of a file if its name suggests another type: not a
// photo, but a PDF. Otherwise it returns "".
func belied(m *desk.Media) string {
	promise, ok := named[strings.ToLower(path.Ext(m.Name))]
	if !ok || m.MIME == "" || strings.HasPrefix(m.MIME, promise.family) {
		return ""
	}
	not, family := "not a "+promise.word, strings.SplitN(m.MIME, "/", 2)[0]
	switch {
	case m.MIME == "application/pdf":
		return not + ", but a PDF"
	case family == "image":
		return not + ", but a picture"
	case family == "video" || family == "text":
		return not + ", but a " + family
	case family == "audio":
		return not + ", but a sound"
	case m.MIME == "application/octet-stream":
		return not + " as its name says: it may be a program"
	}
	return not + " as its name says"
}

func fileOf(m *desk.Message) *file {
	a := m.Attachment
	if a == nil { // the file was erased with its record
		a = &desk.Media{Kind: m.Kind, Status: desk.MediaDeleted}
	}
	what := cmp.Or(fileKinds[a.Kind], "File")
	f := &file{Name: cmp.Or(a.Name, what)}
	switch a.Status {
	case desk.MediaReady:
		f.Show, f.Href, f.Size = string(a.Kind), "/media/"+a.ID.String(), bytesOf(a.Size)
		if fileKinds[a.Kind] == "" {
			f.Show = string(desk.KindDocument)
		}
		f.Belied = belied(a)
	case desk.MediaPending:
		f.Why = what + " on its way"
	case desk.MediaDeleted:
		f.Why = what + " deleted"
	default:
		f.Failed, f.Why = true, what+" could not be fetched"
		if reason := mediaReasons[a.Reason]; reason != "" {
			f.Why += ": " + reason
		}
	}
	return f
}
