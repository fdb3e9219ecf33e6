package simulator

import (
	"math/big"
	"math/bits"
)

// area is a sum of products, an amount times a time, in 128 bits: bytes times milliseconds leave 64 within an hour.
type area struct{ high, low uint64 }

// add adds amount · duration; neither is negative.
func (a *area) add(amount int64, duration Time) {
	high, low := bits.Mul64(uint64(amount), uint64(duration))
	var carry uint64
	a.low, carry = bits.Add64(a.low, low, 0)
	a.high, _ = bits.Add64(a.high, high, carry)
}

func (a *area) big() *big.Int {
	n := new(big.Int).SetUint64(a.high)
	return n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(a.low))
}

// shareOf is part ÷ whole in ten-thousandths, rounded; 0 if whole is 0.
func shareOf(part, whole *big.Int) Share {
	if whole.Sign() == 0 {
		return 0
	}
	n := new(big.Int).Mul(part, big.NewInt(2*shareUnit))
	n.Add(n, whole)
	return Share(n.Quo(n, new(big.Int).Lsh(whole, 1)).Int64())
}
