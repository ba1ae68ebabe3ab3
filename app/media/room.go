package media

import (
	"context"
	"errors"

	"parley/desk"
)

// roomStep is how many bytes a transfer reserves at a time.
const roomStep = 8 << 20

// A hold has the bytes that one transfer has reserved.
type hold struct {
	a    *Service
	ws   desk.ID
	size int64 // bytes received
	got  int64 // bytes reserved
}

// take counts received bytes, and reserves room for them. It returns MediaQuota if the
// workspace has no room, and Unavailable if the server has none.
func (h *hold) take(ctx context.Context, n int64) error {
	if h.size += n; h.size <= h.got {
		return nil
	}
	if err := h.a.roomLeft(); err != nil {
		return err
	}
	limit := h.a.PerWorkspace
	if limit == 0 {
		h.got = h.size + roomStep // after this many bytes, check the server's room again
		return nil
	}
	used, err := h.a.Store.MediaUsed(ctx, h.ws)
	if err != nil {
		return err
	}
	var others int64
	for _, more := range []int64{max(roomStep, h.size-h.got), h.size - h.got} { // near the limit, reserve only the bytes needed
		ok := false
		if others, ok = h.a.reserved.add(h.ws, more, limit-used); ok {
			h.got += more
			return nil
		}
	}
	full := desk.MediaFull(limit, used+others-h.got)
	if used+h.size <= limit { // there is room if other transfers give up their reserved bytes
		return &crowded{full}
	}
	return full
}

// A crowded error refuses a file for which there would be room if other transfers had not
// reserved it.
type crowded struct{ error }

func (c *crowded) Unwrap() error { return c.error }

// leave gives back the reserved bytes.
func (h *hold) leave() {
	if h.a.PerWorkspace > 0 && h.got > 0 {
		h.a.reserved.add(h.ws, -h.got, -1)
	}
	h.got = 0
}

// roomLeft returns Unavailable if the file system with the files has less free space than
// must stay free. If the free space can't be read, it returns nil: storing a file then shows
// whether there is room.
func (a *Service) roomLeft() error {
	free, total, known, err := a.Store.Room()
	if err != nil || !known || free >= desk.FreeFloor(a.KeepFree, total) {
		return nil
	}
	return &desk.Error{
		Type: desk.Unavailable, Message: "this server has too little room for files: nothing was stored, try again later", RetryAfter: roomRetry,
		Err: errNoRoom,
	}
}

var errNoRoom = errors.New("the file system that has the files has too little room")

// If the server has no room for a file, the client should send it again after roomRetry
// seconds.
const roomRetry = 60

// A Room says how much room there is for the files of a workspace.
type Room struct {
	Used, Limit int64 // bytes; Limit 0: none
	Free, Floor int64 // bytes that are free, and that must stay free, on the file system with the files; 0 unless Known
	Known       bool  // false: the files are in the database, or the free space can't be read
}

// Room returns how much room there is for the files of a workspace.
func (a *Service) Room(ctx context.Context, p desk.Principal) (r Room, err error) {
	r.Limit = a.PerWorkspace
	if r.Used, err = a.Store.MediaUsed(ctx, p.Workspace()); err != nil {
		return r, err
	}
	if free, total, known, err := a.Store.Room(); known && err == nil {
		r.Free, r.Floor, r.Known = free, desk.FreeFloor(a.KeepFree, total), true
	}
	return r, nil
}

// Free returns the free bytes of the file system with the files. known is false if the files
// are in the database, or if the free space can't be read.
func (a *Service) Free() (free int64, known bool) {
	free, _, known, err := a.Store.Room()
	return free, known && err == nil
}
