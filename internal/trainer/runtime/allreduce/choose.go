package allreduce

// What a step costs, in seconds, on the networks that jobs run on.
const (
	bytesPerSecond = 1.25e9 // 10 Gbit/s, each way at once
	perMessage     = 50e-6  // to begin and end the sending of a tensor to one more peer
	// worth is the least gain for which the star is left: with it goes that late gradients are computed a second time,
	// that one in a thousand is checked, and that the newest state outlives all workers.
	worth = 4e-3
)

// Pays reports whether adding between n workers takes clearly less time than at the master, for gradients of so many
// bytes. The master receives n gradients on one card, and then sends the sum n times: 2·n·bytes in turn. A worker
// sends, and at the same time receives, (n−1)/n of a gradient, and then as much of the sum, in 2·(n−1) messages to
// different peers instead of two to the same, and the master is told and tells once more. It is a function of its
// arguments alone.
func Pays(bytes, n int) bool {
	if n < 2 {
		return false
	}
	workers, size := float64(n), float64(bytes)
	star := 2*workers*size/bytesPerSecond + 2*perMessage
	between := 2*size*(workers-1)/workers/bytesPerSecond + 2*workers*perMessage
	return between+worth < star
}
