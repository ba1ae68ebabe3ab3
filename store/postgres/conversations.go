package postgres

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"

	"parley/desk"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// endOfTime is later than every record. Lists that begin with the newest record start
// before it.
const endOfTime = desk.Time(math.MaxInt64)

var lastID = desk.ID(bytes.Repeat([]byte{0xff}, len(desk.ID{})))

const (
	conversationColumns = `id, channel_id, contact_id, status, assigned_member_id, assigned_via, preview, last_message_at, created_at, ` + talkColumns
	talkColumns         = `last_direction, unread, read_ts, read_id, waiting_since, answered_id, heard_id, dormant`
)

func readConversation(row pgx.Row) (*desk.Conversation, error) {
	var v desk.Conversation
	t := &v.Talk
	err := row.Scan(into(&v.ID), into(&v.ChannelID), into(&v.ContactID), (*string)(&v.Status), into(&v.AssignedMember),
		(*string)(&v.AssignedVia), &v.Preview, (*int64)(&v.LastMessageAt), (*int64)(&v.CreatedAt),
		(*string)(&t.LastDirection), &t.Unread, (*int64)(&t.Read.TS), into(&t.Read.ID), (*int64)(&t.WaitingSince), into(&t.Answered), into(&t.Heard), &v.Dormant)
	return &v, err
}

const (
	conversationQuery     = `SELECT ` + conversationColumns + ` FROM conversations WHERE workspace_id = $1 AND id >= $2 AND id <= $2 ORDER BY id` // the range of one id: see contactByID
	openConversationQuery = `SELECT ` + conversationColumns + ` FROM conversations
	WHERE workspace_id = $1 AND channel_id = $2 AND contact_id = $3 AND status = 'open'`

	// By the index of contacts (with a range of one: see contactByID). No index serves IS NOT DISTINCT
	// FROM: by one of the channel, or of the status, PostgreSQL would at first read all its conversations.
	ofContactOnChannel       = ` FROM conversations WHERE workspace_id = $1 AND contact_id >= $2 AND contact_id <= $2 AND channel_id IS NOT DISTINCT FROM $3`
	newestConversationQuery  = `SELECT ` + conversationColumns + ofContactOnChannel + ` ORDER BY contact_id, created_at DESC, id DESC LIMIT 1`
	dormantConversationQuery = `SELECT ` + conversationColumns + ofContactOnChannel + ` AND status IS NOT DISTINCT FROM 'archived' AND dormant ORDER BY contact_id, created_at DESC, id DESC LIMIT 1`
)

// Conversation returns a conversation, or nil.
func (s *Store) Conversation(ctx context.Context, ws, id desk.ID) (*desk.Conversation, error) {
	return readOne(ctx, s, "conversation", readConversation, conversationQuery, uuid(ws), uuid(id))
}

// fewConversations is the greatest number of a contact's conversations that are sorted
// for a page. If the contact has more, the workspace's list is read instead. There is no
// index for the lists of contacts, because it would have to be written with every
// message.
const fewConversations = 500

const conversationCountQuery = `SELECT count(*) FROM
	(SELECT 1 FROM conversations WHERE workspace_id = $1 AND contact_id = $2 LIMIT $3) v`

