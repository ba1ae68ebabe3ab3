package api_test

import (
	"testing"

	"parley/store/postgres/pgtest"
)

// overPostgres begins the names of tests that run over PostgreSQL; all others run on
// a SQLite file.
const overPostgres = "TestPostgres/"

// databases has the databases for TestPostgres.
var databases *pgtest.Pool

// TestPostgres runs the tests of this package again over PostgreSQL, except tests that do
// not depend on the store. Both stores have the same golden files, because the answers have
// the same bytes.
func TestPostgres(t *testing.T) {
	t.Parallel()
	databases = pgtest.NewPool(t)
	databases.Database(t) // or skip once, here
	pgtest.Suite(t, notOverPostgres,
		TestAttempts, TestAttemptUnderWay, TestAttempts_opt_in,
		TestAttributes, TestArchivedValuesStay, TestAttributeLimit, TestMembers, TestAvailability, TestMemberRemoved,
		TestBatch, TestBatchOfAThousand, TestBroadcasts, TestBroadcasts_author, TestBroadcasts_matrix, TestBroadcasts_rowSize, TestBroadcasts_run, TestBroadcasts_replies, TestBroadcasts_audience, TestBroadcasts_advice,
		TestCallbacks, TestCallbackHandshake,
		TestContacts, TestRepeatChangesNothing, TestListWalksWithCursors, TestIdentitiesAsListed, TestRevokedBetween, TestSettingsBetween,
		TestConversations, TestConversationLists, TestFailedMessage, TestConversationOnNewChannel, TestChannels,
		TestDryRun, TestDryRunForm, TestDryRunLocksNothing,
		TestMe, TestFeed, TestFeedRefuses, TestFeedExpires, TestFeedPageBytes, TestStream, TestStreamEnds, TestEventPermissions,
		TestEveryEvent,
		TestFigures, TestCallbackAge,
		TestOnePersonHoweverWritten, TestTwoPeople, TestForgottenHoweverWritten,
		TestInboxOfMany,
		TestLaw,
		TestHistory, TestExport, TestErased, TestSearch,
		TestDeleteMedia, TestMedia, TestMediaNames, TestMediaRanges, TestMediaRefused,
		TestMerges, TestMerges_without_reading, TestConflicts, TestNotes, TestNotesWithoutWrite, TestNotesStay,
		TestPolicy,
		TestLongReference,
		TestReplyRefused, TestReplyRefusedByProvider, TestReplyKeys, TestReplyAtTheEnd, TestReplyAddress, TestErasureRaces,
		TestUnauthorizedIsTheSameBytes, TestOtherWorkspace,
		TestSend, TestIdempotencyKey, TestSendReplays_in_another_country, TestSendConflict_names_in_the_order_of_the_request, TestSendRefused, TestSendChecksInOrder, TestSendReplays, TestSendAtOnce, TestSendLost, TestSendInProgress, TestSendStores, TestSendRevoked, TestTemplateNeeds, TestSendNeeds, TestSendNeeds_once,
		TestSnippets, TestSegments,
		TestTalk, TestReply,
		TestTemplates, TestTemplatesLookUpNobody, TestTemplatesChannel, TestTemplatesChange, TestTemplatesAtOnce,
		TestWebhooks, TestWebhookRefused, TestWebhookPermissions, TestDeliveries,
	)
}

// Why a test runs over SQLite only.
const (
	noStore        = "it asks no store"
	beforeTheStore = "it is about requests, of which no store sees more than the key"
	buffersOnly    = "it is about the buffers of answers, whatever the store"
	connections    = "it is about connections and memory, and takes long; TestStream and TestStreamEnds follow both stores"
)

var notOverPostgres = map[string]string{
	"TestBroadcastsGiveWay":              noStore,
	"TestCanonical":                      noStore,
	"TestCanonicalLaw":                   noStore,
	"TestListBytesCoverTheJSON":          noStore,
	"TestRoutesAreInTheDescription":      noStore,
	"TestEveryErrorTypeHasAStatus":       noStore,
	"TestDescriptionNamesEveryErrorType": noStore,
	"TestDescriptionOfAPublicURL":        noStore,
	"TestErrorAnswers":                   noStore,
	"TestWorded":                         noStore,
	"TestRetryAfter":                     noStore,
	"TestReadRow":                        noStore,
	"TestReadOptOut":                     noStore,
	"TestPages":                          noStore,
	"TestUnknownRoutes":                  noStore,
	"TestTwiceTheSameName":               beforeTheStore,
	"TestManyUnknownAttributes":          beforeTheStore,
	"TestBatchOfMistakes":                beforeTheStore,
	"TestBadBodies":                      beforeTheStore,
	"TestBodyCutShort":                   beforeTheStore,
	"TestBodySizes":                      beforeTheStore,
	"TestUnreadWithoutAKey":              beforeTheStore,
	"TestPanic":                          beforeTheStore,
	"TestCallbackDebugLine":              beforeTheStore,
	"TestCallbackOfALeaver":              beforeTheStore,
	"TestCallbacksTellNoChannelsApart":   beforeTheStore,
	"TestCallbackReadsNoMore":            beforeTheStore,
	"TestMissingPermissionIsNamed":       beforeTheStore,
	"TestRateLimit":                      beforeTheStore,
	"TestRateLimitCountsARequestOnce":    beforeTheStore,
	"TestMessagesSayWhatToDo":            beforeTheStore,
	"TestRoomFirst":                      beforeTheStore,
	"TestWritesTakeTurns":                beforeTheStore,
	"TestUnreadAnswers":                  buffersOnly,
	"TestStreamEnds_slow_reader":         connections,
	"TestDrain":                          connections,
	"TestStuckStream":                    connections,
	"TestStreamForgetsPages":             connections,
	"TestWait":                           connections,
	"TestFollowerLimits":                 connections,
	"TestExport_cut":                     connections,
}
