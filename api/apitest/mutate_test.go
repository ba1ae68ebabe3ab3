package apitest

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestMutator_deterministic(t *testing.T) {
	t.Parallel()
	d := description(t)
	a, b, other := d.NewMutator(7), d.NewMutator(7), d.NewMutator(8)
	differ := false
	for i := range 2000 {
		for _, m := range []*Mutator{a, b, other} {
			m.Learn("id", "019a8f3c-5b1e-7c42-9d07-3f6a1b2c4d5e")
			m.Learn("cursor", "abc.def")
		}
		method, target, header, body := a.Next()
		method2, target2, header2, body2 := b.Next()
		if method != method2 || target != target2 || !bytes.Equal(body, body2) || len(header) != len(header2) ||
			!slices.Equal(header["Authorization"], header2["Authorization"]) || !slices.Equal(header["Content-Type"], header2["Content-Type"]) {
			t.Fatalf("request %d: %s %s and %s %s", i, method, target, method2, target2)
		}
		_, target3, _, body3 := other.Next()
		differ = differ || target != target3 || !bytes.Equal(body, body3)
	}
	if !differ {
		t.Error("another seed gave the same requests")
	}
}

// TestMutator_sendable checks that any HTTP client can send the generated requests.
func TestMutator_sendable(t *testing.T) {
	t.Parallel()
	m := description(t).NewMutator(4)
	m.Learn("cursor", "abc.def")
	for range 30_000 {
		method, target, _, _ := m.Next()
		_, names := m.Last()
		if _, err := url.ParseRequestURI(target); err != nil {
			t.Errorf("%v: %v", names, err)
		}
		if _, err := http.NewRequest(method, "http://localhost"+target, nil); err != nil {
			t.Errorf("%v: %v", names, err)
		}
	}
}

// TestMutator_covers checks that every operation and every mutation occurs.
func TestMutator_covers(t *testing.T) {
	t.Parallel()
	d := description(t)
	m := d.NewMutator(1)
	m.Learn("key", "plan")
	m.Learn("cursor", "abc.def")
	operations, applied := map[Operation]int{}, map[string]int{}
	counts := map[int]int{}
	for range 200 * len(d.Operations()) {
		_, _, header, _ := m.Next()
		op, names := m.Last()
		operations[op]++
		counts[len(names)]++
		for _, name := range names {
			applied[name]++
		}
		if _, ok := header["Authorization"]; ok != slices.Contains(names, "bad Authorization") {
			t.Errorf("%v: Authorization is there: %t", names, ok)
		}
	}
	for _, op := range d.Operations() {
		if operations[op] < 100 {
			t.Errorf("%v occurred %d times", op, operations[op])
		}
	}
	for _, mu := range mutations {
		if applied[mu.name] < 10 {
			t.Errorf("%q occurred %d times", mu.name, applied[mu.name])
		}
	}
	for n := range 5 {
		if counts[n] < 100 {
			t.Errorf("%d requests have %d mutations", counts[n], n)
		}
	}
}

// TestMutator_valid checks that a request without mutations is allowed. If it were wrong
// already, its mutations would test only the first check.
func TestMutator_valid(t *testing.T) {
	t.Parallel()
	d := description(t)
	m := d.NewMutator(2)
	m.Learn("id", "019a8f3c-5b1e-7c42-9d07-3f6a1b2c4d60")
	seen := 0
	for range 5000 {
		method, target, header, body := m.Next()
		if _, names := m.Last(); len(names) > 0 {
			continue
		}
		seen++
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Fatal(err)
		}
		found := d.find(method, u)
		if found.op == nil || found.op != m.current.op {
			t.Fatalf("%s %s leads to another operation", method, target)
		}
		judge := *found.op
		judge.rows = nil // there is no answer to judge the rows by
		if err := judge.checkRequest(found.values, u.RawQuery, header, body, nil); err != nil {
			t.Errorf("%s %s %s: %v", method, target, body, err)
		}
	}
	if seen < 1000 {
		t.Errorf("only %d requests were left alone", seen)
	}
}

func TestMutator_Learn(t *testing.T) {
	t.Parallel()
	m := description(t).NewMutator(3)
	for range keep {
		m.Learn("id", "old")
	}
	for range keep {
		m.Learn("id", "019a8f3c-5b1e-7c42-9d07-aaaaaaaaaaaa")
	}
	inPath, inBody := 0, 0
	for range 2000 {
		_, target, _, body := m.Next()
		if strings.Contains(target, "/old") {
			t.Fatal("more was remembered than kept")
		}
		if strings.Contains(target, "aaaaaaaaaaaa") {
			inPath++
		}
		if bytes.Contains(body, []byte("aaaaaaaaaaaa")) {
			inBody++
		}
	}
	if inPath < 300 || inBody < 10 {
		t.Errorf("the learned id stood in %d paths and %d bodies", inPath, inBody)
	}
}

func BenchmarkMutator(b *testing.B) {
	m := description(b).NewMutator(1)
	b.ReportAllocs()
	for b.Loop() {
		m.Next()
	}
}
