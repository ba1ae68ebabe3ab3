// Package storetest is the suite that every store must pass unchanged. It tests the
// promises of store.Store and does not know the driver.
//
//	storetest.go      Run, and helpers for the cases
//	contacts.go       contacts: fields, identities, all or nothing
//	pages.go          how much a page holds, and how many rows it reads
//	lists.go          filters, the order of exports, lists read while others write
//	times.go          how long pages of long lists take
//	races.go          one person is one contact, also for concurrent writes
//	settings.go       workspaces, attributes, members, keys, channels
//	tx.go             transactions: all or nothing, alone, in one workspace
//	conversations.go  conversations
//	messages.go       their messages
//	notes.go          notes on conversations
//	old.go            old messages, notes and conversations
//	attempts.go       sends, their keys, expiry and erasure
//	inbound.go        inbound items, leases, early statuses, opt-outs
//	callbacks.go      bodies of callbacks, and their erasure with a contact
//	erased.go         messages of deleted contacts that are delivered again
//	metrics.go        values for /metrics
//	pace.go           the limits of providers
//	webhooks.go       webhooks and their states
//	events.go         events, and the pages of their feed
//	access.go         sessions, sign-in links, passwords
//	policies.go       reply policies
//	answers.go        turns, waiting conversations, automatic replies
//	snippets.go       saved replies
//	segments.go       filters with names
//	conflicts.go      conflicts between contacts
//	merges.go         merging contacts
//	imports.go        how far imports of files are
//	exports.go        all records, page by page
//	search.go         the terms by which contacts are found, and their history
//	uploads.go        files that are imported in the console
//	broadcasts.go     broadcasts and their rows
//	media.go          files: records, content, jobs, erasure
//	daily.go          counts of messages by day
//	deliveries.go     deliveries of events to webhooks, leases that are extended
//	workspaces.go     deleting a workspace
//	examine.go        what parley doctor asks
//	frozen.go         migrations that must not change
//	upgrade.go        a database of the first release
//	rules.go          two releases with other rules of identities on one database
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

	"parley/desk"
	"parley/store"
)

