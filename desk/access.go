package desk

import "time"

// How members sign in, and for how long (console.md, sessions).
const (
	LinkLife    = 10 * time.Minute    // how long a sign-in link is valid; then the member has the same time again to set a password
	SessionIdle = 7 * 24 * time.Hour  // a session ends after this time without a request
	SessionLife = 30 * 24 * time.Hour // every session ends after this
	MaxSessions = 50                  // sessions of a member; a further one ends the oldest
)
