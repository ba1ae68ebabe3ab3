package desk

import (
	"bytes"
	"encoding/binary"
	"mime"
	"strings"
	"unicode/utf8"
)

// The types of media (contract-talk §4). Browsers do not run files of these types. Any file
// that is not certainly of another type is typeOther, including HTML, SVG and XML.
const (
	typeJPEG     = "image/jpeg"
	typePNG      = "image/png"
	typeGIF      = "image/gif"
	typeWebP     = "image/webp"
	typeMP4      = "video/mp4"
	type3GPP     = "video/3gpp"
	typeAAC      = "audio/aac"
	typeAMR      = "audio/amr"
	typeMPEG     = "audio/mpeg"
	typeAudioMP4 = "audio/mp4"
	typeOgg      = "audio/ogg"
	typePDF      = "application/pdf"
	typeDOCX     = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	typeXLSX     = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	typePPTX     = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
	typeDOC      = "application/msword"
	typeXLS      = "application/vnd.ms-excel"
	typePPT      = "application/vnd.ms-powerpoint"
	typeText     = "text/plain"
	typeOther    = "application/octet-stream"
)

// A MediaTrait is a property that decides, together with the type, whether a file can be sent.
type MediaTrait string

// The traits.
const (
	TraitAnimated MediaTrait = "animated" // of a webp
	TraitOpus     MediaTrait = "opus"     // of an ogg
)

// A Sniffer finds out the type of a file whose bytes are written to it. Its memory does
// not depend on how long the file is.
type Sniffer struct {
	claimed string
	size    int64
	head    []byte // the first sniffHead bytes
	tail    []byte // of a possible ZIP: at least the last sniffTail bytes
	boxes   boxes
	text    textCheck
}

const (
	sniffHead = 4 << 10
	sniffTail = 256 << 10 // the list of a ZIP's parts: some thousands of them
)

// NewSniffer returns a Sniffer of a file. The claimed type counts only for types that can't
// be recognised by their content.
func NewSniffer(claimed string) *Sniffer {
	claimed, _, err := mime.ParseMediaType(claimed)
	if err != nil {
		claimed = ""
	}
	return &Sniffer{claimed: claimed, boxes: boxes{need: boxHeader}}
}

// Write takes the next bytes. It never fails.
func (s *Sniffer) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	s.head = append(s.head, p[:min(len(p), sniffHead-len(s.head))]...)
	start := s.head[:min(len(s.head), len(zipPart))]
	if strings.HasPrefix(zipPart, string(start)) {
		s.keepTail(p)
	}
	s.boxes.write(p)
	if s.claimed == typeText {
		s.text.write(p)
	}
	return len(p), nil
}

func (s *Sniffer) keepTail(p []byte) {
	for len(p) > 0 {
		n := min(len(p), sniffTail)
		if len(s.tail)+n > 2*sniffTail {
			s.tail = append(s.tail[:0], s.tail[len(s.tail)-sniffTail:]...)
		}
		s.tail = append(s.tail, p[:n]...)
		p = p[n:]
	}
}

