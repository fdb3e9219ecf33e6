package wire

import (
	"fmt"

	"google.golang.org/grpc/mem"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// Assembly puts the pieces of one tensor together. Pieces of a tensor come in order and tensors of one stream never
// interleave, because one queue sends them. The zero value is ready.
type Assembly struct {
	floats []float32 // nil until half of the tensor has come
	held   []mem.BufferSlice
	filled int64
}

// Add takes the next piece, and releases nothing of the frame. It returns the tensor once it is whole, and nil before.
// want is the length that the receiver expects, so that a peer cannot make it allocate more. alloc provides the memory,
// when half of the tensor has come: until then a peer costs what it has sent, however long the tensor is that it
// announces.
func (a *Assembly) Add(f *Frame, p *wirepb.Piece, want int, alloc func() []float32) ([]float32, error) {
	empty := f.FloatsLen() == 0 && want > 0 // would be held without an end
	if p == nil || p.Total != int64(want) || p.Offset != a.filled || int64(f.FloatsLen()) > p.Total-p.Offset || empty {
		got := a.filled
		a.reset()
		return nil, fmt.Errorf("a piece %v of %d values, after %d of %d", p, f.FloatsLen(), got, want)
	}
	next := a.filled + int64(f.FloatsLen())
	switch {
	case a.floats == nil && 2*next < p.Total:
		f.body.Ref()
		a.held = append(a.held, f.body)
	default:
		if a.floats == nil {
			a.floats = alloc()[:want]
			a.unpack()
		}
		if err := f.ReadFloats(a.floats[a.filled:next]); err != nil {
			return nil, err
		}
	}
	if a.filled = next; a.filled < p.Total {
		return nil, nil
	}
	whole := a.floats
	a.reset()
	return whole, nil
}

// unpack copies the pieces that were held to where they belong.
func (a *Assembly) unpack() {
	to := Bytes(a.floats)
	for _, body := range a.held {
		to = to[body.CopyTo(to):]
		body.Free()
	}
	a.held = nil
}

func (a *Assembly) reset() {
	for _, body := range a.held {
		body.Free()
	}
	*a = Assembly{}
}

// pieces calls send with the piece that each frame of a tensor of n floats carries. An empty tensor is one piece.
func pieces(n int, send func(p *wirepb.Piece, lo, hi int) error) error {
	for lo := 0; ; lo += PieceFloats {
		hi := min(lo+PieceFloats, n)
		if err := send(&wirepb.Piece{Offset: int64(lo), Total: int64(n)}, lo, hi); err != nil || hi == n {
			return err
		}
	}
}

// setPiece writes where a frame's floats belong into the message that carries them.
func setPiece(m *wirepb.Message, p *wirepb.Piece) {
	switch k := m.Kind.(type) {
	case *wirepb.Message_Gradient:
		k.Gradient.Piece = p
	case *wirepb.Message_State:
		k.State.Piece = p
	case *wirepb.Message_Update:
		k.Update.Piece = p
	case *wirepb.Message_Slice:
		k.Slice.Piece = p
	default:
		panic(fmt.Sprintf("wire: %T carries no tensor", m.Kind))
	}
}
