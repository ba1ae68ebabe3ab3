package main

import (
	"errors"
	"slices"
	"strings"

	"parley/desk"
	"parley/provider"
)

// place returns the flag in which an error is, with the path within the flag's value.
func place(at string) string {
	if at == "" {
		return ""
	}
	name, within, deeper := strings.Cut(at[1:], "/")
	flag := "--" + strings.ReplaceAll(name, "_", "-")
	if deeper {
		return flag + ": /" + within
	}
	return flag
}

// advice says what an operator can do. No command shows an error's details.
var advice = map[desk.AdviceKind]string{
	desk.ListMembers:      "parley member list --workspace W shows them",
	desk.ListChannels:     "parley channel list --workspace W shows them",
	desk.ListTemplates:    "parley template list --channel C shows them",
	desk.ListAttributes:   "GET /attributes?archived=all lists them",
	desk.ListIdentities:   "GET /contacts/{id}/identities lists those it holds",
	desk.ListWorkspaces:   "parley workspace list shows them",
	desk.ListKeys:         "parley key list --workspace W shows them",
	desk.ListAttempts:     "parley attempt list --workspace W shows them",
	desk.ClearField:       "clear its %s instead",
	desk.ClearOwner:       "clear the owner instead",
	desk.RemoveIdentities: "remove some first",
	desk.AddChannel:       "add one with parley channel add",
	desk.EnableChannel:    "enable it with parley channel edit %s --enabled=true",
	desk.CheckChannel:     "parley channel check %s says what is wrong",
	desk.SyncChannel:      "parley channel sync %s fetches them now",
	desk.EditKey:          "add it with parley key edit %s --permissions %s, which replaces the whole list",
	desk.RevokeKey:        "to end it now, use parley key revoke",
	desk.ReleaseAttempt:   "look at what the provider shows, then run parley attempt release %s --sent or --not-sent",
	desk.StoreToken:       "parley channel edit %s --token-env VARIABLE stores the new one",
	desk.StoreAppSecret:   "parley channel edit %s --app-secret-env VARIABLE stores the right one",
	desk.ListWebhooks:     "parley webhook list --workspace W shows them",
	desk.RemoveWebhook:    "remove one with parley webhook remove",
	desk.AllowAddress:     "addresses of your own network are for --webhook-allow, here and at serve, for example --webhook-allow 127.0.0.0/8; docs/webhooks.md has more",
	desk.ListBroadcasts:   "parley broadcast list shows them",
	desk.ReplaceFile:      "choose another file; a broadcast that was started takes no other one: make a new broadcast",
	desk.EnableWebhook:    "parley webhook edit %s --enabled=true does it",
	desk.FinishMigration:  "wait for parley migrate to end; if it was interrupted, run it again",
}

// problemText describes a channel's problem for the operator.
func problemText(p provider.Problem) string {
	text := p.Text
	if more := p.Advice.Worded(advice); more != "" {
		text += "; " + more
	}
	return text
}

// sentence describes an error for the operator, on one line. The operator learns the
// cause; a client of the API does not.
func sentence(err error) string {
	text := err.Error()
	var e *desk.Error
	if errors.As(err, &e) {
		text = e.Worded(place(e.At), advice)
		if e.Err != nil {
			text += " (" + e.Err.Error() + ")"
		}
	}
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSpace(line))
	}
	// The error of an unreachable database has two lines: one for the try with TLS, and
	// one for the try without.
	return printable(strings.ReplaceAll(strings.Join(slices.Compact(lines), "; "), ":; ", ": "))
}