// conversationsQuery returns the query of the list with its arguments. few tells that the
// filter's contact has few conversations. If some filters have no index, the query is a
// walk: it reads a limited number of conversations and checks the filters. If it has not
// read all conversations, its last row is the last conversation that it has read, with an
// empty status.
//
// The query must leave the planner only one index (see contactsQuery).
func conversationsQuery(ws desk.ID, f desk.ConversationFilter, after *desk.ConversationPlace, limit int, few bool) (string, []any) {
	args := []any{uuid(ws), int64(after.LastMessageAt), int64(after.CreatedAt), uuid(after.ID), limit + 1}
	bind := func(v any) string { args = append(args, v); return fmt.Sprintf("$%d", len(args)) }
	from := `SELECT ` + conversationColumns + ` FROM conversations WHERE workspace_id = $1`
	if f.ActiveSince > 0 {
		from += ` AND last_message_at >= ` + bind(int64(f.ActiveSince))
	}
	// Only the index of unassigned conversations has this order.
	const last = ` ORDER BY last_message_at DESC NULLS LAST, created_at DESC NULLS LAST, id DESC NULLS LAST`
	order, reverse := ` ORDER BY last_message_at DESC, created_at DESC, id DESC`, ` ORDER BY last_message_at, created_at, id`
	if f.Longest {
		order, reverse = ` ORDER BY waiting_since, created_at, id`, ` ORDER BY waiting_since DESC, created_at DESC, id DESC`
	}
	var member, channel, contact, status, filters string
	if !f.Assignee.IsZero() {
		member = bind(uuid(f.Assignee))
	}
	free := f.Unassigned && member == "" && !few && !f.Longest
	if f.Longest && member != "" {
		filters += ` AND assigned_member_id = ` + member
	}
	switch {
	case f.Channel.IsZero():
	case !few && !f.Longest && member == "" && !f.Unassigned && f.Contact.IsZero():
		channel = bind(uuid(f.Channel))
	default:
		filters += ` AND channel_id = ` + bind(uuid(f.Channel))
	}
	if !f.Contact.IsZero() {
		contact = bind(uuid(f.Contact))
		filters += ` AND contact_id = ` + contact
	}
	if f.Unassigned && !free {
		filters += ` AND assigned_member_id IS NULL`
	}
	if f.Status != "" {
		status = bind(string(f.Status))
	}
	if f.Unread {
		filters += ` AND unread > 0`
	}
	if f.Waiting {
		filters += ` AND waiting_since > 0`
	}
	if f.Awake {
		filters += ` AND NOT dormant`
	}
	if few {
		if member != "" {
			filters += ` AND assigned_member_id = ` + member
		}
		if status != "" {
			filters += ` AND status = ` + status
		}
		return `WITH found AS MATERIALIZED (` + from + ` AND contact_id = ` + contact + `)
			SELECT * FROM found WHERE (last_message_at, created_at, id) < ($2, $3, $4)` + filters + order + ` LIMIT $5`, args
	}
	of := func(status, most string) string {
		// The planner chooses the index by the first comparison. The equations let the scan
		// end: with only this comparison, PostgreSQL would read on to the last conversation
		// of any status.
		held := func(column, value string) string {
			return from + ` AND (` + column + `, status, last_message_at, created_at, id) < (` + value + `, ` + status + `, $2, $3, $4)
			AND ` + column + ` = ` + value + ` AND status = ` + status + ` AND (last_message_at, created_at, id) < ($2, $3, $4)
			ORDER BY ` + column + ` DESC, status DESC, last_message_at DESC, created_at DESC, id DESC LIMIT ` + most
		}
		switch {
		case f.Longest:
			return from + ` AND status = ` + status + ` AND waiting_since > 0 AND (waiting_since, created_at, id) > ($2, $3, $4)` + order + ` LIMIT ` + most
		case member != "":
			return held(`assigned_member_id`, member)
		case channel != "":
			return held(`channel_id`, channel)
		case free:
			return from + ` AND assigned_member_id IS NULL AND status = ` + status + ` AND (last_message_at, created_at, id) < ($2, $3, $4)` + last + ` LIMIT ` + most
		default:
			return from + ` AND status = ` + status + ` AND (last_message_at, created_at, id) < ($2, $3, $4)` + order + ` LIMIT ` + most
		}
	}
	// The indexes are ordered within a status, so a list of all statuses is merged from
	// three lists. The statuses are parameters: for a constant, the planner could choose
	// the index of open conversations, which is not ordered.
	var all [3]string
	if status == "" {
		all = [3]string{bind("open"), bind("closed"), bind("archived")}
	}
	list := func(most string) string {
		if status != "" {
			return of(status, most)
		}
		return `SELECT * FROM ((` + of(all[0], most) + `) UNION ALL (` + of(all[1], most) + `) UNION ALL (` + of(all[2], most) + `)) v` +
			order + ` LIMIT ` + most
	}
	if filters == "" {
		return list(`$5`), args
	}
	looked := strconv.Itoa(f.MostLooked())
	return `WITH looked AS MATERIALIZED (` + list(looked) + `)
		(SELECT * FROM looked WHERE true` + filters + order + ` LIMIT $5)
		UNION ALL (SELECT id, channel_id, contact_id, '', assigned_member_id, assigned_via, preview, last_message_at, created_at, ` + talkColumns + ` FROM looked
			WHERE (SELECT count(*) FROM looked) = ` + looked + reverse + ` LIMIT 1)`, args
}

