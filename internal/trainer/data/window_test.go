package data

import (
	"bytes"
	"io"
	"testing"

	"pgregory.net/rapid"
)

type counting struct {
	r               io.ReaderAt
	requests, bytes int
}

func (c *counting) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.r.ReadAt(b, at)
	c.requests++
	c.bytes += n
	return n, err
}

func TestAWindowReadsLikeTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		file := bytes.NewReader(rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "file"))
		// The file may have shrunk since its size was requested.
		w := newWindow(file, file.Size()+int64(rapid.IntRange(0, 5).Draw(t, "shrunk")), rapid.IntRange(1, 64).Draw(t, "window"))
		for range rapid.IntRange(1, 30).Draw(t, "reads") {
			at, n := int64(rapid.IntRange(0, 210).Draw(t, "at")), rapid.IntRange(0, 80).Draw(t, "bytes")
			got, want := make([]byte, n), make([]byte, n)
			gotN, gotErr := w.ReadAt(got, at)
			wantN, wantErr := file.ReadAt(want, at)
			if gotN != wantN || !bytes.Equal(got[:gotN], want[:wantN]) || n > 0 && (gotErr == nil) != (wantErr == nil) {
				t.Fatalf("%d bytes at %d: %d, %v; want %d, %v", n, at, gotN, gotErr, wantN, wantErr)
			}
		}
	})
}

func TestAWindowReadsAheadWhileHopsAreShort(t *testing.T) {
	hop := func(length int64) *counting {
		c := &counting{r: bytes.NewReader(make([]byte, 1<<20))}
		w := newWindow(c, 1<<20, 64<<10)
		for at := int64(0); at+20 <= 1<<20; at += length {
			if _, err := w.ReadAt(make([]byte, 20), at); err != nil {
				t.Fatal(err)
			}
		}
		return c
	}
	if c := hop(1 << 10); c.requests > 20 {
		t.Errorf("%d requests for 1024 headers that lie close together; 16 windows hold them", c.requests)
	}
	if c := hop(128 << 10); c.bytes > 70<<10 {
		t.Errorf("%d bytes read for 8 headers that lie far apart", c.bytes)
	}
}
