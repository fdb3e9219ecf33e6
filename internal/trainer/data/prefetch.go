package data

// ahead is a request to have records in memory soon.
type ahead struct {
	file   int
	lo, hi int64
}

// aheadRequests is how many wait at most; a worker never needs more than its next few ranges.
const aheadRequests = 16

// Prefetch asks for records lo … hi−1 of a file to be read in the background. It never waits: a request too many is
// dropped, and an error comes when the records are used. Nothing is read ahead that would push what is in use out of
// the cache.
func (d *Dataset) Prefetch(file int, lo, hi int64) {
	if d.checkRange(file, lo, hi) != nil {
		return
	}
	select {
	case d.ahead <- ahead{file, lo, hi}:
	default:
	}
}

// readAhead serves Prefetch until Close.
func (d *Dataset) readAhead() {
	defer d.done.Done()
	for {
		select {
		case <-d.life.Done():
			return
		case r := <-d.ahead:
			d.warm(r)
		}
	}
}

func (d *Dataset) warm(r ahead) {
	s := d.sources[r.file]
	last := s.chunkOf(max(r.hi-1, r.lo))
	for n := s.chunkOf(r.lo); n <= last && r.lo < r.hi; n++ {
		if d.life.Err() != nil {
			return
		}
		if key := (chunkKey{r.file, n}); d.cache.wants(key) {
			_, _ = d.cache.get(d.life, key, s) // an error is said again to whoever uses the chunk
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
