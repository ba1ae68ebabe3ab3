package console

import (
	"slices"
	"strings"
	"time"

	"parley/app"
	"parley/desk"
)

// permissionWords are the words for permissions of keys.
var permissionWords = map[desk.Permission]string{
	desk.ContactsRead:       "Read contacts",
	desk.ContactsWrite:      "Create, change and delete contacts",
	desk.ContactsMerge:      "Merge contacts, undo that, and decide about conflicts",
	desk.AttributesRead:     "Read attributes",
	desk.AttributesWrite:    "Change attributes",
	desk.ConversationsRead:  "Read conversations and messages",
	desk.ConversationsWrite: "Assign, close and reopen conversations",
	desk.MessagesSend:       "Send messages",
	desk.TemplatesRead:      "Read templates",
	desk.ChannelsRead:       "Read channels",
	desk.MembersRead:        "Read members",
	desk.EventsRead:         "Read events",
	desk.WebhooksRead:       "Read webhooks",
	desk.WebhooksWrite:      "Change webhooks",
	desk.AttemptsRead:       "Read attempts to send",
	desk.AttemptsWrite:      "Settle attempts whose outcome is unknown",
	desk.PolicyWrite:        "Change the reply policy",
	desk.SnippetsWrite:      "Change saved replies",
	desk.SegmentsWrite:      "Change segments",
	desk.MembersWrite:       "Say which members are available",
	desk.BroadcastsRead:     "Read broadcasts",
	desk.BroadcastsWrite:    "Make, pause and cancel broadcasts",
	desk.BroadcastsSend:     "Start and resume broadcasts",
}

// A keyRow is a line of the list of keys.
type keyRow struct {
	ID             desk.ID
	Name, Text     string // prl_live_ab…
	Permissions    string
	Used, Made     moment
	Expires        moment
	Expired        bool
	Revoked        moment
	Holds          []desk.Permission
	Boxes          []permissionBox
	Presets        []presetLink
	Expiry         []choice
	ExpiryNow      string
	BadPermissions string
}

// A keyPreset is a set of permissions that a new key often needs.
type keyPreset struct {
	name, label string
	permissions []desk.Permission
}

// keyPresets are the presets in the form of a new key.
var keyPresets = []keyPreset{
	{"crm", "A CRM that writes contacts", []desk.Permission{desk.ContactsRead, desk.ContactsWrite, desk.AttributesRead, desk.MembersRead}},
	{"templates", "Sends templates", []desk.Permission{desk.MessagesSend, desk.TemplatesRead, desk.ChannelsRead, desk.AttemptsRead}},
	{"reads", "Reads all", readPermissions()},
}

// readPermissions returns the permissions that only read.
func readPermissions() (list []desk.Permission) {
	for _, p := range desk.Permissions {
		if strings.HasSuffix(string(p), ":read") {
			list = append(list, p)
		}
	}
	return list
}

// A presetLink is a link that ticks the permissions of a preset. It opens the page with
// these boxes ticked. The script ticks them without a new page.
type presetLink struct {
	Href, Label string
	Ticks       string // the permissions
	Here        bool
}

// A permissionBox is one permission in the form of a key.
type permissionBox struct {
	Value, Label string
	Ticked       bool
}

// keysData has a part of the keys: those in use, oldest first, and then those that have ended,
// newest first.
type keysData struct {
	Keys, Ended []keyRow
	AllEnded    int
	First, Next string
}

// keyRows is how many keys the list shows on a page.
const keyRows = 50

func (c *call) keyRow(k *desk.APIKey, uses map[desk.ID]desk.Time) keyRow {
	row := keyRow{ID: k.ID, Name: k.Name, Text: "prl_live_" + k.PublicID + "…", Used: c.when(uses[k.ID]), Made: c.when(k.CreatedAt), Expires: c.when(k.ExpiresAt), Revoked: c.when(k.RevokedAt),
		Expired: k.RevokedAt == 0 && !k.Valid(desk.TimeOf(c.now)), Holds: k.Permissions}
	switch n := len(k.Permissions); n {
	case len(desk.Permissions):
		row.Permissions = "All"
	case 1:
		row.Permissions = permissionWords[k.Permissions[0]]
	default:
		row.Permissions = count(n) + " of " + count(len(desk.Permissions))
	}
	return row
}

func (s *Server) keys(c *call) error {
	uses, err := s.app.Access.KeyUses(c.r.Context(), c.p)
	if err != nil {
		return err
	}
	// A page says with which key it ended, and in which list: a key may have ended since.
	all := c.p.Settings.Keys()
	place := func(id string) int {
		return slices.IndexFunc(all, func(k *desk.APIKey) bool { return k.ID.String() == id })
	}
	after, ended := place(c.query("after")), place(c.query("ended"))
	var data keysData
	var used, over []*desk.APIKey
	for i, k := range all {
		if k.Valid(desk.TimeOf(c.now)) {
			if i > after && ended < 0 {
				used = append(used, k)
			}
			continue
		}
		data.AllEnded++
		if ended < 0 || i < ended {
			over = append(over, k)
		}
	}
	slices.Reverse(over)
	if after >= 0 || ended >= 0 {
		data.First = "/settings/keys"
	}
	next := ""
	for i, k := range append(used, over...) {
		if i == keyRows {
			data.Next = next
			break
		}
		row := c.keyRow(k, uses)
		if i < len(used) {
			data.Keys, next = append(data.Keys, row), with("/settings/keys", "after", row.ID.String())
		} else {
			data.Ended, next = append(data.Ended, row), with("/settings/keys", "ended", row.ID.String())
		}
	}
	return c.show("keys", view{Title: "Keys", Data: data})
}

