package console

import (
	"net/http"
	"strings"

	"parley/desk"
)

// A route is one page or action. A route without a permission is open to everybody.
type route struct {
	pattern string
	needs   desk.Permission
	do      func(*call) error
}

// routes lists every page and action.
func (s *Server) routes() []route {
	return []route{
		{"GET /{$}", "", s.home},
		{"GET /sign-in", "", s.signInPage},
		{"POST /sign-in", "", s.signIn},
		{"GET /sign-in/{token}", "", s.linkPage},
		{"POST /sign-in/{token}", "", s.spendLink},
		{"GET /choose", anyone, s.choosePage},
		{"POST /choose", anyone, s.choose},
		{"POST /sign-out", anyone, s.signOut},
		{"GET /me", anyone, s.me},
		{"POST /me", anyone, s.rename},
		{"POST /me/look", anyone, s.look},
		{"POST /me/availability", anyone, s.setAvailable},
		{"GET /me/news", desk.ConversationsRead, s.news},
		{"POST /me/password", anyone, s.setPassword},
		{"POST /me/sign-out", anyone, s.signOutEverywhere},
		{"GET /settings", desk.Administer, s.workspace},
		{"POST /settings", desk.Administer, s.editWorkspace},
		{"GET /settings/members", desk.Administer, s.members},
		{"GET /settings/members/new", desk.Administer, s.newMember},
		{"POST /settings/members/new", desk.Administer, s.addMember},
		{"GET /settings/members/{id}", desk.Administer, s.member},
		{"POST /settings/members/{id}", desk.Administer, s.editMember},
		{"POST /settings/members/{id}/link", desk.Administer, s.makeLink},
		{"POST /settings/members/{id}/sign-out", desk.Administer, s.signOutMember},
		{"POST /settings/members/{id}/availability", desk.MembersWrite, s.setMemberAvailable},
		{"GET /settings/members/{id}/remove", desk.Administer, s.askRemoval},
		{"POST /settings/members/{id}/remove", desk.Administer, s.removeMember},
		{"GET /settings/keys", desk.Administer, s.keys},
		{"GET /settings/keys/new", desk.Administer, s.newKey},
		{"POST /settings/keys/new", desk.Administer, s.makeKey},
		{"GET /settings/keys/{id}", desk.Administer, s.key},
		{"POST /settings/keys/{id}", desk.Administer, s.editKey},
		{"GET /settings/keys/{id}/revoke", desk.Administer, s.askRevocation},
		{"POST /settings/keys/{id}/revoke", desk.Administer, s.revokeKey},
		{"GET /settings/attributes", desk.Administer, s.attributes},
		{"GET /settings/attributes/new-attribute", desk.Administer, s.newAttribute},
		{"POST /settings/attributes/new-attribute", desk.Administer, s.addAttribute},
		{"GET /settings/attributes/{key}", desk.Administer, s.attribute},
		{"POST /settings/attributes/{key}", desk.Administer, s.editAttribute},
		{"POST /settings/attributes/{key}/move", desk.Administer, s.moveAttribute},
		{"GET /settings/attributes/{key}/archive", desk.Administer, s.askArchival},
		{"POST /settings/attributes/{key}/archive", desk.Administer, s.archiveAttribute},
		{"POST /settings/attributes/{key}/restore", desk.Administer, s.restoreAttribute},
		{"GET /settings/channels", desk.Administer, s.channels},
		{"GET /settings/channels/new", desk.Administer, s.newChannel},
		{"POST /settings/channels/new", desk.Administer, s.addChannel},
		{"GET /settings/channels/new-sandbox", desk.Administer, s.newSandbox},
		{"POST /settings/channels/new-sandbox", desk.Administer, s.addSandbox},
		{"GET /settings/channels/{id}", desk.Administer, s.channel},
		{"POST /settings/channels/{id}", desk.Administer, s.editChannel},
		{"POST /settings/channels/{id}/enable", desk.Administer, s.enableChannel},
		{"POST /settings/channels/{id}/check", desk.Administer, s.checkChannel},
		{"POST /settings/channels/{id}/customer", desk.Administer, s.writeIn},
		{"GET /settings/segments", desk.SegmentsWrite, s.segments},
		{"GET /settings/segments/new", desk.SegmentsWrite, s.newSegment},
		{"POST /settings/segments/new", desk.SegmentsWrite, s.addSegment},
		{"GET /settings/segments/{key}/edit", desk.SegmentsWrite, s.segment},
		{"POST /settings/segments/{key}/edit", desk.SegmentsWrite, s.editSegment},
		{"GET /settings/segments/{key}/delete", desk.SegmentsWrite, s.askSegmentDeletion},
		{"POST /settings/segments/{key}/delete", desk.SegmentsWrite, s.deleteSegment},
		{"GET /settings/snippets", desk.SnippetsWrite, s.snippets},
		{"GET /settings/snippets/new", desk.SnippetsWrite, s.newSnippet},
		{"POST /settings/snippets/new", desk.SnippetsWrite, s.addSnippet},
		{"GET /settings/snippets/{shortcut}/edit", desk.SnippetsWrite, s.snippet},
		{"POST /settings/snippets/{shortcut}/edit", desk.SnippetsWrite, s.editSnippet},
		{"GET /settings/snippets/{shortcut}/delete", desk.SnippetsWrite, s.askSnippetDeletion},
		{"POST /settings/snippets/{shortcut}/delete", desk.SnippetsWrite, s.deleteSnippet},
		{"GET /settings/policy", desk.PolicyWrite, s.policy},
		{"POST /settings/policy", desk.PolicyWrite, s.savePolicy},
		{"GET /settings/policy/{id}", desk.PolicyWrite, s.policy},
		{"POST /settings/policy/{id}", desk.PolicyWrite, s.savePolicy},
		{"GET /settings/policy/{id}/remove", desk.PolicyWrite, s.askPolicyRemoval},
		{"POST /settings/policy/{id}/remove", desk.PolicyWrite, s.removePolicy},
		{"GET /settings/webhooks", desk.Administer, s.webhooks},
		{"GET /settings/webhooks/new", desk.Administer, s.newWebhook},
		{"POST /settings/webhooks/new", desk.Administer, s.addWebhook},
		{"GET /settings/webhooks/{id}", desk.Administer, s.webhook},
		{"POST /settings/webhooks/{id}", desk.Administer, s.editWebhook},
		{"POST /settings/webhooks/{id}/enable", desk.Administer, s.enableWebhook},
		{"POST /settings/webhooks/{id}/ping", desk.Administer, s.pingWebhook},
		{"GET /settings/webhooks/{id}/rotate", desk.Administer, s.askRotation},
		{"POST /settings/webhooks/{id}/rotate", desk.Administer, s.rotateWebhook},
		{"GET /settings/webhooks/{id}/replay", desk.Administer, s.askReplay},
		{"POST /settings/webhooks/{id}/replay", desk.Administer, s.replayWebhook},
		{"GET /settings/webhooks/{id}/remove", desk.Administer, s.askWebhookRemoval},
		{"POST /settings/webhooks/{id}/remove", desk.Administer, s.removeWebhook},
		{"GET /settings/webhooks/{id}/deliveries/{delivery}", desk.Administer, s.delivery},
		{"POST /settings/webhooks/{id}/deliveries/{delivery}", desk.Administer, s.redeliver},
		{"GET /live", desk.ConversationsRead, s.live},
		{"GET /inbox", desk.ConversationsRead, s.inbox},
		{"GET /inbox/{id}", desk.ConversationsRead, s.conversation},
		{"GET /inbox/{id}/notes", desk.ConversationsRead, s.notes},
		{"POST /inbox/{id}/notes", desk.ConversationsWrite, s.addNote},
		{"GET /inbox/{id}/notes/{note}/delete", desk.ConversationsWrite, s.askNoteDeletion},
		{"POST /inbox/{id}/notes/{note}/delete", desk.ConversationsWrite, s.deleteNote},
		{"GET /media/{id}", desk.ConversationsRead, s.media},
		{"POST /inbox/{id}/assign", desk.ConversationsWrite, s.assign},
		{"POST /inbox/{id}/status", desk.ConversationsWrite, s.setStatus},
		{"POST /inbox/{id}/reply", desk.MessagesSend, s.reply},
		{"POST /inbox/{id}/person", desk.ContactsWrite, s.editPerson},
		{"POST /inbox/{id}/read", desk.ConversationsWrite, s.markRead},
		{"POST /inbox/{id}/customer", desk.Simulate, s.writeAsCustomer},
		{"GET /templates", desk.TemplatesRead, s.templates},
		{"GET /templates/{channel}/new", desk.Administer, s.newTemplate},
		{"POST /templates/{channel}/new", desk.Administer, s.putTemplate},
		{"POST /templates/{channel}/fetch", desk.Administer, s.fetchTemplates},
		{"GET /templates/{channel}/{name}/{language}", desk.TemplatesRead, s.templatePage},
		{"POST /templates/{channel}/{name}/{language}", desk.Administer, s.bindTemplate},
		{"GET /send", desk.MessagesSend, s.sendForm},
		{"POST /send", desk.MessagesSend, s.send},
		{"GET /broadcasts", desk.BroadcastsRead, s.broadcasts},
		{"GET /broadcasts/new", desk.BroadcastsWrite, s.newBroadcast},
		{"POST /broadcasts/new", desk.BroadcastsWrite, s.makeBroadcast},
		{"GET /broadcasts/{id}", desk.BroadcastsRead, s.broadcast},
		{"GET /broadcasts/{id}/edit", desk.BroadcastsSend, s.askBroadcastEdit},
		{"POST /broadcasts/{id}/edit", desk.BroadcastsSend, s.editBroadcast},
		{"GET /broadcasts/{id}/people", desk.BroadcastsWrite, s.broadcastPeople},
		{"POST /broadcasts/{id}/people", desk.BroadcastsWrite, s.addPeople},
		{"GET /broadcasts/{id}/people/file", desk.BroadcastsRead, s.peopleFile},
		{"GET /broadcasts/{id}/import", desk.Administer, s.imports},
		{"POST /broadcasts/{id}/import", desk.Administer, s.uploadImport},
		{"GET /broadcasts/{id}/audience", desk.BroadcastsWrite, s.broadcastAudience},
		{"POST /broadcasts/{id}/audience", desk.BroadcastsWrite, s.setAudience},
		{"GET /broadcasts/{id}/people/remove", desk.BroadcastsWrite, s.askPeopleRemoval},
		{"POST /broadcasts/{id}/people/remove", desk.BroadcastsWrite, s.removePeople},
		{"GET /broadcasts/{id}/check", desk.BroadcastsWrite, s.checkBroadcast},
		{"POST /broadcasts/{id}/check", desk.BroadcastsWrite, s.checkBroadcast},
		{"GET /broadcasts/{id}/start", desk.BroadcastsSend, s.askBroadcastStart},
		{"POST /broadcasts/{id}/start", desk.BroadcastsSend, s.startBroadcast},
		{"POST /broadcasts/{id}/pause", desk.BroadcastsWrite, s.pauseBroadcast},
		{"GET /broadcasts/{id}/resume", desk.BroadcastsSend, s.askBroadcastResume},
		{"POST /broadcasts/{id}/resume", desk.BroadcastsSend, s.resumeBroadcast},
		{"POST /broadcasts/{id}/unschedule", desk.BroadcastsWrite, s.unscheduleBroadcast},
		{"GET /broadcasts/{id}/cancel", desk.BroadcastsWrite, s.askBroadcastCancel},
		{"POST /broadcasts/{id}/cancel", desk.BroadcastsWrite, s.cancelBroadcast},
		{"POST /broadcasts/{id}/copy", desk.BroadcastsWrite, s.copyBroadcast},
		{"GET /broadcasts/{id}/delete", desk.BroadcastsWrite, s.askBroadcastDeletion},
		{"POST /broadcasts/{id}/delete", desk.BroadcastsWrite, s.deleteBroadcast},
		{"GET /broadcasts/{id}/release", desk.AttemptsWrite, s.askBroadcastRelease},
		{"POST /broadcasts/{id}/release", desk.AttemptsWrite, s.releaseBroadcast},
		{"GET /settings/events", desk.Administer, s.events},
		{"GET /overview", desk.ConversationsRead, s.overview},
		{"GET /sends", desk.AttemptsRead, s.sends},
		{"GET /sends/release", desk.AttemptsWrite, s.askReleases},
		{"POST /sends/release", desk.AttemptsWrite, s.releaseMany},
		{"GET /sends/{id}", desk.AttemptsRead, s.attempt},
		{"POST /sends/{id}/release", desk.AttemptsWrite, s.releaseAttempt},
		{"GET /search", desk.ContactsRead, s.search},
		{"GET /contacts", desk.ContactsRead, s.contacts},
		{"GET /contacts/new", desk.ContactsWrite, s.newContact},
		{"POST /contacts/new", desk.ContactsWrite, s.createContact},
		{"GET /contacts/import", desk.Administer, s.imports},
		{"POST /contacts/import", desk.Administer, s.uploadImport},
		{"GET /contacts/import/{id}/{$}", desk.Administer, s.importPage},
		{"POST /contacts/import/{id}/{$}", desk.Administer, s.startImport},
		{"GET /contacts/import/{id}/stop", desk.Administer, s.askImportStop},
		{"POST /contacts/import/{id}/stop", desk.Administer, s.stopImport},
		{"GET /contacts/import/{id}/rejected", desk.Administer, s.rejectedRows},
		{"GET /contacts/export", desk.Administer, s.exports},
		{"GET /contacts/export/file", desk.Administer, s.exportFile},
		{"GET /conflicts", desk.ContactsRead, s.conflicts},
		{"GET /conflicts/{id}", desk.ContactsRead, s.conflict},
		{"GET /conflicts/{id}/decide", desk.ContactsMerge, s.askDecision},
		{"POST /conflicts/{id}/decide", desk.ContactsMerge, s.decide},
		{"GET /contacts/{id}", desk.ContactsRead, s.contact},
		{"POST /contacts/{id}", desk.ContactsWrite, s.saveContact},
		{"POST /contacts/{id}/remove", desk.ContactsWrite, s.removeIdentity},
		{"GET /contacts/{id}/merge", desk.ContactsMerge, s.askMerge},
		{"POST /contacts/{id}/merge", desk.ContactsMerge, s.merge},
		{"GET /contacts/merges/{id}/undo", desk.ContactsMerge, s.askUndo},
		{"POST /contacts/merges/{id}/undo", desk.ContactsMerge, s.undoMerge},
		{"GET /contacts/{id}/export", desk.Administer, s.exportContact},
		{"GET /contacts/{id}/delete", desk.ContactsDelete, s.deletingContact},
		{"POST /contacts/{id}/delete", desk.ContactsDelete, s.deleteContact},
	}
}

