package console

import (
	"net/url"
	"strings"

	"parley/app/feed"
	"parley/desk"
)

// An eventsPage is the log of events.
type eventsPage struct {
	Filter      *field
	Rows        []eventRow
	First, Next string
	Empty       nothing
}

// An eventRow is one event: the actor, the action and the record.
type eventRow struct {
	Number     int64
	Who, What  string
	Name, Href string // of the record; Href is "" if the record has no page
	Changed    string // the names of the changed fields, never their values
	At         moment
}

// ofSettings is the filter for events of settings (the audit).
const ofSettings = "settings"

// eventFilters are the choices of the filter.
var eventFilters = []choice{
	{Value: "", Label: "Everything"}, {Value: ofSettings, Label: "Settings"}, {Value: "contact", Label: "Contacts"}, {Value: "merge", Label: "Merges"}, {Value: "conflict", Label: "Conflicts"}, {Value: "conversation", Label: "Conversations"},
	{Value: "message", Label: "Messages"}, {Value: "note", Label: "Notes"}, {Value: "send", Label: "Sends"}, {Value: "template", Label: "Templates"}, {Value: "broadcast", Label: "Broadcasts"}, {Value: "snippet", Label: "Saved replies"}, {Value: "segment", Label: "Segments"}, {Value: "attribute", Label: "Attributes"}, {Value: "channel", Label: "Channels"},
	{Value: "policy", Label: "Reply policy"}, {Value: "member", Label: "Members"}, {Value: "key", Label: "Keys"}, {Value: "webhook", Label: "Webhooks"}, {Value: "workspace", Label: "Workspace"},
}

// eventTypes returns the event types of a filter, nil for all types.
func eventTypes(filter string) (list []desk.EventType) {
	if filter == ofSettings {
		return desk.SettingsTypes()
	}
	for _, t := range desk.EventTypes {
		if t.Kind() == filter {
			list = append(list, t)
		}
	}
	return list
}

// eventWords are the words for types of events.
var eventWords = map[desk.EventType]string{
	desk.ContactCreated:        "created the contact",
	desk.ContactUpdated:        "changed the contact",
	desk.ContactDeleted:        "deleted a contact",
	desk.ContactOptedOut:       "noted the opt-out of",
	desk.ContactOptedIn:        "noted the opt-in of",
	desk.MergeCreated:          "merged another contact into",
	desk.ConflictCreated:       "met a conflict between contacts",
	desk.ConflictUpdated:       "changed a conflict between contacts",
	desk.MergeUndone:           "undid a merge into",
	desk.ConversationCreated:   "opened a conversation with",
	desk.ConversationUpdated:   "changed the conversation with",
	desk.MessageReceived:       "received a message of",
	desk.MessageSent:           "sent a message to",
	desk.MessageUpdated:        "changed a message of",
	desk.MessageDelivered:      "delivered a message to",
	desk.MessageRead:           "noted that a message was read by",
	desk.MessageFailed:         "did not deliver a message to",
	desk.NoteCreated:           "wrote a note on",
	desk.NoteDeleted:           "deleted a note on",
	desk.SendInDoubt:           "does not know whether a message reached",
	desk.SendSettled:           "settled whether a message reached",
	desk.TemplateCreated:       "added the template",
	desk.TemplateUpdated:       "changed the template",
	desk.TemplateDeleted:       "removed the template",
	desk.BroadcastCreated:      "made the broadcast",
	desk.BroadcastUpdated:      "changed the broadcast",
	desk.BroadcastDeletedEvent: "deleted a broadcast",
	desk.SnippetCreated:        "added the saved reply",
	desk.SnippetUpdated:        "changed the saved reply",
	desk.SnippetDeleted:        "removed the saved reply",
	desk.SegmentCreated:        "added the segment",
	desk.SegmentUpdated:        "changed the segment",
	desk.SegmentDeleted:        "removed the segment",
	desk.AttributeCreated:      "added the attribute",
	desk.AttributeUpdated:      "changed the attribute",
	desk.ChannelCreated:        "added the channel",
	desk.ChannelUpdated:        "changed the channel",
	desk.PolicyUpdated:         "changed the reply policy",
	desk.MemberCreated:         "added the member",
	desk.MemberUpdated:         "changed the member",
	desk.MemberDeleted:         "removed a member",
	desk.KeyCreated:            "made the key",
	desk.KeyUpdated:            "changed the key",
	desk.WorkspaceUpdated:      "changed the workspace",
	desk.WebhookCreated:        "added the webhook",
	desk.WebhookUpdated:        "changed the webhook",
	desk.WebhookDeleted:        "removed a webhook",
	desk.WebhookDisabled:       "turned off the webhook",
}

func (s *Server) events(c *call) error {
	filter, query := c.query("types"), ""
	types := eventTypes(filter)
	if types == nil {
		filter = ""
	}
	page := eventsPage{
		Filter: c.form.Field("types", "Show", "", filter).Of(eventFilters),
		Empty:  nothing{Title: "Nothing happened yet", Text: "Who changed what will be here, as long as events are kept."},
	}
	if filter != "" {
		query = "?types=" + url.QueryEscape(filter)
		page.Empty = nothing{"Nothing of this kind here", "The log goes back as far as events are kept.", "/settings/events", "See everything"}
	}
	var log feed.Log
	after, err := c.fromCursor(func(after string) (err error) {
		log, err = s.app.Feed.Log(c.r.Context(), c.p, types, after, pageRows)
		return err
	})
	if err != nil {
		return err
	}
	if page.Rows, err = c.eventRows(log.Events); err != nil {
		return err
	}
	if after != "" {
		page.First = "/settings/events" + query
	}
	if log.Next != "" {
		page.Next = "/settings/events" + with(query, "after", log.Next)
		page.Empty = nothing{Title: "Nothing of this kind here", Text: "There may be some further back."}
	}
	return c.show("events", view{Title: "Log", Data: page})
}

