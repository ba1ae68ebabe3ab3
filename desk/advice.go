package desk

import "strings"

// An AdviceKind says what to do about an error. Each interface of parley has its own words
// for it: the API names its calls, the command line its commands.
type AdviceKind uint8

// The kinds of advice. The comment of a kind names its argument, if it has one. Stored
// refusals hold the number of their kind, so new kinds go last.
const (
	NoAdvice        AdviceKind = iota
	SeeDetails                 // no argument: the details contain all entries
	SeeFirstDetails            // the entries that the details contain, such as "the first 100 of 500"
	ListMembers
	ListChannels
	ListTemplates
	ListAttributes
	ListIdentities
	ListWorkspaces
	ListKeys
	ListAttempts
	ClearField // the contact's field
	ClearOwner
	RemoveIdentities
	AddChannel
	EnableChannel // the channel's id
	CheckChannel  // the channel's id
	SyncChannel   // the channel's id
	EditKey       // the key's id, and all permissions that it then needs
	RevokeKey
	ReleaseAttempt // the attempt's id
	FinishMigration
	StoreToken     // the channel's id
	StoreAppSecret // the channel's id
	ListWebhooks
	RemoveWebhook
	AllowAddress  // no argument: the operator can allow a webhook's address
	EnableWebhook // the webhook's id
	ListBroadcasts
	ReplaceFile // no argument: of the title of a broadcast's template

	EndOfAdvice // not a kind: a test checks that each interface has words for every kind above
)

// Advice is a kind of advice with its arguments, one a line.
type Advice struct {
	Kind AdviceKind
	Arg  string
}

// Worded returns the words that an interface has for the advice; "" if there is no advice.
func (a Advice) Worded(words map[AdviceKind]string) string {
	text := words[a.Kind]
	for arg := range strings.SplitSeq(a.Arg, "\n") {
		text = strings.Replace(text, "%s", arg, 1)
	}
	return text
}
