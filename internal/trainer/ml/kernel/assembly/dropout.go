package assembly

import "github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/philox"

// dropoutMask makes groups of 64 elements from 16 consecutive blocks of philox: lane l of word w is element 16·w + l.
func dropoutMask(s isa) *function {
	f := newFunction(s, "dropoutMask", "dst unsafe.Pointer", "groups int", "lanes unsafe.Pointer",
		"first uint32", "index0 uint32", "index1 uint32", "index2 uint32", "key0 uint32", "key1 uint32", "threshold uint32", "scale float32",
		"mul0 uint32", "mul1 uint32", "weyl0 uint32", "weyl1 uint32", "width uint32")
	const (
		c0, c1, c2, c3 = vec(0), vec(1), vec(2), vec(3)
		k0, k1         = vec(4), vec(5)
		t              = vec(10)
		m0, m1         = vec(11), vec(12)
		counter        = vec(13)
		w0, w1         = vec(14), vec(15)
	)
	p0, p1 := products{6, 7}, products{8, 9}
	f.argument("dst", "AX")
	f.argument("lanes", "SI")
	f.beginProducts()
	f.broadcast("first", counter)
	f.addIntegers(at("SI", 0), counter, counter)
	f.broadcast("mul0", m0)
	f.broadcast("mul1", m1)
	f.broadcast("weyl0", w0)
	f.broadcast("weyl1", w1)
	f.argument("groups", "CX")
	f.loop(func() {
		for half := range 16 / s.width {
			f.moveVector(counter, c0)
			f.broadcast("width", t)
			f.addIntegers(t, counter, counter)
			f.broadcast("index0", c1)
			f.broadcast("index1", c2)
			f.broadcast("index2", c3)
			f.broadcast("key0", k0)
			f.broadcast("key1", k1)
			for round := range philox.Rounds {
				f.multiplyWords(m0, c0, p0)
				f.multiplyWords(m1, c2, p1)
				// c0 ← high1 ^ c1 ^ k0, c1 ← low1, c2 ← high0 ^ c3 ^ k1, c3 ← low0
				f.highWords(p1, t)
				f.xor(c1, t, c0)
				f.xor(k0, c0, c0)
				f.lowWords(p1, t, c1)
				f.highWords(p0, t)
				f.xor(c3, t, c2)
				f.xor(k1, c2, c2)
				f.lowWords(p0, t, c3)
				if round < philox.Rounds-1 {
					f.addIntegers(w0, k0, k0)
					f.addIntegers(w1, k1, k1)
				}
			}
			f.broadcast("threshold", k0)
			f.broadcast("scale", k1)
			for w, c := range []vec{c0, c1, c2, c3} {
				f.atLeastMask(t, c, k0)
				f.keep(t, t, k1)
				f.store(t, at("AX", 4*(16*w+half*s.width)))
			}
		}
		f.advance("AX", 4*64)
	})
	return f
}
