package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The command to explain; without one, all are listed."`
}

// Help shows examples.
func (*helpCmd) Help() string {
	return examples(`parley help`, `parley help key`, `parley help key create`)
}

// Run explains a command, like the flag --help.
func (c *helpCmd) Run(k *kong.Kong, s *session) error {
	about, err := kong.Trace(k, c.Command)
	if err != nil {
		return err
	}
	if about.Error != nil {
		return usageError("there is no command " + strings.Join(c.Command, " "))
	}
	var text strings.Builder
	k.Stdout = &text
	if err := about.PrintUsage(false); err != nil {
		return err
	}
	return s.answer(struct {
		Help string `json:"help"`
	}{text.String()}, "%s", block(text.String()))
}

// printHelp prints kong's help. It changes the summary of commands for which exactly one
// of several flags must be chosen.
func printHelp(options kong.HelpOptions, c *kong.Context) error {
	usage := c.Model.Summary()
	if chosen := c.Selected(); chosen != nil {
		usage = " " + chosen.Summary()
		for _, group := range choices(chosen) {
			usage = strings.Replace(usage, strings.Join(group, " "), "("+strings.Join(group, " | ")+")", 1)
		}
	}
	if _, err := fmt.Fprintf(c.Stdout, "Usage: %s%s\n", c.Model.Name, usage); err != nil {
		return err
	}
	options.NoAppSummary = true
	return kong.DefaultHelpPrinter(options, c)
}

// choices returns groups of a command's flags, as the summary shows them. Of each group,
// exactly one flag must be given.
func choices(command *kong.Node) map[string][]string {
	groups := map[string][]string{}
	for _, flag := range command.Flags {
		for _, name := range flag.Xor {
			if flag.Required {
				groups[name] = append(groups[name], flag.Summary())
			}
		}
	}
	return groups
}

// The detailed help of a command has the form of a Go comment: paragraphs, and indented
// lines that stay as they are.

// examples formats a command's examples, one command on each line.
func examples(lines ...string) string { return "Examples:\n\n" + indented(lines...) }

func indented(lines ...string) string { return "\t" + strings.Join(lines, "\n\t") }

// paragraphs joins the parts of a detailed help.
func paragraphs(parts ...string) string { return strings.Join(parts, "\n\n") }
