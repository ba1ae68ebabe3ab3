package api

import (
	"parley/desk"
	"parley/web"
)

// The greatest sizes of answers that can be large, in bytes. A page of short records is
// smaller.
const (
	pageOf      = desk.MaxPage + web.Free
	shortPageOf = 512 << 10
)

const batchRoute = "POST /v1/contacts/batch"

// routes lists every route under /v1 with its permission. It also says whether the
// handler checks the key again in its own transaction; then a separate read of the key
// is not needed. The last number is the memory that is taken before the answer is made, 0
// for answers that are nearly always small, for streams, and for writes.
func (s *Server) routes() []route {
	return []route{
		{"POST /v1/contacts", desk.ContactsWrite, s.upsertContact, true, 0},
		{"GET /v1/contacts", desk.ContactsRead, s.listContacts, false, pageOf},
		{batchRoute, desk.ContactsWrite, s.batch, true, 0},
		{"GET /v1/contacts/{id}", desk.ContactsRead, s.getContact, true, 0},
		{"PATCH /v1/contacts/{id}", desk.ContactsWrite, s.patchContact, true, 0},
		{"DELETE /v1/contacts/{id}", desk.ContactsWrite, s.deleteContact, true, 0},
		{"PUT /v1/contacts/{id}/owner", desk.ContactsWrite, s.setOwner, true, 0},
		{"DELETE /v1/contacts/{id}/owner", desk.ContactsWrite, s.clearOwner, true, 0},
		{"GET /v1/contacts/{id}/identities", desk.ContactsRead, s.listIdentities, true, pageOf},
		{"GET /v1/contacts/{id}/history", desk.ContactsRead, s.listHistory, true, shortPageOf},
		{"GET /v1/contacts/{id}/export", desk.ContactsRead, s.exportContact, false, 0},
		{"DELETE /v1/contacts/{id}/identities", desk.ContactsWrite, s.removeIdentity, true, 0},
		{"POST /v1/contacts/{id}/merge", desk.ContactsMerge, s.merge, true, 0},
		{"GET /v1/merges", desk.ContactsRead, s.listMerges, false, pageOf},
		{"GET /v1/merges/{id}", desk.ContactsRead, s.getMerge, false, pageOf},
		{"POST /v1/merges/{id}/undo", desk.ContactsMerge, s.undoMerge, true, 0},
		{"GET /v1/conflicts", desk.ContactsRead, s.listConflicts, false, pageOf},
		{"GET /v1/conflicts/{id}", desk.ContactsRead, s.getConflict, false, 0},
		{"POST /v1/conflicts/{id}/resolve", desk.ContactsMerge, s.resolveConflict, true, 0},
		{"GET /v1/attributes", desk.AttributesRead, s.listAttributes, false, pageOf},
		{"POST /v1/attributes", desk.AttributesWrite, s.putAttribute, false, 0},
		{"DELETE /v1/attributes/{key}", desk.AttributesWrite, s.archiveAttribute, false, 0},
		{"GET /v1/contacts/{id}/conversations", desk.ConversationsRead, s.listContactConversations, false, shortPageOf},
		{"GET /v1/conversations", desk.ConversationsRead, s.listConversations, false, shortPageOf},
		{"POST /v1/conversations/outbound", desk.MessagesSend, s.send, false, 0},
		{"GET /v1/conversations/{id}", desk.ConversationsRead, s.getConversation, false, 0},
		{"GET /v1/conversations/{id}/messages", desk.ConversationsRead, s.listMessages, false, pageOf},
		{"POST /v1/conversations/{id}/messages", desk.MessagesSend, s.reply, false, 0},
		{"GET /v1/conversations/{id}/notes", desk.ConversationsRead, s.listNotes, false, pageOf},
		{"POST /v1/conversations/{id}/notes", desk.ConversationsWrite, s.addNote, false, 0},
		{"DELETE /v1/conversations/{id}/notes/{note_id}", desk.ConversationsWrite, s.deleteNote, false, 0},
		{"PUT /v1/conversations/{id}/assignee", desk.ConversationsWrite, s.setAssignee, false, 0},
		{"DELETE /v1/conversations/{id}/assignee", desk.ConversationsWrite, s.clearAssignee, false, 0},
		{"GET /v1/conversations/{id}/state", desk.ConversationsRead, s.getState, false, 0},
		{"PUT /v1/conversations/{id}/read", desk.ConversationsWrite, s.markRead, false, 0},
		{"GET /v1/inbox", desk.ConversationsRead, s.listInbox, false, shortPageOf},
		{"PUT /v1/conversations/{id}/status", desk.ConversationsWrite, s.setStatus, false, 0},
		{"GET /v1/attempts", desk.AttemptsRead, s.listAttempts, false, pageOf},
		{"GET /v1/attempts/{id}", desk.AttemptsRead, s.getAttempt, false, 0},
		{"POST /v1/attempts/{id}/release", desk.AttemptsWrite, s.releaseAttempt, false, 0},
		{"POST /v1/media", desk.MessagesSend, s.uploadMedia, false, 0},
		{"GET /v1/media/{id}", desk.ConversationsRead, s.getMedia, false, 0},
		{"DELETE /v1/media/{id}", desk.MessagesSend, s.deleteMedia, false, 0},
		{"GET /v1/media/{id}/content", desk.ConversationsRead, s.getContent, false, 0},
		{"GET /v1/templates", desk.TemplatesRead, s.listTemplates, false, pageOf},
		{"GET /v1/snippets", desk.TemplatesRead, s.listSnippets, false, pageOf},
		{"PUT /v1/snippets/{shortcut}", desk.SnippetsWrite, s.putSnippet, false, 0},
		{"DELETE /v1/snippets/{shortcut}", desk.SnippetsWrite, s.deleteSnippet, false, 0},
		{"GET /v1/segments", desk.ContactsRead, s.listSegments, false, pageOf},
		{"PUT /v1/segments/{key}", desk.SegmentsWrite, s.putSegment, false, 0},
		{"DELETE /v1/segments/{key}", desk.SegmentsWrite, s.deleteSegment, false, 0},
		{"GET /v1/channels", desk.ChannelsRead, s.listChannels, false, pageOf},
		{"GET /v1/channels/{id}", desk.ChannelsRead, s.getChannel, false, 0},
		{"GET /v1/channels/{id}/policy", desk.ChannelsRead, s.getChannelPolicy, false, 0},
		{"PUT /v1/channels/{id}/policy", desk.PolicyWrite, s.putChannelPolicy, false, 0},
		{"DELETE /v1/channels/{id}/policy", desk.PolicyWrite, s.deleteChannelPolicy, false, 0},
		{"GET /v1/channels/{id}/hours", desk.ChannelsRead, s.getHours, false, 0},
		{"GET /v1/policy", desk.ChannelsRead, s.getPolicy, false, 0},
		{"PUT /v1/policy", desk.PolicyWrite, s.putPolicy, false, 0},
		{"GET /v1/members", desk.MembersRead, s.listMembers, false, shortPageOf},
		{"PUT /v1/members/{id}/availability", desk.MembersWrite, s.setAvailability, false, 0},
		{"GET /v1/broadcasts", desk.BroadcastsRead, s.listBroadcasts, false, pageOf},
		{"POST /v1/broadcasts", desk.BroadcastsWrite, s.createBroadcast, false, 0},
		{"GET /v1/broadcasts/{id}", desk.BroadcastsRead, s.getBroadcast, false, 0},
		{"PATCH /v1/broadcasts/{id}", "", s.patchBroadcast, false, 0},
		{"DELETE /v1/broadcasts/{id}", desk.BroadcastsWrite, s.deleteBroadcast, false, 0},
		{"GET /v1/broadcasts/{id}/rows", desk.BroadcastsRead, s.listRows, false, pageOf},
		{"POST /v1/broadcasts/{id}/rows", desk.BroadcastsWrite, s.addRows, false, 0},
		{"DELETE /v1/broadcasts/{id}/rows", desk.BroadcastsWrite, s.clearRows, false, 0},
		{"POST /v1/broadcasts/{id}/check", desk.BroadcastsRead, s.checkBroadcast, false, 0},
		{"POST /v1/broadcasts/{id}/start", desk.BroadcastsSend, s.move(s.startBroadcast), false, 0},
		{"POST /v1/broadcasts/{id}/resume", desk.BroadcastsSend, s.move(s.resumeBroadcast), false, 0},
		{"POST /v1/broadcasts/{id}/unschedule", desk.BroadcastsWrite, s.move(s.unscheduleBroadcast), false, 0},
		{"POST /v1/broadcasts/{id}/pause", desk.BroadcastsWrite, s.move(s.pauseBroadcast), false, 0},
		{"POST /v1/broadcasts/{id}/cancel", desk.BroadcastsWrite, s.move(s.cancelBroadcast), false, 0},
		{"POST /v1/broadcasts/{id}/release", desk.AttemptsWrite, s.releaseBroadcast, false, 0},
		{"GET /v1/me", "", s.getMe, false, 0},
		{"GET /v1/events", desk.EventsRead, s.listEvents, false, 0},
		{"GET /v1/webhooks", desk.WebhooksRead, s.listWebhooks, false, shortPageOf},
		{"POST /v1/webhooks", desk.WebhooksWrite, s.addWebhook, false, 0},
		{"GET /v1/webhooks/{id}", desk.WebhooksRead, s.getWebhook, false, 0},
		{"PATCH /v1/webhooks/{id}", desk.WebhooksWrite, s.patchWebhook, false, 0},
		{"DELETE /v1/webhooks/{id}", desk.WebhooksWrite, s.deleteWebhook, false, 0},
		{"POST /v1/webhooks/{id}/rotate", desk.WebhooksWrite, s.rotateWebhook, false, 0},
		{"POST /v1/webhooks/{id}/ping", desk.WebhooksWrite, s.pingWebhook, false, 0},
		{"POST /v1/webhooks/{id}/replay", desk.WebhooksWrite, s.replayWebhook, false, 0},
		{"GET /v1/webhooks/{id}/deliveries", desk.WebhooksRead, s.listDeliveries, false, pageOf},
		{"POST /v1/webhooks/{id}/deliveries/{delivery_id}/redeliver", desk.WebhooksWrite, s.redeliver, false, 0},
	}
}
