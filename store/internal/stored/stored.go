// Package stored is the Go code that both stores share: settings in memory, the kinds of
// rows in the directory, and errors.
//
//	stored.go    settings in memory, and the kinds of rows in the directory
//	feed.go      pages of the feed of events, and where a new webhook begins
//	keys.go      permissions of keys, as the second release can read them
//	attempts.go  pages of attempts
//	broadcasts.go counts of broadcasts, pages of rows
//	content.go   the content of messages as JSON
//	policy.go    reply policies as JSON
//	due.go       which inbound items are due
//	files.go     content of files in a directory
//	erased.go    hashes of messages of deleted people
//	room_unix.go the free room of a file system
//	room_windows.go the free room of a volume, on Windows
//	parts.go     a large group of operations in parts
//	migrations.go the steps of a schema
//	errors.go    errors
//	rules.go     rules of identities that another process may replace
package stored

import (
	"sync"

	"parley/desk"

	"github.com/go-json-experiment/json"
)

// The kinds of rows in the table directory. A row says to which workspace an id belongs.
const (
	Key     = "key"    // by the key's public id
	KeyID   = "key_id" // by the key's id
	Member  = "member"
	Channel = "channel"
	Webhook = "webhook"

	Email     = "email"      // a member, by its EmailRef
	Session   = "session"    // by the session's hash
	LoginLink = "login_link" // by the link's hash
)

// EmailRef returns the directory entry that finds a member by e-mail among all
// workspaces. It ends with the member's id.
func EmailRef(m *desk.Member) string {
	return desk.CanonicalEmail(m.Email) + " " + m.ID.String()
}

// EmailRange returns the range of the entries of an e-mail. The end is excluded.
func EmailRange(canonical string) (from, to string) { return canonical + " ", canonical + "!" }

// Entries lists a workspace's rows in the directory, by kind.
func Entries(s *desk.Settings) map[string][]string {
	entries := map[string][]string{}
	for _, k := range s.Keys() {
		entries[Key] = append(entries[Key], k.PublicID)
		entries[KeyID] = append(entries[KeyID], k.ID.String())
	}
	for _, m := range s.Members() {
		entries[Member] = append(entries[Member], m.ID.String())
		entries[Email] = append(entries[Email], EmailRef(m))
	}
	for _, c := range s.Channels() {
		entries[Channel] = append(entries[Channel], c.ID.String())
	}
	for _, w := range s.Webhooks() {
		entries[Webhook] = append(entries[Webhook], w.ID.String())
	}
	return entries
}

// JSON has the options with which values without columns of their own are stored. With
// these options, reading returns exactly the written value: a missing field is zero, and
// null is nil.
var JSON = json.JoinOptions(json.OmitZeroStructFields(true), json.FormatNilSliceAsNull(true))

// maxSettings limits how many workspaces' settings are kept in memory.
const maxSettings = 10_000

// Settings keeps the newest version of each workspace's settings that this process has
// read. Its zero value is empty.
type Settings struct {
	mu   sync.RWMutex
	byID map[desk.ID]*desk.Settings
}

// At returns the settings of a workspace if this version of them is in memory, otherwise
// nil. The caller's transaction has just read the version.
func (s *Settings) At(ws desk.ID, version int64) *desk.Settings {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if known := s.byID[ws]; known != nil && known.Version == version {
		return known
	}
	return nil
}

// Newest returns the newest settings of a workspace that are in memory, or nil. They may
// be out of date.
func (s *Settings) Newest(ws desk.ID) *desk.Settings {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byID[ws]
}

// Keep stores committed settings in memory.
func (s *Settings) Keep(settings *desk.Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil || len(s.byID) >= maxSettings {
		s.byID = map[desk.ID]*desk.Settings{}
	}
	s.byID[settings.ID] = settings
}

// QueuedAt is how the QueuedAt of an upload is stored: negative if it has people of a broadcast,
// because a server of an older release would take it for contacts.
func QueuedAt(u *desk.Upload) int64 {
	if u.Broadcast.IsZero() {
		return int64(u.QueuedAt)
	}
	return -int64(u.QueuedAt)
}
