package synth_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/synth"
)

func TestDigit(t *testing.T) {
	t.Run("the first thousand digits of seed 1 are the same bytes on every platform and in every version of the project", func(t *testing.T) {
		h := sha256.New()
		pixels := make([]byte, synth.Pixels)
		for i := range uint32(1000) {
			label := synth.Digit(1, i, pixels)
			h.Write(append(pixels[:synth.Pixels:synth.Pixels], label)) //nolint:errcheck // a hash does not fail
		}
		// A change of the generator changes this, and then synth.Version has to change as well.
		const want, version = "a3e1d06972e7ff0b9ddd789c298b8b3440c2f0f153f5e2c97b4c11aa7789c443", "digits 1"
		if got := hex.EncodeToString(h.Sum(nil)); got != want || synth.Version != version {
			t.Errorf("%s of %s, want %s of %s", got, synth.Version, want, version)
		}
	})
	t.Run("a digit depends on seed and index alone, and draws over whatever was there", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			seed, index := rapid.Uint64().Draw(t, "seed"), rapid.Uint32().Draw(t, "index")
			a, b, other := make([]byte, synth.Pixels), bytes.Repeat([]byte{7}, synth.Pixels), make([]byte, synth.Pixels)
			labelA := synth.Digit(seed, index, a)
			synth.Digit(seed, index+1, other)
			labelB := synth.Digit(seed, index, b)
			if labelA != labelB || !bytes.Equal(a, b) || labelA > 9 {
				t.Fatalf("labels %d and %d, or other pixels", labelA, labelB)
			}
			if bytes.Equal(a, other) {
				t.Fatal("the next digit has the same pixels")
			}
			synth.Digit(seed+1, index, other)
			if bytes.Equal(a, other) {
				t.Fatal("the next seed has the same pixels")
			}
		})
	})
	t.Run("every digit is drawn about equally often, inside the picture and dark enough to be seen", func(t *testing.T) {
		const records = 5000
		var count [10]int
		pixels := make([]byte, synth.Pixels)
		for i := range uint32(records) {
			count[synth.Digit(3, i, pixels)]++
			ink, edge := 0, 0
			for k, v := range pixels {
				if v > 100 {
					ink++
					if row, column := k/synth.Side, k%synth.Side; row == 0 || column == 0 || row == synth.Side-1 || column == synth.Side-1 {
						edge++
					}
				}
			}
			// A one is about 20 pixels at its thinnest; a stray stroke and a tall digit may touch the edge.
			if ink < 15 || ink > synth.Pixels/2 || edge > 30 {
				t.Errorf("record %d: %d dark pixels, %d of them at the edge", i, ink, edge)
			}
		}
		for label, n := range count {
			// Five standard deviations of a binomial distribution around 500.
			if n < 394 || n > 606 {
				t.Errorf("label %d: %d of %d", label, n, records)
			}
		}
	})
	t.Run("drawing allocates nothing but the generator's stream", func(t *testing.T) {
		pixels, i := make([]byte, synth.Pixels), uint32(0)
		if n := testing.AllocsPerRun(100, func() { synth.Digit(1, i, pixels); i++ }); n > 1 {
			t.Errorf("%v allocations", n)
		}
	})
}

func TestShape(t *testing.T) {
	t.Run("the first three hundred shapes of seed 1 are the same bytes on every platform and in every version of the project", func(t *testing.T) {
		h := sha256.New()
		record := make([]byte, synth.ShapePixels+1)
		for i := range uint32(300) {
			synth.Sets()[1].Record(1, i, record)
			h.Write(record) //nolint:errcheck // a hash does not fail
		}
		// A change of the generator changes this, and then synth.ShapesVersion has to change as well.
		const want, version = "f7a99306571800bb41960b7cd0069a415a2d99f278c5fcd6b26d2840f1bd8611", "shapes 1"
		if got := hex.EncodeToString(h.Sum(nil)); got != want || synth.ShapesVersion != version {
			t.Errorf("%s of %s, want %s of %s", got, synth.ShapesVersion, want, version)
		}
	})
	t.Run("a shape depends on seed and index alone, and draws over whatever was there", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			seed, index := rapid.Uint64().Draw(t, "seed"), rapid.Uint32().Draw(t, "index")
			a, b := make([]byte, synth.ShapePixels), bytes.Repeat([]byte{7}, synth.ShapePixels)
			if labelA, labelB := synth.Shape(seed, index, a), synth.Shape(seed, index, b); labelA != labelB || !bytes.Equal(a, b) || labelA > 9 {
				t.Fatalf("labels %d and %d, or other pixels", labelA, labelB)
			}
			if synth.Shape(seed, index+1, b); bytes.Equal(a, b) {
				t.Fatal("the next shape has the same pixels")
			}
		})
	})
	t.Run("every shape is drawn about equally often, and its label does not follow from its color", func(t *testing.T) {
		const records = 3000
		var count [10]int
		var sum [10]float64
		pixels := make([]byte, synth.ShapePixels)
		for i := range uint32(records) {
			label := synth.Shape(3, i, pixels)
			count[label]++
			for _, v := range pixels {
				sum[label] += float64(v)
			}
		}
		for label, n := range count {
			// Five standard deviations of a binomial distribution around 300, and of the mean of colours between 20 and
			// 235.
			mean := sum[label] / float64(n) / synth.ShapePixels
			if n < 218 || n > 382 || mean < 115 || mean > 140 {
				t.Errorf("label %d: %d of %d, %.1f on average", label, n, records, mean)
			}
		}
	})
}

func BenchmarkShape(b *testing.B) {
	pixels, i := make([]byte, synth.ShapePixels), uint32(0)
	for b.Loop() {
		synth.Shape(1, i, pixels)
		i++
	}
}

func BenchmarkDigit(b *testing.B) {
	pixels, i := make([]byte, synth.Pixels), uint32(0)
	for b.Loop() {
		synth.Digit(1, i, pixels)
		i++
	}
}
