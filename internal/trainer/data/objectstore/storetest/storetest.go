// Package storetest is a small object store for tests, on loopback and in memory: the part of the S3 protocol that
// reading needs, with listings of a few objects per page, ranges, conditions, and injected faults.
package storetest

import (
	"bytes"
	"crypto/md5" //nolint:gosec // an ETag, as S3 makes it
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// pageKeys is how many objects are listed at once.
const pageKeys = 2

// Store is a running server with one bucket.
type Store struct {
	URL    string
	Bucket string

	mu       sync.Mutex
	objects  map[string][]byte
	allowed  string // what the Authorization header has to hold
	busy     int    // how many requests are refused
	cut      int    // how many bodies break off
	requests []string
}

// Start runs a server until the test ends. It answers requests whose Authorization header holds allowed, which "" makes
// all of them.
func Start(t *testing.T, allowed string) *Store {
	t.Helper()
	s := &Store{Bucket: "bucket", objects: map[string][]byte{}, allowed: allowed}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// StartS3 runs a server that the environment of the test names as the S3 store, with credentials for it.
func StartS3(t *testing.T) *Store {
	t.Helper()
	s := Start(t, "Credential=reader/")
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": s.URL, "AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "",
		"AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	return s
}

// Put stores an object, in the place of another.
func (s *Store) Put(key string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = content
}

// Delete removes an object.
func (s *Store) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
}

// Fail makes the store refuse the next requests as too busy, and break off the bodies of objects after that.
func (s *Store) Fail(busy, cut int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.cut = busy, cut
}

// Requests are those since the last call: method, path and range.
func (s *Store) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.requests
	s.requests = nil
	return all
}

// ServeHTTP answers like S3 with the bucket in the path.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	s.mu.Lock()
	s.requests = append(s.requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Range")))
	content, there := s.objects[key]
	busy := s.busy > 0
	if busy {
		s.busy--
	}
	cut := !busy && r.Method == http.MethodGet && key != "" && s.cut > 0
	if cut {
		s.cut--
	}
	s.mu.Unlock()
	switch {
	case busy:
		fail(w, http.StatusServiceUnavailable, "SlowDown")
	case s.allowed != "" && !strings.Contains(r.Header.Get("Authorization"), s.allowed):
		fail(w, http.StatusForbidden, "AccessDenied")
	case bucket != s.Bucket:
		fail(w, http.StatusNotFound, "NoSuchBucket")
	case key == "" && r.Method == http.MethodGet:
		s.list(w, r)
	case !there:
		fail(w, http.StatusNotFound, "NoSuchKey")
	default:
		w.Header().Set("ETag", fmt.Sprintf("%q", etag(content)))
		if cut {
			w = &cutOff{ResponseWriter: w, left: len(content) / 3}
		}
		http.ServeContent(w, r, "", time.Unix(1, 0), bytes.NewReader(content))
	}
}

func etag(content []byte) string {
	sum := md5.Sum(content) //nolint:gosec // see above
	return hex.EncodeToString(sum[:])
}

// cutOff ends a body early, as a connection that breaks does.
type cutOff struct {
	http.ResponseWriter
	left int
}

func (c *cutOff) Write(b []byte) (int, error) {
	if len(b) > c.left {
		_, _ = c.ResponseWriter.Write(b[:c.left])
		panic(http.ErrAbortHandler)
	}
	c.left -= len(b)
	return c.ResponseWriter.Write(b)
}

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
}

type listing struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []listed
}

type listed struct {
	Key  string
	Size int
	ETag string
}

func (s *Store) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	query := r.URL.Query()
	var keys []string
	for key := range s.objects {
		if strings.HasPrefix(key, query.Get("prefix")) && key > query.Get("continuation-token") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var page listing
	if len(keys) > pageKeys {
		keys = keys[:pageKeys]
		page.IsTruncated, page.NextContinuationToken = true, keys[pageKeys-1]
	}
	for _, key := range keys {
		page.Contents = append(page.Contents, listed{key, len(s.objects[key]), fmt.Sprintf("%q", etag(s.objects[key]))})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(page) // the client has gone
}
