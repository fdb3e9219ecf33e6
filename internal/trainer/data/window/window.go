// Package window makes forward reads of many small headers in a file cheap: it reads ahead as long as the distances
// between the headers are small compared with the size of a read.
package window

import "io"

// Reader is an io.ReaderAt with a window on another. It serves one goroutine.
type Reader struct {
	r     io.ReaderAt
	size  int64
	bytes int64 // of a window

	window []byte
	begin  int64 // of the window
	last   int64 // where the last ReadAt began
}

// New returns a Reader of a file of size bytes, which asks for windowBytes at once.
func New(r io.ReaderAt, size int64, windowBytes int) *Reader {
	return &Reader{r: r, size: size, bytes: min(int64(windowBytes), size)}
}

// ReadAt reads like the file's own.
func (w *Reader) ReadAt(b []byte, at int64) (int, error) {
	hop := at - w.last
	w.last = at
	if from := at - w.begin; from >= 0 && from+int64(len(b)) <= int64(len(w.window)) {
		return copy(b, w.window[from:]), nil
	}
	// After a long hop another is likely: most of a window would be hopped over.
	if int64(len(b)) > min(w.bytes, w.size-at) || hop < 0 || hop > w.bytes/4 {
		return w.r.ReadAt(b, at)
	}
	if w.window == nil {
		w.window = make([]byte, w.bytes)
	}
	w.window = w.window[:min(w.bytes, w.size-at)]
	n, err := w.r.ReadAt(w.window, at)
	w.begin, w.window = at, w.window[:n]
	if got := copy(b, w.window); got < len(b) {
		return got, err
	}
	return len(b), nil // what is behind b is missed when it is requested
}
