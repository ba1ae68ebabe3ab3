//go:build !unix

package e2e_test

// Sends are broken by signals, which exist only on unix.
const faultEnv = "FAULT_CALL"

func faultMain(string) int { return 1 }
