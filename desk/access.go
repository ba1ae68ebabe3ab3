package desk

import "time"

// How members sign in, and for how long (console.md, sessions).
const (
	LinkLife    = 10 * time.Minute    // of a sign-in link; and for so long one who used it may set a password
	SessionIdle = 7 * 24 * time.Hour  // without a request
	SessionLife = 30 * 24 * time.Hour // in all
	MaxSessions = 50                  // of a member; a further one ends the oldest
)
