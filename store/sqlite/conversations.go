package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"

	"parley/desk"
	"parley/store/internal/stored"
)

// endOfTime is later than every record. Lists that begin with the newest record start
// before it.
const endOfTime = desk.Time(math.MaxInt64)

var lastID = desk.ID(bytes.Repeat([]byte{0xff}, len(desk.ID{})))

const conversationColumns = `id, channel_id, contact_id, status, assigned_member_id, assigned_via, preview, last_message_at, created_at,
	last_direction, unread, read_ts, read_id, waiting_since, answered_id, heard_id, dormant`

func readConversation(s *stmt) *desk.Conversation {
	return &desk.Conversation{
		ID: s.readID(), ChannelID: s.readID(), ContactID: s.readID(), Status: desk.ConversationStatus(s.readText()),
		AssignedMember: s.readID(), AssignedVia: desk.AssignedVia(s.readText()),
		Preview: s.readText(), LastMessageAt: s.readTime(), CreatedAt: s.readTime(),
		Talk: desk.Talk{
			LastDirection: desk.Direction(s.readText()), Unread: int(s.readInt()), Read: desk.MessagePlace{TS: s.readTime(), ID: s.readID()},
			WaitingSince: s.readTime(), Answered: s.readID(), Heard: s.readID(),
		},
		Dormant: s.readInt() != 0,
	}
}

const (
	conversationQuery     = `SELECT ` + conversationColumns + ` FROM conversations WHERE workspace_id = ? AND id = ?`
	openConversationQuery = `SELECT ` + conversationColumns + ` FROM conversations
	WHERE workspace_id = ? AND channel_id = ? AND contact_id = ? AND status = 'open'`
	newestConversationQuery = `SELECT ` + conversationColumns + ` FROM conversations` + byContact + `
	WHERE workspace_id = ? AND contact_id = ? AND channel_id = ? ORDER BY created_at DESC, id DESC LIMIT 1`
	dormantConversationQuery = `SELECT ` + conversationColumns + ` FROM conversations` + byContact + `
	WHERE workspace_id = ? AND contact_id = ? AND channel_id = ? AND status = 'archived' AND dormant = 1 ORDER BY created_at DESC, id DESC LIMIT 1`
)

// Conversation returns a conversation, or nil.
func (s *Store) Conversation(ctx context.Context, ws, id desk.ID) (found *desk.Conversation, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		found, err = one("conversation", c.stmt(conversationQuery).id(ws).id(id), readConversation)
		return err
	})
	return found, err
}

// byContact names the index. Without statistics, SQLite expects a whole workspace to
// have hardly more rows than one contact.
const byContact = ` INDEXED BY conversations_contact`

// fewConversations is the greatest number of a contact's conversations that are sorted
// for a page. If the contact has more, the workspace's list is read instead. There is no
// index for the lists of contacts, because it would have to be written with every
// message.
const fewConversations = 500

const conversationCountQuery = `SELECT count(*) FROM
	(SELECT 1 FROM conversations` + byContact + ` WHERE workspace_id = ? AND contact_id = ? LIMIT +?)`

// walkColumns are the columns by which a walk checks the filters. The index contains
// all of them.
const walkColumns = `id, channel_id, contact_id, status, assigned_member_id, last_message_at, created_at`

func readWalked(s *stmt) *desk.Conversation {
	return &desk.Conversation{
		ID: s.readID(), ChannelID: s.readID(), ContactID: s.readID(), Status: desk.ConversationStatus(s.readText()),
		AssignedMember: s.readID(), LastMessageAt: s.readTime(), CreatedAt: s.readTime(),
	}
}

// A conversationList is the query of a list.
type conversationList struct {
	query string
	walk  bool      // the query reads all rows, and the filter is checked afterwards
	whole bool      // a walk reads whole conversations; false: only walkColumns
	ids   []desk.ID // parameters from the sixth on, before the status and the time
}

