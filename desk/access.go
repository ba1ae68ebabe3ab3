package desk

import "time"

// How members sign in, and for how long (console.md, sessions).
const (
	LinkLife    = 10 * time.Minute    // a sign-in link is valid for so long; then the member has as long again to set a password
	SessionIdle = 7 * 24 * time.Hour  // a session without a request ends after this
	SessionLife = 30 * 24 * time.Hour // every session ends after this
	MaxSessions = 50                  // sessions of a member; one more ends the oldest
)
