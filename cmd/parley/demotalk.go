package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
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
	person int
	lines  []demoLine
	given  string
	status desk.ConversationStatus // "" stays open
}

var demoTalks = []demoTalk{
	{person: 2, lines: []demoLine{
		sends("appointment_reminder", "en_US", "James", "Mei Tanaka", "Tuesday", "10:30"),
		says("Confirm"),
		sends("thank_you", "en_US"),
		says("It was a pleasure. See you next year!"),
	}, status: desk.StatusArchived},
	{person: 5, lines: []demoLine{
		sends("order_confirmation", "en_US", "A-1017", "Élodie", "two lanterns", "Tomás"),
		says("Could you add a third one?"),
		says("Never mind, two will do."),
	}, status: desk.StatusClosed},
	{person: 6, lines: []demoLine{
		sends("autumn_sale", "en_US", "Ethan", "20%"),
		says("STOP"),
	}, status: desk.StatusClosed},
	{person: 1, lines: []demoLine{
		says("Do you deliver to London on Saturdays?"),
	}},
	{person: 8, lines: []demoLine{
		sends("autumn_sale", "en_US", "Grace", "20%"),
	}},
	{person: 9, lines: []demoLine{ // to whom the sandbox can't deliver
		sends("order_confirmation", "en_US", "A-1023", "Matilda", "a pair of boots", "Tomás"),
	}},
	{person: 13, lines: []demoLine{
		says("Guten Tag, wann war noch mal mein Termin?"),
		sends("appointment_reminder", "de", "Lena Öztürk", "Tomás Rivera", "Donnerstag", "14"),
		says("Passt, danke!"),
	}},
	{person: 12, lines: []demoLine{
		says("My parcel says delivered, but there is nothing at the door."),
		says("Order A-1009, if that helps."),
	}, given: "mei@parley.example"},
	{person: 3, lines: []demoLine{
		says("Haben Sie am Montag geöffnet?"),
	}},
	{person: 11, lines: []demoLine{
		says("Can I pay by invoice?"),
	}, given: "tomas@parley.example"},
	{person: 15, lines: []demoLine{
		says("Hi, is the blue one back in stock?"),
	}},
	{person: 0, lines: []demoLine{
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

// holdDemoTalks lets the conversations happen. Each message has a key of its own, the
// same in each run, so that none is there twice. One that a run which was cut short
// has left on its way is left alone: nobody would answer for it soon.
func holdDemoTalks(ctx context.Context, a *app.App, p app.Principal, channel desk.ID) error {
	operator, err := a.Operator(ctx, p.Workspace())
	if err != nil {
		return err
	}
	attempts, _, err := a.Attempts(ctx, operator, false, "", 1000)
	if err != nil {
		return err
	}
	onItsWay := map[string]bool{}
	for _, at := range attempts {
		if !at.Phase.Settled() {
			onItsWay[at.Key] = true
		}
	}
	for _, talk := range demoTalks {
		if err := holdDemoTalk(ctx, a, p, channel, talk, onItsWay); err != nil {
			return fmt.Errorf("the conversation with person %d: %w", talk.person, err)
		}
	}
	return nil
}

func holdDemoTalk(ctx context.Context, a *app.App, p app.Principal, channel desk.ID, talk demoTalk, onItsWay map[string]bool) (err error) {
	var c *desk.Conversation
	phone := demoPerson(talk.person).Write.Phone.Value
	for i, line := range talk.lines {
		key := fmt.Sprintf("demo-%d-%d", talk.person, i)
		switch {
		case line.said != "":
			c, err = a.Receive(ctx, p.Workspace(), channel, app.InboundMessage{
				ExternalID: key, Number: phone, Text: line.said, At: desk.TimeOf(time.Now()),
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
