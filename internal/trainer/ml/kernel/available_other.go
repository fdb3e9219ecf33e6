//go:build !amd64 && !arm64

package kernel

// Available lists the sets that can run here, the fastest first; the last is the portable one.
func Available() []Set { return []Set{Portable()} }