// newConversationList chooses the query for a filter. few tells whether the filter's
// contact, if any, has few conversations. The query names its index: without statistics,
// SQLite expects a whole workspace to have hardly more rows than one contact.
func newConversationList(f desk.ConversationFilter, few bool) (l conversationList) {
	if f.Longest {
		return conversationList{query: longestQuery, walk: true, whole: true}
	}
	columns, index, where := conversationColumns, `conversations_recent`, ` WHERE workspace_id = ?1 AND (last_message_at, created_at, id) < (?2, ?3, ?4)`
	by := func(column string, id desk.ID) {
		if !id.IsZero() {
			l.ids = append(l.ids, id)
			where += fmt.Sprintf(` AND %s = ?%d`, column, 5+len(l.ids))
		}
	}
	by("assigned_member_id", f.Assignee)
	switch {
	case few:
		index = `conversations_contact`
		by("channel_id", f.Channel)
		by("contact_id", f.Contact)
	case !f.Assignee.IsZero():
		index, l.walk = `conversations_held`, !f.Channel.IsZero() || !f.Contact.IsZero() || f.Unassigned
	case f.Unassigned:
		index, l.walk = `conversations_unassigned`, !f.Channel.IsZero() || !f.Contact.IsZero()
	case !f.Contact.IsZero():
		l.walk = true
	case !f.Channel.IsZero():
		index = `conversations_channel`
		by("channel_id", f.Channel)
	}
	if f.Unassigned && (!l.walk || f.Assignee.IsZero()) {
		where += ` AND assigned_member_id IS NULL`
	}
	switch {
	case f.Unread || f.Waiting || f.Awake:
		l.walk, l.whole = true, true
	case l.walk:
		columns = walkColumns
	}
	status := 6 + len(l.ids)
	if since := status + 1; f.ActiveSince > 0 && f.Status != "" {
		where += fmt.Sprintf(` AND last_message_at >= ?%d`, since)
	} else if f.ActiveSince > 0 {
		where += fmt.Sprintf(` AND last_message_at >= ?%d`, status)
	}
	l.query = `SELECT ` + columns + ` FROM conversations INDEXED BY ` + index + where
	switch {
	case f.Status != "":
		l.query += fmt.Sprintf(` AND status = +?%d`, status)
	case !few: // the indexes are ordered within a status, so a list of all statuses is merged from three lists
		l.query = l.query + ` AND status = 'open' UNION ALL ` + l.query + ` AND status = 'closed' UNION ALL ` + l.query + ` AND status = 'archived'`
	}
	l.query += ` ORDER BY last_message_at DESC, created_at DESC, id DESC LIMIT +?5`
	return l
}

func (l conversationList) bind(c conn, ws desk.ID, f desk.ConversationFilter, after *desk.ConversationPlace, limit int) stmt {
	if l.walk {
		limit = f.MostLooked()
	}
	rows := c.stmt(l.query).id(ws).time(after.LastMessageAt).time(after.CreatedAt).id(after.ID).int(int64(limit) + 1)
	for _, id := range l.ids {
		rows = rows.id(id)
	}
	if f.Status != "" {
		rows = rows.text(string(f.Status))
	}
	if f.ActiveSince > 0 && !f.Longest {
		rows = rows.time(f.ActiveSince)
	}
	return rows
}

// longestQuery lists waiting conversations, longest wait first. Its parameters are those
// of the other lists, but the position's time is the start of the wait. There are two
// conditions on waiting_since. SQLite must search by the first one; with the second one
// it would read all rows before the position.
const longestQuery = `SELECT ` + conversationColumns + ` FROM conversations INDEXED BY conversations_waiting
	WHERE workspace_id = ?1 AND status = ?6 AND (waiting_since, created_at, id) > (?2, ?3, ?4) AND waiting_since > 0
	ORDER BY waiting_since, created_at, id LIMIT +?5`

