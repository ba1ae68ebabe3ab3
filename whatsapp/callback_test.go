package whatsapp_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/desk"
	"parley/provider"
	"parley/whatsapp"
)

// both lists the two identities in the fixtures, as People returns them.
var both = []string{"905321112233", "TR.9000000000000001"}

const sim = "wamid.SIM0000000000000000000000001"

// came is when the callbacks came.
var came = at(1000)

func item(body []byte) desk.InboundItem {
	return desk.InboundItem{Channel: desk.ID{0xCA}, Body: body, ReceivedAt: came}
}

// at returns a time as the fixtures have it: second is counted from 1,790,000,000.
func at(second int) desk.Time { return desk.Time(1_790_000_000+second) * 1000 }

func read(t *testing.T, body []byte) []provider.Update {
	t.Helper()
	told, rest, err := newProvider().Read(item(body))
	if err != nil || rest != nil {
		t.Fatalf("%v, %v", rest, err)
	}
	return told
}

// message returns a message of Ayşe with changes.
func message(id, text string, change ...func(*provider.InboundMessage)) provider.Update {
	m := &provider.InboundMessage{ExternalID: id, Number: both[0], UserID: both[1], Name: "Ayşe Yılmaz", Text: text, At: at(100), Kind: desk.KindText}
	for _, c := range change {
		c(m)
	}
	return provider.Update{Channel: numberID, Message: m}
}

// kind returns a function that sets a message's kind, and its content besides the text.
func kind(k desk.MessageKind, replyTo string, c *desk.Extra, media *provider.InboundMedia) func(*provider.InboundMessage) {
	return func(m *provider.InboundMessage) { m.Kind, m.ReplyTo, m.Extra, m.Media = k, replyTo, c, media }
}

// typed changes a message into one that the business typed in the phone app.
func typed(m *provider.InboundMessage) { m.Name, m.UserID, m.Echo = "", "", true }

func hash(content string) []byte {
	sum := sha256.Sum256([]byte(content))
	return sum[:]
}

func told(people []string, s desk.StatusUpdate) provider.Update {
	h := provider.Update{Channel: numberID, Status: &s}
	if len(people) > 1 {
		h.Status.UserID = people[1]
	}
	return h
}

func news(status string) provider.Update {
	return provider.Update{Business: waba, Template: &provider.TemplateUpdate{Name: "order_update", Language: "en_US", Status: status}}
}

// TestRead_fixtures checks the result for each documented callback.
func TestRead_fixtures(t *testing.T) {
	t.Parallel()
	undeliverable := whatsapp.Failure(131026, "", "")
	for name, want := range map[string][]provider.Update{
		"webhook_status_sent":         {told(both, desk.StatusUpdate{ExternalID: sim, Attempt: attempt, Delivery: desk.Sent, At: at(1)})},
		"webhook_status_delivered":    {told(both, desk.StatusUpdate{ExternalID: sim, Attempt: attempt, Delivery: desk.Delivered, At: at(3)})},
		"webhook_status_read":         {told(both, desk.StatusUpdate{ExternalID: sim, Attempt: attempt, Delivery: desk.Read, At: at(9)})},
		"webhook_status_failed":       {told(both[:1], desk.StatusUpdate{ExternalID: sim, Attempt: attempt, Delivery: desk.Failed, At: at(4), Failure: &undeliverable})},
		"webhook_inbound_text":        {message("wamid.IN0001", "Merhaba, siparişim nerede?")},
		"webhook_inbound_button":      {message("wamid.IN0003", "Evet", kind("choice", sim, &desk.Extra{Choice: &desk.Button{ID: "Evet", Title: "Evet"}}, nil))},
		"webhook_inbound_interactive": {message("wamid.IN0004", "Kargo", kind("choice", sim, &desk.Extra{Choice: &desk.Button{ID: "opt_1", Title: "Kargo"}}, nil))},
		"webhook_inbound_button_reply": {
			message("wamid.IN0023", "Ayır", kind("choice", sim, &desk.Extra{Choice: &desk.Button{ID: "keep", Title: "Ayır"}}, nil)),
		},
		"webhook_inbound_image": {message("wamid.IN0005", "[image] Fotoğraf", kind("image", "", nil, &provider.InboundMedia{Ref: "3000000001", MIME: "image/jpeg"}))},
		"webhook_inbound_document": {message("wamid.IN0021", "[document: Fatura 17.pdf] Fatura", kind("document", sim, nil, &provider.InboundMedia{
			Ref: "3000000002", MIME: "application/pdf", Name: "Fatura 17.pdf", SHA256: hash("%PDF-1.4\n"),
		}))},
		"webhook_inbound_lost_media": {message("wamid.IN0024", "[video]", kind("video", "", nil, &provider.InboundMedia{}))},
		"webhook_inbound_location": {message("wamid.IN0022", "[location] Galata, Beyoğlu, İstanbul (41.0082, 28.9784)", kind("location", "", &desk.Extra{
			Location: &desk.Location{Latitude: 41.0082, Longitude: 28.9784, Name: "Galata", Address: "Beyoğlu, İstanbul"},
		}, nil))},
		"webhook_inbound_reaction": {
			message("wamid.IN0006", "[reaction] 👍", kind("reaction", sim, &desk.Extra{Reaction: &desk.Reaction{Emoji: "👍"}}, nil)),
		},
		"webhook_inbound_unsupported": {message("wamid.IN0007", "[unsupported message: poll_creation]", kind("unsupported", "", nil, nil))},
		"webhook_inbound_username_only": {{Channel: numberID, Message: &provider.InboundMessage{
			ExternalID: "wamid.IN0002", UserID: both[1], Name: "Ayşe", Text: "Hi, no number here", At: at(100), Kind: desk.KindText,
		}}},
		"webhook_echo_text": {message("wamid.ECHO0001", "Hemen bakıyorum.", typed)},
		"webhook_echo_image": {message("wamid.ECHO0002", "[image] Bugün", kind("image", "wamid.IN0001", nil, &provider.InboundMedia{
			Ref: "3000000003", MIME: "image/jpeg", SHA256: hash("\xff\xd8\xff"),
		}), typed)},
		"webhook_system_number_change": {{Channel: numberID, Move: &provider.Move{
			Number: "905321112233", NewNumber: "905324445566", NewUserID: "TR.9000000000000002", At: at(200),
		}}},
		"webhook_user_id_update": {{Channel: numberID, Move: &provider.Move{
			Number: both[0], UserID: both[1], NewUserID: "TR.9000000000000002", At: at(500),
		}}},
		"webhook_user_preferences": {{Channel: numberID, Choice: &provider.MarketingChoice{Number: both[0], UserID: both[1], Change: desk.OptOut, At: at(400)}}},
		"webhook_batch": {
			message("wamid.IN0011", "bir"), message("wamid.IN0012", "iki"),
			told(both, desk.StatusUpdate{ExternalID: sim, Attempt: attempt, Delivery: desk.Read, At: at(10)}),
			told(both, desk.StatusUpdate{ExternalID: "wamid.UNKNOWN0001", Delivery: desk.Delivered, At: at(8)}),
			news("PAUSED"),
		},
		"webhook_template_status":     {news("APPROVED")},
		"webhook_template_rejected":   {news("REJECTED")},
		"webhook_template_category":   {news("")},
		"webhook_template_quality":    {news("")},
		"webhook_template_components": {news("")},
		"webhook_phone_quality":       nil,
		"webhook_account_restriction": {{Business: waba, Account: &provider.AccountStatus{
			Blocked: "WhatsApp lets this business account write to nobody first until 2026-09-28T12:53:20.000Z: the provider's business tools name the violation",
			Replies: true, Until: 1_790_600_000_000, At: at(700),
		}}},
	} {
		body := strings.ReplaceAll(string(fixture(t, name)), "parley:01JTESTSEND0001", attempt.String())
		if got := read(t, []byte(body)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", name, show(got), show(want))
		}
	}
}

