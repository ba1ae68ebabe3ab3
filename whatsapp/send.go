package whatsapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"parley/desk"
	"parley/provider"
)

// A message in the provider's format. Only the part that Type names is set. A component
// without variables is left out, because it is unknown whether the provider accepts an
// empty list.
type (
	message struct {
		Product       string  `json:"messaging_product"`
		RecipientType string  `json:"recipient_type"`
		To            string  `json:"to,omitempty"`
		Recipient     string  `json:"recipient,omitempty"` // the provider's id of the person, used if there is no number
		Type          string  `json:"type"`
		CallbackData  string  `json:"biz_opaque_callback_data"` // the provider returns it with every status
		Context       *quoted `json:"context,omitempty"`

		Template    *template  `json:"template,omitempty"`
		Text        *plainText `json:"text,omitempty"`
		Interactive *question  `json:"interactive,omitempty"`
		Image       *file      `json:"image,omitempty"`
		Video       *file      `json:"video,omitempty"`
		Audio       *file      `json:"audio,omitempty"`
		Document    *file      `json:"document,omitempty"`
		Sticker     *file      `json:"sticker,omitempty"`
	}
	quoted struct {
		MessageID string `json:"message_id"`
	}
	plainText struct {
		PreviewURL bool   `json:"preview_url"`
		Body       string `json:"body"`
	}
	question struct {
		Type   string   `json:"type"`
		Body   words    `json:"body"`
		Action choosing `json:"action"`
	}
	words struct {
		Text string `json:"text"`
	}
	choosing struct {
		Buttons []option `json:"buttons"`
	}
	option struct {
		Type  string      `json:"type"`
		Reply desk.Button `json:"reply"`
	}
	file struct {
		ID       string `json:"id"`
		Caption  string `json:"caption,omitempty"`
		Filename string `json:"filename,omitempty"`
	}
	template struct {
		Name       string      `json:"name"`
		Language   language    `json:"language"`
		Components []component `json:"components,omitempty"`
	}
	language struct {
		Code   string `json:"code"`
		Policy string `json:"policy"`
	}
	component struct {
		Type       string      `json:"type"`
		SubType    string      `json:"sub_type,omitempty"` // this and the index: of a button
		Index      string      `json:"index,omitempty"`
		Parameters []parameter `json:"parameters"`
	}
	parameter struct {
		Type     string `json:"type"`
		Name     string `json:"parameter_name,omitempty"`
		Text     string `json:"text,omitempty"` // a value is never empty
		Image    *file  `json:"image,omitempty"`
		Video    *file  `json:"video,omitempty"`
		Document *file  `json:"document,omitempty"`
	}
)

// messageOf converts a dispatch to a message. The number needs the +. Without it, the
// provider could take the number for one of the business's own country.
func messageOf(d provider.Dispatch) message {
	m := message{Product: "whatsapp", RecipientType: "individual", CallbackData: d.Attempt.String()}
	if d.Number != "" {
		m.To = "+" + d.Number
	} else {
		m.Recipient = d.UserID
	}
	if d.Quote != "" {
		m.Context = &quoted{d.Quote}
	}
	switch {
	case d.Template != nil:
		m.Type, m.Template = "template", templateOf(d)
	case d.File != nil:
		m.Type = string(d.File.Kind)
		*m.file(d.File.Kind) = fileOf(d.File)
	case d.Buttons != nil:
		m.Type, m.Interactive = "interactive", &question{Type: "button", Body: words{d.Text}}
		for _, b := range d.Buttons {
			m.Interactive.Action.Buttons = append(m.Interactive.Action.Buttons, option{"reply", b})
		}
	default:
		m.Type, m.Text = "text", &plainText{Body: d.Text}
	}
	return m
}

// fileOf converts a file of a dispatch. Only a document has its name.
func fileOf(f *provider.SentFile) *file {
	to := &file{ID: f.Ref, Caption: f.Caption}
	if f.Kind == desk.KindDocument {
		to.Filename = f.Name
	}
	return to
}

// file returns the part of the message for a kind of file.
func (m *message) file(k desk.MessageKind) **file {
	switch k {
	case desk.KindImage:
		return &m.Image
	case desk.KindVideo:
		return &m.Video
	case desk.KindAudio:
		return &m.Audio
	case desk.KindSticker:
		return &m.Sticker
	default:
		return &m.Document
	}
}

