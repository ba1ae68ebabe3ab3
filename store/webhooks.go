package store

import "parley/desk"

// A WebhookRef identifies a webhook and its workspace.
type WebhookRef struct{ Workspace, ID desk.ID }

// A WebhookTx reads and writes states of webhooks. UpdateSettings stores the state of a
// new webhook together with its webhook.created event, where its deliveries begin. It
// deletes the state with the webhook.
type WebhookTx interface {
	// WebhookState returns the zero state for a webhook that was removed.
	// PutWebhookState then does nothing.
	WebhookState(id desk.ID) (desk.WebhookState, error)
	PutWebhookState(id desk.ID, state desk.WebhookState) error
}
