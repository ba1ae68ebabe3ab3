package main

import (
	"context"
	"mime"
	"os"
	"path/filepath"

	"parley/app"
	"parley/desk"
)

type sandboxCmd struct {
	Inbound sandboxInboundCmd `cmd:"" help:"Receive a simulated customer's message on a sandbox channel."`
}

type sandboxInboundCmd struct {
	Channel    string  `help:"The sandbox channel's id." required:"" placeholder:"ID"`
	From       string  `help:"The customer's phone number." required:"" placeholder:"PHONE"`
	Text       string  `help:"The text of the message, or the caption of its file." placeholder:"TEXT"`
	Name       string  `help:"The customer's name, for a contact that this command creates." placeholder:"NAME"`
	At         string  `help:"When the customer sent it, at most a minute ahead; by default now." placeholder:"TIME"`
	File       string  `help:"Send this file." placeholder:"PATH"`
	Type       string  `help:"What the customer's phone claims the file to be; by default what its name suggests." placeholder:"MIME"`
	Fault      string  `help:"What goes wrong when the file is fetched: fail:N, truncate:N, gone, size:BYTES or slow:10s." placeholder:"FAULT"`
	ReplyTo    string  `help:"The message that this one quotes or reacts to, by its id." placeholder:"ID"`
	Reaction   *string `help:"React to the message of --reply-to with this; an empty one takes the reaction back." placeholder:"EMOJI"`
	Choice     string  `help:"Tap the button with this id." placeholder:"ID"`
	ExternalID string  `help:"The message's id at the provider; a message that comes again with the same id is not stored again." name:"external-id" placeholder:"X"`
	Echo       bool    `help:"The business typed it in the phone app, to the customer."`
}

// Help explains stop words and faults, and shows examples.
func (*sandboxInboundCmd) Help() string {
	return paragraphs("After a text that is only a stop word, such as STOP, no MARKETING template is sent to that number, on any channel "+
		"of the workspace. A start word, such as START, allows them again.",
		"A file is there at once. With --fault it is fetched by the server, as from a real provider:", indented(
			"fail:N      the first N tries fail",
			"truncate:N  the first N tries are cut short",
			"gone        the provider has the file no more",
			"size:BYTES  so many bytes are announced, and come",
			"slow:10s    it begins to come after this time",
		), examples(
			`parley sandbox inbound --channel 01980000-0000-7000-8000-000000000004 --from "+1 202 555 0143" --text "Is my order on its way?"`,
			`parley sandbox inbound --channel 01980000-0000-7000-8000-000000000004 --from 12025550143 --name "Ada Lovelace" --text STOP`,
			`parley sandbox inbound --channel 01980000-0000-7000-8000-000000000004 --from 12025550143 --text START --json`,
			`parley sandbox inbound --channel 01980000-0000-7000-8000-000000000004 --from 12025550143 --file receipt.jpg --text "My receipt" --fault fail:2`,
			`parley sandbox inbound --channel 01980000-0000-7000-8000-000000000004 --from 12025550143 --reply-to 01980000-0000-7000-8000-00000000000a --reaction 👍`,
			`parley sandbox inbound --channel 01980000-0000-7000-8000-000000000004 --from 12025550143 --reply-to 01980000-0000-7000-8000-00000000000a --choice keep`,
			`parley sandbox inbound --channel 01980000-0000-7000-8000-000000000004 --from 12025550143 --text "I will call you" --echo`,
			`parley sandbox inbound --channel 01980000-0000-7000-8000-000000000004 --from 12025550143 --text "From yesterday" --at 2026-11-21T10:00:00Z`,
		))
}

// Validate refuses flags that can't be combined.
func (c *sandboxInboundCmd) Validate() error {
	switch {
	case c.Text == "" && c.File == "" && c.Reaction == nil && c.Choice == "":
		return usageError("missing flags: --text=TEXT, or --file, --reaction or --choice")
	case c.File == "" && (c.Fault != "" || c.Type != ""):
		return usageError("--type and --fault need --file")
	case c.Reaction != nil && c.ReplyTo == "":
		return usageError("--reaction needs --reply-to")
	}
	return nil
}

// Run receives the message.
func (c *sandboxInboundCmd) Run(ctx context.Context, s *session) error {
	in := app.Simulated{
		From: c.From, Name: c.Name, Text: c.Text, At: c.At, ReplyTo: c.ReplyTo, Reaction: c.Reaction, Choice: c.Choice, ExternalID: c.ExternalID, Echo: c.Echo,
	}
	if c.File != "" {
		file, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // the file was only read
		in.File = &app.SimulatedFile{Name: filepath.Base(c.File), Type: c.Type, Fault: c.Fault, Content: file}
		if c.Type == "" {
			in.File.Type = mime.TypeByExtension(filepath.Ext(c.File))
		}
	}
	return s.onRecord(ctx, c.Channel, s.unknownChannel, func(a *app.App, p desk.Principal) error {
		conversation, m, err := a.Simulate(ctx, p, idOf(c.Channel), in)
		if err != nil {
			return err
		}
		var r struct {
			ConversationID *string `json:"conversation_id"`
			ContactID      *string `json:"contact_id"`
			MessageID      *string `json:"message_id"`
			MediaID        *string `json:"media_id"`
		}
		if m == nil && c.Reaction == nil {
			return s.answer(r, "Nothing was received: a message with this id was deleted together with its contact in the last 30 days.\n")
		}
		if m == nil {
			return s.answer(r, "Nothing was received: it is a reaction, and the customer has no conversation on this channel.\n")
		}
		id := func(id desk.ID) *string {
			if id.IsZero() {
				return nil
			}
			return unlessEmpty(id.String())
		}
		r.ConversationID, r.ContactID, r.MessageID, r.MediaID = id(conversation.ID), id(conversation.ContactID), id(m.ID), id(m.Media)
		with := ""
		if r.MediaID != nil {
			with = ", with the file " + *r.MediaID
		}
		return s.answer(r, "Received it in the conversation %s, from the contact %s, as the message %s%s.%s\n", *r.ConversationID, *r.ContactID, *r.MessageID, with, c.optText())
	})
}

// optText describes the effect of a stop word or a start word.
func (c *sandboxInboundCmd) optText() string {
	if c.Echo {
		return ""
	}
	switch desk.OptWord(c.Text) {
	case desk.OptOut:
		return " It is a stop word: no marketing goes to this number until a start word comes."
	case desk.OptInAgain:
		return " It is a start word: marketing may go to this number again."
	}
	return ""
}
