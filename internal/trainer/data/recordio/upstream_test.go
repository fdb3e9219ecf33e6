package recordio_test

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/datatest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/recordio"
)

// readByUpstream is what the reader of wangkuiyi/recordio, which ElasticDL's pyrecordio wraps, read of files that are
// written here. A file with the same checksum is therefore read by it, too.
//
//go:embed testdata/read-by-upstream.txt
var readByUpstream string

// upstreamFolder is where the test leaves the files, for upstream's reader; see testdata/read-by-upstream.txt.
const upstreamFolder = "RECORDIO_UPSTREAM"

func TestUpstreamReadsTheseFiles(t *testing.T) {
	// An empty record, one larger than a frame of snappy, and in the end three chunks.
	records := [][]byte{[]byte("abc"), nil, bytes.Repeat([]byte("elastic"), 10_000), {0, 1, 2, 255}, []byte("last")}
	all := sha256.New()
	for _, record := range records {
		fmt.Fprintf(all, "%d:", len(record))
		all.Write(record)
	}
	for _, compressor := range []recordio.Compressor{recordio.None, recordio.Snappy} { // upstream reads no gzip
		t.Run(compressor.String(), func(t *testing.T) {
			file := datatest.RecordIO(t, recordio.WriterOptions{Compressor: compressor, MaxChunkRecords: 2}, records...)
			if dir := os.Getenv(upstreamFolder); dir != "" {
				if err := os.WriteFile(filepath.Join(dir, compressor.String()+".recordio"), file, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			checksum := fmt.Sprintf("%x", sha256.Sum256(file))
			want := fmt.Sprintf("%s %s 3 %d %x\n", compressor, checksum, len(records), all.Sum(nil))
			if !strings.Contains(readByUpstream, want) {
				t.Errorf("upstream's reader has not read this file, or read something else of it:\n%swant\n%s", readByUpstream, want)
			}
		})
	}
}
