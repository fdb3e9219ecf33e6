package data

import "io"

// window is an io.ReaderAt that makes forward reads of many small headers in a file cheap: it reads ahead as long as the
// distances between the headers are small compared with the size of a read. It serves one goroutine.
type window struct {
	r     io.ReaderAt
	size  int64
	bytes int64 // of a window

	ahead []byte // what was read
	begin int64  // of it
	last  int64  // where the last ReadAt began
}

// newWindow is on a file of size bytes, and asks for windowBytes at once.
func newWindow(r io.ReaderAt, size int64, windowBytes int) *window {
	return &window{r: r, size: size, bytes: min(int64(windowBytes), size)}
}

// ReadAt reads like the file's own.
func (w *window) ReadAt(b []byte, at int64) (int, error) {
	hop := at - w.last
	w.last = at
	if from := at - w.begin; from >= 0 && from+int64(len(b)) <= int64(len(w.ahead)) {
		return copy(b, w.ahead[from:]), nil
	}
	// After a long hop another is likely: most of a window would be hopped over.
	if int64(len(b)) > min(w.bytes, w.size-at) || hop < 0 || hop > w.bytes/4 {
		return w.r.ReadAt(b, at)
	}
	if w.ahead == nil {
		w.ahead = make([]byte, w.bytes)
	}
	w.ahead = w.ahead[:min(w.bytes, w.size-at)]
	n, err := w.r.ReadAt(w.ahead, at)
	w.begin, w.ahead = at, w.ahead[:n]
	if got := copy(b, w.ahead); got < len(b) {
		return got, err
	}
	return len(b), nil // what is behind b is missed when it is requested
}