func templateOf(d provider.Dispatch) *template {
	t := &template{Name: d.Template.Name, Language: language{d.Template.Language, "deterministic"}}
	if d.File != nil {
		t.Components = append(t.Components, component{Type: string(desk.PartHeader), Parameters: []parameter{titleOf(d.File)}})
	}
	for _, c := range d.Components {
		if len(c.Parameters) == 0 {
			continue
		}
		to := component{Type: string(c.Part)}
		if c.Part == desk.PartButton {
			to.SubType, to.Index = "url", strconv.Itoa(c.Button)
		}
		for _, p := range c.Parameters {
			to.Parameters = append(to.Parameters, parameter{Type: "text", Name: p.Name, Text: p.Text})
		}
		t.Components = append(t.Components, to)
	}
	return t
}

// titleOf converts the file in a template's title.
func titleOf(f *provider.SentFile) parameter {
	p := parameter{Type: string(f.Kind)}
	switch f.Kind {
	case desk.KindImage:
		p.Image = fileOf(f)
	case desk.KindVideo:
		p.Video = fileOf(f)
	default:
		p.Document = fileOf(f)
	}
	return p
}

// Send sends a message, once. Its results are documented in provider.Provider.
func (p *Provider) Send(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
	if p.now().After(d.By) {
		return provider.Receipt{}, provider.NotSent()
	}
	body, err := json.Marshal(messageOf(d))
	if err != nil { // strings can always be encoded
		return provider.Receipt{}, provider.NotSent()
	}
	a, err := p.do(ctx, call{at: d.Access, method: http.MethodPost, path: []string{d.Channel.ExternalID, "messages"}, body: body, by: d.By})
	var failed *failure
	switch {
	case errors.As(err, &failed) && failed.late:
		return provider.Receipt{}, provider.NotSent()
	case errors.As(err, &failed) && failed.certain:
		p.log.InfoContext(ctx, "WhatsApp was not reached", "attempt_id", d.Attempt, "err", failed.err)
		return provider.Receipt{}, &desk.Refusal{
			Type: desk.ProviderUnavailable, RetryAfter: retryTransient,
			Message: "WhatsApp could not be reached, so nothing was sent: send it again later, with the same Idempotency-Key",
			Advice:  desk.Advice{Kind: desk.CheckChannel, Arg: d.Channel.ID.String()},
		}
	case err != nil:
		return provider.Receipt{}, err
	}
	receipt, e, err := outcome(a, p.now())
	if e != nil {
		p.log.LogAttrs(ctx, slog.LevelInfo, "WhatsApp answered with an error", slog.Any("attempt_id", d.Attempt), slog.Int("status", e.status),
			slog.Int("code", e.code), slog.Int("subcode", e.subcode), slog.String("fbtrace_id", presentableTrace(string(e.Trace))))
	}
	var refused *desk.Refusal
	if errors.As(err, &refused) {
		if d.Template == nil {
			free(refused, e, d.File != nil)
		} else if d.File != nil {
			titled(refused, e)
		}
		refused.Advice = adviceOn(refused, d.Channel.ID)
	}
	return receipt, err
}

// staleMedia has the codes which mean that the provider does not have a message's file or
// can't use it. Some of these codes have other meanings too, but of a free message with a
// file, only the file can be wrong.
var staleMedia = map[int]bool{100: true, 131009: true, codeNoDownload: true, codeUpload: true}

// windowClosed has the codes which mean that the person wrote too long ago.
var windowClosed = map[int]bool{131047: true, 470: true}

// ClosesWindow tells whether a failure closes the window (see provider.Talker).
func (*Provider) ClosesWindow(code int) bool { return windowClosed[code] }

// lostFile has the codes which mean that the provider could not use a message's file.
var lostFile = map[int]bool{codeNoDownload: true, codeUpload: true}

// codeUpload is the code for a file that the provider could not send on.
const codeUpload = 131053

// LosesFile tells whether a failure means that the provider must get the file again (see
// provider.Talker).
func (*Provider) LosesFile(code int) bool { return lostFile[code] }

const lostFileMessage = "WhatsApp refused the file of this message or does not have it any more, and nothing was sent: sending the message again uploads the file anew"

// free completes the refusal of a message without a template: it recognizes that the
// window is closed or that the file is lost. e may be nil.
func free(r *desk.Refusal, e *graphError, file bool) {
	switch {
	case e == nil:
	case r.Failure != nil && windowClosed[r.Failure.Code]:
		r.Type = desk.WindowClosed
		r.Message = "WhatsApp takes only templates for this person, whose last message is too long ago, and nothing was sent: send a template"
	case file && staleMedia[e.code] && r.Account == nil:
		r.StaleMedia = true
		r.Message = lostFileMessage
	}
}

