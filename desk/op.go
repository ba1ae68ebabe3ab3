package desk

// An OpKind says what an operation does.
type OpKind uint8

// The operations. A batch may hold the first three.
const (
	OpUpsert         OpKind = iota // create or update by identity
	OpAssign                       // set or clear the owner
	OpDelete                       // delete the contact
	OpPatch                        // update by id, never create
	OpRemoveIdentity               // remove one further identity
	OpMerge                        // merge the contact From into Target
	OpUnmerge                      // undo a merge
	OpMove                         // move the handle Remove[0] from its holder to Target
)

// An Op is one change to one contact, or a merge of two. All writes of contacts have this form, for every
// kind of request.
type Op struct {
	Kind        OpKind
	ByID        bool         // whether Target names the contact (assign, delete, patch, remove identity)
	Target      ID           // the zero ID finds no contact
	Find        []Identity   // identifies the contact of an assign or delete, in addition to Target
	Write       ContactWrite // upsert, patch
	Owner       Field[Reference]
	Brief       bool // whether the caller needs only the outcome's status and id
	DetailBytes int  // the size limit of an error's details, without the first entry; 0: MaxDetailBytes

	New     bool  // upsert: refuse if a contact already holds one of the identities
	Version int64 // patch: return Changed unless the contact still has this version; 0: any

	Remove []Identity // remove identity: readings of one handle; the first that the contact holds is removed

	From    ID       // merge: the contact that goes
	Take    []string // merge: the fields whose value is taken from the contact that goes
	Unmerge *Merge   // undo a merge: this one
}

// Check refuses an operation that is invalid independently of stored data.
func (op *Op) Check() error {
	switch op.Kind {
	case OpUpsert:
		if len(op.Write.Sent) == 0 {
			return Invalidf("name the contact by at least one of external_id, email, phone or identities: without any, every request would make a new contact")
		}
	case OpAssign, OpDelete:
		if op.Kind == OpAssign && !op.Owner.Set {
			return InvalidAt("/owner", "missing; give a member's id or e-mail, or null to clear the owner")
		}
		if !op.ByID && len(op.Find) == 0 {
			return Invalidf("name the contact by at least one of id, external_id, email, phone or identities")
		}
	}
	return nil
}

// IDs returns the ids by which the operation names contacts.
func (op *Op) IDs() []ID {
	switch {
	case op.Kind == OpMerge:
		return []ID{op.Target, op.From}
	case op.ByID:
		return []ID{op.Target}
	}
	return nil
}

// Identities are the identities by which the operation finds or claims a contact.
func (op *Op) Identities() []Identity {
	if op.Kind == OpMove {
		return op.Remove
	}
	if op.Find != nil {
		return op.Find
	}
	return op.Write.Sent
}

// A Lookup names the contacts that a Book is to load: by id, and by identity.
type Lookup struct {
	IDs        []ID
	Identities []Identity
	Most       int // limits the bytes of the loaded contacts; 0: no limit. If the Book is larger, some contacts were not loaded

	// Merges tells a transaction that contacts are merged or separated: what others store about
	// them moves, so it waits for those who keep the contacts.
	Merges bool
}

// Lookup names the contacts that the operation can change.
func (op *Op) Lookup() Lookup {
	return Lookup{IDs: op.IDs(), Identities: op.Identities(), Merges: op.Kind == OpMerge || op.Kind == OpUnmerge}
}

// A Status is the result of an operation, as in a batch row.
type Status string

// The statuses. An operation that changes nothing also has the status StatusUpdated or
// StatusAssigned.
const (
	StatusCreated  Status = "created"
	StatusUpdated  Status = "updated"
	StatusAssigned Status = "assigned"
	StatusDeleted  Status = "deleted"
)

// An Outcome is the answer of an accepted operation: the contact right after it, or,
// for a deletion, right before it.
type Outcome struct {
	Status  Status
	ID      ID
	Contact *Contact // nil for the caller of a brief operation
	Merge   *Merge   // of a merge or its undo: the record; its id and what else it moves are not known here
}