// Type is the type of the file whose bytes were written, and its trait.
func (s *Sniffer) Type() (mime string, trait MediaTrait) {
	has := func(at int, text string) bool { return len(s.head) >= at && bytes.HasPrefix(s.head[at:], []byte(text)) }
	switch {
	case has(0, "\xff\xd8\xff"):
		return typeJPEG, ""
	case has(0, "\x89PNG\r\n\x1a\n"):
		return typePNG, ""
	case has(0, "GIF87a"), has(0, "GIF89a"):
		return typeGIF, ""
	case has(0, "RIFF") && has(8, "WEBPVP8X") && len(s.head) > webpFlags:
		if s.head[webpFlags]&webpAnimation != 0 {
			return typeWebP, TraitAnimated
		}
		return typeWebP, ""
	case has(0, "RIFF") && (has(8, "WEBPVP8 ") || has(8, "WEBPVP8L")):
		return typeWebP, ""
	case has(0, "#!AMR\n"), has(0, "#!AMR-WB\n"):
		return typeAMR, ""
	case has(0, "%PDF-"):
		return typePDF, ""
	case has(0, "OggS"):
		return oggType(s.head)
	case has(0, "ID3") && len(s.head) > 10 && s.head[3] < 0xff, mpegFrame(s.head):
		return typeMPEG, ""
	case adtsFrame(s.head):
		return typeAAC, ""
	case has(0, zipPart):
		return officeType(s.tail, s.size), ""
	case has(0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") && (s.claimed == typeDOC || s.claimed == typeXLS || s.claimed == typePPT):
		return s.claimed, ""
	case s.claimed == typeText && s.text.plain():
		return typeText, ""
	}
	return s.boxes.mime(), ""
}

// The header of an extended WebP file has a byte of flags.
const (
	webpFlags     = 20
	webpAnimation = 1 << 1
)

// mpegFrame tells whether a frame of MPEG audio, layer III, begins here.
func mpegFrame(b []byte) bool {
	return len(b) >= 4 && b[0] == 0xff && b[1]&0xe6 == 0xe2 && b[1]&0x18 != 0x08 && b[2]>>4 != 0xf && b[2]>>4 != 0 && b[2]&0x0c != 0x0c
}

// adtsFrame tells whether an AAC frame begins here, and after it the next one, if b is long
// enough.
func adtsFrame(b []byte) bool {
	const header = 7
	if len(b) < header || b[0] != 0xff || b[1]&0xf6 != 0xf0 || b[2]>>2&0xf > 12 {
		return false
	}
	length := int(b[3]&3)<<11 | int(b[4])<<3 | int(b[5])>>5
	return length >= header && (len(b) < length+2 || b[length] == 0xff && b[length+1]&0xf6 == 0xf0)
}

// oggType is the type of an Ogg file. Its first pages show its streams, which must all be
// audio.
func oggType(b []byte) (mime string, trait MediaTrait) {
	const header, first = 27, 2
	found := typeOther
	for len(b) > header && bytes.HasPrefix(b, []byte("OggS")) && b[5]&first != 0 {
		segments := int(b[26])
		if len(b) < header+segments {
			break
		}
		length := 0
		for _, n := range b[header : header+segments] {
			length += int(n)
		}
		packet := b[header+segments:]
		switch {
		case bytes.HasPrefix(packet, []byte("OpusHead")):
			trait = TraitOpus
		case bytes.HasPrefix(packet, []byte("\x01vorbis")), bytes.HasPrefix(packet, []byte("Speex   ")), bytes.HasPrefix(packet, []byte("\x7fFLAC")):
		default:
			return typeOther, ""
		}
		if found == typeOgg { // with several streams, it is not a voice message
			return typeOgg, ""
		}
		found = typeOgg
		b = packet[min(length, len(packet)):]
	}
	return found, trait
}

// zipPart begins each part of a ZIP.
const zipPart = "PK\x03\x04"

// officeType recognises a ZIP's type by the parts that its directory lists. tail has at
// least the ZIP's last bytes. Nothing may come before the first part or after the directory.
func officeType(tail []byte, size int64) string {
	const end, entry = 22, 46 // lengths of the fixed parts of records
	at := bytes.LastIndex(tail, []byte("PK\x05\x06"))
	if at < 0 || len(tail)-at < end {
		return typeOther
	}
	last := tail[at:]
	length, offset := int64(binary.LittleEndian.Uint32(last[12:])), int64(binary.LittleEndian.Uint32(last[16:]))
	from := int64(at) - length
	if len(last) != end+int(binary.LittleEndian.Uint16(last[20:])) || offset+length+int64(len(last)) != size || from < 0 {
		return typeOther
	}
	parts := map[string]bool{}
	for list := tail[from:at]; len(list) >= entry && bytes.HasPrefix(list, []byte("PK\x01\x02")); {
		name := int(binary.LittleEndian.Uint16(list[28:]))
		rest := name + int(binary.LittleEndian.Uint16(list[30:])) + int(binary.LittleEndian.Uint16(list[32:]))
		if len(list) < entry+rest {
			return typeOther
		}
		switch part := string(list[entry : entry+name]); part {
		case "[Content_Types].xml", "word/document.xml", "xl/workbook.xml", "ppt/presentation.xml":
			parts[part] = true
		default:
			if strings.HasSuffix(part, "/vbaProject.bin") {
				return typeOther // a document with macros
			}
		}
		list = list[entry+rest:]
	}
	switch {
	case !parts["[Content_Types].xml"]:
	case parts["word/document.xml"]:
		return typeDOCX
	case parts["xl/workbook.xml"]:
		return typeXLSX
	case parts["ppt/presentation.xml"]:
		return typePPTX
	}
	return typeOther
}

// A textCheck finds out whether bytes are plain text.
type textCheck struct {
	begun, bad bool
	part       []byte // the beginning of a character that is not complete yet
}

func (t *textCheck) write(p []byte) {
	if t.bad {
		return
	}
	if len(t.part) > 0 { // complete the character with the new bytes
		n := 0
		for n < len(p) && len(t.part) < utf8.UTFMax && !utf8.FullRune(t.part) {
			t.part, n = append(t.part, p[n]), n+1
		}
		if !utf8.FullRune(t.part) {
			return
		}
		character := t.part
		t.part = nil
		t.check(character)
		p = p[n:]
	}
	whole := len(p)
	for back := 1; back < utf8.UTFMax && back <= len(p); back++ {
		if utf8.RuneStart(p[len(p)-back]) {
			if !utf8.FullRune(p[len(p)-back:]) {
				whole = len(p) - back
			}
			break
		}
	}
	t.check(p[:whole])
	t.part = append(t.part, p[whole:]...)
}

func (t *textCheck) check(p []byte) {
	if !utf8.Valid(p) || bytes.IndexByte(p, 0) >= 0 {
		t.bad = true
		return
	}
	for !t.begun && len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		p = p[n:]
		switch r {
		case '\ufeff', ' ', '\t', '\n', '\v', '\f', '\r':
		case '<': // markup
			t.begun, t.bad = true, true
		default:
			t.begun = true
		}
	}
}

