package api

import "parley/desk"

// routes lists every endpoint under /v1, with the permission that it needs.
func (s *Server) routes() []route {
	return []route{
		{"POST /v1/contacts", desk.ContactsWrite, s.upsertContact},
		{"GET /v1/contacts", desk.ContactsRead, s.listContacts},
		{"POST /v1/contacts/batch", desk.ContactsWrite, s.batch},
		{"GET /v1/contacts/{id}", desk.ContactsRead, s.getContact},
		{"PATCH /v1/contacts/{id}", desk.ContactsWrite, s.patchContact},
		{"DELETE /v1/contacts/{id}", desk.ContactsWrite, s.deleteContact},
		{"PUT /v1/contacts/{id}/owner", desk.ContactsWrite, s.setOwner},
		{"DELETE /v1/contacts/{id}/owner", desk.ContactsWrite, s.clearOwner},
		{"GET /v1/contacts/{id}/identities", desk.ContactsRead, s.listIdentities},
		{"DELETE /v1/contacts/{id}/identities", desk.ContactsWrite, s.removeIdentity},
		{"GET /v1/attributes", desk.AttributesRead, s.listAttributes},
		{"POST /v1/attributes", desk.AttributesWrite, s.putAttribute},
		{"DELETE /v1/attributes/{key}", desk.AttributesWrite, s.archiveAttribute},
		{"GET /v1/members", desk.MembersRead, s.listMembers},
	}
}
