package app_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"parley/desk"
	"parley/store"
)

// A faultyStore is a Store with faults: its connection to the database can be lost, and the
// database can have another clock. It runs each closure twice, because a store may do so.
// It also checks that transactions which assign by policy take the lock first.
type faultyStore struct {
	store.Store
	room func() (free, total int64, known bool) // nil: the real room
	mu   sync.Mutex
	n    int // how many transactions have begun since the last call of in
	at   int // the number of the transaction in which do is called; the field when has the moment
	when moment
	do   func() error // its error is the transaction's outcome
	drop func(desk.InboundItem) error
	put  func(*desk.Message) error
	note func(*desk.Conflict) error
	ends func(when moment, messages int) error // called for each transaction that stores messages, at the moments commit and answer
	puts func(patient bool)                    // called with each transaction that has stored messages
	pace func([]desk.Bucket, time.Duration) (time.Duration, bool, error)

	newest func()                             // called after each look at the newest claims of a broadcast
	drives func(*desk.Broadcast)              // called before a broadcast is stored
	takes  func(store.Tx, []store.NumberHash) // called before a row of a broadcast takes these numbers

	hang   func(ws desk.ID)       // called before templates and contacts of a dry run are read
	queue  func()                 // called before each page of events is read, like a wait for a connection
	read   func(*store.EventPage) // called with each page of events that was read
	pages  func()                 // called after each page of contacts that was read in the order of ids
	copy   func()                 // called after each page of rows of a broadcast that was read
	talk   func()                 // called after each look at a conversation
	spaces func()                 // called after each list of the workspaces
	last   func()                 // called after each look-up of the newest contact, as a start does for an audience

	down    atomic.Bool  // transactions can't begin
	away    atomic.Bool  // events can't be read
	cut     atomic.Bool  // leases can't be taken
	blind   atomic.Bool  // attempts can't be looked up
	full    atomic.Bool  // content can't be written
	keeps   atomic.Bool  // deliveries can't be deleted
	passed  atomic.Bool  // all claims of broadcasts are older than those that are looked at
	beaten  atomic.Bool  // another row of the broadcast has taken each number a moment before
	once    atomic.Bool  // closures run only once
	ahead   atomic.Int64 // how far the database's clock is ahead, in milliseconds
	claimed atomic.Int64 // look-ups of keys
	looked  atomic.Int64 // look-ups of attempts
	listed  atomic.Int64 // look-ups of channels of a kind
}

// lost returns the error of a broken connection.
func lost() error {
	return &desk.Error{Type: desk.Unavailable, Message: "the connection was lost", Err: store.ErrCommitLost}
}

// A moment is a moment in the life of a transaction.
type moment int

const (
	begin  moment = iota // the closure has not run yet
	commit               // the closure has run; an error now rolls it back
	answer               // the commit is done, but the caller does not know it yet
)

// Contended returns false, however many tests are at work beside this one.
func (s *faultyStore) Contended() bool { return false }

// in makes the n-th transaction from now on call do at the given moment.
func (s *faultyStore) in(n int, when moment, do func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n, s.at, s.when, s.do = 0, n, when, do
}

// next counts the beginning of a transaction. It returns the function that the transaction
// must call at each moment.
func (s *faultyStore) next() func(moment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if s.n != s.at {
		return func(moment) error { return nil }
	}
	when, do := s.when, s.do
	return func(now moment) error {
		if now != when {
			return nil
		}
		return do()
	}
}

func (s *faultyStore) ending(when moment, messages int) error {
	if s.ends == nil || messages == 0 {
		return nil
	}
	return s.ends(when, messages)
}

func (s *faultyStore) Templates(ctx context.Context, ws, channel desk.ID) (int64, []desk.TemplateSource, error) {
	if s.hang != nil {
		s.hang(ws)
	}
	return s.Store.Templates(ctx, ws, channel)
}

func (s *faultyStore) Book(ctx context.Context, ws desk.ID, l desk.Lookup) (*desk.Book, error) {
	if s.hang != nil {
		s.hang(ws)
	}
	return s.Store.Book(ctx, ws, l)
}

func (s *faultyStore) Conversation(ctx context.Context, ws, id desk.ID) (*desk.Conversation, error) {
	c, err := s.Store.Conversation(ctx, ws, id)
	if s.talk != nil {
		s.talk()
	}
	return c, err
}

func (s *faultyStore) ContactsAfter(ctx context.Context, ws, after desk.ID, limit int) ([]*desk.Contact, bool, error) {
	list, more, err := s.Store.ContactsAfter(ctx, ws, after, limit)
	if s.pages != nil {
		s.pages()
	}
	return list, more, err
}

