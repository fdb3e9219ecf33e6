package assembly

import "github.com/elastic-training/terraform-provider-elastic/internal/trainer/philox"

// dropoutMask makes groups of 64 elements from 16 consecutive blocks of philox: lane l of word w is element 16·w + l.
func dropoutMask(s isa) *function {
	f := newFunction(s, "dropoutMask", "dst unsafe.Pointer", "groups int", "lanes unsafe.Pointer",
		"first uint32", "index0 uint32", "index1 uint32", "index2 uint32", "key0 uint32", "key1 uint32", "threshold uint32", "scale float32",
		"mul0 uint32", "mul1 uint32", "weyl0 uint32", "weyl1 uint32", "width uint32")
	const (
		c0, c1, c2, c3 = vec(0), vec(1), vec(2), vec(3)
		k0, k1         = vec(4), vec(5)
		even0, odd0    = vec(6), vec(7)
		even1, odd1    = vec(8), vec(9)
		t              = vec(10)
		m0, m1         = vec(11), vec(12)
		counter        = vec(13)
		w0, w1         = vec(14), vec(15)
	)
	broadcast := func(name string, d vec) { f.emit("VBROADCASTSS", arg(name), d) }
	odd := mask(2)
	f.emit("MOVQ", arg("dst"), gpr("AX"))
	f.emit("MOVQ", arg("lanes"), gpr("SI"))
	if f.wide() {
		f.emit("MOVL", imm(0xAAAA), gpr("DX"))
		f.emit("KMOVW", gpr("DX"), odd)
	}
	broadcast("first", counter)
	f.emit("VPADDD", at("SI", 0), counter, counter)
	broadcast("mul0", m0)
	broadcast("mul1", m1)
	broadcast("weyl0", w0)
	broadcast("weyl1", w1)
	merge := func(oddLanes, evenLanes, d vec) {
		if f.wide() {
			f.emit("VPBLENDMD", oddLanes, evenLanes, odd, d)
		} else {
			f.emit("VPBLENDD", imm(0xAA), oddLanes, evenLanes, d)
		}
	}
	f.emit("MOVQ", arg("groups"), gpr("CX"))
	f.loop(func() {
		for half := range 16 / s.width {
			f.emit("VMOVAPS", counter, c0)
			broadcast("width", t)
			f.emit("VPADDD", t, counter, counter)
			broadcast("index0", c1)
			broadcast("index1", c2)
			broadcast("index2", c3)
			broadcast("key0", k0)
			broadcast("key1", k1)
			for round := range philox.Rounds {
				f.emit("VPMULUDQ", m0, c0, even0)
				f.emit("VPSRLQ", imm(32), c0, odd0)
				f.emit("VPMULUDQ", m0, odd0, odd0)
				f.emit("VPMULUDQ", m1, c2, even1)
				f.emit("VPSRLQ", imm(32), c2, odd1)
				f.emit("VPMULUDQ", m1, odd1, odd1)
				// c0 ← high1 ^ c1 ^ k0, c1 ← low1, c2 ← high0 ^ c3 ^ k1, c3 ← low0
				f.emit("VPSRLQ", imm(32), even1, t)
				merge(odd1, t, t)
				f.bitwise("VPXOR", c1, t, c0)
				f.bitwise("VPXOR", k0, c0, c0)
				f.emit("VPSLLQ", imm(32), odd1, t)
				merge(t, even1, c1)
				f.emit("VPSRLQ", imm(32), even0, t)
				merge(odd0, t, t)
				f.bitwise("VPXOR", c3, t, c2)
				f.bitwise("VPXOR", k1, c2, c2)
				f.emit("VPSLLQ", imm(32), odd0, t)
				merge(t, even0, c3)
				if round < philox.Rounds-1 {
					f.emit("VPADDD", w0, k0, k0)
					f.emit("VPADDD", w1, k1, k1)
				}
			}
			broadcast("threshold", k0)
			broadcast("scale", k1)
			for w, c := range []vec{c0, c1, c2, c3} {
				// x ≥ threshold as unsigned: the larger of the two is x.
				f.emit("VPMAXUD", k0, c, t)
				f.equalMask(t, t, c)
				f.keep(t, t, k1)
				f.emit("VMOVUPS", t, at("AX", 4*(16*w+half*s.width)))
			}
		}
		f.emit("ADDQ", imm(4*64), gpr("AX"))
	})
	return f
}
