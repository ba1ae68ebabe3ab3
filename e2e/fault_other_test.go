//go:build !unix

package e2e_test

// faultEnv is not used here: tests break sends by signals, which exist only on unix.
const faultEnv = "FAULT_CALL"

func faultMain(string) int { return 1 }