// Conversations returns a page of conversations (see store.Conversations).
func (s *Store) Conversations(ctx context.Context, ws desk.ID, f desk.ConversationFilter, after *desk.ConversationPlace, limit int) (found []*desk.Conversation, next *desk.ConversationPlace, err error) {
	if after == nil {
		after = f.Start()
	}
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		return c.snapshot(func() error {
			few := false
			if !f.Contact.IsZero() {
				n, err := one("count conversations", c.stmt(conversationCountQuery).id(ws).id(f.Contact).int(fewConversations+1), (*stmt).readInt)
				if few = n <= fewConversations; err != nil {
					return err
				}
			}
			l := newConversationList(f, few)
			rows := l.bind(c, ws, f, after, limit)
			if l.walk {
				found, next, err = walk(c, rows, l.whole, ws, f, limit)
				return err
			}
			found, err = all("conversations", rows, readConversation)
			if len(found) > limit {
				place := found[limit-1].Place()
				found, next = found[:limit], &place
			}
			return err
		})
	})
	return found, next, err
}

// walk reads rows until the page is full or the greatest number of rows is read, and
// returns the conversations that match the filter.
func walk(c conn, rows stmt, whole bool, ws desk.ID, f desk.ConversationFilter, limit int) (found []*desk.Conversation, next *desk.ConversationPlace, err error) {
	read := readWalked
	if whole {
		read = readConversation
	}
	var last desk.ConversationPlace
	for looked := 0; rows.next(); looked++ {
		if looked == f.MostLooked() || len(found) == limit {
			next = &last
			break
		}
		v := read(&rows)
		if last = v.PlaceIn(f); f.Passes(v) {
			found = append(found, v)
		}
	}
	if err := rows.done(); err != nil || whole {
		return found, next, failed("conversations", err)
	}
	for i, v := range found {
		if found[i], err = one("conversation", c.stmt(conversationQuery).id(ws).id(v.ID), readConversation); err != nil {
			return nil, nil, err
		}
	}
	return found, next, nil
}

// countQuery counts open conversations of all channels, and countOfQuery counts those of
// one channel. Some counts have no index. In one channel, these are the counts of the
// member's conversations and of the unassigned ones. In all channels, it is the count of
// the member's waiting conversations. For these counts, only a bounded number of rows is
// looked at.
const (
	countQuery = `SELECT
	(SELECT count(*) FROM (SELECT 1 FROM conversations INDEXED BY conversations_held
		WHERE workspace_id = ?1 AND assigned_member_id = ?2 AND status = 'open' LIMIT +?3)),
	(SELECT count(*) FROM (SELECT 1 FROM conversations INDEXED BY conversations_unassigned
		WHERE workspace_id = ?1 AND assigned_member_id IS NULL AND status = 'open' LIMIT +?3)),
	(SELECT count(*) FROM (SELECT 1 FROM conversations INDEXED BY conversations_recent
		WHERE workspace_id = ?1 AND status = 'open' LIMIT +?3)),
	(SELECT count(*) FROM (SELECT 1 FROM (SELECT waiting_since FROM conversations INDEXED BY conversations_held
		WHERE workspace_id = ?1 AND assigned_member_id = ?2 AND status = 'open'
		ORDER BY last_message_at DESC, created_at DESC, id DESC LIMIT +?5) WHERE waiting_since > 0 LIMIT +?3))`
	countOfQuery = `SELECT
	(SELECT count(*) FROM (SELECT 1 FROM (SELECT channel_id FROM conversations INDEXED BY conversations_held
		WHERE workspace_id = ?1 AND assigned_member_id = ?2 AND status = 'open'
		ORDER BY last_message_at DESC, created_at DESC, id DESC LIMIT +?5) WHERE channel_id = ?4 LIMIT +?3)),
	(SELECT count(*) FROM (SELECT 1 FROM (SELECT channel_id FROM conversations INDEXED BY conversations_unassigned
		WHERE workspace_id = ?1 AND assigned_member_id IS NULL AND status = 'open'
		ORDER BY last_message_at DESC, created_at DESC, id DESC LIMIT +?5) WHERE channel_id = ?4 LIMIT +?3)),
	(SELECT count(*) FROM (SELECT 1 FROM conversations INDEXED BY conversations_channel
		WHERE workspace_id = ?1 AND channel_id = ?4 AND status = 'open' LIMIT +?3)),
	(SELECT count(*) FROM (SELECT 1 FROM (SELECT waiting_since, channel_id FROM conversations INDEXED BY conversations_held
		WHERE workspace_id = ?1 AND assigned_member_id = ?2 AND status = 'open'
		ORDER BY last_message_at DESC, created_at DESC, id DESC LIMIT +?5) WHERE waiting_since > 0 AND channel_id = ?4 LIMIT +?3))`
)

