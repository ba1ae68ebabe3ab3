package doctor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley/config"
	"parley/desk"
	"parley/doctor"
	"parley/store"
)

// A database is one in which all is well, but for what a test sets.
type database struct {
	store.Examined // panics where a check asks for more than the test expects
	clock          time.Duration
	bytes          int64
	doubts         []string
	damage         error
	behind         int  // workspaces whose search is behind
	overtaken      *int // how often another process begins to use the database
}

func (database) Close() error { return nil }
func (database) Fingerprint(context.Context) (string, error) {
	return config.Secret{}.Fingerprint(), nil
}
func (database) Schema(context.Context) (has, knows int64, err error) { return 7, 7, nil }
func (d database) Doubts(context.Context) ([]string, error)           { return d.doubts, nil }
func (database) Workspaces(context.Context) ([]desk.Workspace, error) { return nil, nil }
func (d database) Overtaken() bool {
	if d.overtaken == nil || *d.overtaken == 0 {
		return false
	}
	*d.overtaken--
	return true
}
func (d database) Unindexed(context.Context, []desk.EventType, desk.Time, int) ([]desk.ID, error) {
	return make([]desk.ID, d.behind), nil
}
func (d database) Damage(context.Context) ([]string, bool, error) { return nil, true, d.damage }

func (d database) Clock(context.Context) (desk.Time, int64, error) {
	return desk.TimeOf(now().Add(d.clock)), 1, nil
}

func (d database) Metrics(context.Context, desk.Time) (store.Metrics, error) {
	return store.Metrics{Bytes: d.bytes}, nil
}

func now() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }

// TestExamine: what the tests of the program can't break.
func TestExamine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o750); err != nil { // a group may read, for backups
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "secret.key"), []byte("0000000000000000000000000000000000000000000000000000000000000000"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		database
		free   int64
		id     string
		status doctor.Status
	}{
		"well":             {database{bytes: 1 << 30}, 3 << 30, "", doctor.OK},
		"disk nearly full": {database{}, 99_999_999, "disk.space", doctor.Fail},
		"disk too small":   {database{bytes: 1 << 30}, 2<<30 - 1, "disk.space", doctor.Warn},
		"clock behind":     {database{clock: 2001 * time.Millisecond}, 3 << 30, "clock", doctor.Warn},
		"clock ahead":      {database{clock: -2001 * time.Millisecond}, 3 << 30, "clock", doctor.Warn},
		"clock nearly":     {database{clock: 2 * time.Second}, 3 << 30, "", doctor.OK},
		"fsync":            {database{doubts: []string{"fsync is off, not on"}}, 3 << 30, "db.settings", doctor.Fail},
		"search behind":    {database{behind: 3}, 3 << 30, "search.behind", doctor.Warn},
		"search far":       {database{behind: 1000}, 3 << 30, "search.behind", doctor.Warn},
		"overtaken":        {database{overtaken: new(int)}, 3 << 30, "", doctor.OK},
		"unknown":          {database{damage: errors.New("no answer")}, 3 << 30, "db.integrity", doctor.Fail},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opened, want := 0, 1
			if c.overtaken != nil {
				*c.overtaken, want = 2, 3
			}
			checks, err := doctor.Examine(t.Context(), doctor.Patient{
				Storage: config.Storage{Dir: dir}, Deep: true, Now: now,
				Open: func(context.Context) (store.Examined, error) { opened++; return c.database, nil },
				Free: func(string) (int64, error) { return c.free, nil },
			})
			if err != nil || len(checks) != 12 || doctor.Well(checks) != (c.status != doctor.Fail) {
				t.Errorf("%d checks, %v: %v", len(checks), err, checks)
			}
			if opened != want {
				t.Errorf("the database was examined %d times, want %d", opened, want)
			}
			for _, check := range checks {
				want := doctor.OK
				if check.ID == c.id {
					want = c.status
				}
				if check.Status != want {
					t.Errorf("%+v, want %s", check, want)
				}
			}
		})
	}
}
