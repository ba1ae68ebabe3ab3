package app_test

import (
	"testing"

	"parley/store/postgres/pgtest"
)

// TestPostgres runs the tests of this package again over PostgreSQL, except those whose
// outcome does not depend on the store.
func TestPostgres(t *testing.T) {
	t.Parallel()
	databases = pgtest.NewPool(t)
	databases.Database(t) // if there is no PostgreSQL, skip once, here
	pgtest.Suite(t, notOverPostgres,
		TestSessions, TestLoginLinks, TestLinkIsSpentOnce, TestHeld,
		TestAccountRefused, TestSendCounts,
		TestAutoReply_silent, TestAutoReply_machine, TestAutoReply_again, TestAutoReply_meanwhile, TestAutoReply_twice, TestAutoReply_killed, TestAutoReply_slow, TestAssignWaiting, TestMaxOpen_at_once, TestAssign_turn, TestAssign_locked,
		TestCallback_bodies,
		TestReceiveCallback, TestCallback_answersFirst, TestCallback_fetched, TestCallback_gathered, TestCallback_inOrder, TestVerifyCallback, TestCallback_of_another_kind, TestCallback_in_parts, TestCallback_any_order, TestCallback_update_that_fails, TestCallback_while_the_database_is_away, TestCallback_that_can_not_be_read, TestCallback_of_other_numbers, TestCallback_of_another_app, TestCallback_of_a_deleted_contact, TestAccountStatus, TestAccountStatus_repliesOnly, TestTemplateNews, TestSyncStale, TestSyncStale_slow, TestSyncChannel_slow, TestSyncChannel_of_others_every_time, TestSyncChannel_of_a_library_that_moved, TestSyncChannel_of_WhatsApp,
		TestClock_apart, TestClock_of_inbound, TestClocks,
		TestStuckReads, TestTryAll_of_large_contacts, TestNewestContacts,
		TestReceive, TestReceive_refuses, TestReceive_twice, TestConversation_ended, TestConversation_goes_to_the_owner, TestAssign, TestSeen, TestSeen_races, TestInboxCounts, TestSetStatus, TestRemoveMember, TestDeleteContact, TestConversations_lists, TestConversations_cursors, TestWorkspaces_are_sealed, TestReceive_in_one_second, TestOptOut, TestOptOut_follows_the_number, TestOptOut_of_a_category_in_any_case, TestOptOut_replays, TestRemoveMember_goes_on, TestRemoveMember_steps,
		TestConflicts_counted, TestConflicts_kept, TestConflicts_stored_later, TestConflicts_not_storable, TestConflicts_fixed, TestConflicts_undone, TestConflicts_tried_together, TestConflicts_undone_joined, TestConflicts_late, TestConflicts_undone_of_others, TestConflicts_undone_one_by_one, TestConflicts_resolved_renamed, TestConflicts_moved, TestConflicts_decided_beside_merges, TestConflicts_model,
		TestCountDays,
		TestFetchMedia, TestFetchMedia_given_up, TestFetchMedia_is_fair, TestFetchMedia_overtaken, TestFetchMedia_two, TestFetchMedia_lost, TestUpload_not_stored, TestForgetMedia, TestForget_clocks, TestForget_deleted, TestHandOver,
		TestStatus_before_the_answer, TestStatus_settles_a_doubt, TestStatus_of_long_ago, TestStatus_too_early, TestStatus_any_order, TestStatus_of_others, TestInbound_that_can_not_be_taken_in, TestInbound_while_the_database_is_away, TestInbound_of_other_processes, TestInbound_beside_one_that_is_stuck, TestRun_sweeps, TestRun_sweeps_under_load,
		TestLimbo,
		TestBroadcast_once, TestBroadcast_patient, TestBroadcast_pause, TestBroadcast_cancel, TestBroadcast_skips, TestBroadcast_file, TestBroadcast_fileWaits, TestBroadcast_mergedTwins, TestBroadcast_changed, TestBroadcast_halted, TestBroadcast_duplicates, TestBroadcast_hashes, TestBroadcast_rows, TestBroadcast_rowsMeanwhile, TestBroadcast_rowsRenumbered, TestBroadcast_moved, TestBroadcast_cancelledMeanwhile, TestBroadcast_share, TestBroadcast_away, TestBroadcast_pair, TestBroadcast_pairMerged, TestBroadcast_heldBack, TestBroadcast_templatePaused, TestBroadcast_reported, TestBroadcast_reportedLate, TestBroadcast_failuresReported, TestBroadcast_restored, TestBroadcast_dormantAgain, TestBroadcast_dormantMeanwhile, TestBroadcast_pausesItself, TestBroadcast_waits, TestBroadcast_stopped, TestBroadcast_suspended, TestBroadcast_dormant, TestBroadcast_deliveries, TestBroadcast_rowsForgotten, TestBroadcast_pace, TestBroadcast_paceChanged, TestBroadcast_lease, TestBroadcast_merge, TestBroadcast_followed, TestBroadcast_replies, TestBroadcast_repliesInDoubt, TestBroadcast_repliesMeanwhile, TestBroadcast_keyChanged, TestBroadcast_forbidden, TestBroadcast_startOvertaken, TestBroadcast_active, TestBroadcast_activeLater, TestBroadcast_planned, TestBroadcast_sendAt, TestBroadcast_rescheduled, TestBroadcast_resumed, TestBroadcast_probes, TestBroadcast_notSendable, TestBroadcast_editOrder, TestBroadcast_category, TestBroadcast_clear, TestBroadcast_clearAudience,
		TestAudience_broadcast, TestAudience_segment, TestAudience_filter, TestAudience_meanwhile, TestAudience_erasedMeanwhile, TestAudience_aside, TestAudience_scheduled, TestAudience_tooMany, TestAudience_lost, TestAudience_sourceGone, TestBroadcast_aDay, TestBroadcast_hours, TestBroadcast_clockAhead, TestBroadcast_histories, TestBroadcast_unnoticed,
		TestKeyUses,
		TestDeliver_rests, TestDeliver_called,
		TestDeleteMedia, TestDeleteMedia_race, TestUpload_quota, TestUpload_room,
		TestMerge, TestMerge_tried, TestMerge_tried_reopened, TestMerge_version, TestMerge_expired, TestMerge_reply, TestMerge_reply_planned, TestMerge_template, TestMerge_file, TestLost_with_a_merged_person, TestMerge_refuses, TestMerge_undone, TestMerge_part_erased, TestMerge_model, TestMerge_rings, TestMerge_beside_sends,
		TestForgetMessages, TestForgetMessages_unread, TestForgetMessages_in_doubt, TestForgetMessages_clocks,
		TestNotesStayInside, TestNotesOfARevokedKey,
		TestPace, TestPace_buckets, TestPace_waits, TestPace_and_keys,
		TestPasswords, TestPasswords_overtaken, TestSignIn_overtaken, TestLastAdmin,
		TestSender, TestReceipt, TestRecipient_events, TestEarlyStatus_tells_the_recipient, TestLearn_no_more, TestMove, TestOptOut_by_any_handle, TestOptOut_told_once, TestOptOut_by_id_before_the_number_is_known, TestStatus_tells_the_recipient,
		TestAdministration, TestMembersAsPrincipals,
		TestWrite_with_a_key_changed_meanwhile, TestUnchangedIsNotWritten,
		TestReply, TestReply_receipt, TestReply_refused, TestReply_changed, TestReply_fileDeleted, TestReply_fileOfAnother, TestReply_once, TestReply_refusedByProvider, TestReply_seen, TestReply_serverClock, TestReply_overtaken, TestReply_refusedAfterDeletion, TestReply_races,
		TestImport_overtaken, TestImport_large, TestImport_dryLarge, TestImport_dryOptOuts, TestUpload, TestUpload_overtaken, TestUpload_killed, TestUpload_people, TestUpload_peopleEnd, TestUpload_ends, TestUpload_forgotten,
		TestExport_optOuts, TestExport_allowed, TestErase, TestErase_merged, TestExport_begin,
		TestHistory_upgrade, TestSearch, TestSearch_upgrade, TestSearch_sealed, TestSearch_model, TestSearch_filters,
		TestSegments_model,
		TestSecrets_are_bound, TestSecrets_are_bound_to_where_they_go, TestSecrets_of_the_first_release, TestSecrets_are_not_shown, TestAddChannel, TestEditChannel_same, TestEditChannel_secrets, TestCheckChannel_signs_of_life, TestAddChannel_address,
		TestSend_once, TestSend_refusals, TestSend_finds_the_recipient, TestSend_profile_of_another, TestSend_profile_of_a_full_contact, TestSend_refused_leaves_nothing, TestSend_in_doubt_keeps_the_key, TestSend_waits, TestSend_otherBodies, TestSend_many_wait, TestSend_waits_on_another_node, TestSend_two_holds, TestSend_waiting_ends, TestSend_runs_to_its_end, TestSend_key_expires, TestSend_with_a_key_revoked_meanwhile, TestSend_workspace_deleted, TestSend_presumed, TestSend_64_at_once, TestSend_64_of_one_key, TestSend_through_the_sandbox, TestSend_member, TestSend_needs, TestSend_fileDeleted, TestSend_fileOfDeleted, TestSend_fileOptedOut, TestSend_needsChange, TestSend_lostFile, TestSend_holdsFile, TestSend_fileErased, TestSend_fileNotTaken,
		TestSendEvents,
		TestLost_before_the_hold, TestLost_with_the_answer_to_the_hold, TestLost_for_good_after_the_hold, TestLost_with_its_person, TestLost_with_a_deleted_person, TestDeleted_after_a_hold_without_a_look, TestLost_after_the_provider_took_it, TestLost_with_inbound_items, TestLost_after_the_provider_refused, TestLost_with_the_doubt, TestLate_before_the_first_byte, TestSweep, TestRelease_sent, TestRelease_not_sent, TestRelease_refuses, TestRelease_two_at_once, TestRelease_and_a_late_acceptance, TestAccepted_twice, TestFinish_in_between, TestFinish_the_recipient_was_deleted, TestFinish_the_number_was_taken, TestFinish_another_send_was_faster, TestAttempts, TestAttempts_pages, TestMessagesSent, TestReleaseOld,
		TestSimulate, TestSimulate_files,
		TestPutSnippet_most,
		TestTalk_failedBeforeItWasBound, TestTalk_shutBeforeTheFirst,
		TestTemplates_hints, TestTemplates_picks_the_channel, TestSyncChannel, TestSyncChannel_of_a_list_that_moved, TestPutTemplate, TestEditChannel_bindings, TestEditChannel_binding_that_lost_its_place, TestSandbox_only, TestChannels,
		TestThirdProvider,
	)
}

