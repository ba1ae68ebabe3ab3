package console

import "parley/desk"

// A route is one page or action. A route without a permission is open to anybody.
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
		{"GET /live", desk.ConversationsRead, s.live},
		{"GET /inbox", desk.ConversationsRead, s.inbox},
		{"GET /inbox/{id}", desk.ConversationsRead, s.conversation},
		{"POST /inbox/{id}/assign", desk.ConversationsWrite, s.assign},
		{"POST /inbox/{id}/status", desk.ConversationsWrite, s.setStatus},
		{"POST /inbox/{id}/customer", desk.Simulate, s.writeAsCustomer},
		{"GET /templates", desk.TemplatesRead, s.templates},
		{"GET /templates/{channel}/new", desk.Administer, s.newTemplate},
		{"POST /templates/{channel}/new", desk.Administer, s.putTemplate},
		{"POST /templates/{channel}/fetch", desk.Administer, s.fetchTemplates},
		{"GET /templates/{channel}/{name}/{language}", desk.TemplatesRead, s.templatePage},
		{"POST /templates/{channel}/{name}/{language}", desk.Administer, s.bindTemplate},
		{"GET /send", desk.MessagesSend, s.sendForm},
		{"POST /send", desk.MessagesSend, s.send},
		{"GET /settings/events", desk.Administer, s.events},
		{"GET /sends", desk.AttemptsRead, s.sends},
		{"GET /sends/{id}", desk.AttemptsRead, s.attempt},
		{"POST /sends/{id}/release", desk.Administer, s.releaseAttempt},
		{"GET /contacts", desk.ContactsRead, s.contacts},
		{"GET /contacts/new", desk.ContactsWrite, s.newContact},
		{"POST /contacts/new", desk.ContactsWrite, s.createContact},
		{"GET /contacts/{id}", desk.ContactsRead, s.contact},
		{"POST /contacts/{id}", desk.ContactsWrite, s.saveContact},
		{"POST /contacts/{id}/remove", desk.ContactsWrite, s.removeIdentity},
		{"GET /contacts/{id}/delete", desk.ContactsDelete, s.deletingContact},
		{"POST /contacts/{id}/delete", desk.ContactsDelete, s.deleteContact},
	}
}
