package desk

// MaxHistory is how many changes of a contact its history keeps, in addition to its creation
// (contract-data §7).
const MaxHistory = 200

// HistoryTypes are the events that the history of a contact keeps.
var HistoryTypes = []EventType{ContactCreated, ContactUpdated, ContactOptedOut, ContactOptedIn}
