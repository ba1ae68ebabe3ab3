package app

import "parley/desk"

// WebhookSecrets are what signs the deliveries of a webhook at now.
func (a *App) WebhookSecrets(ws desk.ID, w *desk.Webhook, now desk.Time) ([][]byte, error) {
	return a.webhookSecrets(ws, w, now)
}