func show(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// value returns a callback with one change.
func value(field, value string) []byte {
	return fmt.Appendf(nil, `{"object":"whatsapp_business_account","entry":[{"id":%q,"changes":[{"field":%q,"value":%s}]}]}`, waba, field, value)
}

// inbound returns a callback with a message of a type. The callback has no contact for
// the sender.
func inbound(kind, rest string) []byte {
	return value("messages", fmt.Sprintf(`{"metadata":{"phone_number_id":%q},"messages":[{"from":"905321112233","id":"wamid.1","timestamp":1790000100,"type":%q%s}]}`, numberID, kind, rest))
}

func TestRead_types(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, rest, want string }{
		{"interactive", `,"interactive":{"type":"button","body":{"text":"Which one?"},"action":{"buttons":[{"reply":{"id":"a","title":"A"}}]}}`, "Which one?"},
		{"interactive", `,"interactive":{"type":"button"}`, "[buttons]"},
		{"text", `,"text":{"body":"  Merhaba\n\u0000 "}`, "Merhaba"},
		{"text", `,"text":{"body":" "}`, "[empty message]"},
		{"text", `,"text":{"body":"\ud800"}`, "\uFFFD"},
		{"text", `,"text":"odd"`, "[empty message]"},
		{"text", `,"text":{"body":"` + strings.Repeat("ş", 4096) + `"}`, strings.Repeat("ş", 4096)},
		{"text", `,"text":{"body":"` + strings.Repeat("ş", 4097) + `"}`, strings.Repeat("ş", 4095) + "…"},
		{"image", `,"image":{"id":"1"}`, "[image]"},
		{"video", `,"video":{"caption":"Film"}`, "[video] Film"},
		{"sticker", `,"sticker":{"animated":true}`, "[sticker]"},
		{"audio", `,"audio":{"voice":true}`, "[voice message]"},
		{"audio", `,"audio":{}`, "[audio]"},
		{"voice", ``, "[voice message]"},
		{"document", `,"document":{"filename":"a.pdf","caption":"Bill"}`, "[document: a.pdf] Bill"},
		{"document", `,"document":{}`, "[document]"},
		{"location", `,"location":{"latitude":41.0082,"longitude":28.9784,"name":"Shop","address":"Street 1"}`, "[location] Shop, Street 1 (41.0082, 28.9784)"},
		{"location", `,"location":{"latitude":41,"longitude":-28.5}`, "[location] 41, -28.5"},
		{"location", ``, "[location]"},
		{"contacts", `,"contacts":[{"name":{"formatted_name":"Ann Lee"}},7,{"name":{"first_name":"Bob"}}]`, "[contacts] Ann Lee, Bob"},
		{"contacts", `,"contacts":{}`, "[contacts]"},
		{"button", `,"button":{"payload":"yes"}`, "yes"},
		{"interactive", `,"interactive":{"type":"button_reply","button_reply":{"title":"Yes"}}`, "Yes"},
		{"interactive", `,"interactive":{"type":"nfm_reply","nfm_reply":{"body":"Sent","response_json":"{}"}}`, "Sent"},
		{"interactive", `,"interactive":{"type":"nfm_reply"}`, "[form]"},
		{"interactive", `,"interactive":{"type":"call_permission_reply","call_permission_reply":{"response":"accept"}}`, "[call permission: accept]"},
		{"interactive", `,"interactive":{"type":"new"}`, "[unknown reply: new]"},
		{"reaction", `,"reaction":{"message_id":"wamid.0"}`, "[reaction removed]"},
		{"order", `,"order":{"text":"Soon","product_items":[{"product_retailer_id":"A","quantity":2},{"product_retailer_id":"B"}]}`, "[order] 2 × A, 1 × B\nSoon"},
		{"unsupported", ``, "[unsupported message]"},
		{"edit", ``, "[message edited]"},
		{"revoke", ``, "[message deleted]"},
		{"hologram", ``, "[unknown type: hologram]"},
		{"", ``, "[unknown type]"},
		{"request_welcome", ``, ""},
		{"system", `,"system":{"type":"customer_identity_changed"}`, ""},
	} {
		got := read(t, inbound(c.kind, c.rest))
		if c.want == "" {
			if got != nil {
				t.Errorf("%s: %s", c.kind, show(got))
			}
			continue
		}
		if len(got) != 1 || got[0].Message == nil || got[0].Message.Text != c.want {
			t.Errorf("%s%.80s: %.200s", c.kind, c.rest, show(got))
		}
	}
}

