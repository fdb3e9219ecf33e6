package modelfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// array is a numpy array in row-major order. Floats live in f and all others in i; a float32 is always rounded, and
// operations on float32 rounded from float64 are exact to the bit, because 53 ≥ 2·24+2. Views share their elements.
type array struct {
	dtype    dtype
	shape    []int
	f        []float64
	i        []int64
	frozen   bool
	readOnly bool    // made by frombuffer: numpy would write through to the buffer
	origin   *origin // of a feature's own bytes, for the warning about frombuffer
}

// origin remembers that an array holds a feature's elements, or their bytes taken for another type.
type origin struct {
	feature string
	dtype   dtype
	bytes   int
	reread  dtype // set when frombuffer took the bytes for this type
	readAt  graph.Place
}

// newArray makes a zero array, charged to the session.
func newArray(s *session, d dtype, shape []int) (*array, error) {
	n, ok := elements(shape)
	if !ok {
		return nil, fmt.Errorf("an array of shape %v is larger than a model file may make", shape)
	}
	if err := s.charge(n); err != nil {
		return nil, err
	}
	a := &array{dtype: d, shape: slices.Clone(shape)}
	if d.float() {
		a.f = make([]float64, n)
	} else {
		a.i = make([]int64, n)
	}
	return a, nil
}

func (a *array) size() int { return len(a.f) + len(a.i) }

// at is element k as a float64; int64 beyond 2⁵³ are rounded.
func (a *array) at(k int) float64 {
	if a.dtype.float() {
		return a.f[k]
	}
	return float64(a.i[k])
}

var errDoesNotFit = errors.New("a value does not fit the integer type")

// set stores v as numpy's astype does: floats are cut off towards zero, integers wrap. What numpy leaves to the
// processor (a float beyond the integer's range) is refused.
func (a *array) set(k int, v float64) error {
	switch a.dtype {
	case float32Type:
		a.f[k] = float64(float32(v))
	case float64Type:
		a.f[k] = v
	case boolType:
		a.setInt(k, 0)
		if v != 0 {
			a.setInt(k, 1)
		}
	default:
		limit := math.Ldexp(1, 8*a.dtype.bytes()-1)
		if a.dtype == uint8Type {
			limit = 256
		}
		if t := math.Trunc(v); !(t >= -limit && t < limit) || a.dtype == uint8Type && t < 0 {
			return fmt.Errorf("%v as %s: %w", v, a.dtype, errDoesNotFit)
		}
		a.i[k] = int64(v)
	}
	return nil
}

func (a *array) setInt(k int, v int64) {
	switch a.dtype {
	case uint8Type:
		v = int64(uint8(v))
	case int32Type:
		v = int64(int32(v))
	case boolType:
		if v != 0 {
			v = 1
		}
	case float32Type:
		a.f[k] = float64(float32(v))
		return
	case float64Type:
		a.f[k] = float64(v)
		return
	}
	a.i[k] = v
}

// convert copies a into another type.
func (a *array) convert(s *session, d dtype) (*array, error) {
	out, err := newArray(s, d, a.shape)
	if err != nil {
		return nil, err
	}
	if err := out.take(0, a); err != nil {
		return nil, err
	}
	return out, nil
}

// take sets the elements from k on to those of another array, in a's type.
func (a *array) take(k int, from *array) error {
	for j := range from.size() {
		if !from.dtype.float() {
			a.setInt(k+j, from.i[j])
		} else if err := a.set(k+j, from.f[j]); err != nil {
			return err
		}
	}
	return nil
}

// view is the part [from, to) of the elements under another shape.
func (a *array) view(from, to int, shape []int) *array {
	v := &array{dtype: a.dtype, shape: shape, frozen: a.frozen, readOnly: a.readOnly}
	if a.dtype.float() {
		v.f = a.f[from:to:to]
	} else {
		v.i = a.i[from:to:to]
	}
	if from == 0 && to == a.size() {
		v.origin = a.origin
	}
	return v
}

// reshape resolves one -1 in shape and gives a view.
func (a *array) reshape(shape []int) (*array, error) {
	resolved, err := resolveShape(shape, a.size())
	if err != nil {
		return nil, fmt.Errorf("reshape of %s: %w", a, err)
	}
	return a.view(0, a.size(), resolved), nil
}

// resolveShape replaces one -1 so that the shape holds n elements.
func resolveShape(shape []int, n int) ([]int, error) {
	out, free, known := slices.Clone(shape), -1, 1
	for i, d := range out {
		switch {
		case d >= 0:
			known *= d
			if known > maxElements {
				return nil, fmt.Errorf("%v is too large", shape)
			}
		case d == -1 && free < 0:
			free = i
		default:
			return nil, fmt.Errorf("%v is no shape", shape)
		}
	}
	if free >= 0 && known > 0 && n%known == 0 {
		out[free] = n / known
		return out, nil
	}
	if free >= 0 || known != n {
		return nil, fmt.Errorf("%d elements do not fit shape %s", n, shapeText(shape))
	}
	return out, nil
}

func shapeText(shape []int) string {
	return "(" + strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ", "), "[]") + ")"
}

// raw is the array's memory, little-endian.
func (a *array) raw() []byte {
	out := make([]byte, 0, a.size()*a.dtype.bytes())
	for k := range a.size() {
		switch a.dtype {
		case float32Type:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(a.f[k])))
		case float64Type:
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(a.f[k]))
		case int64Type:
			out = binary.LittleEndian.AppendUint64(out, uint64(a.i[k]))
		case int32Type:
			out = binary.LittleEndian.AppendUint32(out, uint32(a.i[k]))
		default:
			out = append(out, byte(a.i[k]))
		}
	}
	return out
}

// fill reads the array's memory from raw, which is as long as raw() would be.
func (a *array) fill(raw []byte) {
	for k := range a.size() {
		switch a.dtype {
		case float32Type:
			a.f[k] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*k:])))
		case float64Type:
			a.f[k] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*k:]))
		case int64Type:
			a.i[k] = int64(binary.LittleEndian.Uint64(raw[8*k:]))
		case int32Type:
			a.i[k] = int64(int32(binary.LittleEndian.Uint32(raw[4*k:])))
		case boolType:
			a.setInt(k, int64(raw[k]))
		default:
			a.i[k] = int64(raw[k])
		}
	}
}
