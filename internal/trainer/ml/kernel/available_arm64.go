package kernel

// Available lists the sets that can run here, the fastest first; the last is the portable one. NEON is part of every
// arm64 processor that Go runs on: its own runtime uses it without asking.
func Available() []Set { return []Set{vectorSet("neon", functionsNEON()), Portable()} }