// Run checks the stores that the callback open returns: they must keep all promises of
// store.Store. Each call of open must return an empty store, and close it with t.Cleanup.
func Run(t *testing.T, open func(*testing.T) store.Store) {
	for name, test := range map[string]func(*testing.T, store.Store){
		"contact/fields_survive":              contactFieldsSurvive,
		"contact/unknown_is_not_found":        unknownContact,
		"contact/update_and_release":          updateAndRelease,
		"contact/identity_moves_in_one_flush": identityMoves,
		"contact/delete_erases":               deleteErases,
		"contact/refusal_stores_nothing":      refusalStoresNothing,
		"contact/flush_is_all_or_nothing":     allOrNothing,
		"contact/apply_may_do_nothing":        applyNothing,
		"contact/workspaces_are_sealed":       workspacesAreSealed,
		"contact/large_groups_in_parts":       parts,
		"contact/large_values":                largeValues,
		"contact/brief_operations":            briefOperations,
		"contact/a_group_may_end_early":       groupEnds,
		"list/order_and_places":               listOrder,
		"list/newest_contacts":                newestContacts,
		"list/filters":                        listFilters,
		"list/walk_beside_writers":            walkBesideWriters,
		"list/conversations_are_walked":       conversationWalks,
		"list/pages_end_early":                pageBytes,
		"race/one_person_one_contact":         onePersonOneContact,
		"race/counters_lose_nothing":          lostUpdates,
		"conversation/fields_survive":         conversationFieldsSurvive,
		"conversation/one_is_open":            oneOpenConversation,
		"conversation/order_and_places":       conversationOrder,
		"conversation/filters":                conversationFilters,
		"conversation/talk_of_messages":       talkOfMessages,
		"conversation/newest":                 newestConversation,
		"conversation/windows":                windowsSurvive,
		"conversation/wrote_at":               wroteAt,
		"answer/loads_and_turns":              loadsAndTurns,
		"answer/pool":                         pool,
		"answer/auto_replies":                 autoReplies,
		"answer/one_assigns_at_a_time":        oneAssigns,
		"conversation/counts":                 conversationCounts,
		"conversation/loads":                  conversationLoads,
		"conversation/goes_with_its_contact":  deleteErasesConversations,
		"message/fields_survive":              messageFieldsSurvive,
		"message/unknown_is_not_found":        unknownMessage,
		"message/newest_of_a_span":            newestMessage,
		"message/order_and_places":            messageOrder,
		"message/external_ids_are_unique":     messageExternalIDs,
		"message/by_references":               messagesByReferences,
		"message/erased_is_known":             erasedIsKnown,
		"message/old_ones":                    oldMessages,
		"conversation/unread_after":           unreadAfter,
		"note/pages_and_deletion":             notes,
		"note/old_ones":                       oldNotes,
		"attempt/fields_survive":              attemptFieldsSurvive,
		"attempt/keys":                        attemptKeys,
		"attempt/oldest_in_doubt":             oldestInDoubt,
		"attempt/lists":                       attemptLists,
		"attempt/lapsed":                      attemptsLapse,
		"attempt/forgotten":                   attemptsAreForgotten,
		"attempt/erased_with_its_contact":     deleteErasesAttempts,
		"attempt/settled_ones_are_erased":     deleteErasesSettled,
		"attempt/deletions_beside_doubts":     deleteBesideDoubts,
		"attempt/erased_in_other_spellings":   deleteErasesSpellings,
		"inbound/order_and_due":               inboundDue,
		"inbound/leases":                      leases,
		"clock/inbound_far_ahead":             inboundFarAhead,
		"clock/hours":                         hours,
		"inbound/early_statuses":              earlyStatuses,
		"inbound/statuses_erased":             deleteErasesStatuses,
		"inbound/opt_outs":                    optOuts,
		"events/fields_survive":               eventFields,
		"events/pages_join":                   eventPages,
		"events/pages_end_early":              eventPageBytes,
		"conflicts/kept":                      conflictsKept,
		"merges/move":                         mergesMove,
		"merges/list":                         mergesList,
		"imports/place_and_key":               importRuns,
		"exports/contacts":                    exportedContacts,
		"exports/of_a_contact":                exportedOfContact,
		"exports/rows_of_a_contact":           exportedRows,
		"exports/opt_outs":                    countedOptOuts,
		"history/creation_and_newest":         history,
		"history/events_stay_until_then":      eventsStay,
		"uploads/records":                     uploads,
		"uploads/slots":                       uploadSlots,
		"uploads/due":                         uploadsDue,
		"uploads/old":                         oldUploads,
		"exports/talk":                        exportedTalk,
		"exports/erasures":                    erasures,
		"examine/what_doctor_asks":            examine,
		"media/contents":                      contents,
		"broadcasts/records":                  broadcastRecords,
		"broadcasts/rows":                     broadcastRows,
		"broadcasts/replies":                  broadcastReplies,
		"broadcasts/claims":                   broadcastClaims,
		"broadcasts/erasure":                  broadcastErasure,
		"broadcasts/place":                    broadcastPlace,
		"broadcasts/file":                     broadcastFile,
		"broadcasts/dormant":                  dormantConversations,
		"search/terms_follow_contacts":        searchTerms,
		"search/pairs_and_counts":             searchPairs,
		"search/behind":                       searchBehind,
		"search/unindexed":                    unindexed,
		"search/contacts_by_id":               contactsByID,
		"search/beside_deletions":             indexBesideDeletions,
		"snippets/fields_and_order":           snippets,
		"snippets/races":                      snippetRaces,
		"segments/fields_and_order":           segments,
		"segments/races":                      segmentRaces,
		"daily/counts":                        dailyCounts,
		"events/log":                          eventLog,
		"events/newest":                       newestEvents,
		"events/expire":                       eventsExpire,
		"deliveries/fields_and_lists":         deliveryFields,
		"deliveries/attempts":                 deliveryAttempts,
		"deliveries/held":                     deliveriesHeld,
		"deliveries/erased_with_its_contact":  deleteErasesResponses,
		"deliveries/forgotten":                deliveriesAreForgotten,
		"deliveries/leases":                   heldLeases,
		"deliveries/enabled_webhooks":         enabledWebhooks,
		"deliveries/extended_leases":          extendedLeases,
		"deliveries/busy_webhooks":            busyWebhooks,
		"events/one_of_many":                  oneOfMany,
		"metrics":                             metrics,
		"callback/bodies_and_skip":            callbackBodies,
		"callback/erased_with_its_contact":    deleteErasesCallbacks,
		"callback/forgotten":                  callbacksAreForgotten,
		"callback/workspaces_are_sealed":      callbacksAreSealed,
		"pace/burst_and_wait":                 paceWaits,
		"pace/all_buckets_or_none":            paceTakesAll,
		"pace/raced":                          paceRaces,
		"pace/forgotten":                      paceIsForgotten,
		"pace/void":                           paceIsVoid,
		"pace/workspaces_are_sealed":          paceIsSealed,
		"tx/sees_its_own_writes":              ownWrites,
		"tx/error_stores_nothing":             txErrors,
		"tx/open_or_create":                   openOrCreate,
		"tx/workspaces_are_sealed":            recordsAreSealed,
		"media/content":                       mediaContent,
		"media/in use":                        mediaInUse,
		"media/used":                          mediaUsed,
		"media/drafts":                        mediaDrafts,
		"media/races":                         mediaRaces,
		"media/fields_and_lists":              mediaFields,
		"media/uploads":                       mediaUploads,
		"media/messages":                      mediaOfMessages,
		"media/jobs":                          mediaJobs,
		"media/goes_with_its_contact":         deleteErasesMedia,
		"settings/workspace_deletion":         workspaceDeletion,
		"settings/workspace":                  workspaceSettings,
		"settings/attributes":                 attributeSettings,
		"settings/members":                    memberSettings,
		"settings/member_holds_conversation":  memberHolds,
		"settings/keys":                       keySettings,
		"settings/key_uses":                   keyUses,
		"settings/channels":                   channelSettings,
		"access/sessions":                     sessions,
		"access/login_links":                  loginLinks,
		"access/a_link_is_spent_once":         spentOnce,
		"access/members":                      memberAccess,
		"access/recipes":                      recipes,
		"access/held":                         held,
		"settings/channel_accounts":           channelAccounts,
		"settings/channel_signs":              channelSigns,
		"settings/channels_of_kind":           channelsOfKind,
		"settings/policies":                   policySettings,
		"settings/webhooks":                   webhookSettings,
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

// now returns a time that grows by one millisecond with each call.
func now() desk.Time { return desk.Time(1_700_000_000_000 + clock.Add(1)) }

func newID() (id desk.ID) {
	_, _ = rand.Read(id[:])
	return id
}

// idAt returns an id for a time: ids grow with time.
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

// missing returns a check that a look-up has found nothing and has returned no error.
func missing[T any](found *T, err error) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		if found != nil || err != nil {
			t.Errorf("found %v, %v, want nothing", found, err)
		}
	}
}

