// Package objectstore defines the interface for reading data from s3:// and gs://: names of objects, and buckets.
// Package cloud implements it; the trainer contains that package if it is built with the tag objectstores, which makes
// the binary 1.5 MB larger.
package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrChanged is an object that is not the version that was listed.
var ErrChanged = errors.New("the object was changed while it was in use; data must stay as it is during a run")

// Opener prepares reading the bucket of a location; it makes no request that can be left for later.
type Opener func(ctx context.Context, l Location) (Bucket, error)

// Bucket is a bucket to read from. It is safe for concurrent use.
type Bucket interface {
	// List returns the objects whose keys begin with prefix, in no particular order.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Stat looks for one object.
	Stat(ctx context.Context, key string) (o Object, there bool, err error)
	// Reader reads this version of an object anywhere in it, every ReadAt being one request. Another version is
	// ErrChanged.
	Reader(ctx context.Context, o Object) io.ReaderAt
	// Close ends connections that are kept for the next request.
	Close()
}

// Location is a parsed URL.
type Location struct {
	Scheme string // "s3" or "gs"
	Bucket string
	Key    string // an object's, or a prefix; "" is the whole bucket
}

// String is the URL.
func (l Location) String() string { return l.Scheme + "://" + l.Bucket + "/" + l.Key }

// Is reports by its beginning whether a path is of an object store.
func Is(path string) bool {
	return strings.HasPrefix(path, "s3://") || strings.HasPrefix(path, "gs://")
}

// Parse reads s3://BUCKET/KEY and gs://BUCKET/KEY. Keys are taken as they are: nothing in them is decoded.
func Parse(path string) (Location, error) {
	scheme, rest, _ := strings.Cut(path, "://")
	bucket, key, _ := strings.Cut(rest, "/")
	if !Is(path) || bucket == "" || strings.ContainsAny(bucket, "@:?#") {
		return Location{}, fmt.Errorf("data %q: write s3://BUCKET/PREFIX or gs://BUCKET/PREFIX; credentials come from the environment, not from here", path)
	}
	return Location{Scheme: scheme, Bucket: bucket, Key: key}, nil
}

// Object is a version of an object.
type Object struct {
	Key  string
	Size int64
	ETag string
}