func (s *faultyStore) Workspaces(ctx context.Context) ([]desk.Workspace, error) {
	list, err := s.Store.Workspaces(ctx)
	if s.spaces != nil {
		s.spaces()
	}
	return list, err
}

func (s *faultyStore) LastContact(ctx context.Context, ws desk.ID) (desk.ID, error) {
	id, err := s.Store.LastContact(ctx, ws)
	if s.last != nil {
		s.last()
	}
	return id, err
}

var errAgain = errors.New("run it again")

func (s *faultyStore) InTx(ctx context.Context, ws desk.ID, f func(store.Tx) error) error {
	if s.down.Load() {
		return lost()
	}
	reach := s.next()
	if err := reach(begin); err != nil {
		return err
	}
	first := !s.once.Load()
	for {
		faulty := &faultyTx{s: s}
		err := s.Store.InTx(ctx, ws, func(tx store.Tx) error {
			*faulty = faultyTx{Tx: tx, s: s}
			err := f(faulty)
			switch {
			case err != nil:
				return err
			case first:
				return errAgain
			}
			return cmp.Or(reach(commit), s.ending(commit, faulty.messages))
		})
		if !errors.Is(err, errAgain) {
			if err == nil {
				if s.puts != nil && faulty.messages > 0 {
					s.puts(store.IsPatient(ctx))
				}
				err = cmp.Or(reach(answer), s.ending(answer, faulty.messages))
			}
			return err
		}
		first = false
	}
}

// StoreDeliveries counts as a transaction also, so it has the same faults.
func (s *faultyStore) StoreDeliveries(ctx context.Context, hold store.DeliveryHold, state desk.WebhookState, list []*desk.WebhookDelivery) (bool, error) {
	if s.down.Load() {
		return false, lost()
	}
	reach := s.next()
	if err := reach(begin); err != nil {
		return false, err
	}
	stored, err := s.Store.StoreDeliveries(ctx, hold, state, list)
	if err == nil && stored {
		err = reach(answer)
	}
	return stored && err == nil, err
}

func (s *faultyStore) AttemptOfKey(ctx context.Context, ws desk.ID, key string) (*desk.Attempt, error) {
	defer s.claimed.Add(1)
	return s.Store.AttemptOfKey(ctx, ws, key)
}

// A fullDraft is a draft on a full disk.
type fullDraft struct {
	store.Draft
	s *faultyStore
}

func (d fullDraft) Write(p []byte) (int, error) {
	if d.s.full.Load() {
		n, _ := d.Draft.Write(p[:len(p)/2])
		return n, desk.Errorf(desk.Unavailable, "no space left on device")
	}
	return d.Draft.Write(p)
}

func (s *faultyStore) Room() (free, total int64, known bool, err error) {
	if s.room != nil {
		free, total, known = s.room()
		return free, total, known, nil
	}
	return s.Store.Room()
}

func (s *faultyStore) NewContent(ctx context.Context, ws desk.ID) (store.Draft, error) {
	d, err := s.Store.NewContent(ctx, ws)
	if err != nil {
		return nil, err
	}
	return fullDraft{d, s}, nil
}

func (s *faultyStore) Attempt(ctx context.Context, ws, id desk.ID) (*desk.Attempt, error) {
	defer s.looked.Add(1)
	if s.blind.Load() {
		return nil, lost()
	}
	return s.Store.Attempt(ctx, ws, id)
}

func (s *faultyStore) Lapsed(ctx context.Context, length, margin desk.Time, limit int) ([]store.LapsedAttempt, error) {
	return s.Store.Lapsed(ctx, length+2*desk.Time(s.ahead.Load()), margin-desk.Time(s.ahead.Load()), limit)
}

func (s *faultyStore) HoldLeases(ctx context.Context, list []store.LeaseRef, holder desk.ID, length desk.Time) (map[store.LeaseRef]int64, error) {
	if s.cut.Load() {
		return nil, lost()
	}
	return s.Store.HoldLeases(ctx, list, holder, length)
}

func (s *faultyStore) ExtendLeases(ctx context.Context, list []store.LeaseRef, holder desk.ID, length desk.Time) (map[store.LeaseRef]int64, error) {
	if s.cut.Load() {
		return nil, lost()
	}
	return s.Store.ExtendLeases(ctx, list, holder, length)
}

func (s *faultyStore) ForgetDeliveries(ctx context.Context, ws, webhook desk.ID, before desk.Time, keep, limit int) (int, error) {
	if s.keeps.Load() {
		return 0, lost()
	}
	return s.Store.ForgetDeliveries(ctx, ws, webhook, before, keep, limit)
}