func (c *call) eventRows(events []desk.FeedEvent) ([]eventRow, error) {
	var ids []desk.ID
	for i := range events {
		if _, contact := events[i].Of(); !contact.IsZero() {
			ids = append(ids, contact)
		}
	}
	people, err := c.s.app.ContactsByID(c.r.Context(), c.p, ids)
	if err != nil {
		return nil, err
	}
	broadcasts, err := c.broadcastsOf(events)
	if err != nil {
		return nil, err
	}
	rows := make([]eventRow, len(events))
	for i := range events {
		e := &events[i]
		rows[i] = eventRow{Number: e.Place.Seq, Who: capital(c.actorName(e.Actor)), What: eventWords[e.Type], Changed: fieldWords(e.Changed), At: c.when(e.At)}
		rows[i].Name, rows[i].Href = c.eventRecord(e, people, broadcasts)
	}
	return rows, nil
}

// broadcastsOf reads the broadcasts that events are about, by id. One that was deleted is nil.
func (c *call) broadcastsOf(events []desk.FeedEvent) (map[desk.ID]*desk.Broadcast, error) {
	list := map[desk.ID]*desk.Broadcast{}
	for i := range events {
		e := &events[i]
		if _, known := list[e.Subject]; known || e.Type.Kind() != "broadcast" {
			continue
		}
		b, err := c.s.app.Broadcasts.Get(c.r.Context(), c.p, e.Subject)
		if err != nil && !desk.IsType(err, desk.NotFound) {
			return nil, err
		}
		list[e.Subject] = b
	}
	return list, nil
}

// eventRecord returns the name of the record of an event, and the path of its page.
func (c *call) eventRecord(e *desk.FeedEvent, people map[desk.ID]*desk.Contact, broadcasts map[desk.ID]*desk.Broadcast) (name, href string) {
	s := c.p.Settings
	conversation, contact := e.Of()
	switch e.Type.Kind() {
	case "contact", "merge":
		if e.Type == desk.ContactDeleted {
			return "", ""
		}
		if people[contact] == nil {
			return "somebody who was deleted", ""
		}
		return nameOf(people[contact]), "/contacts/" + contact.String()
	case "conversation", "message", "note":
		if people[contact] == nil {
			return "somebody who was deleted", ""
		}
		return nameOf(people[contact]), "/inbox/" + conversation.String()
	case "send":
		if people[contact] == nil { // deleted, or not created before the send
			return "somebody", "/sends/" + e.Subject.String()
		}
		return nameOf(people[contact]), "/sends/" + e.Subject.String()
	case "template":
		channel, name, language := e.TemplateKey()
		return name + " (" + language + ")", "/templates/" + channel.String() + "/" + url.PathEscape(name) + "/" + url.PathEscape(language)
	case "broadcast":
		if b := broadcasts[e.Subject]; b != nil {
			return b.Name, broadcastPath(b.ID)
		}
		if e.Type != desk.BroadcastDeletedEvent {
			return "that was deleted", ""
		}
	case "snippet":
		if e.Type == desk.SnippetDeleted {
			return e.Key, ""
		}
		return e.Key, snippetPath(e.Key) + "/edit"
	case "segment":
		if e.Type == desk.SegmentDeleted {
			return e.Key, ""
		}
		return e.Key, segmentPath(e.Key) + "/edit"
	case "attribute":
		if a := s.Attributes[e.Key]; a != nil {
			return a.Label, "/settings/attributes"
		}
		return e.Key, ""
	case "channel":
		if v := s.Channel(e.Subject); v != nil {
			return channelName(s, v, true), "/settings/channels/" + v.ID.String()
		}
	case "policy":
		if v := s.Channel(e.Subject); v != nil {
			return "of " + channelName(s, v, true), policyPath(v.ID)
		}
		return "of the workspace", policyPath(desk.ID{})
	case "member":
		if m := s.Member(e.Subject); m != nil {
			return m.Name, "/settings/members"
		}
		if e.Type != desk.MemberDeleted {
			return "a former member", ""
		}
	case "key":
		if k := s.Key(e.Subject); k != nil {
			return k.Name, "/settings/keys/" + k.ID.String()
		}
	case "webhook":
		if w := s.Webhook(e.Subject); w != nil {
			return hostOf(w.URL), "/settings/webhooks/" + w.ID.String()
		}
		if e.Type != desk.WebhookDeleted {
			return "that was removed", ""
		}
	}
	return "", ""
}

// hostOf returns only the host of a URL: the path may be secret.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return ""
}

// eventFields are the words for fields with unclear names.
var eventFields = map[string]string{
	"assigned_member_id": "assignee", "assigned_via": "how it was assigned", "external_id": "own id", "link": "a sign-in link was made", "password": "a password was set",
	"sendable": "whether it can be sent", "external_ids": "how own ids change",
}

// fieldWords returns the names of fields in words.
func fieldWords(names []string) string {
	words := make([]string, len(names))
	for i, name := range names {
		if words[i] = eventFields[name]; words[i] == "" {
			words[i] = strings.ToLower(labelOf(name))
		}
	}
	return strings.Join(words, ", ")
}
