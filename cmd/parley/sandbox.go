package main

import (
	"context"

	"parley/app"
	"parley/desk"
)

type sandboxCmd struct {
	Inbound sandboxInboundCmd `cmd:"" help:"Receive a simulated customer's message on a sandbox channel."`
}

type sandboxInboundCmd struct {
	Channel string `help:"The sandbox channel's id." required:"" placeholder:"ID"`
	From    string `help:"The customer's phone number." required:"" placeholder:"PHONE"`
	Text    string `help:"The text of the message." required:"" placeholder:"TEXT"`
	Name    string `help:"The customer's name, for a contact that this command creates." placeholder:"NAME"`
}

// Help explains stop words, and shows examples.
func (*sandboxInboundCmd) Help() string {
	return paragraphs("After a text that is only a stop word, such as STOP, no MARKETING template is sent to that number, on any channel "+
		"of the workspace. A start word, such as START, allows them again.", examples(
		`parley sandbox inbound --channel 01980000-0000-7000-8000-000000000004 --from "+1 202 555 0143" --text "Is my order on its way?"`,
		`parley sandbox inbound --channel 01980000-0000-7000-8000-000000000004 --from 12025550143 --name "Ada Lovelace" --text STOP`,
		`parley sandbox inbound --channel 01980000-0000-7000-8000-000000000004 --from 12025550143 --text START --json`,
	))
}

// Run receives the message.
func (c *sandboxInboundCmd) Run(ctx context.Context, s *session) error {
	return s.onRecord(ctx, c.Channel, s.unknownChannel, func(a *app.App, p app.Principal) error {
		conversation, err := a.ReceiveSimulated(ctx, p, idOf(c.Channel), c.From, c.Name, c.Text)
		if err != nil {
			return err
		}
		r := struct {
			ConversationID string `json:"conversation_id"`
			ContactID      string `json:"contact_id"`
		}{conversation.ID.String(), conversation.ContactID.String()}
		return s.answer(r, "Received it in the conversation %s, from the contact %s.%s\n", r.ConversationID, r.ContactID, optText(c.Text))
	})
}

// optText says what a stop word or a start word does.
func optText(text string) string {
	switch desk.OptWord(text) {
	case desk.OptOut:
		return " It is a stop word: no marketing goes to this number until a start word comes."
	case desk.OptInAgain:
		return " It is a start word: marketing may go to this number again."
	}
	return ""
}