// withFile lists the actions whose form may have a file.
var withFile = map[string]bool{"POST /inbox/{id}/reply": true, "POST /inbox/{id}/customer": true, "POST /send": true, "POST /contacts/import": true,
	"POST /broadcasts/{id}/import": true,
	"POST /broadcasts/new":         true, "POST /broadcasts/{id}/edit": true}

// streams lists the pages that are sent piece by piece.
var streams = map[string]bool{"GET /live": true, "GET /media/{id}": true, "GET /contacts/import/{id}/rejected": true, "GET /contacts/export/file": true, "GET /broadcasts/{id}/people/file": true}

// waits lists the forms whose handler waits for a provider, an endpoint or a file. Such a
// handler takes a turn only when it has to make a page. Otherwise a slow provider would
// block all pages.
var waits = map[string]bool{
	"POST /inbox/{id}/reply": true, "POST /send": true, "POST /settings/channels/new": true, "POST /settings/channels/{id}": true,
	"POST /settings/channels/{id}/check": true, "POST /settings/webhooks/{id}/ping": true, "POST /templates/{channel}/fetch": true,
	"POST /broadcasts/new": true, "POST /broadcasts/{id}/edit": true,
}

// pagesAfterSignIn returns a mux of the pages to which a sign-in may lead.
func pagesAfterSignIn(routes []route) *http.ServeMux {
	mux := http.NewServeMux()
	for _, rt := range routes {
		if rt.needs != "" && strings.HasPrefix(rt.pattern, "GET /") && rt.pattern != "GET /live" && rt.pattern != "GET /choose" {
			mux.Handle(rt.pattern, http.NotFoundHandler())
		}
	}
	return mux
}
