package stored

import (
	"slices"
	"strings"

	"parley/desk"
)

// laterPermissions came after the second release. A server of that release can't read the settings
// of a workspace that has a key with a permission which it does not know, and it may run beside this
// one during an upgrade. So they stand in a column of their own.
var laterPermissions = []desk.Permission{desk.ContactsMerge, desk.BroadcastsRead, desk.BroadcastsWrite, desk.BroadcastsSend, desk.SegmentsWrite}

// least is what a server of the second release lets a key do that has later permissions only, as it
// can't read a key without any. A minus before it says that the key does not have it.
const least = desk.AttributesRead

// PermissionsOf returns the permissions of a key as they are stored.
func PermissionsOf(k *desk.APIKey) (permissions, later string) {
	var old, fresh []desk.Permission
	for _, p := range k.Permissions {
		if slices.Contains(laterPermissions, p) {
			fresh = append(fresh, p)
		} else {
			old = append(old, p)
		}
	}
	if len(old) == 0 && len(fresh) > 0 {
		old, fresh = append(old, least), append(fresh, "-"+least)
	}
	return desk.JoinPermissions(old), desk.JoinPermissions(fresh)
}

// Permissions returns the permissions of a key that are stored. It leaves out what this release
// does not know: a newer one may run beside it.
func Permissions(permissions, later string) (list []desk.Permission) {
	words := strings.Split(permissions+","+later, ",")
	for _, p := range desk.Permissions {
		if slices.Contains(words, string(p)) && !slices.Contains(words, "-"+string(p)) {
			list = append(list, p)
		}
	}
	return list
}
