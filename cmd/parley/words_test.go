package main

import (
	"testing"

	"parley/desk"
)

func TestSentence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		e    *desk.Error
		want string
	}{
		{desk.InvalidAt("/phone_number_id", "wrong"), "--phone-number-id: wrong"},
		{desk.InvalidAt("/file/components/0/text", "wrong"), "--file: /components/0/text: wrong"},
		{desk.NotFoundf("no such member").Advise(desk.ListMembers), "no such member; parley member list --workspace W shows them"},
		{desk.Invalidf("the channel is disabled").Advise(desk.EnableChannel, "ID"), "the channel is disabled; enable it with parley channel edit ID --enabled=true"},
	} {
		if got := sentence(c.e); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	for kind := desk.NoAdvice + 1; kind < desk.EndOfAdvice; kind++ {
		if advice[kind] == "" && kind != desk.SeeDetails && kind != desk.SeeFirstDetails {
			t.Errorf("no words for the advice %d", kind)
		}
	}
}
