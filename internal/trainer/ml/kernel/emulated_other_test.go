//go:build !amd64

package kernel

// Emulated is empty where there are no assembly functions.
func Emulated() []Set { return nil }
