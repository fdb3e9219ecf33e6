package allreduce

// Cost model of a step, in seconds, on a data centre's network.
const (
	bytesPerSecond = 1.25e9 // 10 Gbit/s, full duplex
	perMessage     = 50e-6  // to send a tensor to one more peer
	// worth is the least gain for which aggregation at the master is replaced. All-reduce gives up the speculative
	// computation of late gradients, the check of one gradient in a thousand, and the newest state when all workers
	// die.
	worth = 4e-3
)

// Pays reports whether an all-reduce among n workers takes clearly less time than aggregation at the master, for
// gradients of so many bytes. The master receives n gradients on one network card, and then sends the sum n times:
// 2·n·bytes in sequence. A worker sends, and at the same time receives, (n−1)/n of a gradient, and then as much of the
// sum, in 2·(n−1) messages to different peers instead of two to the same one, and there is one more exchange of
// messages with the master. It is a function of its arguments alone.
func Pays(bytes, n int) bool {
	if n < 2 {
		return false
	}
	workers, size := float64(n), float64(bytes)
	star := 2*workers*size/bytesPerSecond + 2*perMessage
	between := 2*size*(workers-1)/workers/bytesPerSecond + 2*workers*perMessage
	return between+worth < star
}