// TestRead_odd: malformed parts are left out, and the other parts are read.
func TestRead_odd(t *testing.T) {
	t.Parallel()
	good := `{"from":"905321112233","id":"wamid.GOOD","timestamp":"1790000100","type":"text","text":{"body":"ok"}}`
	for _, bad := range []string{
		`7`, `null`, `[]`, `"x"`, `{}`,
		`{"from":"905321112233","timestamp":"1790000100","type":"text"}`,
		`{"from":"a","id":"wamid.1","timestamp":"1790000100","type":"text"}`,
		`{"id":"wamid.1","type":"text"}`, `{"from":"905321112233","id":"wamid.\u0000","type":"text"}`,
	} {
		body := value("messages", fmt.Sprintf(`{"metadata":{"phone_number_id":%q},"contacts":[3],"messages":[%s,%s],"statuses":[%s,{"id":"wamid.S","status":"deleted"},{"id":"wamid.S","status":"played"}]}`, numberID, bad, good, bad))
		got := read(t, body)
		if len(got) != 2 || got[0].Message.ExternalID != "wamid.GOOD" || got[1].Status.Delivery != desk.Read || got[1].Status.At != came {
			t.Errorf("%s: %s", bad, show(got))
		}
	}
	for body, fails := range map[string]bool{
		``: true, `[]`: true, `{`: true, `7`: true, `{"entry":[]} x`: true,
		`{}`: false, `{"object":"page","entry":[{"id":"1"}]}`: false, `{"object":"whatsapp_business_account","entry":{"a":1}}`: false,
		`{"object":"whatsapp_business_account","entry":[7,{"changes":[8,{"field":"messages","value":9}]}]}`: false,
	} {
		told, rest, err := newProvider().Read(item([]byte(body)))
		if told != nil || rest != nil || (err != nil) != fails {
			t.Errorf("%s: %s, %v", body, show(told), err)
		}
	}
}

