package main

import (
	"testing"

	"parley/desk"
)

func TestDemoPeople(t *testing.T) {
	t.Parallel()
	holder := map[desk.Claim]int{}
	names := map[string]bool{}
	kinds := map[string]int{}
	owned := 0
	for i, op := range demoOps() {
		if err := op.Check(); err != nil {
			t.Errorf("person %d: %v", i, err)
		}
		for _, identity := range op.Write.Sent {
			claim := identity.Claim()
			if other, taken := holder[claim]; taken && other != i {
				t.Errorf("persons %d and %d both hold %v", other, i, claim)
			}
			holder[claim] = i
			kinds[identity.Kind]++
			sent := identity.Value
			if claim.Kind == desk.KindPhone {
				sent = "+" + sent
			}
			if normal, err := desk.ParseIdentity(identity.Kind, sent, demoCountry); err != nil || normal != identity {
				t.Errorf("person %d: %v is not in normal form: %q, %v", i, identity, normal, err)
			}
		}
		names[op.Write.Name.Value] = true
		if op.Write.Owner.Set {
			owned++
		}
	}
	if len(names) < demoContacts*9/10 {
		t.Errorf("only %d different names", len(names))
	}
	for _, kind := range []string{desk.KindExternalID, desk.KindEmail, desk.KindPhone, desk.KindWhatsApp, "instagram"} {
		if kinds[kind] == 0 {
			t.Errorf("nobody has an identity of kind %s", kind)
		}
	}
	if owned == 0 || owned == demoContacts {
		t.Errorf("%d of %d have an owner, want some", owned, demoContacts)
	}
}
