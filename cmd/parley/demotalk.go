package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"sync"
	"time"

	"parley/app"
	"parley/desk"
	"parley/provider"
)

// demoChannel is the name of the demo's sandbox channel.
const demoChannel = "demo"

// demoTemplates are templates as the provider returns them: one of each kind that can be
// sent, and one for each reason why a template can't be sent.
//
//go:embed demotemplates.json
var demoTemplates []byte

// demoBindings are the bindings that can't be guessed from a variable's name.
var demoBindings = []string{
	"order_confirmation/en_US/1=customer_first_name",
	"order_confirmation/en_US/3=agent_first_name",
	"autumn_sale/en_US/1=customer_first_name",
}

// A demoLine is one event of a conversation. Its kind is given by the field that is set.
type demoLine struct {
	template, language string
	values             []string
	said               string
	photo              string   // the person sends a photo with this text
	chosen             string   // the person taps this button of the previous message
	reaction           string   // the person reacts with this to the previous message
	answered           string   // the member who holds the conversation sends this reply
	quoting            bool     // the reply quotes the previous message
	buttons            []string // the buttons of the reply
	noted              string   // the member who replies writes this note
	read               bool     // a member has read the conversation without answering
}

func says(text string) demoLine { return demoLine{said: text} }

func sends(template, language string, values ...string) demoLine {
	return demoLine{template: template, language: language, values: values}
}

func answers(text string, buttons ...string) demoLine {
	return demoLine{answered: text, buttons: buttons}
}

func notes(text string) demoLine { return demoLine{noted: text} }

// A demoTalk is the conversation of one person. It is assigned to the contact's owner, or
// to the member that given names. It can be given away or closed only if the person
// writes in it. It can be answered only if it is from the last day.
type demoTalk struct {
	person  int
	edition int           // the edition of the demo that added it; 0: the second
	ago     time.Duration // how long ago it began
	lines   []demoLine
	given   string
	status  desk.ConversationStatus // the status at the end; "": open
}

// demoPause is the time between two messages of a conversation.
const demoPause = 4 * time.Minute

