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
		{"GET /live", desk.ConversationsRead, s.live},
		{"GET /inbox", desk.ConversationsRead, s.inbox},
		{"GET /inbox/{id}", desk.ConversationsRead, s.conversation},
		{"POST /inbox/{id}/assign", desk.ConversationsWrite, s.assign},
		{"POST /inbox/{id}/status", desk.ConversationsWrite, s.setStatus},
		{"POST /inbox/{id}/customer", desk.ConversationsWrite, s.writeAsCustomer},
	}
}
