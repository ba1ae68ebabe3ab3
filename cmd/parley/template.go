package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"parley/app"
	"parley/desk"
)

type templateCmd struct {
	Put  templatePutCmd  `cmd:"" help:"Put a template into a sandbox channel's library."`
	List templateListCmd `cmd:"" help:"List a channel's templates, and why some can't be sent."`
}

type templatePutCmd struct {
	Channel string `help:"The sandbox channel's id." required:"" placeholder:"ID"`
	File    string `help:"The template in the provider's JSON form; - reads standard input." required:"" placeholder:"FILE"`
}

// Help shows a complete template, and examples.
func (*templatePutCmd) Help() string {
	return paragraphs("A file holds one template. This is a whole one, with a title and two variables:",
		indented(strings.Split(templateExample, "\n")...),
		"Leave the HEADER out if it needs no title. Variables may be numbered instead, as {{1}} and {{2}}; "+
			"parameter_format is POSITIONAL then. Only an APPROVED template can be sent.",
		examples(
			`parley template put --channel 01980000-0000-7000-8000-000000000004 --file order_ready.json`,
			`parley template put --channel 01980000-0000-7000-8000-000000000004 --file - <order_ready.json`,
		))
}

const templateExample = `{"name": "order_ready", "language": "en_US", "status": "APPROVED",
 "category": "UTILITY", "parameter_format": "NAMED", "components": [
  {"type": "HEADER", "format": "TEXT", "text": "Hello {{first_name}}"},
  {"type": "BODY", "text": "Your order {{order}} is ready."}]}`

// Run puts the template into the library. It replaces a template with the same name and
// language.
func (c *templatePutCmd) Run(ctx context.Context, s *session) error {
	source, err := s.readFile(c.File)
	if err != nil {
		return err
	}
	return s.onRecord(ctx, c.Channel, s.unknownChannel, func(a *app.App, p desk.Principal) error {
		t, err := a.PutTemplate(ctx, p, idOf(c.Channel), source)
		if err != nil {
			return err
		}
		verdict := "it can be sent"
		if !t.Sendable() {
			verdict = "it can't be sent: " + strings.Join(t.Reasons, ", ")
			if t.Fillable() {
				verdict = "it can be sent with " + t.NeededAddresses()
			}
		}
		return s.answer(struct {
			Name     string `json:"name"`
			Language string `json:"language"`
			Sendable bool   `json:"sendable"`
		}{t.Name, t.Language, t.Sendable()}, "Put the template %s in %s into the library; %s.\n", t.Name, t.Language, verdict)
	})
}

// maxFile is the greatest size of a file: far more than a template or a policy needs.
const maxFile = 1 << 20

// readFile reads the file that a flag names, or standard input.
func (s *session) readFile(name string) (content []byte, err error) {
	if name == "-" {
		content, err = io.ReadAll(s.stdin)
	} else {
		content, err = os.ReadFile(name)
	}
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes, the most that is read", name, maxFile)
	}
	if err != nil {
		return nil, fmt.Errorf("--file: %w", err)
	}
	return content, nil
}

type templateRecord struct {
	Name     string   `json:"name"`
	Language string   `json:"language"`
	Status   string   `json:"status"`
	Sendable bool     `json:"sendable"`
	Reasons  []string `json:"reasons"` // the reasons why the template can't be sent
}

func recordOfTemplate(t *desk.Template) templateRecord {
	return templateRecord{t.Name, t.Language, t.Status, t.Sendable(), append([]string{}, t.Reasons...)}
}

type templateListCmd struct {
	Channel string `help:"The channel's id." required:"" placeholder:"ID"`
}

// Help shows examples.
func (*templateListCmd) Help() string {
	return examples(
		`parley template list --channel 01980000-0000-7000-8000-000000000004`,
		`parley template list --channel 01980000-0000-7000-8000-000000000004 --json`,
	)
}

// Run lists the templates.
func (c *templateListCmd) Run(ctx context.Context, s *session) error {
	return s.onRecord(ctx, c.Channel, s.unknownChannel, func(a *app.App, p desk.Principal) error {
		library, err := a.TemplatesOf(ctx, p, idOf(c.Channel))
		if err != nil {
			return err
		}
		var records []templateRecord
		for _, t := range library.Templates {
			records = append(records, recordOfTemplate(t))
		}
		return answerList(s, records, []string{"NAME", "LANGUAGE", "STATUS", "SENDABLE", "REASONS"}, func(r templateRecord) []string {
			if r.Sendable {
				return []string{r.Name, r.Language, r.Status, "yes", "-"}
			}
			return []string{r.Name, r.Language, r.Status, "no", strings.Join(r.Reasons, ", ")}
		})
	})
}