var demoTalks = []demoTalk{
	{person: 2, ago: 75 * time.Hour, lines: []demoLine{
		sends("appointment_reminder", "en_US", "James", "Mei Tanaka", "Tuesday", "10:30"),
		says("Confirm"),
		sends("thank_you", "en_US"),
		says("It was a pleasure. See you next year!"),
	}, status: desk.StatusArchived},
	{person: 5, ago: 52 * time.Hour, lines: []demoLine{
		sends("order_confirmation", "en_US", "A-1017", "Élodie", "two lanterns", "Tomás"),
		says("Could you add a third one?"),
		says("Never mind, two will do."),
	}, status: desk.StatusClosed},
	{person: 6, ago: 50 * time.Hour, lines: []demoLine{
		sends("autumn_sale", "en_US", "Ethan", "20%"),
		says("STOP"),
	}, status: desk.StatusClosed},
	{person: 24, edition: 3, ago: 49 * time.Hour, lines: []demoLine{
		sends("order_confirmation", "en_US", "A-1019", "अनन्या", "a brass lamp", "Nora"),
		says("धन्यवाद! क्या यह शुक्रवार तक पहुँच जाएगा?"),
		says("🙏"),
		{read: true},
	}},
	{person: 1, ago: 28 * time.Hour, lines: []demoLine{
		says("Do you deliver to London on Saturdays?"),
	}},
	{person: 8, ago: 26 * time.Hour, lines: []demoLine{
		sends("autumn_sale", "en_US", "Grace", "20%"),
	}},
	{person: 31, edition: 3, ago: 25 * time.Hour, lines: []demoLine{
		says("Hello! I ordered the large walnut bookcase for the library in Regensburg, and the driver says that it does not fit through the door of the north tower. " +
			"Is there a version that comes in two parts? The one I mean is https://shop.parley.example/furniture/bookcases/walnut-large?colour=dark&height=240 and I need two of them."),
	}},
	{person: 9, ago: 22 * time.Hour, lines: []demoLine{ // the sandbox can't deliver to this person
		sends("order_confirmation", "en_US", "A-1023", "Matilda", "a pair of boots", "Tomás"),
	}},
	{person: 27, edition: 3, ago: 5 * time.Hour, lines: []demoLine{
		says("שלום, אפשר להחליף את הכיסא לצבע אחר?"),
	}},
	{person: 13, ago: 4 * time.Hour, lines: []demoLine{
		says("Guten Tag, wann war noch mal mein Termin?"),
		sends("appointment_reminder", "de", "Lena Öztürk", "Tomás Rivera", "Donnerstag", "14"),
		says("Passt, danke!"),
		answers("Sehr gern. Bis Donnerstag!"),
		{reaction: "👍"},
	}},
	{person: 12, ago: 200 * time.Minute, lines: []demoLine{
		says("My parcel says delivered, but there is nothing at the door."),
		says("Order A-1009, if that helps."),
		notes("The carrier says that it is with the neighbour at number 12. Asked them for a photo of the signature."),
	}, given: "mei@parley.example"},
	{person: 20, edition: 3, ago: 140 * time.Minute, lines: []demoLine{
		sends("appointment_reminder", "en_US", "Олена", "Nora Lindqvist", "Wednesday", "09:00"),
		says("Дякую! Чи можна прийти на годину пізніше?"),
		{answered: "Так, звичайно. Чекаємо на вас о десятій.", quoting: true},
		{reaction: "❤️"},
	}},
	{person: 3, ago: 95 * time.Minute, lines: []demoLine{
		says("Haben Sie am Montag geöffnet?"),
	}},
	{person: 11, ago: 80 * time.Minute, lines: []demoLine{
		says("Can I pay by invoice?"),
		answers("Yes. It will be in the parcel, and you have 14 days to pay."),
		says("Perfect."),
		{read: true},
	}, given: "tomas@parley.example"},
	{person: 19, edition: 3, ago: 48 * time.Minute, lines: []demoLine{
		says("مرحبا، هل ما زال الموعد يوم الخميس ممكنا؟"),
		says("رقم الطلب A-1031"),
	}},
	{person: 15, ago: 31 * time.Minute, lines: []demoLine{
		says("Hi, is the blue one back in stock?"),
	}},
	{person: 23, edition: 3, ago: 17 * time.Minute, lines: []demoLine{
		says("こんにちは。注文した本はいつ届きますか？"),
	}},
	{person: 0, ago: 25 * time.Minute, lines: []demoLine{
		sends("order_confirmation", "en_US", "A-1042", "Olivia", "three prints", "Nora"),
		{photo: "Is this one of the three?"},
		notes("Moving house: ask before anything is sent."),
		answers("It is. Shall we send them together?", "In one parcel", "As they come"),
		{chosen: "In one parcel"},
		says("Great, thank you! When will they arrive?"),
	}},
}

// addDemoChannel adds the channel with its templates and bindings. Some of them may
// already exist, because an earlier run was interrupted.
func addDemoChannel(ctx context.Context, a *app.App, ws desk.ID) (desk.ID, error) {
	id, err := demoChannelID(ctx, a, ws)
	if err != nil {
		return id, err
	}
	operator, err := a.Operator(ctx, ws) // the operator can see the channel
	if err != nil {
		return id, err
	}
	var templates []json.RawMessage
	if err := json.Unmarshal(demoTemplates, &templates); err != nil {
		return id, err
	}
	for _, source := range templates {
		if _, err := a.PutTemplate(ctx, operator, id, source); err != nil {
			return id, err
		}
	}
	edit := app.ChannelEdit{Bindings: map[desk.BindingPlace]desk.Binding{}}
	for _, text := range demoBindings {
		place, b, err := desk.ParseBindingPlace(text)
		if err != nil {
			return id, err
		}
		edit.Bindings[place] = b
	}
	_, err = a.EditChannel(ctx, operator, id, edit)
	return id, err
}

func demoChannelID(ctx context.Context, a *app.App, ws desk.ID) (desk.ID, error) {
	operator, err := a.Operator(ctx, ws)
	if err != nil {
		return desk.ID{}, err
	}
	for _, c := range operator.Settings.Channels() {
		if c.Kind == desk.SandboxChannel && c.ExternalID == demoChannel {
			return c.ID, nil
		}
	}
	added, _, err := a.AddChannel(ctx, operator, app.NewChannel{Kind: desk.SandboxChannel, ExternalID: demoChannel})
	if err != nil {
		return desk.ID{}, err
	}
	return added.Channel.ID, nil
}

