package data

import (
	"context"
	"fmt"
	"io"
	"path"
	"sort"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/objectstore"
)

// bucket is an object in a store, or all objects below a prefix.
type bucket struct {
	at    objectstore.Location
	store objectstore.Bucket
}

// bucketReadBytes makes the time of a request small beside that of its bytes.
const bucketReadBytes = 8 << 20

func openBucket(ctx context.Context, path string, open objectstore.Opener) (bucket, error) {
	at, err := objectstore.Parse(path)
	if err != nil {
		return bucket{}, err
	}
	if open == nil {
		return bucket{}, fmt.Errorf("data %q: this build of the trainer reads no object stores; build it, or its image, with the tag objectstores (make image TAGS=objectstores)", path)
	}
	store, err := open(ctx, at)
	return bucket{at, store}, err
}

func (bucket) readBytes() int { return bucketReadBytes }

func (b bucket) close() { b.store.Close() }

// list finds the object of the key, or those below it as if it were a directory; what files leave out is left out.
func (b bucket) list(ctx context.Context) ([]entry, []string, error) {
	if b.at.Key != "" && !strings.HasSuffix(b.at.Key, "/") {
		o, there, err := b.store.Stat(ctx, b.at.Key)
		if err != nil {
			return nil, nil, err
		}
		if there {
			return []entry{b.entry(path.Base(o.Key), o)}, nil, nil
		}
	}
	prefix := b.at.Key
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	objects, err := b.store.List(ctx, prefix)
	if err != nil {
		return nil, nil, err
	}
	var entries []entry
	for _, o := range objects {
		if relative := strings.TrimPrefix(o.Key, prefix); isData(relative) {
			entries = append(entries, b.entry(relative, o))
		}
	}
	if len(objects) == 0 {
		return nil, nil, fmt.Errorf("data %q: there is no such object, and none below it", b.at)
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].relative < entries[j].relative })
	return entries, nil, nil
}

// isData leaves out what listFiles does, and the empty objects that stand for directories.
func isData(relative string) bool {
	for name := range strings.SplitSeq(relative, "/") {
		if name == "" || isHidden(name) {
			return false
		}
	}
	return true
}

func (b bucket) entry(relative string, o objectstore.Object) entry {
	at := b.at
	at.Key = o.Key
	absolute := at.String()
	return entry{relative: relative, absolute: absolute, stamp: fileStamp{size: o.Size, tag: o.ETag}, in: b}
}

func (b bucket) beside(ctx context.Context, name string) (entry, bool, error) {
	directory, _ := path.Split(b.at.Key)
	o, there, err := b.store.Stat(ctx, directory+name)
	return b.entry(name, o), there, err
}

// open makes no request: every read names the version that was listed.
func (b bucket) open(ctx context.Context, e entry) (file, error) {
	at, err := objectstore.Parse(e.absolute)
	if err != nil {
		return nil, err
	}
	return object{b.store.Reader(ctx, objectstore.Object{Key: at.Key, Size: e.stamp.size, ETag: e.stamp.tag})}, nil
}

// object is an open file of which nothing has to be closed.
type object struct{ io.ReaderAt }

func (object) Close() error { return nil }