// titled completes the refusal of a template with a file: it recognizes that the file is
// lost. Codes that may concern another part of the template keep their message. e may be
// nil.
func titled(r *desk.Refusal, e *graphError) {
	if e == nil || r.Account != nil || !staleMedia[e.code] {
		return
	}
	r.StaleMedia = true
	if lostFile[e.code] {
		r.Message = lostFileMessage
	}
}

// adviceOn returns the advice for a refusal of a channel's message. The texts of the
// failure contain everything else.
func adviceOn(r *desk.Refusal, channel desk.ID) desk.Advice {
	switch {
	case r.StaleTemplate:
		return desk.Advice{Kind: desk.SyncChannel, Arg: channel.String()}
	case r.Account != nil:
		return desk.Advice{Kind: desk.CheckChannel, Arg: channel.String()}
	}
	return desk.Advice{Kind: desk.SeeDetails}
}

// unsure has the codes that the provider may return although it accepted the message.
var unsure = map[int]bool{1: true, 2: true, 131000: true}

// refusedAnyway has the codes which mean that the message was not accepted, although
// their HTTP status means a failure of the server.
var refusedAnyway = map[int]bool{131016: true, 131045: true, 131057: true, 133000: true, 133004: true}

// outcome returns the result that a response proves, and the response's error, if any.
// If the result is unknown, the returned error is not a *desk.Refusal.
func outcome(a answer, now time.Time) (provider.Receipt, *graphError, error) {
	doubt := func(what string) error { return fmt.Errorf("whatsapp: HTTP %d %s", a.status, what) }
	if !a.whole {
		return provider.Receipt{}, nil, doubt("with an answer that was cut short")
	}
	if 200 <= a.status && a.status <= 299 {
		r := receiptOf(a.body)
		if r.ExternalID == "" {
			return provider.Receipt{}, errorOf(a, now), doubt("without a message id")
		}
		return r, nil, nil
	}
	e := errorOf(a, now)
	switch {
	case a.status < 400 || a.status == http.StatusRequestTimeout || a.status == 499:
		return provider.Receipt{}, e, doubt("does not show whether the message was accepted")
	case e == nil && a.status < 500 && edgeRefusals[a.status] != 0:
		return provider.Receipt{}, nil, edgeRefusal(a, now)
	case e == nil:
		return provider.Receipt{}, nil, doubt("without an error object of WhatsApp")
	case unsure[e.code], a.status >= 500 && !refusedAnyway[e.code]:
		return provider.Receipt{}, e, doubt(fmt.Sprintf("with code %d", e.code))
	}
	return provider.Receipt{}, e, e.refusal()
}

// edgeRefusals has the statuses with which a server in front of the API, such as a proxy,
// refuses a request. Each has its class.
var edgeRefusals = map[int]class{
	http.StatusBadRequest: form, http.StatusUnauthorized: account, http.StatusForbidden: account, http.StatusNotFound: account,
	http.StatusMethodNotAllowed: account, http.StatusRequestEntityTooLarge: form, http.StatusUnsupportedMediaType: form,
	http.StatusTooManyRequests: throttled,
}

func edgeRefusal(a answer, now time.Time) *desk.Refusal {
	r := refusalOf(edgeRefusals[a.status], a.wait(now))
	r.Failure = &desk.Failure{
		Code: a.status, Title: fmt.Sprintf("HTTP %d without an explanation", a.status),
		Fix: "Check the channel's API address, and what stands between this server and WhatsApp.",
	}
	return r
}

// receiptOf reads the response to an accepted message. If it has no message id,
// ExternalID is "".
func receiptOf(body []byte) (r provider.Receipt) {
	var taken struct {
		Contacts json.RawMessage `json:"contacts"`
		Messages json.RawMessage `json:"messages"`
	}
	if !decodeObject(body, &taken) {
		return r
	}
	var m struct {
		ID text `json:"id"`
	}
	if all := list(taken.Messages); len(all) == 0 || !decodeObject(all[0], &m) {
		return r
	}
	var c person
	if all := list(taken.Contacts); len(all) > 0 {
		decodeObject(all[0], &c)
	}
	return provider.Receipt{ExternalID: externalIDOf(m.ID), Number: numberOf(c.WaID), UserID: userIDOf(c.UserID)}
}