// Conversations returns a page of conversations (see store.Conversations).
func (s *Store) Conversations(ctx context.Context, ws desk.ID, f desk.ConversationFilter, after *desk.ConversationPlace, limit int) (found []*desk.Conversation, next *desk.ConversationPlace, err error) {
	if after == nil {
		after = f.Start()
	}
	err = s.read(ctx, func(p *pipe) error {
		few := false
		if !f.Contact.IsZero() && !f.Longest {
			n, err := one(p, "count conversations", func(row pgx.Row) (n int, err error) { return n, row.Scan(&n) },
				conversationCountQuery, uuid(ws), uuid(f.Contact), fewConversations+1)
			if few = n <= fewConversations; err != nil {
				return err
			}
		}
		query, args := conversationsQuery(ws, f, after, limit, few)
		found, err = all(p, "conversations", readConversation, query, args...)
		return err
	})
	next = nil
	if n := len(found); n > 0 && found[n-1].Status == "" {
		place := found[n-1].PlaceIn(f)
		found, next = found[:n-1], &place
	}
	if len(found) > limit {
		place := found[limit-1].PlaceIn(f)
		found, next = found[:limit], &place
	}
	return found, next, err
}

// conversationCountsQuery counts open conversations of all channels, or of one. Some
// counts have no index. In one channel, these are the counts of the member's
// conversations and of the unassigned ones. In all channels, it is the count of the
// member's waiting conversations. For these counts, only a bounded number of rows is
// looked at. Each part is ordered so that only one index fits (see contactsQuery).
func conversationCountsQuery(ws, member, channel desk.ID) (string, []any) {
	args := []any{uuid(ws), orNull(member), string(desk.StatusOpen), desk.MaxCount, desk.MaxMemberLooked}
	const (
		from     = ` FROM conversations WHERE workspace_id = $1 AND status = $3`
		held     = from + ` AND assigned_member_id = $2 ORDER BY assigned_member_id DESC, status DESC, last_message_at DESC, created_at DESC, id DESC`
		free     = from + ` AND assigned_member_id IS NULL ORDER BY last_message_at DESC NULLS LAST, created_at DESC NULLS LAST, id DESC NULLS LAST`
		open     = from + ` ORDER BY last_message_at DESC, created_at DESC, id DESC`
		count    = `(SELECT count(*) FROM (SELECT 1`
		upTo     = ` LIMIT $4) v)`
		countOf  = `(SELECT count(*) FROM (SELECT 1 FROM (SELECT channel_id, waiting_since`
		upToOf   = ` LIMIT $5) v WHERE channel_id = $6 LIMIT $4) v)`
		waiting  = ` LIMIT $5) v WHERE waiting_since > 0 LIMIT $4) v)`
		waitOf   = ` LIMIT $5) v WHERE waiting_since > 0 AND channel_id = $6 LIMIT $4) v)`
		openedOf = from + ` AND channel_id = $6 ORDER BY channel_id DESC, status DESC, last_message_at DESC, created_at DESC, id DESC`
	)
	if channel.IsZero() {
		return `SELECT ` + count + held + upTo + `, ` + count + free + upTo + `, ` + count + open + upTo + `, ` + countOf + held + waiting, args
	}
	return `SELECT ` + countOf + held + upToOf + `, ` + countOf + free + upToOf + `, ` + count + openedOf + upTo + `, ` + countOf + held + waitOf,
		append(args, uuid(channel))
}