// CountConversations counts open conversations.
func (s *Store) CountConversations(ctx context.Context, ws, member, channel desk.ID) (counts desk.ConversationCounts, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		query := countQuery
		if !channel.IsZero() {
			query = countOfQuery
		}
		row := c.stmt(query).id(ws).idOrNull(member).int(desk.MaxCount).idOrNull(channel).int(desk.MaxMemberLooked)
		counts, err = one("count conversations", row, func(s *stmt) desk.ConversationCounts {
			return desk.ConversationCounts{Held: int(s.readInt()), Unassigned: int(s.readInt()), Open: int(s.readInt()), Waiting: int(s.readInt())}
		})
		return err
	})
	return counts, err
}

const (
	openOfQuery = `SELECT count(*) FROM (SELECT 1 FROM conversations INDEXED BY conversations_held
		WHERE workspace_id = ?1 AND assigned_member_id = ?2 AND status = 'open' LIMIT +?3)`
	openOfNobodyQuery = `SELECT count(*) FROM (SELECT 1 FROM conversations INDEXED BY conversations_unassigned
		WHERE workspace_id = ?1 AND assigned_member_id IS NULL AND status = 'open' LIMIT +?2)`
	waitsQuery = `SELECT assigned_member_id, waiting_since FROM conversations INDEXED BY conversations_waiting
		WHERE workspace_id = ?1 AND status = 'open' AND waiting_since > 0 ORDER BY waiting_since, created_at, id LIMIT +?2`
)

// Workloads returns the workloads of members.
func (s *Store) Workloads(ctx context.Context, ws desk.ID, members []desk.ID) (loads map[desk.ID]desk.Workload, later desk.Time, err error) {
	loads = make(map[desk.ID]desk.Workload, len(members)+1)
	err = s.read(ctx, pointRead, func(c conn) error {
		for _, id := range append([]desk.ID{{}}, members...) {
			row := c.stmt(openOfNobodyQuery).id(ws)
			if !id.IsZero() {
				row = c.stmt(openOfQuery).id(ws).id(id)
			}
			n, err := one("count conversations", row.int(desk.MaxCount), (*stmt).readInt)
			if err != nil {
				return err
			}
			loads[id] = desk.Workload{Open: int(n)}
		}
		looked := 0
		rows := c.stmt(waitsQuery).id(ws).int(desk.MaxMemberLooked + 1)
		for ; rows.next(); looked++ {
			holder, since := rows.readID(), rows.readTime()
			if looked == desk.MaxMemberLooked {
				later = since
			} else if v := loads[holder]; v.Waiting == 0 {
				v.Waiting = since
				loads[holder] = v
			}
		}
		return failed("waiting conversations", rows.done())
	})
	return loads, later, err
}