// holdDemoTalks creates the conversations that an edition of the demo lacks. Their times
// are in the last days. Each message has its own key, which is the same in each run, so
// that no message is created twice. If an interrupted run has left a send unsettled, the
// message is skipped, because the outcome of its send would not be known soon.
func holdDemoTalks(ctx context.Context, in installation, p desk.Principal, channel desk.ID, edition int) error {
	operator, err := in.app.Operator(ctx, p.Workspace())
	if err != nil {
		return err
	}
	attempts, _, err := in.app.Attempts(ctx, operator, app.AttemptFilter{}, "", 1000)
	if err != nil {
		return err
	}
	onItsWay := map[string]bool{}
	for _, at := range attempts {
		if !at.Phase.Settled() {
			onItsWay[at.Key] = true
		}
	}
	clock := &demoClock{}
	a := in.at(clock.now)
	defer a.Close()
	began := time.Now()
	for _, talk := range demoTalks {
		if edition >= max(talk.edition, 2) {
			continue
		}
		clock.at = began.Add(-talk.ago)
		if err := holdDemoTalk(ctx, a, clock, p, channel, talk, onItsWay); err != nil {
			return fmt.Errorf("the conversation with person %d: %w", talk.person, err)
		}
	}
	if edition >= 3 {
		return nil
	}
	for shortcut, text := range demoSnippets {
		if _, _, err := a.PutSnippet(ctx, operator, shortcut, text); err != nil {
			return err
		}
	}
	return nil
}

// demoSnippets are the saved replies of the demo, by shortcut. The third edition added
// them.
var demoSnippets = map[string]string{
	"hi":       "Hello {{customer_first_name}}, this is {{agent_first_name}}. How can I help?",
	"delivery": "We deliver from Monday to Saturday, and you get a message with the hour on the day before.",
	"returns":  "You can send it back within 30 days. Shall I send you a label?",
	"thanks":   "Thank you, {{customer_first_name}}! Have a good day.",
}

// A demoClock shows a time in the past. It moves forward with the conversations, and by a
// millisecond each time it is read.
type demoClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *demoClock) now() time.Time { return c.pass(time.Millisecond) }

func (c *demoClock) pass(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	return c.at
}

func holdDemoTalk(ctx context.Context, a *app.App, clock *demoClock, p desk.Principal, channel desk.ID, talk demoTalk, onItsWay map[string]bool) (err error) {
	var c *desk.Conversation
	phone := demoPerson(talk.person).Write.Phone.Value
	for i, line := range talk.lines {
		key := fmt.Sprintf("demo-%d-%d", talk.person, i)
		at := clock.pass(demoPause)
		switch {
		case line.said != "":
			c, err = a.Receive(ctx, p.Workspace(), channel, provider.InboundMessage{
				ExternalID: key, Number: phone, Text: line.said, At: desk.TimeOf(at),
			})
		case line.photo != "" || line.chosen != "" || line.reaction != "":
			c, err = simulateDemoLine(ctx, a, p, channel, app.Simulated{From: "+" + phone, ExternalID: key}, line, c)
		case line.answered != "":
			if !onItsWay[key] {
				err = answerDemoTalk(ctx, a, p, c, key, line, talk)
			}
		case line.noted != "":
			err = noteDemoTalk(ctx, a, p, c, line.noted, talk)
		case line.read:
			_, err = a.MarkRead(ctx, p, c.ID, desk.ID{}, false)
		case !onItsWay[key]:
			_, err = a.Send(ctx, p, &desk.SendRequest{
				Key: key, Hash: a.BodyHash([]byte(key)), Phone: desk.Identity{Kind: desk.KindPhone, Value: phone}, Channel: &channel, Template: line.template, Language: line.language,
				Variables: desk.TemplateValues{List: line.values}, OptInConfirmed: true,
			}, a.NewID())
		}
		if err != nil {
			return err
		}
	}
	if talk.given != "" {
		_, err = a.Assign(ctx, p, c.ID, talk.given, nil)
	}
	if err == nil && talk.status != "" {
		_, err = a.SetStatus(ctx, p, c.ID, talk.status, nil)
	}
	return err
}

