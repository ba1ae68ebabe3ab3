// Package provider has the interfaces and data types between app and the providers of
// channels: whatsapp and sandbox implement them, and app calls them.
//
//	provider.go  Provider; interfaces that only some providers have: CallbackProvider, Simulator
//	dispatch.go  a message to be sent, and the provider's acknowledgement
//	talker.go    Talker: files and read receipts of providers whose people can be answered freely
//	update.go    the reports in an inbound item
//	secret.go    a channel's secrets
package provider
