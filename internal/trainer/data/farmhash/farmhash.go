// Package farmhash is Fingerprint64 of Google's FarmHash, with which TensorFlow's tf.strings.to_hash_bucket_fast and
// feature columns assign text to buckets. It must never change, because models depend on it.
package farmhash

import (
	"encoding/binary"
	"math/bits"
)

const (
	k0 = 0xc3a5c85c97cb3127
	k1 = 0xb492b66fbe98f273
	k2 = 0x9ae16a3b2f90404f
)

// Bucket is the bucket of s among n.
func Bucket(s []byte, n int64) int64 { return int64(Fingerprint64(s) % uint64(n)) }

// Fingerprint64 is the fingerprint of s.
func Fingerprint64(s []byte) uint64 {
	switch n := len(s); {
	case n <= 16:
		return upTo16(s)
	case n <= 32:
		return upTo32(s)
	case n <= 64:
		return upTo64(s)
	}
	return longer(s)
}

func fetch(s []byte) uint64 { return binary.LittleEndian.Uint64(s) }

func right(v uint64, by int) uint64 { return bits.RotateLeft64(v, -by) }

func shiftMix(v uint64) uint64 { return v ^ v>>47 }

func hash16(u, v, mul uint64) uint64 {
	a := shiftMix((u ^ v) * mul)
	return shiftMix((v^a)*mul) * mul
}

func upTo16(s []byte) uint64 {
	n := uint64(len(s))
	mul := k2 + n*2
	switch {
	case n >= 8:
		a, b := fetch(s)+k2, fetch(s[n-8:])
		return hash16(right(b, 37)*mul+a, (right(a, 25)+b)*mul, mul)
	case n >= 4:
		a, b := uint64(binary.LittleEndian.Uint32(s)), uint64(binary.LittleEndian.Uint32(s[n-4:]))
		return hash16(n+a<<3, b, mul)
	case n > 0:
		y := uint64(s[0]) + uint64(s[n>>1])<<8
		z := n + uint64(s[n-1])<<2
		return shiftMix(y*k2^z*k0) * k2
	}
	return k2
}

func upTo32(s []byte) uint64 {
	n := uint64(len(s))
	mul := k2 + n*2
	a, b, c, d := fetch(s)*k1, fetch(s[8:]), fetch(s[n-8:])*mul, fetch(s[n-16:])*k2
	return hash16(right(a+b, 43)+right(c, 30)+d, a+right(b+k2, 18)+c, mul)
}

func upTo64(s []byte) uint64 {
	n := uint64(len(s))
	mul := k2 + n*2
	a, b, c, d := fetch(s)*k2, fetch(s[8:]), fetch(s[n-8:])*mul, fetch(s[n-16:])*k2
	y := right(a+b, 43) + right(c, 30) + d
	z := hash16(y, a+right(b+k2, 18)+c, mul)
	e, f := fetch(s[16:])*mul, fetch(s[24:])
	g, h := (y+fetch(s[n-32:]))*mul, (z+fetch(s[n-24:]))*mul
	return hash16(right(e+f, 43)+right(g, 30)+h, e+right(f+a, 18)+g, mul)
}

type pair struct{ first, second uint64 }

func weak32(s []byte, a, b uint64) pair {
	w, x, y, z := fetch(s), fetch(s[8:]), fetch(s[16:]), fetch(s[24:])
	a += w
	b = right(b+a+z, 21)
	c := a
	a += x + y
	b += right(a, 44)
	return pair{a + z, b + c}
}

func longer(s []byte) uint64 {
	const seed = 81
	x, y := uint64(seed), uint64(seed)
	y = y*k1 + 113
	z := shiftMix(y*k2+113) * k2
	var v, w pair
	x = x*k2 + fetch(s)
	last := s[len(s)-64:]
	rest := uint64((len(s) - 1) & 63)
	for at := s; len(at) > 64; at = at[64:] {
		x = right(x+y+v.first+fetch(at[8:]), 37) * k1
		y = right(y+v.second+fetch(at[48:]), 42) * k1
		x ^= w.second
		y += v.first + fetch(at[40:])
		z = right(z+w.first, 33) * k1
		v = weak32(at, v.second*k1, x+w.first)
		w = weak32(at[32:], z+w.second, y+fetch(at[16:]))
		x, z = z, x
	}
	mul := k1 + (z&0xff)<<1
	w.first += rest
	v.first += w.first
	w.first += v.first
	x = right(x+y+v.first+fetch(last[8:]), 37) * mul
	y = right(y+v.second+fetch(last[48:]), 42) * mul
	x ^= w.second * 9
	y += v.first*9 + fetch(last[40:])
	z = right(z+w.first, 33) * mul
	v = weak32(last, v.second*mul, x+w.first)
	w = weak32(last[32:], z+w.second, y+fetch(last[16:]))
	x, z = z, x
	return hash16(hash16(v.first, w.first, mul)+shiftMix(y)*k0+z, hash16(v.second, w.second, mul)+x, mul)
}
