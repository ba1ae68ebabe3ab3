package sqlite

import (
	"slices"
	"sync"
	"time"
)

// groupChanges is how many changes share a commit at most.
const groupChanges = 256

// While people and programs write, patient changes (store.Patiently) are gathered, so that they need
// few commits: a reply waits for a commit that is under way. They begin before the changes of others
// in a commit, so that none waits for ever, but give way to these soon.
const (
	// gatherFor is how long a patient change is kept for a commit with others.
	gatherFor = 25 * time.Millisecond
	// requestsFor is how long people and programs count as writing after a change.
	requestsFor = 200 * time.Millisecond
	// gatheredChanges is how many patient changes a commit begins, but at least one of
	// gatheredPart that wait.
	gatheredChanges, gatheredPart = 16, 4
	// aheadFor is how long patient changes keep others waiting, except by a single one.
	aheadFor = 2 * time.Millisecond
	// overdueAfter is how long a change waits until it no longer gives way, so that more
	// patient changes than the others leave room for don't wait longer and longer.
	overdueAfter = 250 * time.Millisecond
)

// A change is one caller's part of a transaction. If alone is set, it is not part of a
// transaction, but an action that runs between two transactions.
type change struct {
	do         func(conn) error
	alone      bool
	background bool      // neither a person nor a program waits for it
	patient    bool      // it may wait for others
	since      time.Time // when it came
	err        error
	turn       chan []*change // receives a group to lead, or nil if another caller has run the change
}

// A queue lets the changes that arrive during a commit share the next one. A caller that
// finds the queue idle leads the first group. Afterwards it passes the lead to the first
// caller of the next group.
type queue struct {
	mu      sync.Mutex
	busy    bool
	waiting []*change
	behind  []*change // the patient ones
	request time.Time // when a change of a person or a program last came, or began
}

func (q *queue) enter(ch *change) []*change {
	q.mu.Lock()
	defer q.mu.Unlock()
	ch.since = time.Now()
	q.note(ch, ch.since)
	if !q.busy && (!ch.patient || q.quiet()) {
		q.busy = true
		return []*change{ch}
	}
	if ch.patient {
		q.behind = append(q.behind, ch)
	} else {
		q.waiting = append(q.waiting, ch)
	}
	return nil
}

// note notes when a change of a person or a program came or began.
func (q *queue) note(ch *change, at time.Time) {
	if !ch.background && !ch.alone {
		q.request = at
	}
}

func (q *queue) leave() []*change {
	q.mu.Lock()
	defer q.mu.Unlock()
	others := q.next(groupChanges - min(len(q.behind), gatheredChanges))
	if others == nil && len(q.waiting) > 0 {
		others, q.waiting = q.waiting[:1:1], q.waiting[1:] // a change whose alone is set
		return others
	}
	group := append(q.gathered(groupChanges-len(others)), others...)
	if len(group) == 0 {
		q.busy, q.waiting = false, nil
		return nil
	}
	return group
}

// join returns the changes that arrived while a group was running. They join the group's
// commit.
func (q *queue) join(most int) []*change {
	q.mu.Lock()
	defer q.mu.Unlock()
	if group := q.next(most); group != nil || !q.quiet() {
		return group
	}
	return q.behindFirst(most)
}

// next takes changes out of the queue, at most the given number. It stops before a change
// whose alone is set.
func (q *queue) next(most int) []*change {
	n, now := 0, time.Now()
	for n < len(q.waiting) && n < most && !q.waiting[n].alone {
		q.note(q.waiting[n], now)
		n++
	}
	if n == 0 {
		return nil
	}
	group := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	return group
}

// await waits until a change has been run, or until its caller must lead a group. If no others
// write in time, a patient change begins a group itself.
func (q *queue) await(ch *change) []*change {
	if !ch.patient {
		return <-ch.turn
	}
	late := time.NewTimer(gatherFor)
	defer late.Stop()
	select {
	case group := <-ch.turn:
		return group
	case <-late.C:
	}
	if group := q.begin(); len(group) > 0 {
		group[0].turn <- group // it may be another change than ch
	}
	return <-ch.turn
}

// begin returns a group of gathered changes, if the queue is idle.
func (q *queue) begin() []*change {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy {
		return nil
	}
	group := q.gathered(groupChanges)
	q.busy = len(group) > 0
	return group
}

// quiet tells whether neither people nor programs write.
func (q *queue) quiet() bool { return time.Since(q.request) >= requestsFor }

// gathered takes the patient changes out of the queue that are to run now, at most the given number.
func (q *queue) gathered(most int) []*change {
	switch n := len(q.behind); {
	case n == 0:
		return nil
	case q.quiet():
		return q.behindFirst(most)
	case time.Since(q.behind[0].since) >= gatherFor:
		return q.behindFirst(min(most, max(gatheredChanges, n/gatheredPart)))
	}
	return nil
}

// behindFirst takes patient changes out of the queue, the oldest first, at most the given number.
func (q *queue) behindFirst(most int) []*change {
	n := max(0, min(len(q.behind), most))
	group := q.behind[:n:n]
	q.behind = q.behind[n:]
	return group
}

// giveWay takes the rest of the patient changes out of a group, from n on, if others wait for it or
// are a part of it. Those that wait become a part of it.
func (q *queue) giveWay(group []*change, n int) []*change {
	q.mu.Lock()
	defer q.mu.Unlock()
	if time.Since(group[n].since) > overdueAfter {
		return group
	}
	end := n
	for end < len(group) && group[end].patient {
		end++
	}
	others := slices.Concat(group[end:], q.next(groupChanges-len(group)))
	if len(others) == 0 {
		return group
	}
	q.behind = slices.Concat(group[n:end], q.behind)
	return slices.Concat(group[:n], others)
}