// TestRead_content: the content of messages besides the text, also with malformed parts.
func TestRead_content(t *testing.T) {
	t.Parallel()
	chose := func(id, title string) *desk.Extra { return &desk.Extra{Choice: &desk.Button{ID: id, Title: title}} }
	sum := hex.EncodeToString(hash("x"))
	long := strings.Repeat("ş", 2000)
	for _, c := range []struct {
		kind, rest string
		want       provider.InboundMessage
	}{
		{"text", `,"text":{"body":"x"},"context":{"forwarded":true}`, provider.InboundMessage{Kind: "text"}},
		{"text", `,"text":{"body":"x"},"context":{"id":"wamid.0"}`, provider.InboundMessage{Kind: "text", ReplyTo: "wamid.0"}},
		{"text", `,"text":{"body":"x"},"context":{"id":"` + strings.Repeat("w", 513) + `"}`, provider.InboundMessage{Kind: "text"}},
		{"text", `,"text":{"body":"x"},"context":7`, provider.InboundMessage{Kind: "text"}},
		{"button", `,"button":{"payload":"yes"}`, provider.InboundMessage{Kind: "choice", Extra: chose("yes", "yes")}},
		{"button", `,"button":{"text":"Yes"}`, provider.InboundMessage{Kind: "choice", Extra: chose("Yes", "Yes")}},
		{"button", `,"button":{"payload":"a\u0000b","text":" Y\ne\u0000s "}`, provider.InboundMessage{Kind: "choice", Extra: chose("ab", "Y es")}},
		{"button", `,"button":{"payload":"` + long + `","text":"Yes"}`, provider.InboundMessage{Kind: "choice", Extra: chose(strings.Repeat("ş", 1023)+"…", "Yes")}},
		{"button", ``, provider.InboundMessage{Kind: "choice"}},
		{"interactive", `,"interactive":{"type":"list_reply","list_reply":{"id":7,"title":"Seven"}}`, provider.InboundMessage{Kind: "choice", Extra: chose("7", "Seven")}},
		{"interactive", `,"interactive":{"type":"nfm_reply","nfm_reply":{"body":"Sent"}}`, provider.InboundMessage{Kind: "unsupported"}},
		{"interactive", `,"interactive":{"type":"button","body":{"text":"?"},"action":{"buttons":[7,{"reply":{"id":"a","title":"A"}},{"reply":{}}]}}`, provider.InboundMessage{
			Kind: "buttons", Extra: &desk.Extra{Buttons: []desk.Button{{ID: "a", Title: "A"}}},
		}},
		{"interactive", `,"interactive":{"type":"button","action":{"buttons":{}}}`, provider.InboundMessage{Kind: "buttons"}},
		{"location", `,"location":{"latitude":"41","longitude":-28.5}`, provider.InboundMessage{Kind: "location", Extra: &desk.Extra{Location: &desk.Location{Latitude: 41, Longitude: -28.5}}}},
		{"location", `,"location":{"latitude":91,"longitude":0}`, provider.InboundMessage{Kind: "location"}},
		{"location", `,"location":{"latitude":"NaN","longitude":0}`, provider.InboundMessage{Kind: "location"}},
		{"location", `,"location":{"latitude":1e999,"longitude":0}`, provider.InboundMessage{Kind: "location"}},
		{"location", `,"location":{"latitude":1}`, provider.InboundMessage{Kind: "location"}},
		{"reaction", `,"reaction":{"message_id":"wamid.0"}`, provider.InboundMessage{Kind: "reaction", ReplyTo: "wamid.0", Extra: &desk.Extra{Reaction: &desk.Reaction{}}}},
		{"reaction", `,"reaction":{"message_id":"wamid.0","emoji":"❤️"},"context":{"id":"wamid.9"}`, provider.InboundMessage{
			Kind: "reaction", ReplyTo: "wamid.0", Extra: &desk.Extra{Reaction: &desk.Reaction{Emoji: "❤️"}},
		}},
		{"audio", `,"audio":{"id":"1","mime_type":"audio/ogg; codecs=opus","sha256":"` + sum + `","file_size":7,"voice":true}`, provider.InboundMessage{
			Kind: "audio", Media: &provider.InboundMedia{Ref: "1", MIME: "audio/ogg; codecs=opus", SHA256: hash("x"), Size: 7},
		}},
		{"voice", `,"voice":{"id":1}`, provider.InboundMessage{Kind: "audio", Media: &provider.InboundMedia{Ref: "1"}}},
		{"sticker", `,"sticker":{"id":"1","sha256":"` + sum[2:] + `","file_size":-1}`, provider.InboundMessage{Kind: "sticker", Media: &provider.InboundMedia{Ref: "1"}}},
		{"image", `,"image":{"caption":"x"}`, provider.InboundMessage{Kind: "image"}},
		{"image", `,"errors":[{"code":131051}]`, provider.InboundMessage{Kind: "image"}},
		{"document", `,"document":{"id":"1","filename":"a\u0000/../b.pdf"}`, provider.InboundMessage{Kind: "document", Media: &provider.InboundMedia{Ref: "1", Name: "a/../b.pdf"}}},
		{"contacts", `,"contacts":[]`, provider.InboundMessage{Kind: "contacts"}},
		{"order", ``, provider.InboundMessage{Kind: "order"}},
		{"edit", ``, provider.InboundMessage{Kind: "unsupported"}},
		{"hologram", ``, provider.InboundMessage{Kind: "unsupported"}},
	} {
		got := read(t, inbound(c.kind, c.rest))
		if len(got) != 1 || got[0].Message == nil {
			t.Errorf("%s%.80s: %s", c.kind, c.rest, show(got))
			continue
		}
		m := got[0].Message
		if got := (provider.InboundMessage{Kind: m.Kind, ReplyTo: m.ReplyTo, Extra: m.Extra, Media: m.Media}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s%.80s:\n got %s\nwant %s", c.kind, c.rest, show(got), show(c.want))
		}
	}
}

// TestRead_echoes: a message that was typed in the phone app belongs to its recipient's
// conversation.
func TestRead_echoes(t *testing.T) {
	t.Parallel()
	for rest, want := range map[string]*provider.InboundMessage{
		`"to":"+905321112233","type":"text","text":{"body":"x"}`: {Number: both[0], Text: "x", Kind: "text"},
		`"to":"905321112233","to_user_id":"TR.1","type":"reaction","reaction":{"message_id":"wamid.0","emoji":"x"}`: {
			Number: both[0], UserID: "TR.1", Text: "[reaction] x", Kind: "reaction", ReplyTo: "wamid.0", Extra: &desk.Extra{Reaction: &desk.Reaction{Emoji: "x"}},
		},
		`"to":"TR.1","type":"contacts","contacts":[{"name":{"formatted_name":"Ann"}}]`:                {UserID: "TR.1", Text: "[contacts] Ann", Kind: "contacts"},
		`"to":"905321112233","type":"new"`:                                                            {Number: both[0], Text: "[unknown type: new]", Kind: "unsupported"},
		`"type":"text","text":{"body":"x"}`:                                                           nil,
		`"to":"somebody","type":"text","text":{"body":"x"}`:                                           nil,
		`"to":"905321112233","type":"edit"`:                                                           nil,
		`"to":"905321112233","type":"revoke","revoke":{"original_message_id":"wamid.0"}`:              nil,
		`"to":"905321112233","type":"system","system":{"type":"user_changed_number","wa_id":"90532"}`: nil,
	} {
		got := read(t, value("smb_message_echoes", `{"metadata":{"display_phone_number":"902125550101","phone_number_id":"1"},"message_echoes":[{"from":"902125550101","id":"wamid.1","timestamp":"1790000100",`+rest+`}]}`))
		if want == nil {
			if got != nil {
				t.Errorf("%s: %s", rest, show(got))
			}
			continue
		}
		want.ExternalID, want.At, want.Echo = "wamid.1", at(100), true
		if !reflect.DeepEqual(got, []provider.Update{{Channel: "1", Message: want}}) {
			t.Errorf("%s:\n got %s\nwant %s", rest, show(got), show(want))
		}
	}
	if got := read(t, value("smb_message_echoes", `{"message_echoes":[{"to":"905321112233","type":"text"}]}`)); got != nil {
		t.Errorf("without an id: %s", show(got))
	}
}

