package objectstore_test

import (
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/objectstore"
)

func TestAKeyIsTakenAsItIsAndCredentialsInAURLAreRefused(t *testing.T) {
	for path, want := range map[string]objectstore.Location{
		"s3://b":           {Scheme: "s3", Bucket: "b"},
		"s3://b/":          {Scheme: "s3", Bucket: "b"},
		"gs://b/a/c d%20?": {Scheme: "gs", Bucket: "b", Key: "a/c d%20?"},
	} {
		if got, err := objectstore.Parse(path); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", path, got, err, want)
		}
	}
	for _, path := range []string{"s3://", "gs:///key", "s3://key:secret@bucket/x", "http://b/k", "s3://b?x=1"} {
		if got, err := objectstore.Parse(path); err == nil || !strings.Contains(err.Error(), "credentials come from the environment") {
			t.Errorf("%s: %+v, %v", path, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, path := range []string{"s3://bucket/a/b", "gs://b", "s3://u:p@b/k"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		at, err := objectstore.Parse(path)
		if err != nil {
			return
		}
		if again, err := objectstore.Parse(at.String()); err != nil || again != at {
			t.Fatalf("%q is %+v, which is written as %q", path, at, at)
		}
	})
}
