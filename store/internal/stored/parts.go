package stored

// NoMore is the result of a part whose Book has ended the group.
const NoMore = -1

// InParts runs n operations for a store, in parts. The callback part runs the operations
// of one range and returns 0 or NoMore. If the operations name too many contacts, the
// callback does nothing and returns how many contacts fit into the Book. A part of one
// operation always fits.
func InParts(n int, part func(from, to int) (fit int, err error)) error {
	for from, size := 0, n; ; {
		to := min(from+size, n)
		fit, err := part(from, to)
		switch {
		case err != nil || fit == NoMore:
			return err
		case fit > 0:
			size = max(min(fit, (to-from)/2), 1) // most operations name one contact
			continue
		}
		if from = to; from == n {
			return nil
		}
	}
}
