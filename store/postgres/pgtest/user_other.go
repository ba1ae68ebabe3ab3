//go:build !unix

package pgtest

import "syscall"

func identity() (*syscall.SysProcAttr, error) {
	return nil, missing("it is not started on this system")
}

func own(string) error { return nil }

func memory() string { return "" }