const (
	putConversationQuery = `INSERT INTO conversations (workspace_id, ` + conversationColumns + `)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (workspace_id, id) DO UPDATE SET channel_id = excluded.channel_id, contact_id = excluded.contact_id,
		status = excluded.status, assigned_member_id = excluded.assigned_member_id, assigned_via = excluded.assigned_via,
		preview = excluded.preview, last_message_at = excluded.last_message_at, created_at = excluded.created_at,
		last_direction = excluded.last_direction, unread = excluded.unread, read_ts = excluded.read_ts, read_id = excluded.read_id,
		waiting_since = excluded.waiting_since, answered_id = excluded.answered_id, heard_id = excluded.heard_id, dormant = excluded.dormant`
)

// Groups of columns of a conversation that change together. Only putConversationQuery
// sets the other columns.
const (
	movedColumns = 1 << iota
	heldColumns
	waitedColumns
	talkColumns
)

// setColumns has an UPDATE statement for each combination of groups. The bits of its
// index say which groups are in the combination.
var setColumns = func() (queries [2 * talkColumns]string) {
	groups := []string{`preview = ?, last_message_at = ?, last_direction = ?`, `assigned_member_id = ?, assigned_via = ?`, `waiting_since = ?`,
		`unread = ?, read_ts = ?, read_id = ?, answered_id = ?, heard_id = ?`}
	for which := range queries {
		var set []string
		for i, group := range groups {
			if which&(1<<i) != 0 {
				set = append(set, group)
			}
		}
		queries[which] = `UPDATE conversations SET ` + strings.Join(set, ", ") + ` WHERE workspace_id = ? AND id = ?`
	}
	return queries
}()

// putConversation inserts or replaces a conversation. It returns an error if the contact
// has another open conversation on the channel. The parameter was is the stored
// conversation, or nil if it is not known. Only changed groups of columns are set: SQLite
// writes every index that contains a column named in the statement, even if the column's
// value stays the same. So a statement with few columns writes half as many pages.
func putConversation(c conn, ws desk.ID, was, v *desk.Conversation) error {
	t := &v.Talk
	if was == nil || was.ChannelID != v.ChannelID || was.ContactID != v.ContactID || was.Status != v.Status || was.CreatedAt != v.CreatedAt || was.Dormant != v.Dormant {
		return failed("store conversation", c.stmt(putConversationQuery).id(ws).id(v.ID).id(v.ChannelID).id(v.ContactID).text(string(v.Status)).
			idOrNull(v.AssignedMember).text(string(v.AssignedVia)).text(v.Preview).time(v.LastMessageAt).time(v.CreatedAt).
			text(string(t.LastDirection)).int(int64(t.Unread)).time(t.Read.TS).idOrNull(t.Read.ID).time(t.WaitingSince).idOrNull(t.Answered).idOrNull(t.Heard).int(flag(v.Dormant)).run())
	}
	old, which := &was.Talk, 0
	if was.LastMessageAt != v.LastMessageAt || was.Preview != v.Preview || old.LastDirection != t.LastDirection {
		which |= movedColumns
	}
	if was.AssignedMember != v.AssignedMember || was.AssignedVia != v.AssignedVia {
		which |= heldColumns
	}
	if old.WaitingSince != t.WaitingSince {
		which |= waitedColumns
	}
	if old.Unread != t.Unread || old.Read != t.Read || old.Answered != t.Answered || old.Heard != t.Heard {
		which |= talkColumns
	}
	if which == 0 {
		return nil
	}
	s := c.stmt(setColumns[which])
	if which&movedColumns != 0 {
		s = s.text(v.Preview).time(v.LastMessageAt).text(string(t.LastDirection))
	}
	if which&heldColumns != 0 {
		s = s.idOrNull(v.AssignedMember).text(string(v.AssignedVia))
	}
	if which&waitedColumns != 0 {
		s = s.time(t.WaitingSince)
	}
	if which&talkColumns != 0 {
		s = s.int(int64(t.Unread)).time(t.Read.TS).idOrNull(t.Read.ID).idOrNull(t.Answered).idOrNull(t.Heard)
	}
	return failed("store conversation", s.id(ws).id(v.ID).run())
}