// boxes returns a box for each permission. The ticks come from the form if it was sent,
// otherwise from held.
func (c *call) boxes(held []desk.Permission) (list []permissionBox) {
	sent := c.form.list("permissions")
	for _, p := range desk.Permissions {
		ticked := slices.Contains(held, p)
		if c.form.values != nil {
			ticked = slices.Contains(sent, string(p))
		}
		list = append(list, permissionBox{string(p), permissionWords[p], ticked})
	}
	return list
}

const day = 24 * time.Hour

// lifetimes are the choices for the lifetime of a key.
var lifetimes = []struct {
	value, label string
	long         time.Duration
}{{"never", "Never", 0}, {"30", "In 30 days", 30 * day}, {"90", "In 90 days", 90 * day}, {"365", "In a year", 365 * day}}

func expiryChoices(first ...choice) []choice {
	for _, l := range lifetimes {
		first = append(first, choice{Value: l.value, Label: l.label})
	}
	return first
}

// keyEdit reads the form of a key.
func (c *call) keyEdit() (edit app.KeyEdit, err error) {
	name, permissions := c.form.text("name"), strings.Join(c.form.list("permissions"), ",")
	edit.Name, edit.Permissions = &name, &permissions
	for _, l := range lifetimes {
		if c.form.text("expires") == l.value {
			edit.Expires = &l.long
		}
	}
	if permissions == "" {
		err = desk.Invalidf("tick at least one permission")
	}
	return edit, err
}

// newKeyView is the form of a new key. Only the permissions of the preset in the URL are
// ticked.
func (c *call) newKeyView() view {
	var ticked []desk.Permission
	var links []presetLink
	for _, p := range keyPresets {
		words := make([]string, len(p.permissions))
		for i, permission := range p.permissions {
			words[i] = string(permission)
		}
		here := p.name == c.query("preset")
		if here {
			ticked = p.permissions
		}
		links = append(links, presetLink{"/settings/keys/new?preset=" + p.name, p.label, strings.Join(words, " "), here})
	}
	return view{Title: "New key", Data: keyRow{Boxes: c.boxes(ticked), Presets: links, Expiry: expiryChoices(), ExpiryNow: "never"}}
}

func (s *Server) newKey(c *call) error { return c.show("key-new", c.newKeyView()) }

// madeKey is the page of a new key. The key is shown once.
type madeKey struct{ Name, Text, Curl string }

func (s *Server) makeKey(c *call) error {
	edit, err := c.keyEdit()
	var text string
	var k desk.APIKey
	if err == nil {
		text, k, err = s.app.CreateKey(c.r.Context(), c.p, edit)
	}
	if err != nil {
		return c.again("key-new", c.newKeyView(), err)
	}
	path := "/v1/me"
	if slices.Contains(k.Permissions, desk.ContactsRead) {
		path = "/v1/contacts?limit=1"
	}
	return c.show("key-made", view{Title: "New key", Data: madeKey{k.Name, text, "curl -H 'Authorization: Bearer " + text + "' '" + c.base() + path + "'"}})
}

func (c *call) aKey() (*desk.APIKey, error) {
	if k := c.p.Settings.Key(c.id("id")); k != nil {
		return k, nil
	}
	return nil, errNotHere
}

func (c *call) keyView(k *desk.APIKey) (view, error) {
	uses, err := c.s.app.Access.KeyUses(c.r.Context(), c.p)
	row := c.keyRow(k, uses)
	row.Boxes, row.ExpiryNow = c.boxes(k.Permissions), "keep"
	keep := "Never, as now"
	if row.Expires.Text != "" {
		keep = "As now: " + c.named(k.ExpiresAt)
	}
	row.Expiry = expiryChoices(choice{Value: "keep", Label: keep})
	return view{Title: k.Name, Data: row}, err
}

func (s *Server) key(c *call) error {
	k, err := c.aKey()
	if err != nil {
		return err
	}
	v, err := c.keyView(k)
	if err != nil {
		return err
	}
	return c.show("key", v)
}

func (s *Server) editKey(c *call) error {
	k, err := c.aKey()
	if err != nil {
		return err
	}
	edit, err := c.keyEdit()
	if err == nil {
		_, err = s.app.EditKey(c.r.Context(), c.p, k.ID, edit)
	}
	if err != nil {
		v, e := c.keyView(k)
		if e != nil {
			return e
		}
		return c.again("key", v, err)
	}
	return c.see("/settings/keys", "saved")
}

func (c *call) revocation(k *desk.APIKey) (confirmation, error) {
	path := "/settings/keys/" + k.ID.String()
	v := confirmation{Heading: "Revoke " + k.Name + "?", Action: path + "/revoke", Button: "Revoke", Back: path,
		Text: []string{"Programs that use this key are refused from their next request on. It can't be undone; make a new key instead."}}
	return v, c.addPaused(&v, desk.Actor{Kind: desk.ByKey, ID: k.ID})
}

func (s *Server) askRevocation(c *call) error {
	k, err := c.aKey()
	if err != nil {
		return err
	}
	v, err := c.revocation(k)
	if err != nil {
		return err
	}
	return c.confirm(v)
}

func (s *Server) revokeKey(c *call) error {
	k, err := c.aKey()
	if err == nil {
		_, err = s.app.RevokeKey(c.r.Context(), c.p, k.ID)
	}
	if err != nil {
		return err
	}
	return c.see("/settings/keys", "revoked")
}
