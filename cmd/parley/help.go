package main

import (
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

// Run explains a command, as --help after it does.
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
	}{text.String()}, "%s", text.String())
}
