package console

import (
	"testing"

	"parley/store/postgres/pgtest"
)

// TestPostgres runs tests of this package again over PostgreSQL. Golden files don't tell
// the stores apart: the pages are the same bytes.
func TestPostgres(t *testing.T) {
	t.Parallel()
	databases = pgtest.NewPool(t)
	databases.Database(t) // or skip once, here
	for name, test := range map[string]func(*testing.T){
		"TestContact": TestContact, "TestContact_both": TestContact_both, "TestContact_holders": TestContact_holders, "TestContacts": TestContacts,
		"TestEvents": TestEvents, "TestOverview": TestOverview,
		"TestInbox": TestInbox, "TestInbox_refuses": TestInbox_refuses, "TestLiveEnds": TestLiveEnds, "TestLiveNames": TestLiveNames, "TestLiveShows": TestLiveShows,
		"TestChannels": TestChannels, "TestChannels_sandbox": TestChannels_sandbox, "TestWebhooks": TestWebhooks, "TestWebhooks_deliveries": TestWebhooks_deliveries,
		"TestMe": TestMe, "TestThread": TestThread, "TestThread_long": TestThread_long, "TestNotes": TestNotes, "TestMedia": TestMedia, "TestPageTimes": TestPageTimes, "TestReply": TestReply, "TestReply_closing": TestReply_closing, "TestReply_file": TestReply_file, "TestReply_outcomes": TestReply_outcomes, "TestReply_quote": TestReply_quote, "TestReply_window": TestReply_window,
		"TestRoutes": TestRoutes, "TestSavedReplies": TestSavedReplies, "TestMarkRead": TestMarkRead, "TestWriteAsCustomer": TestWriteAsCustomer, "TestSend": TestSend, "TestSends": TestSends, "TestSends_outcome": TestSends_outcome, "TestSessions_end": TestSessions_end,
		"TestSessions_streams": TestSessions_streams, "TestSessions_writes": TestSessions_writes, "TestSettings_attributes": TestSettings_attributes,
		"TestSettings_keys": TestSettings_keys, "TestSettings_members": TestSettings_members, "TestSettings_orderWithEqualPositions": TestSettings_orderWithEqualPositions,
		"TestSettings_roles": TestSettings_roles, "TestSettings_workspace": TestSettings_workspace, "TestSignIn_byLink": TestSignIn_byLink,
		"TestSignIn_byPassword": TestSignIn_byPassword, "TestSignIn_choice": TestSignIn_choice, "TestSignIn_crossSite": TestSignIn_crossSite, "TestTemplates": TestTemplates,
	} {
		t.Run(name, test)
	}
}
