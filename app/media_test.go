package app_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/desk"
)

// TestTransfers: one workspace can't take all slots of uploads and downloads, nor can two,
// and whatever becomes of a transfer, its slot is free again.
func TestTransfers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now, stop := context.WithCancel(t.Context()) // nobody waits for a slot
	stop()
	take := func(ws desk.ID) (n int, leave []func()) {
		for {
			l, err := w.EnterTransfer(now, ws)
			if err != nil {
				refused(t, err, desk.Unavailable)
				return n, leave
			}
			n++
			leave = append(leave, l)
		}
	}
	all := func() int { n, leave := take(w.ws); end(leave); return n }
	first := all()
	var taken []func()
	for i := range 6 {
		n, leave := take(desk.ID{1, byte(i)})
		if n == 0 {
			t.Errorf("the workspace %d finds no slot", i)
		}
		taken = append(taken, leave...)
	}
	if first == 0 || first > len(taken)/2 {
		t.Errorf("one workspace takes %d slots, several take %d", first, len(taken))
	}
	end(taken)
	end(taken) // once is enough

	m, err := w.Upload(t.Context(), w.caller(), "a.jpg", "", strings.NewReader(picture))
	must(t, err)
	for range 2 * first {
		_, err := w.Upload(t.Context(), w.caller(), "", "", io.MultiReader(strings.NewReader("a part"), broken{}))
		if err == nil {
			t.Fatal("it is stored")
		}
		_, err = w.Upload(t.Context(), w.caller(), "", "", strings.NewReader(""))
		refused(t, err, desk.InvalidRequest)
		_, content, err := w.MediaContent(t.Context(), w.operator(), m.ID)
		must(t, err)
		must(t, content.Close())
	}
	must(t, os.RemoveAll(filepath.Join(filepath.Dir(w.path), "media", w.ws.String())))
	for range 2 * first {
		_, _, err := w.MediaContent(t.Context(), w.operator(), m.ID)
		refused(t, err, desk.Unavailable)
	}
	if n := all(); n != first {
		t.Errorf("%d slots are left of %d", n, first)
	}
	left, err := os.ReadDir(filepath.Join(filepath.Dir(w.path), "media", "drafts"))
	if err != nil || len(left) != 0 {
		t.Errorf("drafts are left: %v, %v", left, err)
	}
}

func end(leave []func()) {
	for _, l := range leave {
		l()
	}
}

// A broken is a connection that broke.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