func missingContact(c *desk.Contact, _ *desk.Settings, err error) func(*testing.T) {
	return missing(c, err)
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s = %+v\nwant %+v", what, got, want)
	}
}

// commit runs a transaction, which must succeed.
func commit(t *testing.T, s store.Store, ws desk.ID, f func(store.Tx) error) {
	t.Helper()
	must(t, s.InTx(t.Context(), ws, f))
}

// newWorkspace makes a workspace with one member and two attributes.
func newWorkspace(t *testing.T, s store.Store) (desk.ID, *desk.Member) {
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

// apply runs operations in one flush and returns their outcomes.
func apply(ctx context.Context, s store.Store, ws desk.ID, ops ...*desk.Op) (outcomes []desk.Outcome, errs []error, err error) {
	err = s.UpdateContacts(ctx, ws, ops, func(b *desk.Book, from, to int) {
		if from == 0 {
			outcomes, errs = nil, nil
		}
		for _, op := range ops[from:to] {
			o, err := b.Apply(op, desk.Actor{Kind: desk.ByKey, ID: desk.ID{9}}, now(), newID)
			outcomes, errs = append(outcomes, o), append(errs, err)
		}
	})
	return outcomes, errs, err
}

// put applies operations that must all succeed and returns the last one's contact.
func put(t *testing.T, s store.Store, ws desk.ID, ops ...*desk.Op) *desk.Contact {
	t.Helper()
	outcomes, errs, err := apply(t.Context(), s, ws, ops...)
	must(t, errors.Join(append(errs, err)...))
	return outcomes[len(outcomes)-1].Contact
}

// upsert returns an upsert by e-mail and phone. Either may be "".
func upsert(email, phone string) *desk.Op {
	op := &desk.Op{Kind: desk.OpUpsert}
	if email != "" {
		op.Write.Email = text(email)
		op.Write.Sent = append(op.Write.Sent, desk.Identity{Kind: desk.KindEmail, Value: desk.CanonicalEmail(email)})
	}
	if phone != "" {
		op.Write.Phone = text(phone)
		op.Write.Sent = append(op.Write.Sent, desk.Identity{Kind: desk.KindPhone, Value: phone})
	}
	return op
}

func text(s string) desk.Field[string] { return desk.Field[string]{Set: true, Value: s} }

// refer returns an owner field that names a member.
func refer(s string) desk.Field[desk.Reference] {
	return desk.Field[desk.Reference]{Set: true, Value: desk.ReferTo(s)}
}

func nobody() desk.Field[desk.Reference] { return desk.Field[desk.Reference]{Set: true, Null: true} }

func null() desk.Field[string] { return desk.Field[string]{Set: true, Null: true} }

func patch(id desk.ID, w desk.ContactWrite) *desk.Op {
	return &desk.Op{Kind: desk.OpPatch, ByID: true, Target: id, Write: w}
}

func remove(id desk.ID) *desk.Op { return &desk.Op{Kind: desk.OpDelete, ByID: true, Target: id} }

// all lists every contact of a workspace in export order.
func all(t *testing.T, s store.Store, ws desk.ID) []*desk.Contact {
	t.Helper()
	var list []*desk.Contact
	for place := (&desk.ContactPlace{}); place != nil; {
		page, next, err := s.Contacts(t.Context(), ws, desk.ContactFilter{}, *place, 1000)
		must(t, err)
		list, place = append(list, page...), next
	}
	return list
}
