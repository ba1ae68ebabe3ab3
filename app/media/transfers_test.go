package media

import (
	"context"
	"testing"

	"parley/desk"
)

// TestTransfers: one workspace can't take all slots of uploads and downloads, nor can two.
func TestTransfers(t *testing.T) {
	t.Parallel()
	var slots transfers
	now, stop := context.WithCancel(t.Context()) // with this context, no call waits for a slot
	stop()
	take := func(ws desk.ID) (leave []func()) {
		for {
			l, err := slots.enter(now, ws)
			if err != nil {
				if !desk.IsType(err, desk.Unavailable) {
					t.Error(err)
				}
				return leave
			}
			leave = append(leave, l)
		}
	}
	end := func(leave []func()) {
		for _, l := range leave {
			l()
		}
	}
	alone := take(desk.ID{1})
	end(alone)
	var taken []func()
	for i := range 6 {
		leave := take(desk.ID{1, byte(i)})
		if len(leave) == 0 {
			t.Errorf("the workspace %d finds no slot", i)
		}
		taken = append(taken, leave...)
	}
	if len(alone) == 0 || len(alone) > len(taken)/2 {
		t.Errorf("one workspace takes %d slots, several take %d", len(alone), len(taken))
	}
	end(taken)
	end(taken) // a second call of leave must have no effect
	if slots.n != 0 || len(slots.of) != 0 {
		t.Errorf("%d slots are not free again, of %v", slots.n, slots.of)
	}
}
