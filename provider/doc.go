// Package provider is what a channel's provider must do, and what it tells: whatsapp and
// sandbox implement it, and app calls it.
//
//	provider.go  Provider, and what only some can do: CallbackProvider, Simulator
//	dispatch.go  a message to be sent, and the provider's acknowledgement
//	talker.go    answering people freely, files
//	update.go    the reports in an inbound item
//	secret.go    a channel's secrets
package provider
