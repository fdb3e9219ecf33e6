package wire

import "sync"

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
