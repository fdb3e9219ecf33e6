// Package synth makes data sets, so that a machine without any can train and test: handwritten-looking digits, 28×28
// unsigned bytes (0 = paper) and a label 0–9, and coloured shapes (Shape). A digit is a pure function of (seed, index):
// the glyph is one of several stroke drawings, whose control points are jittered, sheared, rotated, scaled and shifted,
// drawn with a pen of random width, and covered with noise and sometimes a stray stroke. With 10,000 of them and
// minibatches of 20, the tutorial's network gets 98 % of 2,000 others right after one epoch and a linear model 78 % (84
// % after three).
//
// Everything is integer arithmetic over the Philox stream of the record, so the same bytes come out on every platform.
// What (seed, index) gives is part of job lineages: a change of it is a new Version.
package synth

import (
	"math"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/philox"
)

// Version names the generator in fingerprints.
const Version = "digits 1"

// The size of a digit: the pixels row by row.
const (
	Side   = 28
	Pixels = Side * Side
)

// Lengths are in 1/256 of a pixel.
const unit = 256

// Digit draws record index of a seed into pixels (Pixels bytes) and returns its label.
func Digit(seed uint64, index uint32, pixels []byte) (label byte) {
	random := philox.NewStream(seed, philox.Synth, philox.Index{index})
	label = byte(random.Below(10))
	styles := glyphs[label]
	strokes := styles[random.Below(uint32(len(styles)))]

	var c canvas
	place := randomPlacement(random)
	width := between(random, 230, 520) // the pen's radius: 0.9 to 2 pixels
	for _, s := range strokes {
		c.draw(s, place, random, width)
	}
	if random.Below(100) < 20 {
		c.scratch(random, width)
	}
	ink := between(random, 170, 255)
	noise := between(random, 4, 28)
	paper := between(random, 0, 24)
	for i := range Pixels {
		v := paper + int64(c.coverage[i])*(ink-paper)/255
		v += between(random, -noise, noise)
		switch random.Below(200) { // dust
		case 0:
			v += 120
		case 1:
			v -= 120
		}
		pixels[i] = byte(min(max(v, 0), 255))
	}
	return label
}

// between is uniform over lo … hi.
func between(random *philox.Stream, lo, hi int64) int64 {
	return lo + int64(random.Below(uint32(hi-lo+1)))
}

type point struct{ x, y int64 }

// placement maps a glyph's grid (0…100 across, 0…140 down) to the image: a matrix in 1/65536 and an offset in units.
type placement struct {
	xx, xy, yx, yy int64
	dx, dy         int64
	jitter         int64 // of each control point, in 1/16 of the grid
}

func randomPlacement(random *philox.Stream) placement {
	const one = 1 << 16
	// A rotation by 2·atan(t): the cosine (1−t²)/(1+t²) and the sine 2t/(1+t²) need no transcendental function. |t| is
	// below 0.14, which is 16 degrees.
	t := between(random, -one*14/100, one*14/100)
	square := t * t / one
	cos := (one - square) * one / (one + square)
	sin := 2 * t * one / (one + square)
	shear := between(random, -one*25/100, one*25/100)
	// 140 grid steps are 14 to 21 pixels high, 100 are 9 to 16 wide.
	height := between(random, 14*unit, 21*unit) * one / 140
	wide := between(random, 9*unit, 16*unit) * one / 100
	// rotation · shear · scale
	p := placement{
		xx:     cos * wide / one,
		xy:     (cos*shear/one - sin) * height / one,
		yx:     sin * wide / one,
		yy:     (sin*shear/one + cos) * height / one,
		jitter: 16 * 4,
	}
	// The glyph's middle goes to the image's, give or take two and a half pixels.
	p.dx = Side*unit/2 + between(random, -5*unit/2, 5*unit/2) - (p.xx*50+p.xy*70)/one
	p.dy = Side*unit/2 + between(random, -5*unit/2, 5*unit/2) - (p.yx*50+p.yy*70)/one
	return p
}

// apply maps a control point in 1/16 of the grid.
func (p placement) apply(x, y int64) point {
	return point{(p.xx*x+p.xy*y)>>20 + p.dx, (p.yx*x+p.yy*y)>>20 + p.dy}
}

// canvas holds how much of each pixel is covered with ink, 0 to 255.
type canvas struct {
	coverage [Pixels]uint8
}