// The reasons why a test runs over SQLite only, or is left out here.
const (
	noStore    = "it asks no store"
	both       = "it runs over both stores by itself"
	files      = "it looks into the files beside the database"
	slow       = "it takes more than ten seconds there; storetest has what of it is the store's"
	late       = "a call that looks for its key before another has claimed it, and goes on after that, takes a place of the limits for nothing: over PostgreSQL that happens"
	hashing    = "it is about the hashes of passwords, which take long; storetest has what is stored of them"
	deliveries = "storetest, api and e2e follow events and deliver them over both stores"
)

var notOverPostgres = map[string]string{
	"writer_test.go":                        noStore,
	"TestAnswer":                            both,
	"TestTalk_histories":                    both,
	"TestDeleted_before_the_hold":           both,
	"TestSaidAgain":                         both,
	"TestSaidAgain_of_somebody_who_is_back": both,
	"TestSaidAgain_simulated":               both,
	"TestEcho_early_statuses":               both,
	"TestTransfers_end":                     files,
	"TestFetchMedia_storage_fails":          files,
	"TestSecrets_at_rest":                   files,
	"TestFetchMedia_failures":               slow,
	"TestRun_stops_amid_a_callback":         slow,
	"TestFailedAttempts":                    slow,
	"TestForget":                            slow,
	"TestSend_twins":                        late,
	"TestHashes":                            hashing,
	"TestSignInsAtOnce":                     hashing,
	"TestPasswordChanges":                   hashing,
	"deliver_test.go":                       deliveries,
	"feed_test.go":                          deliveries,
	"ping_test.go":                          deliveries,
	"webhooks_test.go":                      deliveries,
}
