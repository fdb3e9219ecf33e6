package data

import (
	"container/list"
	"context"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// maxDefaultCacheBytes is the default of --data-cache where memory is plentiful.
const maxDefaultCacheBytes = 256 << 20

// DefaultCacheBytes is the cache's size unless it is set: 256 MiB, or an eighth of the memory limit (GOMEMLIMIT or the
// container's) where that is less.
func DefaultCacheBytes() int64 {
	limit := min(debug.SetMemoryLimit(-1), containerMemory()) // asks only
	if limit == math.MaxInt64 {
		return maxDefaultCacheBytes
	}
	return min(maxDefaultCacheBytes, limit/8)
}

// MemoryBytes is the memory of this container or machine: a process that takes more is killed. It is math.MaxInt64
// where the system does not say.
func MemoryBytes() int64 {
	limit := containerMemory()
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return limit
	}
	for line := range strings.Lines(string(text)) {
		var kilobytes int64
		if n, _ := fmt.Sscanf(line, "MemTotal: %d kB", &kilobytes); n == 1 {
			limit = min(limit, kilobytes<<10)
		}
	}
	return limit
}

// containerMemory is the limit of the cgroup, or math.MaxInt64.
func containerMemory() int64 {
	limit := int64(math.MaxInt64)
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // no cgroup of that version
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil { // or "max"
			limit = min(limit, n)
		}
	}
	return limit
}

// chunkKey names a chunk of a data set.
type chunkKey struct{ file, chunk int }

// cache holds decoded chunks, the least recently used of which go first. A chunk that several ask for at once is loaded
// once. The most recently used chunk always stays, even when it is larger than the limit.
type cache struct {
	limit int64

	mu      sync.Mutex
	used    int64
	largest int64 // of all chunks so far
	unused  int64 // chunks that were read ahead and not requested yet
	cached  map[chunkKey]*cached
	recent  list.List // of *cached that are loaded, most recent in front
}

type cached struct {
	key       chunkKey
	ready     chan struct{} // closed when what follows is set
	records   [][]byte
	err       error
	abandoned bool // its loading was cancelled: others that wait for it load it themselves
	bytes     int64
	unused    bool // read ahead, and not requested yet
	element   *list.Element
}

func newCache(limit int64) *cache {
	return &cache{limit: limit, cached: map[chunkKey]*cached{}}
}

// loaded returns a chunk's records if they are in memory, without allocating.
func (c *cache) loaded(key chunkKey) ([][]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.cached[key]
	if !ok || e.element == nil {
		return nil, false
	}
	c.use(e)
	return e.records, true
}

// use makes a chunk the most recently used.
func (c *cache) use(e *cached) {
	c.recent.MoveToFront(e.element)
	if e.unused {
		e.unused = false
		c.unused--
	}
}

// get returns a chunk's records, from memory or from load. isAhead says that nobody needs them yet.
func (c *cache) get(ctx context.Context, key chunkKey, s source, isAhead bool) ([][]byte, error) {
	for {
		e, mine := c.claim(ctx, key, isAhead)
		switch {
		case e == nil:
			return nil, context.Cause(ctx)
		case mine:
			return c.load(ctx, e, s)
		}
		select {
		case <-e.ready: // also when ctx has ended
		default:
			select {
			case <-e.ready:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		if !e.abandoned {
			return e.records, e.err
		}
	}
}

// claim returns what is there or on its way; or a new entry, which the caller has to load, unless ctx has ended.
func (c *cache) claim(ctx context.Context, key chunkKey, isAhead bool) (e *cached, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.cached[key]; ok {
		switch {
		case isAhead:
		case e.element != nil:
			c.use(e)
		case e.unused: // on its way, and needed now
			e.unused = false
			c.unused--
		}
		return e, false
	}
	if ctx.Err() != nil {
		return nil, false
	}
	e = &cached{key: key, ready: make(chan struct{}), unused: isAhead}
	if isAhead {
		c.unused++
	}
	c.cached[key] = e
	return e, true
}

func (c *cache) load(ctx context.Context, e *cached, s source) ([][]byte, error) {
	e.records, e.err = s.load(ctx, e.key.chunk)
	for _, r := range e.records {
		e.bytes += int64(len(r)) + 24 // the slice's header
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(e.ready)
	if e.err != nil {
		e.abandoned = ctx.Err() != nil
		c.forget(e) // the next one who asks tries again
		return nil, e.err
	}
	e.element = c.recent.PushFront(e)
	c.used += e.bytes
	c.largest = max(c.largest, e.bytes)
	for c.used > c.limit && c.recent.Len() > 1 {
		last := c.recent.Remove(c.recent.Back()).(*cached)
		c.forget(last)
		c.used -= last.bytes
	}
	return e.records, nil
}

func (c *cache) forget(e *cached) {
	delete(c.cached, e.key)
	if e.unused {
		c.unused--
	}
}

// wants reports whether loading a chunk ahead of its use is of use: it is not there, and it would push out neither the
// one in use nor those that were loaded ahead before.
func (c *cache) wants(key chunkKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, there := c.cached[key]
	return !there && (c.unused+2)*c.largest <= c.limit
}