// contactOfMessage selects the contact of the message's conversation.
const contactOfMessage = `, (SELECT contact_id FROM conversations c WHERE c.workspace_id = m.workspace_id AND c.id = m.conversation_id)`

const messageColumns = `conversation_id, ts, id, channel_id, direction, external_id, text, delivery, failure,
	opt_in_key, opt_in_at, opt_in_request, opt_in_member, template, kind, author, reply_to, content, media_id`

func readMessage(s *stmt) *desk.Message {
	m := &desk.Message{
		ConversationID: s.readID(), TS: s.readTime(), ID: s.readID(), ChannelID: s.readID(), Direction: desk.Direction(s.readText()),
		ExternalID: s.readText(), Text: s.readText(), Delivery: desk.DeliveryStatus(s.readText()),
	}
	s.readJSON(&m.Failure)
	if o := (desk.OptIn{Key: s.readID(), At: s.readTime(), Request: s.readID(), Member: s.readID()}); o.At != 0 {
		m.OptIn = &o
	}
	m.Template, m.Kind = s.readText(), desk.MessageKind(s.readText())
	s.readJSON(&m.Author)
	m.ReplyTo = s.readID()
	var content *stored.Content
	s.readJSON(&content)
	content.Into(m)
	m.Media = s.readID()
	m.Older()
	return m
}

// readOneMessage reads the row of a query for a single message.
func readOneMessage(s *stmt) *desk.Message {
	m := readMessage(s)
	m.ContactID = s.readID()
	return m
}

const (
	messagesQuery = `SELECT ` + messageColumns + ` FROM messages
	WHERE workspace_id = ? AND conversation_id = ? AND (ts, id) < (?, ?) ORDER BY ts DESC, id DESC LIMIT +?`
	// The message is usually among the newest of its conversation, so the search begins
	// there.
	messageQuery = `SELECT ` + messageColumns + contactOfMessage + ` FROM messages m
	WHERE workspace_id = ? AND conversation_id = ? AND id = ? ORDER BY ts DESC LIMIT 1`
	newestMessageQuery = `SELECT ts, id FROM messages WHERE workspace_id = ? AND conversation_id = ? AND ts >= ? AND ts < ? ORDER BY ts DESC, id DESC LIMIT 1`
	messageBy          = ` FROM messages m WHERE workspace_id = ? AND channel_id = ? AND external_id = ? AND external_id <> ''`
	messageByQuery     = `SELECT ` + messageColumns + contactOfMessage + messageBy
	messagesByQuery    = `SELECT ` + messageColumns + messageBy // run for each of the references
)

// Messages returns a page of the messages of a conversation (see store.Conversations).
func (s *Store) Messages(ctx context.Context, ws, conversation desk.ID, after *desk.MessagePlace, limit int) (found []*desk.Message, next *desk.MessagePlace, err error) {
	if after == nil {
		after = &desk.MessagePlace{TS: endOfTime, ID: lastID}
	}
	err = s.read(ctx, int64(pointRead+limit/4), func(c conn) error { // messages of a conversation lie side by side
		rows := c.stmt(messagesQuery).id(ws).id(conversation).time(after.TS).id(after.ID).int(int64(limit) + 1)
		size := desk.NewPageSize(limit)
		for next == nil && rows.next() {
			if m := readMessage(&rows); size.Add(m.ListBytes()) {
				found = append(found, m)
			} else {
				place := found[len(found)-1].Place()
				next = &place
			}
		}
		if err := rows.done(); err != nil {
			return failed("messages", err)
		}
		return attach(c, ws, found)
	})
	return found, next, err
}

// Message returns a message of a conversation, or nil.
func (s *Store) Message(ctx context.Context, ws, conversation, id desk.ID) (found *desk.Message, err error) {
	err = s.read(ctx, 2*pointRead, func(c conn) error {
		if found, err = one("message", c.stmt(messageQuery).id(ws).id(conversation).id(id), readOneMessage); found == nil || err != nil {
			return err
		}
		return attach(c, ws, []*desk.Message{found})
	})
	return found, err
}

