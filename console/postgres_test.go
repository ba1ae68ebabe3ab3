package console

import (
	"testing"

	"parley/store/postgres/pgtest"
)

// TestPostgres runs the tests of this package again over PostgreSQL, except those that
// do not depend on the store. Both stores use the same golden files: the pages must be
// equal byte for byte.
func TestPostgres(t *testing.T) {
	t.Parallel()
	databases = pgtest.NewPool(t)
	databases.Database(t) // skips the test if there is no server
	pgtest.Suite(t, notOverPostgres,
		TestBeside,
		TestBroadcasts, TestBroadcast_acts, TestBroadcast_release, TestBroadcast_make, TestBroadcast_audience, TestBroadcast_elsewhere, TestBroadcast_others, TestBroadcast_check, TestBroadcast_file,
		TestChannels, TestChannels_sandbox,
		TestReply, TestReply_closing, TestReply_closing_meanwhile, TestReply_closing_taken, TestReply_closing_fails, TestReply_window, TestReply_file, TestReply_quote, TestComposer_snippets, TestMarkRead, TestWriteAsCustomer, TestReply_outcomes,
		TestContacts, TestContact, TestContactForm_long, TestContact_both, TestContact_races, TestContact_holders, TestContact_moved, TestContact_timeline, TestContact_talks, TestContact_zone,
		TestEvents, TestEvents_broadcasts, TestExport, TestExport_signedOut, TestPeopleFile,
		TestImports, TestImports_stopLate, TestImports_people,
		TestInbox, TestInbox_laterPage, TestInbox_refuses,
		TestLiveNames, TestLiveFlood, TestLiveShows, TestLiveEnds, TestParts,
		TestConflicts,
		TestMerge, TestMerge_missing, TestMerge_refused, TestMerge_same, TestMerge_log,
		TestAvailability, TestWaiting, TestNews,
		TestThread, TestThread_long, TestNotes, TestMedia,
		TestOverview, TestOverview_team,
		TestPolicy_assign, TestPolicy_hours, TestPolicy_replies, TestPolicy_emptied, TestPolicy_channel,
		TestRoutes, TestHome,
		TestTemplates, TestSend, TestSend_paused, TestSend_search, TestSend_panel, TestSend_file,
		TestSends_outcome, TestSends, TestSends_release_many,
		TestSettings_roles, TestSettings_workspace, TestSettings_members, TestSettings_keys, TestSettings_attributes, TestSettings_orderWithEqualPositions,
		TestSignIn_byLink, TestSignIn_byPassword, TestSignIn_choice, TestSessions_end, TestSessions_writes, TestSignIn_crossSite, TestMe, TestSessions_streams, TestChoose_ended, TestChoose_older, TestSessions_tokens,
		TestSnippets, TestSnippets_many, TestSegments, TestSegments_zone, TestSegments_fields, TestSegments_many,
		TestPageTimes,
		TestWebhooks, TestWebhooks_deliveries,
	)
}

// Reasons why a test runs over SQLite only.
const (
	noStore = "it asks no store"
	looks   = "it is about forms and headers, not about what is stored"
	turns   = "it is about how much is done at a time in this process"
)

var notOverPostgres = map[string]string{
	"TestLayout":            looks,
	"TestImports_size":      looks,
	"TestAddressOf":         noStore,
	"TestBroadcast_giveWay": noStore,
	"TestEventWords":        noStore,
	"TestSpanLasts":         noStore,
	"TestTrackOf":           noStore,
	"TestLiveBehind":        noStore,
	"TestChart_words":       noStore,
	"TestRuns":              noStore,
	"TestGlimpse":           noStore,
	"TestIDsTwice":          noStore,
	"TestWebhooks_states":   noStore,
	"TestWords":             noStore,
	"TestTemplateFiles":     noStore,
	"TestChannels_states":   noStore,
	"TestSignIn_next":       noStore,
	"TestSound":             looks,
	"TestEnterSends":        looks,
	"TestHeaders":           looks,
	"TestCrossSite":         looks,
	"TestSignIn_longTexts":  looks,
	"TestSignIn_memory":     looks,
	"TestSignIn_secure":     looks,
	"TestChannels_address":  looks,
	"TestSettings_presets":  looks,
	"TestBusy":              looks,
	"TestLongText":          looks,
	"TestTemplates_pages":   looks,
	"TestSettings_manyKeys": looks,
	"TestOverview_fillable": looks,
	"TestPageTurns":         turns,
	"TestPartsTwice":        turns,
	"TestLiveBounds":        turns,
}