func (t *textCheck) plain() bool { return !t.bad && len(t.part) == 0 }

// boxes reads the boxes of an ISO media file (MP4 and its relatives) while they are
// written, and finds the kinds of its tracks.
type boxes struct {
	buf          []byte // the header that is being read
	need         int    // how many bytes buf needs
	skip         int64  // bytes until the next header
	ended        bool   // not an ISO media file, or the rest is not needed
	brand        string
	video, audio bool
}

const boxHeader = 8

func (b *boxes) write(p []byte) {
	for len(p) > 0 && !b.ended {
		if b.skip > 0 {
			n := min(b.skip, int64(len(p)))
			b.skip -= n
			p = p[n:]
			continue
		}
		n := min(b.need-len(b.buf), len(p))
		b.buf = append(b.buf, p[:n]...)
		if p = p[n:]; len(b.buf) == b.need {
			b.header()
		}
	}
}

// header processes the header of a box, or raises need if it is longer.
func (b *boxes) header() {
	size, kind, from := uint64(binary.BigEndian.Uint32(b.buf)), string(b.buf[4:8]), boxHeader
	if size == 1 { // the size follows
		if from = 2 * boxHeader; len(b.buf) < from {
			b.need = from
			return
		}
		size = binary.BigEndian.Uint64(b.buf[boxHeader:])
	}
	if b.brand == "" && kind != "ftyp" {
		b.ended = true
		return
	}
	known := from
	switch kind {
	case "ftyp":
		known += 4
	case "hdlr":
		known += 12
	}
	if size < uint64(known) || size >= 1<<62 { // size 0 is valid: the box goes on to the end of the file
		b.ended = true
		return
	}
	if len(b.buf) < known {
		b.need = known
		return
	}
	b.skip = int64(size) - int64(known)
	switch kind {
	case "ftyp":
		b.brand = string(b.buf[from:known])
	case "hdlr":
		b.video = b.video || string(b.buf[from+8:known]) == "vide"
		b.audio = b.audio || string(b.buf[from+8:known]) == "soun"
	case "moov", "trak", "mdia":
		b.skip = 0 // look into the box: the boxes inside come next
	}
	b.buf, b.need = b.buf[:0], boxHeader
}

func (b *boxes) mime() string {
	switch brand := b.brand; {
	case strings.HasPrefix(brand, "3gp"), strings.HasPrefix(brand, "3gr"), strings.HasPrefix(brand, "3gs"), strings.HasPrefix(brand, "3ge"):
		return type3GPP
	case brand == "M4A ", brand == "M4B ":
		if b.video {
			return typeMP4
		}
		return typeAudioMP4
	case strings.HasPrefix(brand, "iso"), brand == "mp41", brand == "mp42", brand == "avc1", brand == "M4V ", brand == "MSNV", brand == "dash", brand == "mmp4":
		if b.audio && !b.video {
			return typeAudioMP4
		}
		return typeMP4
	}
	return typeOther
}