// CountConversations counts open conversations.
func (s *Store) CountConversations(ctx context.Context, ws, member, channel desk.ID) (counts desk.ConversationCounts, err error) {
	query, args := conversationCountsQuery(ws, member, channel)
	err = s.read(ctx, func(p *pipe) error {
		counts, err = one(p, "count conversations", func(row pgx.Row) (n desk.ConversationCounts, err error) {
			return n, row.Scan(&n.Held, &n.Unassigned, &n.Open, &n.Waiting)
		}, query, args...)
		return err
	})
	return counts, err
}

const (
	openOfQuery = `SELECT m.id, (SELECT count(*) FROM (SELECT 1 FROM conversations WHERE workspace_id = $1 AND status = 'open' AND assigned_member_id = m.id
		ORDER BY assigned_member_id DESC, status DESC, last_message_at DESC, created_at DESC, id DESC LIMIT $3) v) FROM unnest($2::uuid[]) m (id)
		UNION ALL SELECT NULL, (SELECT count(*) FROM (SELECT 1 FROM conversations WHERE workspace_id = $1 AND status = 'open' AND assigned_member_id IS NULL
		ORDER BY last_message_at DESC NULLS LAST, created_at DESC NULLS LAST, id DESC NULLS LAST LIMIT $3) v)`
	waitsQuery = `SELECT assigned_member_id, waiting_since FROM conversations WHERE workspace_id = $1 AND status = 'open' AND waiting_since > 0
		ORDER BY waiting_since, created_at, id LIMIT $2`
)

// A holderRow is a number that belongs to a member, or (zero id) to the unassigned
// conversations.
type holderRow struct {
	holder desk.ID
	n      int64
}

func readHolder(row pgx.Row) (v holderRow, err error) { return v, row.Scan(into(&v.holder), &v.n) }

