package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"parley/app"
	"parley/desk"
)

// demoChannel is what the demo's sandbox channel is called.
const demoChannel = "demo"

// demoTemplates are in the provider's own form: of each kind that can be sent, and
// for each reason one that can't.
//
//go:embed demotemplates.json
var demoTemplates []byte

// demoBindings say what a variable's name does not.
var demoBindings = []string{
	"order_confirmation/en_US/1=customer_first_name",
	"order_confirmation/en_US/3=agent_first_name",
	"autumn_sale/en_US/1=customer_first_name",
}

// A demoLine is one message of a conversation: a template, or what the person wrote.
type demoLine struct {
	template, language string
	values             []string
	said               string
}

func says(text string) demoLine { return demoLine{said: text} }

func sends(template, language string, values ...string) demoLine {
	return demoLine{template: template, language: language, values: values}
}

// A demoTalk is one person's conversation. It is the owner's, unless it is given to
// somebody else; only one in which the person writes can be given or closed.
type demoTalk struct {
	person  int
	edition int           // the edition of the demo in which it is new; 0: the second
	ago     time.Duration // when it began
	lines   []demoLine
	given   string
	status  desk.ConversationStatus // "" stays open
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
	{person: 9, ago: 22 * time.Hour, lines: []demoLine{ // to whom the sandbox can't deliver
		sends("order_confirmation", "en_US", "A-1023", "Matilda", "a pair of boots", "Tomás"),
	}},
	{person: 27, edition: 3, ago: 5 * time.Hour, lines: []demoLine{
		says("שלום, אפשר להחליף את הכיסא לצבע אחר?"),
	}},
	{person: 13, ago: 4 * time.Hour, lines: []demoLine{
		says("Guten Tag, wann war noch mal mein Termin?"),
		sends("appointment_reminder", "de", "Lena Öztürk", "Tomás Rivera", "Donnerstag", "14"),
		says("Passt, danke!"),
	}},
	{person: 12, ago: 200 * time.Minute, lines: []demoLine{
		says("My parcel says delivered, but there is nothing at the door."),
		says("Order A-1009, if that helps."),
	}, given: "mei@parley.example"},
	{person: 20, edition: 3, ago: 140 * time.Minute, lines: []demoLine{
		sends("appointment_reminder", "en_US", "Олена", "Nora Lindqvist", "Wednesday", "09:00"),
		says("Дякую! Чи можна прийти на годину пізніше?"),
	}},
	{person: 3, ago: 95 * time.Minute, lines: []demoLine{
		says("Haben Sie am Montag geöffnet?"),
	}},
	{person: 11, ago: 80 * time.Minute, lines: []demoLine{
		says("Can I pay by invoice?"),
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
	{person: 0, ago: 9 * time.Minute, lines: []demoLine{
		sends("order_confirmation", "en_US", "A-1042", "Olivia", "three atlases", "Nora"),
		says("Great, thank you! When will they arrive?"),
	}},
}

// addDemoChannel adds the channel with its templates and bindings, all of which may
// be there from a run that was cut short.
func addDemoChannel(ctx context.Context, a *app.App, ws desk.ID) (desk.ID, error) {
	id, err := demoChannelID(ctx, a, ws)
	if err != nil {
		return id, err
	}
	operator, err := a.Operator(ctx, ws) // who sees the channel
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

// holdDemoTalks lets the conversations happen that an edition lacks, at times in the last
// days. Each message has a key of its own, the same in each run, so that none is there
// twice. One that a run which was cut short has left on its way is left alone: nobody
// would answer for it soon.
func holdDemoTalks(ctx context.Context, in installation, p app.Principal, channel desk.ID, edition int) error {
	operator, err := in.app.Operator(ctx, p.Workspace())
	if err != nil {
		return err
	}
	attempts, _, err := in.app.Attempts(ctx, operator, "", "", 1000)
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
	return nil
}

// A demoClock is in the past. It moves on with the conversations, and a little with each
// look.
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

func holdDemoTalk(ctx context.Context, a *app.App, clock *demoClock, p app.Principal, channel desk.ID, talk demoTalk, onItsWay map[string]bool) (err error) {
	var c *desk.Conversation
	phone := demoPerson(talk.person).Write.Phone.Value
	for i, line := range talk.lines {
		key := fmt.Sprintf("demo-%d-%d", talk.person, i)
		at := clock.pass(demoPause)
		switch {
		case line.said != "":
			c, err = a.Receive(ctx, p.Workspace(), channel, app.InboundMessage{
				ExternalID: key, Number: phone, Text: line.said, At: desk.TimeOf(at),
			})
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
