// Package storetest is the suite that every store must pass unchanged: it knows
// app.Store's promises and nothing of the driver behind them.
//
//	storetest.go      Run, and what the cases are built from
//	contacts.go       contacts: fields, identities, all or nothing
//	lists.go          filters, export order, walks beside writers
//	races.go          one person is one contact, whoever races
//	settings.go       workspaces, attributes, members, keys, channels
//	tx.go             transactions: all or nothing, alone, in one workspace
//	conversations.go  conversations and messages
//	attempts.go       sends, their keys, what is forgotten and erased
//	notices.go        notices, leases, early statuses, opt-outs
//	webhooks.go       their bodies, and with whom these go
//	pace.go           what holds sends back
//
// A bug found in one store becomes a case here before it is fixed.
package storetest

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"reflect"
	"sync/atomic"
	"testing"

	"parley/app"
	"parley/desk"
)

// Run proves that the stores which open returns keep every promise made in
// app.Store. open must return an empty store each time, and close it by t.Cleanup.
func Run(t *testing.T, open func(*testing.T) app.Store) {
	for name, test := range map[string]func(*testing.T, app.Store){
		"contact/fields_survive":              contactFieldsSurvive,
		"contact/unknown_is_not_found":        unknownContact,
		"contact/update_and_release":          updateAndRelease,
		"contact/identity_moves_in_one_flush": identityMoves,
		"contact/delete_erases":               deleteErases,
		"contact/refusal_stores_nothing":      refusalStoresNothing,
		"contact/flush_is_all_or_nothing":     allOrNothing,
		"contact/apply_may_do_nothing":        applyNothing,
		"contact/workspaces_are_sealed":       workspacesAreSealed,
		"list/order_and_places":               listOrder,
		"list/filters":                        listFilters,
		"list/walk_beside_writers":            walkBesideWriters,
		"race/one_person_one_contact":         onePersonOneContact,
		"race/counters_lose_nothing":          lostUpdates,
		"conversation/fields_survive":         conversationFieldsSurvive,
		"conversation/one_is_open":            oneOpenConversation,
		"conversation/order_and_places":       conversationOrder,
		"conversation/filters":                conversationFilters,
		"conversation/goes_with_its_contact":  deleteErasesConversations,
		"message/fields_survive":              messageFieldsSurvive,
		"message/order_and_places":            messageOrder,
		"message/external_ids_are_unique":     messageExternalIDs,
		"attempt/fields_survive":              attemptFieldsSurvive,
		"attempt/keys":                        attemptKeys,
		"attempt/lists":                       attemptLists,
		"attempt/lapsed":                      attemptsLapse,
		"attempt/forgotten":                   attemptsAreForgotten,
		"attempt/erased_with_its_contact":     deleteErasesAttempts,
		"notice/order_and_due":                noticesDue,
		"notice/leases":                       leases,
		"notice/early_statuses":               earlyStatuses,
		"notice/opt_outs":                     optOuts,
		"webhook/bodies_and_skip":             webhookBodies,
		"webhook/erased_with_its_contact":     deleteErasesWebhooks,
		"webhook/forgotten":                   webhooksAreForgotten,
		"webhook/workspaces_are_sealed":       webhooksAreSealed,
		"pace/burst_and_wait":                 paceWaits,
		"pace/all_buckets_or_none":            paceTakesAll,
		"pace/raced":                          paceRaces,
		"pace/forgotten":                      paceIsForgotten,
		"pace/workspaces_are_sealed":          paceIsSealed,
		"tx/sees_its_own_writes":              ownWrites,
		"tx/error_stores_nothing":             txErrors,
		"tx/open_or_create":                   openOrCreate,
		"tx/workspaces_are_sealed":            recordsAreSealed,
		"settings/workspace":                  workspaceSettings,
		"settings/attributes":                 attributeSettings,
		"settings/members":                    memberSettings,
		"settings/member_holds_conversation":  memberHolds,
		"settings/keys":                       keySettings,
		"settings/channels":                   channelSettings,
		"settings/channel_accounts":           channelAccounts,
		"settings/channels_of_kind":           channelsOfKind,
		"settings/templates":                  templateSettings,
		"settings/sandbox_templates":          sandboxTemplates,
		"settings/refusal_stores_nothing":     settingsRefusal,
		"settings/seen_by_the_next_flush":     settingsSeen,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

var clock atomic.Int64

// now is a clock that moves on by one millisecond at each look.
func now() desk.Time { return desk.Time(1_700_000_000_000 + clock.Add(1)) }

func newID() (id desk.ID) {
	_, _ = rand.Read(id[:])
	return id
}

// idAt is an id as it is made at a time: ids grow with it.
func idAt(at desk.Time) desk.ID {
	id := newID()
	binary.BigEndian.PutUint64(id[:], uint64(at)<<16|uint64(id[6])<<8|uint64(id[7]))
	return id
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantType(t *testing.T, err error, want desk.ErrorType) {
	t.Helper()
	if !desk.IsType(err, want) {
		t.Fatalf("error = %v, want %s", err, want)
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s = %+v\nwant %+v", what, got, want)
	}
}

// store runs a transaction that must succeed.
func store(t *testing.T, s app.Store, ws desk.ID, f func(app.Tx) error) {
	t.Helper()
	must(t, s.InTx(t.Context(), ws, f))
}

// newWorkspace makes a workspace with one member and two attributes.
func newWorkspace(t *testing.T, s app.Store) (desk.ID, *desk.Member) {
	t.Helper()
	ctx := t.Context()
	ws, member := newID(), &desk.Member{ID: newID(), Name: "Ada", Email: "Ada@Example.com", Role: desk.RoleAdmin}
	must(t, s.CreateWorkspace(ctx, desk.Workspace{ID: ws, Name: "Acme", Country: "TR"}))
	for _, change := range []desk.Change{
		{Member: member},
		{Attribute: &desk.Attribute{Key: "plan", Label: "Plan", Type: "select", Options: []string{"free", "pro"}}},
		{Attribute: &desk.Attribute{Key: "score", Label: "Score", Type: "number", Position: 1}},
	} {
		must(t, s.UpdateSettings(ctx, ws, func(*desk.Settings) (desk.Change, error) { return change, nil }))
	}
	return ws, member
}

// apply runs operations in one flush and returns what became of each.
func apply(ctx context.Context, s app.Store, ws desk.ID, ops ...*desk.Op) (outcomes []desk.Outcome, errs []error, err error) {
	err = s.UpdateContacts(ctx, ws, ops, func(b *desk.Book) {
		outcomes, errs = nil, nil
		for _, op := range ops {
			o, err := b.Apply(op, desk.ID{9}, now(), newID)
			outcomes, errs = append(outcomes, o), append(errs, err)
		}
	})
	return outcomes, errs, err
}

// put applies operations that must all succeed and returns the last one's contact.
func put(t *testing.T, s app.Store, ws desk.ID, ops ...*desk.Op) *desk.Contact {
	t.Helper()
	outcomes, errs, err := apply(t.Context(), s, ws, ops...)
	must(t, errors.Join(append(errs, err)...))
	return outcomes[len(outcomes)-1].Contact
}

// upsert is an upsert by e-mail and phone, either of which may be "".
func upsert(email, phone string) *desk.Op {
	op := &desk.Op{Kind: desk.OpUpsert}
	if email != "" {
		op.Write.Email = text(email)
		op.Write.Sent = append(op.Write.Sent, desk.Identity{Kind: desk.KindEmail, Value: desk.FoldEmail(email)})
	}
	if phone != "" {
		op.Write.Phone = text(phone)
		op.Write.Sent = append(op.Write.Sent, desk.Identity{Kind: desk.KindPhone, Value: phone})
	}
	return op
}

func text(s string) desk.Field[string] { return desk.Field[string]{Set: true, Value: s} }

func null() desk.Field[string] { return desk.Field[string]{Set: true, Null: true} }

func patch(id desk.ID, w desk.ContactWrite) *desk.Op {
	return &desk.Op{Kind: desk.OpPatch, ByID: true, Target: id, Write: w}
}

func remove(id desk.ID) *desk.Op { return &desk.Op{Kind: desk.OpDelete, ByID: true, Target: id} }

// all lists every contact of a workspace in export order.
func all(t *testing.T, s app.Store, ws desk.ID) []*desk.Contact {
	t.Helper()
	list, err := s.Contacts(t.Context(), ws, desk.ContactFilter{}, desk.ContactPlace{}, 1_000_000)
	must(t, err)
	return list
}
