// Package desk holds parley's rules, and nothing else: functions from values to
// verdicts. It does no I/O, reads no clock and draws no random numbers, so every
// rule can be tried in a table and every entrance (one request, a batch row, an
// import, a page) shares it.
//
//	normal.go        the normal forms of e-mails, ids, names and handles
//	phone.go         how a phone number is read
//	decimal.go       exact numbers
//	identity.go      what finds a contact, and which identities mean the same
//	attribute.go     workspace attributes: definitions and the values they take
//	values.go        the attribute values a contact holds
//	contact.go       the contact record and what a write may say about it
//	op.go            operations: the one form in which contacts are changed
//	book.go          Book.Apply: matching, conflicts, owners; every contact write ends here
//	batch.go         limits and counts of a batch
//	channel.go       channels, and which one a caller means
//	template.go      message templates: reading the provider's form, what can't be sent
//	variables.go     a template's variables: checking values and filling them in
//	hint.go          what fills a variable, and with what
//	guess.go         guessing that from a variable's name
//	conversation.go  conversations and messages, and how far a message came
//	send.go          a send: request, plan, attempt, and what became of it
//	consent.go       stop and start words
//	workspace.go     workspaces, members, API keys and permissions
//	key.go           the text of an API key
//	error.go         the one error type
//
// Values are safe to share between goroutines once built; a Book is not.
package desk
