package data

import "time"

// prefetchRequest is a request to have records in memory soon.
type prefetchRequest struct {
	file   int
	lo, hi int64
}

const (
	// aheadRequests is how many wait at most: the ranges of a step of many virtual workers.
	aheadRequests = 64
	// aheadReaders read at once: one may wait for a disk or a store while another decompresses.
	aheadReaders = 2
)

// Prefetch asks for records lo … hi−1 of a file to be read in the background. It never waits: a request too many is
// dropped, which taken says, and an error comes when the records are used. Nothing is read ahead that would push what
// is in use, or what was read ahead before, out of the cache.
func (d *Dataset) Prefetch(file int, lo, hi int64) (taken bool) {
	if d.checkRange(file, lo, hi) != nil {
		return true
	}
	select {
	case d.ahead <- prefetchRequest{file, lo, hi}:
		return true
	default:
		return false
	}
}

// Waits are how often, and how long in all, records were waited for because they were not in memory yet: the share of
// reading in the time of a run.
func (d *Dataset) Waits() (times int64, total time.Duration) {
	return d.waits.Load(), time.Duration(d.waited.Load())
}

// readAhead serves Prefetch until Close.
func (d *Dataset) readAhead() {
	for {
		select {
		case <-d.life.Done():
			return
		case r := <-d.ahead:
			d.warm(r)
		}
	}
}

func (d *Dataset) warm(r prefetchRequest) {
	s := d.sources[r.file]
	last := s.chunkOf(max(r.hi-1, r.lo))
	for n := s.chunkOf(r.lo); n <= last && r.lo < r.hi; n++ {
		if d.life.Err() != nil {
			return
		}
		if key := (chunkKey{r.file, n}); d.cache.wants(key) {
			_, _ = d.cache.get(d.life, key, s, true) // the reader of the chunk gets an error again
		}
	}
}

// Close waits for reading in the background. The data set must not be used any more; closing again does nothing.
func (d *Dataset) Close() error {
	d.end()
	d.done.Wait()
	d.closeStorage()
	return nil
}

func (d *Dataset) closeStorage() {
	if d.in != nil {
		d.in.close()
	}
}
