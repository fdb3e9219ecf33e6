package data_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/datatest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/objectstore/cloud"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/objectstore/storetest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/tfrecord"
)

// upload puts the files of a directory below a prefix.
func upload(t *testing.T, s *storetest.Store, dir, prefix string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		relative, _ := filepath.Rel(dir, path)
		s.Put(prefix+filepath.ToSlash(relative), b)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestObjectStores(t *testing.T) {
	server := storetest.StartS3(t)
	dir := t.TempDir()
	save(t, filepath.Join(dir, "records", "a"), dataset.BytesCodec, 0, 50, 7)
	save(t, filepath.Join(dir, "records", "sub", "b"), dataset.BytesCodec, 50, 60, 100)
	saveBytes(t, filepath.Join(dir, "records", "_SUCCESS"), nil)
	saveBytes(t, filepath.Join(dir, "rows", "flowers.csv"), flowersCSV(3000))
	saveMNIST(t, filepath.Join(dir, "digits"), "train", "", 1500)
	saveMNIST(t, filepath.Join(dir, "zipped"), "train", ".gz", 30)
	saveBytes(t, filepath.Join(dir, "frames", "a.tfrecord"), datatest.TFRecord(t, tfrecord.None, smallRecords(t, dataset.BytesCodec, 0, 40)...))
	saveBytes(t, filepath.Join(dir, "frames", "b.tfrecord.gz"), datatest.TFRecord(t, tfrecord.Gzip, smallRecords(t, dataset.BytesCodec, 40, 60)...))
	upload(t, server, dir, "data/")
	server.Put("data/records/", nil) // what consoles make for a directory
	for name, spec := range map[string]data.Spec{
		"RecordIO": {Path: "records", Features: small},
		"CSV":      {Path: "rows", Features: flowers, Table: flowersTable},
		"IDX":      {Path: "digits", Features: mnist},
		"IDX.gz":   {Path: "zipped", Features: mnist},
		"TFRecord": {Path: "frames", Features: small},
		"an IDX file, whose labels are found beside it": {Path: "digits/train-images-idx3-ubyte", Features: mnist},
	} {
		t.Run("a data set in a bucket is the one that it is on a disk: "+name, func(t *testing.T) {
			local, remote := spec, spec
			local.Path, remote.Path = filepath.Join(dir, filepath.FromSlash(spec.Path)), "s3://bucket/data/"+spec.Path
			remote.Stores = cloud.Open
			here, there := open(t, local), open(t, remote)
			if here.Fingerprint() != there.Fingerprint() {
				t.Errorf("another fingerprint: %+v and %+v", here.Files(), there.Files())
			}
			for i, f := range here.Files() {
				want, err := here.Read(t.Context(), i, 0, f.Records)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := there.Read(t.Context(), i, 0, f.Records); err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
					t.Errorf("%s: other records, %v", f.Path, err)
				}
			}
		})
	}
	t.Run("a range is read without what is before it", func(t *testing.T) {
		ds := open(t, data.Spec{Stores: cloud.Open, Path: "s3://bucket/data/records/a"})
		server.Requests()
		if _, err := ds.Read(t.Context(), 0, 42, 49); err != nil {
			t.Fatal(err)
		}
		if got := server.Requests(); len(got) != 1 || !strings.HasPrefix(got[0], "GET /bucket/data/records/a bytes=") || strings.Contains(got[0], "=0-") {
			t.Errorf("%q", got)
		}
	})
	t.Run("an object that is replaced under the run is an error", func(t *testing.T) {
		ds := open(t, data.Spec{Stores: cloud.Open, Path: "s3://bucket/data/rows", Features: flowers, Table: flowersTable, CacheBytes: 1})
		server.Put("data/rows/flowers.csv", bytes.ReplaceAll(flowersCSV(3000), []byte("wild"), []byte("tame")))
		if _, err := ds.Read(t.Context(), 0, 2000, 3000); err == nil || !strings.Contains(err.Error(), "changed while it was in use") || !strings.Contains(err.Error(), "s3://bucket/data/rows/flowers.csv") {
			t.Error(err)
		}
	})
	t.Run("a build without object stores says how to get one that has them", func(t *testing.T) {
		refuse(t, data.Spec{Path: "s3://bucket/data/records"}, "s3://bucket/data/records", "TAGS=objectstores")
	})
	t.Run("what is not there is refused with the URL", func(t *testing.T) {
		refuse(t, data.Spec{Stores: cloud.Open, Path: "s3://bucket/data/nothing"}, "s3://bucket/data/nothing", "no such object")
		refuse(t, data.Spec{Stores: cloud.Open, Path: "s3://bucket/data/digits/t10k-images-idx3-ubyte"}, "no such object")
		refuse(t, data.Spec{Stores: cloud.Open, Path: "s3://user:secret@bucket/data"}, "credentials come from the environment")
	})
}
