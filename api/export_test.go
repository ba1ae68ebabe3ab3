package api

import "parley/desk"

// Routes lists the routes and what they need, for the tests that walk them.
func Routes() map[string]desk.Permission {
	list := map[string]desk.Permission{}
	for _, rt := range new(Server).routes() {
		list[rt.pattern] = rt.needs
	}
	return list
}

// Status is the status of an error type, or 0.
func Status(t desk.ErrorType) int { return status[t] }
