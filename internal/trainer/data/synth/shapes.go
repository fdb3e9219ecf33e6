package synth

import "github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/philox"

// ShapesVersion names the generator of shapes in fingerprints.
const ShapesVersion = "shapes 1"

// The size of a picture of a shape: three bytes (red, green, blue) for each pixel, row by row.
const (
	ShapeSide   = 32
	ShapePixels = ShapeSide * ShapeSide * 3
)

// colour is red, green and blue, 0 to 255.
type colour [3]int64

// Shape draws record index of a seed into pixels (ShapePixels bytes) and returns its label: 0 disc, 1 ring, 2 square,
// 3 triangle, 4 cross, 5 horizontal bars, 6 vertical bars, 7 chequers, 8 frame, 9 diagonal cross. The shape has a
// random colour on a background of another, which runs from light to dark in some direction; its place, size and slant
// are random, and all is covered with noise. The label follows from the shape alone, not from any color or pixel.
func Shape(seed uint64, index uint32, pixels []byte) (label byte) {
	random := philox.NewStream(seed, philox.Synth, philox.Index{index, 1})
	label = byte(random.Below(uint32(len(forms))))
	form := forms[label]
	background, foreground := contrast(random)
	var slope [2]int64 // of the background, in 1/256 of a level and pixel
	for i := range slope {
		slope[i] = between(random, -256, 256)
	}
	place := randomTurn(random)
	noise := between(random, 4, 20)
	for y := range int64(ShapeSide) {
		for x := range int64(ShapeSide) {
			covered := place.coverage(form, x, y)
			shade := (slope[0]*(2*x-ShapeSide) + slope[1]*(2*y-ShapeSide)) / 256
			at := pixels[(y*ShapeSide+x)*3:][:3]
			for c := range at {
				v := (background[c] + shade) + covered*(foreground[c]-background[c]-shade)/samples
				at[c] = byte(min(max(v+between(random, -noise, noise), 0), 255))
			}
		}
	}
	return label
}

// contrast draws two colours that are far enough from each other for a person to see one on the other.
func contrast(random *philox.Stream) (background, foreground colour) {
	for {
		apart := int64(0)
		for c := range background {
			background[c], foreground[c] = between(random, 20, 235), between(random, 20, 235)
			apart += max(background[c]-foreground[c], foreground[c]-background[c])
		}
		if apart >= 240 {
			return background, foreground
		}
	}
}

// turn is where a shape is: its middle and its size in 1/256 of a pixel, and the cosine and sine of its slant in
// 1/65536.
type turn struct{ x, y, size, cos, sin int64 }

func randomTurn(random *philox.Stream) turn {
	const one = 1 << 16
	t := between(random, -one/12, one/12) // as for digits: less than ten degrees either way
	square := t * t / one
	size := between(random, 9*unit, 12*unit)
	const away = 2 * unit // so that the shape stays inside
	return turn{
		x: ShapeSide*unit/2 + between(random, -away, away), y: ShapeSide*unit/2 + between(random, -away, away), size: size,
		cos: (one - square) * one / (one + square), sin: 2 * t * one / (one + square),
	}
}

// samples are taken of a pixel, in a square.
const samples = 4

// coverage is how many of a pixel's samples lie in the shape.
func (p turn) coverage(form func(u, v int64) bool, x, y int64) (covered int64) {
	for i := range int64(samples) {
		dx, dy := x*unit+unit/4+i%2*unit/2-p.x, y*unit+unit/4+i/2*unit/2-p.y
		u, v := (p.cos*dx+p.sin*dy)>>16, (p.cos*dy-p.sin*dx)>>16
		if u, v = u*formUnit/p.size, v*formUnit/p.size; form(u, v) {
			covered++
		}
	}
	return covered
}

// formUnit is the distance from a form's middle to its end.
const formUnit = 1200

// forms say what belongs to a shape, by coordinates from −formUnit to formUnit.
var forms = [...]func(u, v int64) bool{
	func(u, v int64) bool { return u*u+v*v <= formUnit*formUnit },
	func(u, v int64) bool { d := u*u + v*v; return d <= formUnit*formUnit && d >= 700*700 },
	func(u, v int64) bool { return inSquare(u, v, 1000) },
	func(u, v int64) bool { return v <= 1000 && 2*max(u, -u) <= v+formUnit },
	func(u, v int64) bool { return inSquare(u, v, formUnit) && min(max(u, -u), max(v, -v)) <= 350 },
	func(u, v int64) bool { return inSquare(u, v, formUnit) && (v+formUnit)/480%2 == 0 },
	func(u, v int64) bool { return inSquare(u, v, formUnit) && (u+formUnit)/480%2 == 0 },
	func(u, v int64) bool { return inSquare(u, v, formUnit) && ((u+formUnit)/600+(v+formUnit)/600)%2 == 0 },
	func(u, v int64) bool { return inSquare(u, v, formUnit) && !inSquare(u, v, 800) },
	func(u, v int64) bool {
		return inSquare(u, v, formUnit) && (max(u-v, v-u) <= 450 || max(u+v, -u-v) <= 450)
	},
}

func inSquare(u, v, half int64) bool { return max(u, -u) <= half && max(v, -v) <= half }