// Workloads returns the workloads of members.
func (s *Store) Workloads(ctx context.Context, ws desk.ID, members []desk.ID) (loads map[desk.ID]desk.Workload, later desk.Time, err error) {
	var open, waits []holderRow
	ids := make(pgtype.FlatArray[uuid], len(members))
	for i, id := range members {
		ids[i] = uuid(id)
	}
	err = s.read(ctx, func(p *pipe) (err error) {
		if open, err = all(p, "count conversations", readHolder, openOfQuery, uuid(ws), ids, desk.MaxCount); err == nil {
			waits, err = all(p, "waiting conversations", readHolder, waitsQuery, uuid(ws), desk.MaxMemberLooked+1)
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	loads = make(map[desk.ID]desk.Workload, len(open))
	for _, row := range open {
		loads[row.holder] = desk.Workload{Open: int(row.n)}
	}
	for i, row := range waits {
		if i == desk.MaxMemberLooked {
			later = desk.Time(row.n)
		} else if v := loads[row.holder]; v.Waiting == 0 {
			v.Waiting = desk.Time(row.n)
			loads[row.holder] = v
		}
	}
	return loads, later, nil
}

const (
	putConversationQuery = `INSERT INTO conversations (workspace_id, ` + conversationColumns + `) VALUES
	($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)` + replaceConversation
	putConversationsQuery = `INSERT INTO conversations (workspace_id, ` + conversationColumns + `) SELECT w.id, u.* FROM unnest($2::uuid[], $3::uuid[], $4::uuid[],
	$5::text[], $6::uuid[], $7::text[], $8::text[], $9::bigint[], $10::bigint[], $11::text[], $12::bigint[], $13::bigint[], $14::uuid[], $15::bigint[], $16::uuid[], $17::uuid[], $18::boolean[]) u` + inWorkspace + replaceConversation
	replaceConversation = ` ON CONFLICT (workspace_id, id) DO UPDATE SET channel_id = excluded.channel_id, contact_id = excluded.contact_id,
	status = excluded.status, assigned_member_id = excluded.assigned_member_id, assigned_via = excluded.assigned_via,
	preview = excluded.preview, last_message_at = excluded.last_message_at, created_at = excluded.created_at,
	last_direction = excluded.last_direction, unread = excluded.unread, read_ts = excluded.read_ts, read_id = excluded.read_id,
	waiting_since = excluded.waiting_since, answered_id = excluded.answered_id, heard_id = excluded.heard_id, dormant = excluded.dormant`
)

// putConversations inserts or replaces conversations, many in one statement. It is an
// error if a contact has another open conversation on the channel.
func putConversations(p *pipe, ws desk.ID, list []*desk.Conversation) {
	if len(list) == 1 {
		v := list[0]
		p.put(putConversationQuery, uuid(ws), uuid(v.ID), uuid(v.ChannelID), uuid(v.ContactID), string(v.Status), orNull(v.AssignedMember),
			string(v.AssignedVia), v.Preview, int64(v.LastMessageAt), int64(v.CreatedAt), string(v.Talk.LastDirection), v.Talk.Unread,
			int64(v.Talk.Read.TS), orNull(v.Talk.Read.ID), int64(v.Talk.WaitingSince), orNull(v.Talk.Answered), orNull(v.Talk.Heard), v.Dormant)
	}
	if len(list) < 2 {
		return
	}
	var ids, channels, contacts pgtype.FlatArray[uuid]
	var members, read, answered, heard pgtype.FlatArray[pgtype.UUID]
	var statuses, vias, previews, directions []string
	var last, created, unread, readTS, waiting []int64
	var dormant []bool
	for _, v := range list {
		ids, channels, contacts = append(ids, uuid(v.ID)), append(channels, uuid(v.ChannelID)), append(contacts, uuid(v.ContactID))
		members, statuses = append(members, orNull(v.AssignedMember)), append(statuses, string(v.Status))
		vias, previews = append(vias, string(v.AssignedVia)), append(previews, v.Preview)
		last, created = append(last, int64(v.LastMessageAt)), append(created, int64(v.CreatedAt))
		t := &v.Talk
		directions, unread, waiting = append(directions, string(t.LastDirection)), append(unread, int64(t.Unread)), append(waiting, int64(t.WaitingSince))
		readTS, read = append(readTS, int64(t.Read.TS)), append(read, orNull(t.Read.ID))
		answered, heard = append(answered, orNull(t.Answered)), append(heard, orNull(t.Heard))
		dormant = append(dormant, v.Dormant)
	}
	p.put(putConversationsQuery, uuid(ws), ids, channels, contacts, statuses, members, vias, previews, last, created, directions, unread, readTS, read, waiting, answered, heard, dormant)
}

// contactOfMessage selects the contact of the message's conversation, in the workspace $1. It is
// looked up by a range of one id: see contactByID.
const contactOfMessage = `, (SELECT contact_id FROM conversations c WHERE c.workspace_id = $1 AND c.id >= m.conversation_id AND c.id <= m.conversation_id ORDER BY c.id LIMIT 1)`

const messageColumns = `conversation_id, ts, id, channel_id, direction, external_id, text, delivery, failure,
	opt_in_key, opt_in_at, opt_in_request, opt_in_member, template, kind, author, reply_to, content, media_id`

// readMessage reads messageColumns, and the columns that a query adds to them.
func readMessage(row pgx.Row, more ...any) (*desk.Message, error) {
	var m desk.Message
	var o desk.OptIn
	var content *stored.Content
	err := row.Scan(append([]any{into(&m.ConversationID), (*int64)(&m.TS), into(&m.ID), into(&m.ChannelID), (*string)(&m.Direction), &m.ExternalID, &m.Text,
		(*string)(&m.Delivery), document{&m.Failure}, into(&o.Key), (*int64)(&o.At), into(&o.Request), into(&o.Member), &m.Template,
		(*string)(&m.Kind), document{&m.Author}, into(&m.ReplyTo), document{&content}, into(&m.Media)}, more...)...)
	defer m.Older()
	if o.At != 0 {
		m.OptIn = &o
	}
	content.Into(&m)
	return &m, err
}

// readOneMessage reads the row of a query for a single message.
func readOneMessage(row pgx.Row) (*desk.Message, error) {
	var contact desk.ID
	m, err := readMessage(row, into(&contact))
	m.ContactID = contact
	return m, err
}

const (
	// The message is usually among the newest of its conversation, so the search begins
	// there.
	messageQuery = `SELECT ` + messageColumns + contactOfMessage + ` FROM messages m
	WHERE workspace_id = $1 AND conversation_id = $2 AND id = $3 ORDER BY ts DESC LIMIT 1`
	newestMessageQuery = `SELECT ts, id FROM messages WHERE workspace_id = $1 AND conversation_id = $2 AND ts >= $3 AND ts < $4 ORDER BY ts DESC, id DESC LIMIT 1`
	messageByQuery     = `SELECT ` + messageColumns + contactOfMessage + ` FROM messages m
	WHERE workspace_id = $1 AND channel_id = $2 AND external_id = $3 AND external_id <> ''`
	// Each message is looked up by its index (see wantedContacts).
	messagesByQuery = `SELECT ` + messageColumns + ` FROM unnest($2::uuid[], $3::text[]) u (channel, external) CROSS JOIN LATERAL
	(SELECT * FROM messages WHERE workspace_id = $1 AND channel_id = u.channel AND external_id = u.external AND external_id <> '' OFFSET 0) m`
)

var messagesQuery = `SELECT ` + messageColumns + `, there FROM (` + upToPage(`SELECT *, octet_length(text) + octet_length(failure) + coalesce(octet_length(author), 0) + coalesce(octet_length(content), 0) AS bytes FROM messages
	WHERE workspace_id = $1 AND conversation_id = $2 AND (ts, id) < ($3, $4) ORDER BY ts DESC, id DESC LIMIT $5`, `ts DESC, id DESC`) + `) m
	ORDER BY ts DESC, id DESC`

// Messages returns a page of the messages of a conversation (see store.Conversations).
func (s *Store) Messages(ctx context.Context, ws, conversation desk.ID, after *desk.MessagePlace, limit int) (found []*desk.Message, next *desk.MessagePlace, err error) {
	if after == nil {
		after = &desk.MessagePlace{TS: endOfTime, ID: lastID}
	}
	err = s.read(ctx, func(p *pipe) error {
		found, next = nil, nil
		there := 0
		rows, err := all(p, "messages", func(row pgx.Row) (*desk.Message, error) { return readMessage(row, &there) },
			messagesQuery, uuid(ws), uuid(conversation), int64(after.TS), uuid(after.ID), limit+1)
		size := desk.NewPageSize(limit)
		for _, m := range rows {
			if !size.Add(m.ListBytes()) {
				break
			}
			found = append(found, m)
		}
		if len(found) < there {
			place := found[len(found)-1].Place()
			next = &place
		}
		if err != nil {
			return err
		}
		return attach(p, ws, found)
	})
	return found, next, err
}

// Message returns a message of a conversation, or nil.
func (s *Store) Message(ctx context.Context, ws, conversation, id desk.ID) (found *desk.Message, err error) {
	err = s.read(ctx, func(p *pipe) error {
		if found, err = one(p, "message", readOneMessage, messageQuery, uuid(ws), uuid(conversation), uuid(id)); found == nil || err != nil {
			return err
		}
		return attach(p, ws, []*desk.Message{found})
	})
	return found, err
}

// MessagesBy returns the messages that exist, in no order.
func (s *Store) MessagesBy(ctx context.Context, ws desk.ID, refs []desk.MessageRef) (found []*desk.Message, err error) {
	channels, externals := make(pgtype.FlatArray[uuid], len(refs)), make([]string, len(refs))
	for i, ref := range refs {
		channels[i], externals[i] = uuid(ref.Channel), ref.ExternalID
	}
	err = s.read(ctx, func(p *pipe) error {
		found, err = all(p, "messages", func(row pgx.Row) (*desk.Message, error) { return readMessage(row) }, messagesByQuery, uuid(ws), channels, externals)
		if err != nil {
			return err
		}
		return attach(p, ws, found)
	})
	return found, err
}

const putMessageQuery = `INSERT INTO messages (workspace_id, ` + messageColumns + `, unread, attempt_id)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
	ON CONFLICT (workspace_id, conversation_id, ts, id) DO UPDATE SET channel_id = excluded.channel_id,
	direction = excluded.direction, external_id = excluded.external_id, text = excluded.text, delivery = excluded.delivery,
	failure = excluded.failure, opt_in_key = excluded.opt_in_key, opt_in_at = excluded.opt_in_at, opt_in_request = excluded.opt_in_request,
	opt_in_member = excluded.opt_in_member, template = excluded.template, kind = excluded.kind, author = excluded.author,
	reply_to = excluded.reply_to, content = excluded.content, media_id = excluded.media_id`

// putMessage inserts or replaces a message. It is an error if another message has the
// same id at the provider.
func putMessage(p *pipe, ws desk.ID, m *desk.Message) error {
	var o desk.OptIn
	if m.OptIn != nil {
		o = *m.OptIn
	}
	var author *desk.Author
	if !m.Author.IsZero() {
		author = &m.Author
	}
	unread := 0
	if m.Direction == desk.Inbound { // replacing a stored message does not change unread and attempt_id
		unread = 1
	}
	if !m.Media.IsZero() { // an erasure waits for this message and then sees it, or this message waits for the erasure
		p.put(`SELECT 1 FROM media WHERE workspace_id = $1 AND id = $2 FOR SHARE`, uuid(ws), uuid(m.Media))
	}
	p.put(putMessageQuery, uuid(ws), uuid(m.ConversationID), int64(m.TS), uuid(m.ID), uuid(m.ChannelID), string(m.Direction), m.ExternalID, m.Text,
		string(m.Delivery), asJSON(m.Failure), orNull(o.Key), int64(o.At), orNull(o.Request), orNull(o.Member), m.Template,
		string(m.Kind), asJSON(author), orNull(m.ReplyTo), asJSON(stored.ContentOf(m)), orNull(m.Media), unread, orNull(m.Attempt))
	return p.fail
}

const (
	newestInboundQuery = `SELECT ` + messageColumns + ` FROM messages
	WHERE workspace_id = $1 AND conversation_id = $2 AND (ts, id) <= ($3, $4) AND direction = 'inbound' AND external_id <> '' ORDER BY ts DESC, id DESC LIMIT 1`
	putMessageDeliveryQuery = `UPDATE messages SET delivery = $5, failure = $6 WHERE workspace_id = $1 AND conversation_id = $2 AND ts = $3 AND id = $4`
	// The subquery finds the newest unread messages, and RETURNING counts the marked ones.
	markReadQuery = `UPDATE messages SET unread = 0 WHERE workspace_id = $1 AND conversation_id = $2 AND (ts, id) IN
	(SELECT ts, id FROM messages WHERE workspace_id = $1 AND conversation_id = $2 AND (ts, id) <= ($3, $4) AND unread = 1 ORDER BY ts DESC, id DESC LIMIT $5) RETURNING 1`
	countUnreadQuery = `SELECT count(*) FROM messages WHERE workspace_id = $1 AND conversation_id = $2 AND (ts, id) > ($3, $4) AND unread = 1`
	waitQuery        = `SELECT id FROM messages WHERE workspace_id = $1 AND conversation_id = $2 AND direction = 'outbound' AND delivery <> 'failed'
	AND (author IS NULL OR author NOT LIKE '{"type":"rule"%' AND author NOT LIKE '{"type":"broadcast"%') ORDER BY id DESC LIMIT 1`
	heardQuery   = `SELECT coalesce(min(ts), 0) FROM messages WHERE workspace_id = $1 AND conversation_id = $2 AND direction = 'inbound' AND kind <> 'reaction' AND id > $3`
	windowQuery  = `SELECT channel_id, contact_id, opened_at, number, user_id, shut_at, shut_by, replied_at, auto_reply_at, auto_replies FROM windows WHERE workspace_id = $1 AND contact_id = $2 AND channel_id = $3`
	windowsQuery = `SELECT w.channel_id, w.contact_id, opened_at, number, user_id, shut_at, shut_by, replied_at, auto_reply_at, auto_replies FROM unnest($2::uuid[], $3::uuid[]) u (contact, channel)
	JOIN windows w ON w.workspace_id = $1 AND w.contact_id = u.contact AND w.channel_id = u.channel`
	putWindowQuery = `INSERT INTO windows (workspace_id, contact_id, channel_id, opened_at, number, user_id, shut_at, shut_by, replied_at, auto_reply_at, auto_replies)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
	ON CONFLICT (workspace_id, contact_id, channel_id) DO UPDATE SET opened_at = excluded.opened_at, number = excluded.number, user_id = excluded.user_id,
	shut_at = excluded.shut_at, shut_by = excluded.shut_by, replied_at = excluded.replied_at, auto_reply_at = excluded.auto_reply_at, auto_replies = excluded.auto_replies`
)

type windowRow struct {
	desk.WindowRef
	desk.Window
}

func readWindow(row pgx.Row) (*windowRow, error) {
	var w windowRow
	err := row.Scan(into(&w.Channel), into(&w.Contact), (*int64)(&w.OpenedAt), &w.Number, &w.UserID, (*int64)(&w.ShutAt), (*string)(&w.ShutBy),
		(*int64)(&w.RepliedAt), (*int64)(&w.AutoReplyAt), &w.AutoReplies)
	return &w, err
}

// Windows returns the windows that exist.
func (s *Store) Windows(ctx context.Context, ws desk.ID, refs []desk.WindowRef) (found map[desk.WindowRef]desk.Window, err error) {
	contacts, channels := make(pgtype.FlatArray[uuid], len(refs)), make(pgtype.FlatArray[uuid], len(refs))
	for i, ref := range refs {
		contacts[i], channels[i] = uuid(ref.Contact), uuid(ref.Channel)
	}
	err = s.read(ctx, func(p *pipe) error {
		found = map[desk.WindowRef]desk.Window{}
		rows, err := all(p, "windows", readWindow, windowsQuery, uuid(ws), contacts, channels)
		for _, w := range rows {
			found[w.WindowRef] = w.Window
		}
		return err
	})
	return found, err
}

const wroteAtQuery = `SELECT contact_id, max(opened_at) FROM windows WHERE workspace_id = $1 AND contact_id = ANY ($2::uuid[]) AND opened_at > 0 GROUP BY contact_id`

// WroteAt returns when contacts wrote their newest messages.
func (s *Store) WroteAt(ctx context.Context, ws desk.ID, contacts []desk.ID) (wrote map[desk.ID]desk.Time, err error) {
	err = s.read(ctx, func(p *pipe) error {
		wrote = map[desk.ID]desk.Time{}
		p.each(func(row pgx.Row) error {
			var id desk.ID
			var at desk.Time
			err := row.Scan(into(&id), (*int64)(&at))
			wrote[id] = at
			return err
		}, wroteAtQuery, uuid(ws), uuids(contacts))
		return p.send("newest messages")
	})
	return wrote, err
}

// eraseConversations deletes the conversations of contacts with all messages and notes.
// It first locks the conversations, and so waits for transactions that write into them.
// So the later statements see everything that these transactions have written.
func eraseConversations(t *tx, contacts pgtype.FlatArray[uuid]) error {
	const of = ` FROM conversations WHERE workspace_id = $1 AND contact_id = ANY ($2::uuid[])`
	p, ws := t.pipe, t.ws
	conversations, err := all(p, "conversations to erase", func(row pgx.Row) (id desk.ID, err error) { return id, row.Scan(into(&id)) },
		`SELECT id`+of+` ORDER BY id FOR UPDATE`, uuid(ws), contacts)
	if err == nil {
		err = forgetMessages(t, conversations)
	}
	if err != nil {
		return err
	}
	eraseMediaOf(p, ws, contacts)
	p.put(`DELETE FROM messages WHERE workspace_id = $1 AND conversation_id IN (SELECT id`+of+`)`, uuid(ws), contacts)
	p.put(`DELETE FROM notes WHERE workspace_id = $1 AND conversation_id IN (SELECT id`+of+`)`, uuid(ws), contacts)
	p.put(`DELETE FROM windows WHERE workspace_id = $1 AND contact_id = ANY ($2::uuid[])`, uuid(ws), contacts)
	p.put(`DELETE FROM auto_replies WHERE workspace_id = $1 AND contact_id = ANY ($2::uuid[])`, uuid(ws), contacts)
	p.put(`DELETE`+of, uuid(ws), contacts)
	return p.fail
}
