package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"unsafe"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// Frames carry at most PieceFloats floats (1 MiB) behind a message of at most maxMessageBytes.
const (
	PieceFloats     = 1 << 18
	maxMessageBytes = 4 << 20 // a Job holds the model file's text
	maxFrameBytes   = 4*PieceFloats + maxMessageBytes + 16
)

// Frame is a message and, for tensors, the floats that follow it.
type Frame struct {
	Message *wirepb.Message
	floats  []float32       // to be sent
	body    mem.BufferSlice // as received
}

// FloatsLen is the number of floats behind a message.
func (f *Frame) FloatsLen() int { return len(f.floats) + f.body.Len()/4 }

// ReadFloats copies the received floats to dst, which must have their length.
func (f *Frame) ReadFloats(dst []float32) error {
	if f.body.Len() != 4*len(dst) {
		return fmt.Errorf("a frame with %d bytes of values, %d expected", f.body.Len(), 4*len(dst))
	}
	f.body.CopyTo(Bytes(dst))
	return nil
}

// Release gives a received frame's memory back. The frame is not to be used afterwards.
func (f *Frame) Release() {
	f.body.Free()
	f.body = nil
}

// Bytes views floats as the bytes that travel: little-endian, as amd64 and arm64 are.
func Bytes(f []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), 4*len(f))
}

// Codec is the codec of the stream, for those who look at frames without a connection.
func Codec() encoding.CodecV2 { return codec{} }

// codec frames: uvarint length of the message, the message, the floats.
type codec struct{}

func (codec) Name() string { return "elastic-frame" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*Frame)
	if !ok {
		return nil, fmt.Errorf("wire: cannot send a %T", v)
	}
	size := proto.Size(f.Message)
	head := make([]byte, 0, size+binary.MaxVarintLen64)
	head = binary.AppendUvarint(head, uint64(size))
	head, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(head, f.Message)
	if err != nil {
		return nil, err
	}
	out := mem.BufferSlice{mem.SliceBuffer(head)}
	if len(f.floats) > 0 {
		// The transport may still read it when SendMsg has returned, so it gets a copy that it frees itself.
		out = append(out, mem.Copy(Bytes(f.floats), mem.DefaultBufferPool()))
	}
	return out, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*Frame)
	if !ok {
		return fmt.Errorf("wire: cannot receive into a %T", v)
	}
	r := data.Reader()
	defer func() { _ = r.Close() }()
	size, err := binary.ReadUvarint(r)
	if err != nil || size > maxMessageBytes || size > uint64(r.Remaining()) {
		return errors.New("wire: not a frame of elastic-trainer; something else is connected to this port")
	}
	head := make([]byte, size)
	if _, err := io.ReadFull(r, head); err != nil {
		return err
	}
	if r.Remaining()%4 != 0 {
		return fmt.Errorf("wire: %d bytes of values, which is no whole number of floats", r.Remaining())
	}
	message := &wirepb.Message{}
	if err := proto.Unmarshal(head, message); err != nil {
		return fmt.Errorf("wire: %w", err)
	}
	*f = Frame{Message: message}
	if n := r.Remaining(); n > 0 {
		pool := mem.DefaultBufferPool()
		body := pool.Get(n)
		if _, err := io.ReadFull(r, *body); err != nil {
			return err
		}
		f.body = mem.BufferSlice{mem.NewBuffer(body, pool)}
	}
	return nil
}

// Buffers keeps tensors of one size for use again. It is safe for concurrent use.
type Buffers struct {
	floats int
	mu     sync.Mutex
	free   [][]float32
}

// NewBuffers returns a store of buffers with capacity for the given number of floats.
func NewBuffers(floats int) *Buffers { return &Buffers{floats: floats} }

// Get returns a buffer of full length whose content is undefined.
func (b *Buffers) Get() []float32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.free); n > 0 {
		f := b.free[n-1]
		b.free = b.free[:n-1]
		return f
	}
	return make([]float32, b.floats)
}

// Put takes a buffer back that Get returned, whatever it was cut to.
func (b *Buffers) Put(f []float32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, f[:b.floats])
}