func (s *faultyStore) ChannelsOfKind(ctx context.Context, kind desk.ChannelKind) ([]store.ChannelRef, error) {
	defer s.listed.Add(1)
	if s.down.Load() {
		return nil, lost()
	}
	return s.Store.ChannelsOfKind(ctx, kind)
}

func (s *faultyStore) Pace(ctx context.Context, ws desk.ID, buckets []desk.Bucket, most time.Duration) (time.Duration, bool, error) {
	if s.pace != nil {
		return s.pace(buckets, most)
	}
	return s.Store.Pace(ctx, ws, buckets, most)
}

func (s *faultyStore) NewestClaims(ctx context.Context, ws, broadcast desk.ID, since desk.Time, limit int) ([]*desk.BroadcastRow, error) {
	rows, err := s.Store.NewestClaims(ctx, ws, broadcast, since, limit)
	if s.newest != nil {
		s.newest()
	}
	if s.passed.Load() {
		return nil, err
	}
	return rows, err
}

func (s *faultyStore) BroadcastRows(ctx context.Context, ws, broadcast desk.ID, f desk.RowFilter, after desk.ID, limit int) ([]*desk.BroadcastRow, *desk.ID, error) {
	rows, next, err := s.Store.BroadcastRows(ctx, ws, broadcast, f, after, limit)
	if s.copy != nil {
		s.copy()
	}
	return rows, next, err
}

func (s *faultyStore) Clock(ctx context.Context) (now desk.Time, hour int64, err error) {
	now, hour, err = s.Store.Clock(ctx)
	return now + desk.Time(s.ahead.Load()), hour, err
}

type faultyTx struct {
	store.Tx
	s        *faultyStore
	messages int  // how many messages were put so far
	assigns  bool // the transaction has locked the workspace's assignment
}

var errNoLock = errors.New("what members hold is counted, and another transaction may assign meanwhile")

func (tx *faultyTx) LockAssignment() error {
	tx.assigns = true
	return tx.Tx.LockAssignment()
}

func (tx *faultyTx) Loads(policy desk.ID, members []desk.ID, most int) (map[desk.ID]desk.Load, error) {
	if !tx.assigns {
		return nil, errNoLock
	}
	return tx.Tx.Loads(policy, members, most)
}

func (tx *faultyTx) Now() desk.Time { return tx.Tx.Now() + desk.Time(tx.s.ahead.Load()) }

func (tx *faultyTx) TakeNumbers(broadcast, row desk.ID, hashes []store.NumberHash, passed map[store.NumberHash]desk.ID) (bool, error) {
	if tx.s.beaten.Load() {
		return false, nil
	}
	if tx.s.takes != nil {
		tx.s.takes(tx.Tx, hashes)
	}
	return tx.Tx.TakeNumbers(broadcast, row, hashes, passed)
}

func (tx *faultyTx) TakeInbound(list []desk.InboundItem) ([]desk.InboundItem, error) {
	for _, n := range list {
		if tx.s.drop != nil {
			if err := tx.s.drop(n); err != nil {
				return nil, err
			}
		}
	}
	return tx.Tx.TakeInbound(list)
}

func (tx *faultyTx) PutMessage(m *desk.Message) error {
	tx.messages++
	if tx.s.put != nil {
		if err := tx.s.put(m); err != nil {
			return err
		}
	}
	return tx.Tx.PutMessage(m)
}

func (tx *faultyTx) PutBroadcast(b *desk.Broadcast) error {
	if tx.s.drives != nil {
		tx.s.drives(b)
	}
	return tx.Tx.PutBroadcast(b)
}

func (tx *faultyTx) PutConflict(c *desk.Conflict) error {
	if tx.s.note != nil {
		if err := tx.s.note(c); err != nil {
			return err
		}
	}
	return tx.Tx.PutConflict(c)
}

func (s *faultyStore) Heads(ctx context.Context, list []desk.ID) (map[desk.ID]store.Head, error) {
	if s.away.Load() {
		return nil, lost()
	}
	return s.Store.Heads(ctx, list)
}

func (s *faultyStore) Events(ctx context.Context, ws desk.ID, q store.EventQuery, which func(*desk.Settings) ([]desk.EventType, error)) (*store.EventPage, error) {
	if s.away.Load() {
		return nil, lost()
	}
	if s.queue != nil {
		s.queue()
	}
	page, err := s.Store.Events(ctx, ws, q, which)
	if err == nil && s.read != nil {
		s.read(page)
	}
	return page, err
}
