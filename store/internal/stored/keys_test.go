package stored_test

import (
	"slices"
	"strings"
	"testing"

	"parley/desk"
	"parley/store/internal/stored"
)

// TestPermissions: every set of permissions comes back, and a server of the second release can
// read it.
func TestPermissions(t *testing.T) {
	t.Parallel()
	known := strings.Split("contacts:read,contacts:write,attributes:read,attributes:write,conversations:read,conversations:write,messages:send,templates:read,"+
		"channels:read,members:read,events:read,webhooks:read,webhooks:write,attempts:read,attempts:write,policy:write,snippets:write,members:write", ",")
	sets := [][]desk.Permission{desk.Permissions}
	for i, p := range desk.Permissions {
		sets = append(sets, []desk.Permission{p}, desk.Permissions[i:], desk.Permissions[:i+1])
	}
	for _, set := range sets {
		permissions, later := stored.PermissionsOf(&desk.APIKey{Permissions: set})
		if got := stored.Permissions(permissions, later); !slices.Equal(got, set) {
			t.Errorf("%v: stored as %q, %q; read as %v", set, permissions, later, got)
		}
		for word := range strings.SplitSeq(permissions, ",") {
			if !slices.Contains(known, word) {
				t.Errorf("%v: the second release fails for %q", set, permissions)
			}
		}
	}
	if got := stored.Permissions("contacts:read,tomorrow:write", "today:read,contacts:merge"); !slices.Equal(got, []desk.Permission{desk.ContactsRead, desk.ContactsMerge}) {
		t.Errorf("with unknown ones: %v", got)
	}
}
