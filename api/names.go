package api

import "hash/maphash"

// A nameSet holds the names of an object's members, to find duplicates. It keeps a hash of
// each name, in open addressing. A body of short names may have two million names, and a
// map took ten times the memory. It is as unlikely that two names have the same hash as
// that the memory fails, and an object with so many members is refused anyway.
type nameSet struct {
	slots []uint64 // 0: free
	count int
}

var nameSeed = maphash.MakeSeed()

// keptSlots is how many slots a set keeps for the next object.
const keptSlots = 256

func (s *nameSet) reset() {
	if len(s.slots) > keptSlots {
		s.slots = nil
	}
	clear(s.slots)
	s.count = 0
}

// add tells whether the name is new.
func (s *nameSet) add(name string) bool {
	h := maphash.String(nameSeed, name)
	if h == 0 {
		h = 1
	}
	if 4*s.count >= 3*len(s.slots) {
		old := s.slots
		s.slots = make([]uint64, max(2*len(old), 16))
		for _, h := range old {
			if h != 0 {
				s.slots[s.place(h)] = h
			}
		}
	}
	at := s.place(h)
	if s.slots[at] == h {
		return false
	}
	s.slots[at] = h
	s.count++
	return true
}

// place is the slot of a hash, or the free slot for it.
func (s *nameSet) place(h uint64) int {
	mask := len(s.slots) - 1
	at := int(h) & mask
	for s.slots[at] != 0 && s.slots[at] != h {
		at = (at + 1) & mask
	}
	return at
}
