package desk

// A RowStatus says what became of a row of a broadcast (contract-broadcast §3).
type RowStatus string

// The statuses.
const (
	RowPending   RowStatus = "pending"
	RowSending   RowStatus = "sending"
	RowSent      RowStatus = "sent"
	RowDelivered RowStatus = "delivered"
	RowRead      RowStatus = "read"
	RowFailed    RowStatus = "failed"
	RowRefused   RowStatus = "refused"
	RowInDoubt   RowStatus = "in_doubt"
	RowSkipped   RowStatus = "skipped"
	RowCancelled RowStatus = "cancelled"
)

// RowStatuses lists the statuses in the order in which they are shown.
var RowStatuses = []RowStatus{RowPending, RowSending, RowSent, RowDelivered, RowRead, RowFailed, RowRefused, RowInDoubt, RowSkipped, RowCancelled}

// A RowReason says why a row was skipped, or that a person decided that it was not sent.
type RowReason string

// The reasons, in the order in which they are checked.
const (
	SkipLate           RowReason = "late"
	SkipDeleted        RowReason = "deleted"
	SkipDuplicate      RowReason = "duplicate"
	SkipUnreachable    RowReason = "unreachable"
	SkipNoConsent      RowReason = "no_consent"
	SkipOptedOut       RowReason = "opted_out"
	SkipInConversation RowReason = "in_conversation"
	SkipVariables      RowReason = "invalid_variables"

	RowReleased RowReason = "released" // of a refused row
)

// RowReasons lists the reasons.
var RowReasons = []RowReason{SkipLate, SkipDeleted, SkipDuplicate, SkipUnreachable, SkipNoConsent, SkipOptedOut, SkipInConversation, SkipVariables, RowReleased}
