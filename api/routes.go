package api

import "parley/desk"

// routes lists every endpoint under /v1 with its permission. It also says whether the
// handler checks the key again in its own transaction; then a separate read of the key
// is not needed.
func (s *Server) routes() []route {
	return []route{
		{"POST /v1/contacts", desk.ContactsWrite, s.upsertContact, true},
		{"GET /v1/contacts", desk.ContactsRead, s.listContacts, false},
		{"POST /v1/contacts/batch", desk.ContactsWrite, s.batch, true},
		{"GET /v1/contacts/{id}", desk.ContactsRead, s.getContact, true},
		{"PATCH /v1/contacts/{id}", desk.ContactsWrite, s.patchContact, true},
		{"DELETE /v1/contacts/{id}", desk.ContactsWrite, s.deleteContact, true},
		{"PUT /v1/contacts/{id}/owner", desk.ContactsWrite, s.setOwner, true},
		{"DELETE /v1/contacts/{id}/owner", desk.ContactsWrite, s.clearOwner, true},
		{"GET /v1/contacts/{id}/identities", desk.ContactsRead, s.listIdentities, true},
		{"DELETE /v1/contacts/{id}/identities", desk.ContactsWrite, s.removeIdentity, true},
		{"GET /v1/attributes", desk.AttributesRead, s.listAttributes, false},
		{"POST /v1/attributes", desk.AttributesWrite, s.putAttribute, false},
		{"DELETE /v1/attributes/{key}", desk.AttributesWrite, s.archiveAttribute, false},
		{"GET /v1/contacts/{id}/conversations", desk.ConversationsRead, s.listContactConversations, false},
		{"GET /v1/conversations", desk.ConversationsRead, s.listConversations, false},
		{"POST /v1/conversations/outbound", desk.MessagesSend, s.send, false},
		{"GET /v1/conversations/{id}", desk.ConversationsRead, s.getConversation, false},
		{"GET /v1/conversations/{id}/messages", desk.ConversationsRead, s.listMessages, false},
		{"GET /v1/conversations/{id}/notes", desk.ConversationsRead, s.listNotes, false},
		{"POST /v1/conversations/{id}/notes", desk.ConversationsWrite, s.addNote, false},
		{"DELETE /v1/conversations/{id}/notes/{note_id}", desk.ConversationsWrite, s.deleteNote, false},
		{"PUT /v1/conversations/{id}/assignee", desk.ConversationsWrite, s.setAssignee, false},
		{"PUT /v1/conversations/{id}/status", desk.ConversationsWrite, s.setStatus, false},
		{"GET /v1/attempts", desk.AttemptsRead, s.listAttempts, false},
		{"GET /v1/attempts/{id}", desk.AttemptsRead, s.getAttempt, false},
		{"POST /v1/attempts/{id}/release", desk.AttemptsWrite, s.releaseAttempt, false},
		{"GET /v1/templates", desk.TemplatesRead, s.listTemplates, false},
		{"GET /v1/snippets", desk.TemplatesRead, s.listSnippets, false},
		{"PUT /v1/snippets/{shortcut}", desk.SnippetsWrite, s.putSnippet, false},
		{"DELETE /v1/snippets/{shortcut}", desk.SnippetsWrite, s.deleteSnippet, false},
		{"GET /v1/channels", desk.ChannelsRead, s.listChannels, false},
		{"GET /v1/channels/{id}", desk.ChannelsRead, s.getChannel, false},
		{"GET /v1/members", desk.MembersRead, s.listMembers, false},
		{"PUT /v1/members/{id}/availability", desk.MembersWrite, s.setAvailability, false},
		{"GET /v1/me", "", s.getMe, false},
		{"GET /v1/events", desk.EventsRead, s.listEvents, false},
		{"GET /v1/webhooks", desk.WebhooksRead, s.listWebhooks, false},
		{"POST /v1/webhooks", desk.WebhooksWrite, s.addWebhook, false},
		{"GET /v1/webhooks/{id}", desk.WebhooksRead, s.getWebhook, false},
		{"PATCH /v1/webhooks/{id}", desk.WebhooksWrite, s.patchWebhook, false},
		{"DELETE /v1/webhooks/{id}", desk.WebhooksWrite, s.deleteWebhook, false},
		{"POST /v1/webhooks/{id}/rotate", desk.WebhooksWrite, s.rotateWebhook, false},
		{"POST /v1/webhooks/{id}/ping", desk.WebhooksWrite, s.pingWebhook, false},
		{"POST /v1/webhooks/{id}/replay", desk.WebhooksWrite, s.replayWebhook, false},
		{"GET /v1/webhooks/{id}/deliveries", desk.WebhooksRead, s.listDeliveries, false},
		{"POST /v1/webhooks/{id}/deliveries/{delivery_id}/redeliver", desk.WebhooksWrite, s.redeliver, false},
	}
}