// MessagesBy returns the messages that exist, in no order.
func (s *Store) MessagesBy(ctx context.Context, ws desk.ID, refs []desk.MessageRef) (found []*desk.Message, err error) {
	err = s.read(ctx, int64(2*pointRead*len(refs)), func(c conn) error {
		return c.snapshot(func() error {
			for _, ref := range refs {
				m, err := one("message", c.stmt(messagesByQuery).id(ws).id(ref.Channel).text(ref.ExternalID), readMessage)
				if err != nil {
					return err
				}
				if m != nil {
					found = append(found, m)
				}
			}
			return attach(c, ws, found)
		})
	})
	return found, err
}

// putMessage inserts or replaces a message. It returns an error if another message has
// the same id at the provider.
func putMessage(c conn, ws desk.ID, m *desk.Message) error {
	var o desk.OptIn
	if m.OptIn != nil {
		o = *m.OptIn
	}
	unread := int64(0)
	if m.Direction == desk.Inbound { // replacing a stored message does not change unread and attempt_id
		unread = 1
	}
	return failed("store message", c.stmt(`INSERT INTO messages (workspace_id, `+messageColumns+`, unread, attempt_id)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (workspace_id, conversation_id, ts, id) DO UPDATE SET channel_id = excluded.channel_id,
		direction = excluded.direction, external_id = excluded.external_id, text = excluded.text, delivery = excluded.delivery,
		failure = excluded.failure, opt_in_key = excluded.opt_in_key, opt_in_at = excluded.opt_in_at, opt_in_request = excluded.opt_in_request,
		opt_in_member = excluded.opt_in_member, template = excluded.template, kind = excluded.kind, author = excluded.author,
		reply_to = excluded.reply_to, content = excluded.content, media_id = excluded.media_id`).
		id(ws).id(m.ConversationID).time(m.TS).id(m.ID).id(m.ChannelID).text(string(m.Direction)).text(m.ExternalID).text(m.Text).
		text(string(m.Delivery)).json(m.Failure).idOrNull(o.Key).time(o.At).idOrNull(o.Request).idOrNull(o.Member).text(m.Template).
		text(string(m.Kind)).json(authorOrNil(m)).idOrNull(m.ReplyTo).json(stored.ContentOf(m)).idOrNull(m.Media).int(unread).idOrNull(m.Attempt).run())
}

// authorOrNil returns nil for a message without an author.
func authorOrNil(m *desk.Message) *desk.Author {
	if m.Author.IsZero() {
		return nil
	}
	return &m.Author
}

