package desk

// An OpKind says what an operation does.
type OpKind uint8

// The operations. A batch may hold the first three.
const (
	OpUpsert         OpKind = iota // create or update by identity
	OpAssign                       // set or clear the owner
	OpDelete                       // erase the contact
	OpPatch                        // update by id, never create
	OpRemoveIdentity               // drop one further identity
)

// An Op is one change to one contact: the only form in which contacts are
// written, whichever way the request came in.
type Op struct {
	Kind   OpKind
	ByID   bool         // Target names the contact (assign, delete, patch, remove identity)
	Target ID           // the zero ID is an unknown contact
	Find   []Identity   // what identifies the contact of an assign or delete, beside Target
	Write  ContactWrite // upsert, patch
	Owner  Field[string]
	Remove []Identity // remove identity: readings of one handle; the first that the contact holds counts
}

// Check refuses an operation that can't be carried out whatever is stored.
func (op *Op) Check() error {
	switch op.Kind {
	case OpUpsert:
		if len(op.Write.Sent) == 0 {
			return Invalidf("name the contact by at least one of external_id, email, phone or identities: without any, every request would make a new contact")
		}
	case OpAssign, OpDelete:
		if op.Kind == OpAssign && !op.Owner.Set {
			return Invalidf("/owner is missing: give a member's id or e-mail, or null to clear the owner")
		}
		if !op.ByID && len(op.Find) == 0 {
			return Invalidf("name the contact by at least one of id, external_id, email, phone or identities")
		}
	}
	return nil
}

// IDs are the contacts that the operation names by id.
func (op *Op) IDs() []ID {
	if op.ByID {
		return []ID{op.Target}
	}
	return nil
}

// Identities are those by which the operation finds or claims a contact.
func (op *Op) Identities() []Identity {
	if op.Find != nil {
		return op.Find
	}
	return op.Write.Sent
}

// A Status is what became of an operation, as a batch row says it.
type Status string

// The statuses. An operation that changes nothing is updated, or assigned, too.
const (
	StatusCreated  Status = "created"
	StatusUpdated  Status = "updated"
	StatusAssigned Status = "assigned"
	StatusDeleted  Status = "deleted"
)

// An Outcome is an accepted operation's answer: the contact as it stood right
// after it, or, of a deleted one, as it stood before.
type Outcome struct {
	Status  Status
	Contact *Contact
}

// An EventKind names what happened to a record.
type EventKind string

// The events of contacts.
const (
	ContactCreated EventKind = "contact.created"
	ContactUpdated EventKind = "contact.updated"
	ContactDeleted EventKind = "contact.deleted"
)

// An Event is one accepted change. It names fields, never their values, so that
// erasing a contact leaves nothing of the person behind.
type Event struct {
	Kind    EventKind
	Subject ID
	Actor   ID // the key that did it; zero for the command line
	At      Time
	Changed []string // of an update; a creation and a deletion are of everything
}