// TestRead_callbackData: only ids that parley has made are recognized.
func TestRead_callbackData(t *testing.T) {
	t.Parallel()
	id := attempt.String()
	for data, want := range map[string]desk.ID{
		id: attempt, "parley:" + id: attempt, strings.ToUpper(id): attempt,
		"": {}, "x" + id: {}, id + " ": {}, "parley: " + id: {}, "parley:parley:" + id: {}, strings.ReplaceAll(id, "-", ""): {}, "other-tool:9": {},
	} {
		got := read(t, value("messages", fmt.Sprintf(`{"statuses":[{"id":"wamid.1","status":"sent","timestamp":"1790000001","biz_opaque_callback_data":%q}]}`, data)))
		if len(got) != 1 || got[0].Status.Attempt != want || got[0].Business != waba {
			t.Errorf("%q: %s", data, show(got))
		}
	}
}

func TestRead_people(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("a", 129)
	// The contacts are in no order, and have values that the message lacks.
	got := read(t, value("messages", `{"metadata":{"phone_number_id":"1"},
		"contacts":[{"wa_id":"905320000000","profile":{"name":"Other"}},{"profile":{"name":" A\u0000\n\tB "},"wa_id":"905321112233","user_id":"TR.1","parent_user_id":"TR.ENT.2"}],
		"messages":[{"from_user_id":"TR.1","id":"wamid.1","timestamp":"1","type":"text","text":{"body":"x"}},
			{"from":"TR.7","id":"wamid.2","timestamp":"1","type":"text","text":{"body":"x"}},
			{"from":"905329999999","from_user_id":"TR.`+many+`","id":"wamid.3","timestamp":"1","type":"text","text":{"body":"x"}}]}`))
	want := []provider.Update{
		{Channel: "1", Message: &provider.InboundMessage{ExternalID: "wamid.1", Number: "905321112233", UserID: "TR.1", Name: "A B", Text: "x", At: 1000, Kind: desk.KindText}},
		{Channel: "1", Message: &provider.InboundMessage{ExternalID: "wamid.2", UserID: "TR.7", Text: "x", At: 1000, Kind: desk.KindText}},
		{Channel: "1", Message: &provider.InboundMessage{ExternalID: "wamid.3", Number: "905329999999", Text: "x", At: 1000, Kind: desk.KindText}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %s\nwant %s", show(got), show(want))
	}
	got = read(t, value("messages", `{"contacts":[{"wa_id":"905321112233","profile":{"name":"`+strings.Repeat("ş", 300)+`"}}],"messages":[{"from":"905321112233","id":"wamid.1","type":"text"}]}`))
	if n := got[0].Message.Name; n != strings.Repeat("ş", 254)+"…" {
		t.Errorf("%q", n)
	}
}

// TestRead_times: a time in the future becomes now. Otherwise it would be the newest for
// ever.
func TestRead_times(t *testing.T) {
	t.Parallel()
	for timestamp, want := range map[string]desk.Time{"1790000100": at(100), "253402300799": came + 60_000, "0": came, "x": came, "1790001030": came + 30_000} {
		got := read(t, value("messages", `{"statuses":[{"id":"wamid.1","status":"read","timestamp":"`+timestamp+`"}]}`))
		if len(got) != 1 || got[0].Status.At != want {
			t.Errorf("%s: %s", timestamp, show(got))
		}
	}
}

// TestRead_time_of_a_message: the time is the provider's second, even if the callback
// comes within this second.
func TestRead_time_of_a_message(t *testing.T) {
	t.Parallel()
	n := item(value("messages", `{"metadata":{"phone_number_id":"1"},"messages":[{"id":"wamid.1","from":"905321110001","type":"sticker","timestamp":"1790001000"}]}`))
	n.ReceivedAt = came + 500
	told, _, err := newProvider().Read(n)
	if err != nil || len(told) != 1 || told[0].Message.At != at(1000) {
		t.Errorf("%v, %s", err, show(told))
	}
}

// TestPeople_of_a_deep_body: a deeply nested body is parsed once.
func TestPeople_of_a_deep_body(t *testing.T) {
	t.Parallel()
	body := strings.Repeat(`{"a":`, 9000) + `"905321112233"` + strings.Repeat("}", 9000)
	if got := values(newProvider().People([]byte(body))); !slices.Equal(got, []string{"905321112233"}) {
		t.Errorf("%q", got)
	}
}

// TestPeople: all people in a callback are found, even in parts that Read does not
// understand.
func TestPeople(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		string(fixture(t, "webhook_inbound_text")):                                                                                       both,
		string(fixture(t, "webhook_status_delivered")):                                                                                   both,
		string(fixture(t, "webhook_inbound_button")):                                                                                     both, // the channel's own number is left out
		string(fixture(t, "webhook_echo_image")):                                                                                         both[:1],
		string(fixture(t, "webhook_system_number_change")):                                                                               {"905321112233", "905324445566", "TR.9000000000000002"},
		string(value("smb_message_echoes", `{"message_echoes":[{"to":"905321112233","timestamp":"1790000000"}]}`)):                       {"905321112233"},
		string(value("messages", `{"statuses":[{"id":"wamid.1","status":"new","recipient_parent_user_id":"TR.ENT.1","x":[["TR.2"]]}]}`)): {"TR.2"}, // a parent id does not identify a person
		`{`: nil, ``: nil, `{"entry":7}`: nil,
	} {
		if got := values(newProvider().People([]byte(body))); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// values returns the values of identities, and checks their kinds.
func values(people []desk.Identity) (list []string) {
	for _, i := range people {
		if i.OfProvider() != strings.HasPrefix(i.Value, "TR.") || !i.OfProvider() && i.Kind != desk.KindWhatsApp {
			panic("the kind " + i.Kind + " of " + i.Value)
		}
		list = append(list, i.Value)
	}
	return list
}

func TestRead_moves(t *testing.T) {
	t.Parallel()
	for rest, want := range map[string]*provider.Move{
		`,"system":{"type":"customer_changed_number","new_wa_id":"905324445566","customer":"905321112233"}`: {Number: "905321112233", NewNumber: "905324445566", At: at(100)},
		`,"from_user_id":"TR.1","system":{"type":"user_changed_user_id","wa_id":"905321112233","user_id":"TR.2"}`: {
			Number: "905321112233", UserID: "TR.1", NewUserID: "TR.2", At: at(100),
		},
		`,"system":{"type":"user_changed_number","wa_id":"905321112233"}`: nil, // the number is unchanged
		`,"system":{"type":"user_changed_number"}`:                        nil,
	} {
		var m *provider.Move
		if got := read(t, inbound("system", rest)); len(got) > 0 {
			m = got[0].Move
		}
		if !reflect.DeepEqual(m, want) {
			t.Errorf("%s: %+v", rest, m)
		}
	}
}

// TestRead_large: the work grows with the size of the body, not with the product of
// messages and contacts. Otherwise the large body would take 256 times as long as the
// small one.
func TestRead_large(t *testing.T) {
	t.Parallel()
	body := func(contacts, messages int) []byte {
		people, said := make([]string, contacts), make([]string, messages)
		for i := range people {
			people[i] = fmt.Sprintf(`{"wa_id":"90532%07d"}`, i)
		}
		for i := range said {
			said[i] = fmt.Sprintf(`{"id":"wamid.%d","from":"90532%07d","type":"sticker"}`, i, contacts-1-i)
		}
		return value("messages", `{"metadata":{"phone_number_id":"1"},"contacts":[`+strings.Join(people, ",")+`],"messages":[`+strings.Join(said, ",")+`]}`)
	}
	const contacts, messages, times = 64_000, 28_000, 16
	small, large := body(contacts/times, messages/times), body(contacts, messages)
	took := func(body []byte, messages int) time.Duration {
		began := time.Now()
		if told := read(t, body); len(told) != messages {
			t.Errorf("%d bytes gave %d messages", len(body), len(told))
		}
		return time.Since(began)
	}
	shortest := time.Duration(math.MaxInt64)
	var one time.Duration
	for range 3 { // other processes may slow it down
		one = max(one, took(small, messages/times))
		shortest = min(shortest, took(large, messages))
		if shortest < times*times/2*one {
			return
		}
	}
	t.Errorf("%d bytes took %v, %d bytes took %v", len(small), one, len(large), shortest)
}

// TestRead_contacts: if several contacts have the same handle, the first one counts.
func TestRead_contacts(t *testing.T) {
	t.Parallel()
	said := `"messages":[{"id":"wamid.1","from":"905321110001","from_user_id":"TR.2","timestamp":"1790000001","type":"text","text":{"body":"x"}}]`
	for contacts, want := range map[string]string{
		`{"wa_id":"905321110001","profile":{"name":"A"}},{"user_id":"TR.2","profile":{"name":"B"}}`:                                "A",
		`{"user_id":"TR.2","profile":{"name":"B"}},{"wa_id":"905321110001","profile":{"name":"A"}}`:                                "B",
		`{"wa_id":"905321110009","profile":{"name":"C"}},{"wa_id":"905321110001"},{"wa_id":"905321110001","profile":{"name":"A"}}`: "",
	} {
		if got := read(t, value("messages", `{"contacts":[`+contacts+`],`+said+`}`)); len(got) != 1 || got[0].Message.Name != want {
			t.Errorf("%s: %+v, want the name %q", contacts, got, want)
		}
	}
}

func TestRead_marketingChoices(t *testing.T) {
	t.Parallel()
	for rest, want := range map[string]desk.OptChange{
		`"category":"marketing_messages","value":"stop"`: desk.OptOut, `"category":"marketing_messages","value":"resume"`: desk.OptInAgain,
		`"category":"marketing_messages","value":"signup"`: desk.OptNone, `"category":"other","value":"stop"`: desk.OptNone, `"value":7`: desk.OptNone,
	} {
		got := read(t, value("user_preferences", `{"user_preferences":[{"user_id":"TR.1",`+rest+`,"timestamp":1790000400}]}`))
		switch {
		case want == desk.OptNone && got == nil:
		case len(got) == 1 && *got[0].Choice == provider.MarketingChoice{UserID: "TR.1", Change: want, At: at(400)} && got[0].Business == waba:
		default:
			t.Errorf("%s: %s", rest, show(got))
		}
	}
}

func TestRead_templates(t *testing.T) {
	t.Parallel()
	for event, want := range map[string]string{
		"APPROVED": "APPROVED", "REINSTATED": "APPROVED", "UNARCHIVED": "APPROVED", "FLAGGED": "", "LOCKED": "", "SOMETHING_NEW": "",
		"PENDING": "PENDING", "DISABLED": "DISABLED", "PENDING_DELETION": "PENDING_DELETION", "ARCHIVED": "ARCHIVED", "LIMIT_EXCEEDED": "LIMIT_EXCEEDED",
	} {
		got := read(t, value("message_template_status_update", fmt.Sprintf(
			`{"event":%q,"message_template_id":99000000000000000000001,"message_template_name":"order_update","message_template_language":"en-US","reason":null}`, event)))
		if !reflect.DeepEqual(got, []provider.Update{news(want)}) {
			t.Errorf("%s: %s", event, show(got))
		}
	}
}

func TestRead_accountStatus(t *testing.T) {
	t.Parallel()
	const none = "-"
	for v, want := range map[string]string{
		`{"event":"DISABLED_UPDATE","ban_info":{"waba_ban_state":"DISABLE"}}`:                                              "disabled",
		`{"event":"DISABLED_UPDATE","ban_info":{"waba_ban_state":["DISABLE"]}}`:                                            "disabled",
		`{"event":"DISABLED_UPDATE","ban_info":{"waba_ban_state":"SCHEDULE_FOR_DISABLE"}}`:                                 none,
		`{"event":"DISABLED_UPDATE","ban_info":{"waba_ban_state":"REINSTATE"}}`:                                            "",
		`{"event":"ACCOUNT_RECONNECTED"}`:                                                                                  "",
		`{"event":"ACCOUNT_DELETED"}`:                                                                                      "deleted",
		`{"event":"ACCOUNT_OFFBOARDED"}`:                                                                                   none,
		`{"event":"ACCOUNT_RESTRICTION","restriction_info":[{"restriction_type":"RESTRICTED_ADD_PHONE_NUMBER_ACTION"}]}`:   none,
		`{"event":"ACCOUNT_RESTRICTION","restriction_info":[7,{"restriction_type":"RESTRICTED_BIZ_INITIATED_MESSAGING"}]}`: "nobody first:",
	} {
		got := read(t, value("account_update", v))
		switch {
		case want == none && got == nil:
		case want != none && len(got) == 1 && got[0].Business == waba && strings.Contains(got[0].Account.Blocked, want) && (want == "") == (got[0].Account.Blocked == ""):
		default:
			t.Errorf("%s: %s", v, show(got))
		}
	}
}

// TestRead_restriction: an account that may not start conversations may still reply,
// unless replies are restricted too.
func TestRead_restriction(t *testing.T) {
	t.Parallel()
	const first, answers = `{"restriction_type":"RESTRICTED_BIZ_INITIATED_MESSAGING"}`, `{"restriction_type":"RESTRICTED_CUSTOMER_INITIATED_MESSAGING"}`
	for list, want := range map[string]bool{first: true, first + "," + answers: false, answers + "," + first: false, `{},` + first: true} {
		got := read(t, value("account_update", `{"event":"ACCOUNT_RESTRICTION","restriction_info":[`+list+`]}`))
		if len(got) != 1 || got[0].Account.Blocked == "" || got[0].Account.Replies != want {
			t.Errorf("%s: %s", list, show(got))
		}
	}
	if got := read(t, value("account_update", `{"event":"ACCOUNT_RESTRICTION","restriction_info":[`+answers+`]}`)); got != nil {
		t.Errorf("%s", show(got))
	}
}

func TestVerifySignature(t *testing.T) {
	t.Parallel()
	secret, old := provider.NewSecret(appSecret), provider.NewSecret("old-app-secret-for-tests")
	const plainSum, escapedSum = "1ca363dab318df784e1963b29dca91e2098e6cf2fbf0d3c14e09580a90684a61", "6a3baa56bcaaa9a17c9d1e45ffb54332c6f6cdf9a00a5b7f3911fadad96aa9f6"
	plain, escaped := []byte(`{"object":"whatsapp_business_account","entry":[]}`), []byte(`{"text":"Merhaba \u0130brahim \/ ok"}`)
	for i, c := range []struct {
		header  string
		body    []byte
		secrets []provider.Secret
		want    bool
	}{
		{"sha256=" + plainSum, plain, []provider.Secret{secret}, true},
		{"sha256=" + escapedSum, escaped, []provider.Secret{secret}, true},
		{"sha256=" + plainSum, plain, []provider.Secret{old, {}, secret}, true},
		{"sha256=" + plainSum, plain, []provider.Secret{secret, old}, true},
		{"sha256=" + plainSum, escaped, []provider.Secret{secret}, false},
		{"sha256=" + plainSum, plain, []provider.Secret{old}, false},
		{"sha256=" + plainSum, plain, nil, false},
		{"sha256=b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad", nil, []provider.Secret{{}}, false}, // signed with the empty key
		{plainSum, plain, []provider.Secret{secret}, false},
		{"SHA256=" + plainSum, plain, []provider.Secret{secret}, false},
		{"sha256=" + strings.ToUpper(plainSum), plain, []provider.Secret{secret}, false},
		{"sha256=" + plainSum + "\n", plain, []provider.Secret{secret}, false},
		{"sha256=" + plainSum[:63], plain, []provider.Secret{secret}, false},
		{"sha1=" + plainSum[:40], plain, []provider.Secret{secret}, false},
		{"sha256=", plain, []provider.Secret{secret}, false},
		{"", plain, []provider.Secret{secret}, false},
	} {
		if got := whatsapp.VerifySignature(c.header, c.body, c.secrets...); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}

	// Changing one bit of the body or of the signature makes it invalid.
	body := fixture(t, "webhook_batch")
	header := sign(body)
	for i := range 1000 {
		flipped, signature := slices.Clone(body), []byte(header)
		if i%4 == 0 {
			signature[(i/4)%len(signature)] ^= 1 << (i % 7)
			if string(signature) == header {
				continue
			}
		} else {
			flipped[i*7919%len(body)] ^= 1 << (i % 8)
		}
		if whatsapp.VerifySignature(string(signature), flipped, secret) {
			t.Fatalf("flip %d is not seen", i)
		}
	}
	p := newProvider()
	headers := func(name string) string { return map[string]string{"X-Hub-Signature-256": header}[name] }
	if !p.Signed(access(""), headers, body) || p.Signed(access(""), headers, body[1:]) {
		t.Error("Signed")
	}
	renewed := access("")
	renewed.Secrets.AppSecret, renewed.Secrets.OldAppSecret = provider.NewSecret("new"), secret
	if !p.Signed(renewed, headers, body) {
		t.Error("Signed by the secret before")
	}
}

// FuzzRead: for any body, the updates can be stored, and reading again gives the same
// updates.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"webhook_batch", "webhook_status_failed", "webhook_system_number_change", "webhook_user_preferences", "webhook_user_id_update", "webhook_account_restriction",
		"webhook_inbound_document", "webhook_inbound_location", "webhook_inbound_button_reply", "webhook_inbound_lost_media", "webhook_echo_image",
	} {
		f.Add(fixture(f, name))
	}
	f.Add(inbound("order", `,"order":{"product_items":[{"product_retailer_id":"A"}]}`))
	p := newProvider()
	f.Fuzz(func(t *testing.T, body []byte) {
		told, rest, err := p.Read(item(body))
		if rest != nil || err != nil && told != nil {
			t.Fatal(rest, err)
		}
		again, _, _ := p.Read(item(body))
		if !reflect.DeepEqual(told, again) {
			t.Fatal("told otherwise")
		}
		for _, h := range told {
			if m := h.Message; m != nil {
				text, err := desk.ParseMessage(m.Text)
				if err != nil || text != m.Text {
					t.Errorf("text %q: %v", m.Text, err)
				}
				if name, err := desk.ParseName(m.Name); err != nil || name != m.Name {
					t.Errorf("name %q: %v", m.Name, err)
				}
				if m.Kind == "" || m.Media != nil && m.Media.Size < 0 || strings.Contains(show(m.Extra)+show(m.Media)+m.ReplyTo, "\\u0000") {
					t.Errorf("%s", show(h))
				}
				if m.ExternalID == "" || m.Number == "" && m.UserID == "" || m.At == 0 {
					t.Errorf("%s", show(h))
				}
			}
		}
	})
}

