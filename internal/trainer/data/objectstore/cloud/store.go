// Package cloud reads objects of s3:// (Amazon S3 and stores that speak its protocol) and gs:// (Google Cloud
// Storage, through its XML API).
//
// Credentials are found as each cloud's own tools find them, and never anywhere else. For s3: AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; ~/.aws/credentials (AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE); a web
// identity (EKS), a container's or a machine's role. For gs: GOOGLE_APPLICATION_CREDENTIALS, gcloud's own, and the
// metadata server (GKE's workload identity). Without any, requests are anonymous, as public buckets take them.
// AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL names another store that speaks S3, STORAGE_EMULATOR_HOST one that speaks
// Google's.
//
// It guarantees that what is read of an object is of one version of it: a request names the version that was listed,
// and an object that was replaced is objectstore.ErrChanged. Requests are repeated where that can help, by the library
// and, within the body of an answer, here. It writes nothing.
package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/objectstore"
)

// store is one bucket.
type store struct {
	scheme string
	bucket string
	client minio.Core
	idle   func()
}

// Open is an objectstore.Opener.
func Open(ctx context.Context, l objectstore.Location) (objectstore.Bucket, error) {
	endpoint, err := endpointOf(ctx, l.Scheme)
	if err != nil {
		return nil, err
	}
	client, err := minio.New(endpoint.host, &endpoint.options)
	if err != nil {
		return nil, fmt.Errorf("data %q: the store at %s: %w", l, endpoint.host, err)
	}
	return &store{scheme: l.Scheme, bucket: l.Bucket, client: minio.Core{Client: client}, idle: endpoint.transport.CloseIdleConnections}, nil
}

func (s *store) Close() { s.idle() }

func (s *store) name(key string) string {
	return objectstore.Location{Scheme: s.scheme, Bucket: s.bucket, Key: key}.String()
}

func (s *store) List(ctx context.Context, prefix string) ([]objectstore.Object, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing where it is left early
	var all []objectstore.Object
	for o := range s.client.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, s.failure(prefix, "listing", o.Err)
		}
		all = append(all, objectstore.Object{Key: o.Key, Size: o.Size, ETag: o.ETag})
	}
	return all, ctx.Err()
}

func (s *store) Stat(ctx context.Context, key string) (o objectstore.Object, there bool, err error) {
	info, err := s.client.StatObject(ctx, s.bucket, key, minio.StatObjectOptions{})
	switch {
	case minio.ToErrorResponse(err).Code == minio.NoSuchKey:
		return objectstore.Object{}, false, nil
	case err != nil:
		return objectstore.Object{}, false, s.failure(key, "looking at", err)
	}
	return objectstore.Object{Key: key, Size: info.Size, ETag: info.ETag}, true, nil
}

func (s *store) Reader(ctx context.Context, o objectstore.Object) io.ReaderAt {
	return &reader{ctx, s, o}
}

type reader struct {
	ctx    context.Context //nolint:containedctx // io.ReaderAt has none
	bucket *store
	object objectstore.Object
}

// bodyAttempts is how often a body that broke off is requested again without a byte of progress.
const bodyAttempts = 3

func (r *reader) ReadAt(b []byte, at int64) (int, error) {
	if at >= r.object.Size || len(b) == 0 {
		return 0, io.EOF
	}
	want := b[:min(int64(len(b)), r.object.Size-at)]
	done := 0
	for failed := 0; done < len(want); {
		n, err := r.part(want[done:], at+int64(done))
		done += n
		if n > 0 {
			failed = 0
		}
		if err != nil {
			failed++
			var broken *brokenBody
			if !errors.As(err, &broken) || failed >= bodyAttempts || r.ctx.Err() != nil {
				return done, r.bucket.failure(r.object.Key, "reading", err)
			}
		}
	}
	if len(want) < len(b) {
		return done, io.EOF
	}
	return done, nil
}

// brokenBody is an answer that began well.
type brokenBody struct{ err error }

func (e *brokenBody) Error() string { return e.err.Error() }
func (e *brokenBody) Unwrap() error { return e.err }

// part makes one request for all of b.
func (r *reader) part(b []byte, at int64) (int, error) {
	var o minio.GetObjectOptions
	o.Set("Range", fmt.Sprintf("bytes=%d-%d", at, at+int64(len(b))-1))
	if err := o.SetMatchETag(r.object.ETag); err != nil {
		return 0, err
	}
	body, info, _, err := r.bucket.client.GetObject(r.ctx, r.bucket.bucket, r.object.Key, o)
	if err != nil {
		return 0, err
	}
	defer body.Close() //nolint:errcheck // only read from
	if info.Size != int64(len(b)) {
		return 0, fmt.Errorf("asked for %d bytes from offset %d on, and the store answers with %d; does it serve ranges?", len(b), at, info.Size)
	}
	n, err := io.ReadFull(body, b)
	if err != nil {
		return n, &brokenBody{err}
	}
	return n, nil
}

// failure reports what was attempted on what, and what to do about it.
func (s *store) failure(key, verb string, err error) error {
	advice := ""
	switch answer := minio.ToErrorResponse(err); {
	case answer.StatusCode == http.StatusPreconditionFailed:
		err = objectstore.ErrChanged
	case answer.Code == minio.NoSuchKey || answer.Code == minio.NoSuchBucket:
		err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized:
		advice = "; the credentials that were found may not read it, or none were found: see how pods get them in the docs of data.training"
	}
	return fmt.Errorf("data %q: %s it at %s: %w%s", s.name(key), verb, s.client.EndpointURL().Host, err, advice)
}
