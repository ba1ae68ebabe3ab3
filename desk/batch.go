package desk

// MaxOperations is the greatest number of operations in one batch (spec, Limits).
const MaxOperations = 1000

// CheckBatch refuses a batch of n operations if it is empty or too long. For a batch that
// is too long, the error says how many requests are needed.
func CheckBatch(n int) error {
	switch {
	case n == 0:
		return InvalidAt("/operations", "a batch holds 1 to %d operations, this one has none", MaxOperations)
	case n > MaxOperations:
		return Errorf(TooManyOperations, "a batch holds at most %d operations, this one has %d: send them in %d requests",
			MaxOperations, n, (n+MaxOperations-1)/MaxOperations)
	}
	return nil
}

// A Summary counts the results of a batch's operations (spec, POST /contacts/batch).
type Summary struct{ Total, Created, Updated, Deleted, Assigned, Errors int }

// Count adds the result of one operation. The status of a failed operation is "".
func (s *Summary) Count(status Status) {
	s.Total++
	switch status {
	case StatusCreated:
		s.Created++
	case StatusUpdated:
		s.Updated++
	case StatusAssigned:
		s.Assigned++
	case StatusDeleted:
		s.Deleted++
	default:
		s.Errors++
	}
}