// draw places a stroke and draws it: corner to corner, or as a quadratic B-spline that begins and ends at the first and
// last control point.
func (c *canvas) draw(s stroke, place placement, random *philox.Stream, width int64) {
	var points [maxControlPoints]point
	n := len(s.points)
	for i, g := range s.points {
		x := 16*int64(g[0]) + between(random, -place.jitter, place.jitter)
		y := 16*int64(g[1]) + between(random, -place.jitter, place.jitter)
		points[i] = place.apply(x, y)
	}
	if s.closed {
		points[n-1] = points[0]
	}
	if s.corners || n < 3 {
		for i := 1; i < n; i++ {
			c.line(points[i-1], points[i], width)
		}
		return
	}
	const pieces = 5 // of a parabola; the kinks are far below a pixel
	from := points[0]
	for i := 1; i < n-1; i++ {
		start, end := middle(points[i-1], points[i]), middle(points[i], points[i+1])
		if i == 1 {
			start = points[0]
		}
		if i == n-2 {
			end = points[n-1]
		}
		for k := int64(1); k <= pieces; k++ {
			a, b, d := (pieces-k)*(pieces-k), 2*k*(pieces-k), k*k
			to := point{
				(a*start.x + b*points[i].x + d*end.x) / (pieces * pieces),
				(a*start.y + b*points[i].y + d*end.y) / (pieces * pieces),
			}
			c.line(from, to, width)
			from = to
		}
	}
}

func middle(a, b point) point { return point{(a.x + b.x) / 2, (a.y + b.y) / 2} }

// scratch draws a short stray line somewhere.
func (c *canvas) scratch(random *philox.Stream, width int64) {
	from := point{between(random, 0, Side*unit), between(random, 0, Side*unit)}
	to := point{from.x + between(random, -7*unit, 7*unit), from.y + between(random, -7*unit, 7*unit)}
	c.line(from, to, width*2/3)
}

// line covers what lies within width of the segment a–b, with an edge of one pixel.
func (c *canvas) line(a, b point, width int64) {
	reach := width + unit
	left, right := pixelRange(min(a.x, b.x)-reach, max(a.x, b.x)+reach)
	top, bottom := pixelRange(min(a.y, b.y)-reach, max(a.y, b.y)+reach)
	dx, dy := b.x-a.x, b.y-a.y
	length2 := dx*dx + dy*dy
	for row := top; row < bottom; row++ {
		for column := left; column < right; column++ {
			px, py := column*unit+unit/2-a.x, row*unit+unit/2-a.y
			// The nearest point of the segment is a + along/length2 · (b−a).
			if along := px*dx + py*dy; along >= length2 {
				px, py = px-dx, py-dy
			} else if along > 0 {
				px, py = px-dx*along/length2, py-dy*along/length2
			}
			// Square roots are correctly rounded everywhere (IEEE 754), and these squares are exact in a float64.
			distance := int64(math.Sqrt(float64(px*px + py*py)))
			cover := min(max(width+unit/2-distance, 0), unit-1)
			at := &c.coverage[row*Side+column]
			*at = max(*at, uint8(cover))
		}
	}
}

// pixelRange is the pixels that the interval lo…hi touches.
func pixelRange(lo, hi int64) (first, end int64) {
	return min(max(lo/unit, 0), Side), min(max(hi/unit+1, 0), Side)
}

// Set is one of the data sets of images that can be made.
type Set struct {
	Name    string
	Version string // in fingerprints: what (seed, index) gives is part of job lineages
	Shape   []int  // of an image, in bytes
	// Draw draws a record's image and returns its label.
	Draw func(seed uint64, index uint32, pixels []byte) (label byte)
}

// Sets lists them.
func Sets() []Set {
	return []Set{
		{"digits", Version, []int{Side, Side}, Digit},
		{"shapes", ShapesVersion, []int{ShapeSide, ShapeSide, 3}, Shape},
	}
}

// ByName finds one.
func ByName(name string) (Set, bool) {
	sets := Sets()
	i := slices.IndexFunc(sets, func(s Set) bool { return s.Name == name })
	if i < 0 {
		return Set{}, false
	}
	return sets[i], true
}

// Pixels is the number of bytes of an image.
func (s Set) Pixels() int {
	n := 1
	for _, d := range s.Shape {
		n *= d
	}
	return n
}

// Record makes a record: the image, then one byte of label, in Pixels()+1 bytes.
func (s Set) Record(seed uint64, index uint32, record []byte) {
	pixels := s.Pixels()
	record[pixels] = s.Draw(seed, index, record[:pixels])
}