// TestCallbackOfManyParts: a tenant may sign bodies that Meta never sends. A body that
// would need very much memory is not read. A body with a thousand updates with long texts
// is read.
func TestCallbackOfManyParts(t *testing.T) {
	t.Parallel()
	const largest = 4 << 20
	frame := func(what string) []byte {
		return []byte(`{"object":"whatsapp_business_account","entry":[],"x":[` + what + `]}`)
	}
	for name, body := range map[string][]byte{
		"objects":  frame(strings.Repeat(`{"a":1},`, largest/8) + "0"),
		"numbers":  frame(strings.Repeat("1,", largest/2) + "0"),
		"arrays":   frame(strings.Repeat("[],", largest/3) + "0"),
		"statuses": []byte(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"messages","value":{"metadata":{"phone_number_id":"1"},"statuses":[` + strings.Repeat(`{"id":"a","status":"sent","timestamp":"1790000000"},`, largest/52) + `{}]}}]}]}`),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := newProvider().Read(item(body))
		if err == nil {
			newProvider().People(body)
		}
		runtime.ReadMemStats(&after)
		if t.Logf("%s: %d MB", name, (after.TotalAlloc-before.TotalAlloc)>>20); !errors.Is(err, whatsapp.ErrManyParts) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var texts []string
	for n := range 1000 {
		texts = append(texts, fmt.Sprintf(`{"from":"905321112233","id":"wamid.%d","timestamp":"1790000000","type":"text","text":{"body":"\"%s\\"}}`, n, strings.Repeat("[{,", 1000)))
	}
	if told := read(t, []byte(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"messages","value":{"metadata":{"phone_number_id":"1"},"messages":[`+strings.Join(texts, ",")+`]}}]}]}`)); len(told) != 1000 {
		t.Errorf("%d of 1,000 messages are read", len(told))
	}
}

// TestOnlyReports: of the callbacks that are known, those that say what became of a message only
// report; so do two of them in one.
func TestOnlyReports(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/webhook_*.json")
	if err != nil || len(paths) < 15 {
		t.Fatal(paths, err)
	}
	p := newProvider()
	for _, path := range paths {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Contains(path, "webhook_status_")
		if got := p.OnlyReports(body); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	const change, talk = `{"field":"messages","value":{"statuses":[{"id":"wamid.1","status":"read"}]}}`, `{"field":"messages","value":{"messages":[{"id":"wamid.2"}]}}`
	for changes, want := range map[string]bool{change: true, change + "," + change: true, change + "," + talk: false, talk: false, "": false} {
		if got := p.OnlyReports([]byte(`{"entry":[{"changes":[` + changes + `]}]}`)); got != want {
			t.Errorf("%s: %v", changes, got)
		}
	}
}