// simulateDemoLine simulates that a person sends a photo, taps a button, or reacts to the
// previous message.
func simulateDemoLine(ctx context.Context, a *app.App, p desk.Principal, channel desk.ID, m app.Simulated, line demoLine, c *desk.Conversation) (*desk.Conversation, error) {
	operator, err := a.Operator(ctx, p.Workspace())
	if err != nil {
		return c, err
	}
	if line.photo != "" {
		m.Text, m.File = line.photo, &app.SimulatedFile{Name: "print.png", Type: "image/png", Content: bytes.NewReader(demoPhoto())}
	} else {
		last, err := newestOf(ctx, a, p, c)
		if err != nil {
			return c, err
		}
		if m.ReplyTo = last.ID.String(); line.reaction != "" {
			m.Reaction = &line.reaction
		}
		m.Choice = line.chosen
	}
	if there, _, err := a.Simulate(ctx, operator, channel, m); err != nil || there != nil {
		return there, err
	}
	return c, nil
}

// newestOf returns the newest message of a conversation.
func newestOf(ctx context.Context, a *app.App, p desk.Principal, c *desk.Conversation) (*desk.Message, error) {
	list, _, err := a.Messages(ctx, p, c.ID, "", 1)
	if err == nil && len(list) == 0 {
		err = desk.NoConversation()
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// speaker returns the member who replies in a conversation: the one that given names, or
// else the contact's owner.
func (t *demoTalk) speaker() desk.Field[desk.Reference] {
	if t.given != "" {
		return set(desk.ReferTo(t.given))
	}
	return demoPerson(t.person).Write.Owner
}

func answerDemoTalk(ctx context.Context, a *app.App, p desk.Principal, c *desk.Conversation, key string, line demoLine, talk demoTalk) error {
	r := &desk.ReplyRequest{Key: key, Hash: a.BodyHash([]byte(key)), Conversation: c.ID, Text: line.answered, Member: talk.speaker()}
	for _, title := range line.buttons {
		r.Buttons = append(r.Buttons, desk.Button{ID: title, Title: title})
	}
	if line.quoting {
		last, err := newestOf(ctx, a, p, c)
		if err != nil {
			return err
		}
		r.ReplyTo = set(last.ID)
	}
	_, err := a.Reply(ctx, p, r, a.NewID(), nil)
	return err
}

// noteDemoTalk adds a note, unless an interrupted run has added it already.
func noteDemoTalk(ctx context.Context, a *app.App, p desk.Principal, c *desk.Conversation, text string, talk demoTalk) error {
	list, _, err := a.Notes(ctx, p, c.ID, "", 1)
	if err != nil || len(list) > 0 {
		return err
	}
	_, err = a.AddNote(ctx, p, c.ID, text, talk.speaker())
	return err
}

// demoPhoto draws a picture: the sun over the sea, and a boat.
func demoPhoto() []byte {
	const w, h = 320, 240
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.RGBA{245, 238, 222, 255} // the colour of the paper
			dx, dy := x-210, y-95
			switch {
			case x < 24 || y < 24 || x >= w-24 || y >= h-24:
			case y >= 190-abs(x-120)/8 && y < 196 && abs(x-120) < 40, y > 110 && y < 182 && x > 120 && x-120 < (y-110)/2:
				c = color.RGBA{38, 44, 56, 255}
			case y >= 150:
				c = color.RGBA{uint8(22 + (y-150)/4), uint8(92 + (y-150)/3), 88, 255}
			case dx*dx+dy*dy < 34*34:
				c = color.RGBA{205, 78, 48, 255}
			default:
				c = color.RGBA{uint8(236 - y/6), uint8(206 - y/8), uint8(170 + y/8), 255}
			}
			m.SetRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	_ = png.Encode(&b, m) // writing to memory does not fail
	return b.Bytes()
}

func abs(n int) int { return max(n, -n) }