const (
	newestInboundQuery = `SELECT ` + messageColumns + ` FROM messages
	WHERE workspace_id = ? AND conversation_id = ? AND (ts, id) <= (?, ?) AND direction = 'inbound' AND external_id <> '' ORDER BY ts DESC, id DESC LIMIT 1`
	putMessageDeliveryQuery = `UPDATE messages SET delivery = ?, failure = ? WHERE workspace_id = ? AND conversation_id = ? AND ts = ? AND id = ?`
	// The subquery finds the newest unread messages, and RETURNING counts the marked ones.
	markReadQuery = `UPDATE messages SET unread = 0 WHERE workspace_id = ?1 AND conversation_id = ?2 AND (ts, id) IN
	(SELECT ts, id FROM messages WHERE workspace_id = ?1 AND conversation_id = ?2 AND (ts, id) <= (?3, ?4) AND unread = 1 ORDER BY ts DESC, id DESC LIMIT +?5) RETURNING 1`
	countUnreadQuery = `SELECT count(*) FROM messages WHERE workspace_id = ? AND conversation_id = ? AND (ts, id) > (?, ?) AND unread = 1`
	waitQuery        = `SELECT max(id) FROM messages WHERE workspace_id = ?1 AND conversation_id = ?2 AND direction = 'outbound' AND delivery <> 'failed'
	AND (author IS NULL OR author NOT LIKE '{"type":"rule"%' AND author NOT LIKE '{"type":"broadcast"%')`
	heardQuery     = `SELECT coalesce(min(ts), 0) FROM messages WHERE workspace_id = ?1 AND conversation_id = ?2 AND direction = 'inbound' AND kind <> 'reaction' AND id > ?3`
	windowQuery    = `SELECT opened_at, number, user_id, shut_at, shut_by, replied_at, auto_reply_at, auto_replies FROM windows WHERE workspace_id = ? AND contact_id = ? AND channel_id = ?`
	putWindowQuery = `REPLACE INTO windows (workspace_id, contact_id, channel_id, opened_at, number, user_id, shut_at, shut_by, replied_at, auto_reply_at, auto_replies) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

func readWindow(s *stmt) *desk.Window {
	return &desk.Window{OpenedAt: s.readTime(), Number: s.readText(), UserID: s.readText(), ShutAt: s.readTime(), ShutBy: desk.WindowReason(s.readText()),
		RepliedAt: s.readTime(), AutoReplyAt: s.readTime(), AutoReplies: int(s.readInt())}
}

// Windows returns the windows that exist.
func (s *Store) Windows(ctx context.Context, ws desk.ID, refs []desk.WindowRef) (found map[desk.WindowRef]desk.Window, err error) {
	err = s.read(ctx, int64(pointRead*len(refs)), func(c conn) error {
		found = map[desk.WindowRef]desk.Window{}
		for _, ref := range refs {
			w, err := one("window", c.stmt(windowQuery).id(ws).id(ref.Contact).id(ref.Channel), readWindow)
			if err != nil {
				return err
			}
			if w != nil {
				found[ref] = *w
			}
		}
		return nil
	})
	return found, err
}

const wroteAtQuery = `SELECT coalesce(max(opened_at), 0) FROM windows WHERE workspace_id = ? AND contact_id = ?`

// WroteAt returns when contacts wrote their newest messages.
func (s *Store) WroteAt(ctx context.Context, ws desk.ID, contacts []desk.ID) (wrote map[desk.ID]desk.Time, err error) {
	err = s.read(ctx, int64(pointRead*len(contacts)), func(c conn) error {
		wrote = map[desk.ID]desk.Time{}
		for _, id := range contacts {
			at, err := one("newest message", c.stmt(wroteAtQuery).id(ws).id(id), (*stmt).readTime)
			if err != nil {
				return err
			}
			if at > 0 {
				wrote[id] = at
			}
		}
		return nil
	})
	return wrote, err
}

const (
	eraseMessagesQuery = `DELETE FROM messages WHERE workspace_id = ?1 AND conversation_id IN
	(SELECT id FROM conversations` + byContact + ` WHERE workspace_id = ?1 AND contact_id = ?2)`
	eraseNotesQuery = `DELETE FROM notes WHERE workspace_id = ?1 AND conversation_id IN
	(SELECT id FROM conversations` + byContact + ` WHERE workspace_id = ?1 AND contact_id = ?2)`
	eraseConversationsQuery = `DELETE FROM conversations` + byContact + ` WHERE workspace_id = ? AND contact_id = ?`
	eraseWindowsQuery       = `DELETE FROM windows WHERE workspace_id = ? AND contact_id = ?`
)

// eraseConversations deletes a contact's conversations with all messages and notes.
func eraseConversations(c conn, ws, contact desk.ID) error {
	if err := forgetMessages(c, ws, contact); err != nil {
		return err
	}
	for _, query := range []string{eraseMessagesQuery, eraseNotesQuery, eraseWindowsQuery, eraseAutoRepliesQuery, eraseConversationsQuery} {
		if err := c.stmt(query).id(ws).id(contact).run(); err != nil {
			return err
		}
	}
	return nil
}
