// Package datacmd implements the commands for data sets: create, convert, inspect and verify. The functions take
// options and a writer for their output; the caller handles flags and progress bars.
//
// Files appear under their names only when all of them are completely written and synced, and existing files are
// replaced only with Force.
package datacmd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/codec"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/planted"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/recordio"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/tfrecord"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// DefaultRecordsPerFile is what ElasticDL's generator wrote into a file.
const DefaultRecordsPerFile = 16384

// Output defines where and how records are written.
type Output struct {
	Dir string // made when it is not there
	// Format is dataset.RecordIO ("" means it; files data-0000, data-0001, …), dataset.TFRecord (data-0000.tfrecord, …) or
	// dataset.IDX (one pair of files, plain; only from images and labels).
	Format string
	// Codec of the records; "" keeps the source's. Of images and labels it makes dataset.BytesCodec in RecordIO, as
	// ElasticDL did, and dataset.TFExampleCodec in TFRecord.
	Codec           string
	Compressor      recordio.Compressor  // of RecordIO's chunks
	Compression     tfrecord.Compression // of TFRecord files
	RecordsPerFile  int64                // 0 means DefaultRecordsPerFile
	RecordsPerChunk int                  // of RecordIO; 0 means no limit but recordio.DefaultMaxChunkBytes; one range (records per task) is best for large data
	IDXPrefix       string               // of the names of an IDX pair; "" means "train"
	Force           bool                 // replace files of the same names
	// Progress, when not nil, is called now and then with the number of records written and their total.
	Progress func(done, total int64)
}

// ParseRange reads LO:HI, LO:, :HI or "" as records LO … HI−1; without HI, hi is −1, which Convert takes for the end.
func ParseRange(text string) (lo, hi int64, err error) {
	from, to, colon := strings.Cut(text, ":")
	if text == "" {
		return 0, -1, nil
	}
	if from != "" {
		lo, err = strconv.ParseInt(from, 10, 64)
	}
	hi = -1
	if err == nil && to != "" {
		hi, err = strconv.ParseInt(to, 10, 64)
	}
	if err != nil || !colon || lo < 0 || to != "" && hi < lo {
		return 0, 0, fmt.Errorf("records %q: write LO:HI, as in 0:8000 for the first 8,000, or 8000: for the rest", text)
	}
	return lo, hi, nil
}

// Synth writes a synthetic data set of a seed: one of package synth's, or of package planted's, as tf_examples unless
// out has another codec. It returns the paths of the files.
func Synth(ctx context.Context, set string, records int64, seed uint64, out Output) ([]string, error) {
	from := data.Spec{Path: data.Synthetic(set, records, seed)}
	if table, ok := planted.ByName(set); ok {
		from.Features = table.Features
	}
	return Convert(ctx, from, 0, -1, out)
}

// Convert writes records lo … hi−1 of a data set, counted over all its files, anew; hi −1 is the end. Images and labels
// (IDX, synthetic) become what ElasticDL's generator wrote: image float32[1, height, width] with pixels 0 to 255 and
// label int64[1]. The rows of CSV become tf_examples. Other records are copied as they are, or, to another codec,
// decoded by from.Features; a tf_example source needs none and then writes its features in the order of their names. It
// returns the paths of the files.
func Convert(ctx context.Context, from data.Spec, lo, hi int64, out Output) (paths []string, err error) {
	if from.CacheBytes == 0 {
		from.CacheBytes = 1 // every chunk is needed once
	}
	ds, err := data.Open(ctx, from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	if hi < 0 {
		hi = ds.Records()
	}
	if lo < 0 || lo >= hi || hi > ds.Records() {
		return nil, fmt.Errorf("converting records %d:%d of %q, which holds %d", lo, hi, from.Path, ds.Records())
	}
	c, err := newConverter(ctx, ds, from, out)
	if err != nil {
		return nil, err
	}
	w, err := newWriter(ds, hi-lo, out)
	if err != nil {
		return nil, err
	}
	if err := eachRecord(ctx, ds, lo, hi, func(done int64, record []byte) error {
		if out.Progress != nil && done%1024 == 0 {
			out.Progress(done, hi-lo)
		}
		converted, err := c.convert(record)
		if err != nil {
			return fmt.Errorf("converting %q: record %d: %w", from.Path, lo+done, err)
		}
		return w.write(converted)
	}); err != nil {
		return nil, errors.Join(err, w.abandon())
	}
	if paths, err = w.finish(); err != nil {
		return nil, errors.Join(err, w.abandon())
	}
	if out.Progress != nil {
		out.Progress(hi-lo, hi-lo)
	}
	return paths, nil
}

// readRecords is how many records are read at once.
const readRecords = 256

// eachRecord calls visit with records lo … hi−1, counted over all files.
func eachRecord(ctx context.Context, ds *data.Dataset, lo, hi int64, visit func(done int64, record []byte) error) error {
	done, first := int64(0), int64(0) // first is the number of the file's first record
	for i, f := range ds.Files() {
		end := min(f.Records, hi-first)
		for at := max(0, lo-first); at < end; at += readRecords {
			records, err := ds.Read(ctx, i, at, min(at+readRecords, end))
			if err != nil {
				return err
			}
			for _, r := range records {
				if err := visit(done, r); err != nil {
					return err
				}
				done++
			}
		}
		first += f.Records
	}
	return nil
}

// converter turns a source's records into the output's.
type converter struct {
	copies   bool
	decoder  codec.Decoder
	features []graph.Feature
	codec    string
	values   graph.Example
	record   []byte
}

func newConverter(ctx context.Context, ds *data.Dataset, from data.Spec, out Output) (*converter, error) {
	shape, pixels := ds.Pixels()
	switch {
	case out.Format == dataset.IDX && pixels && len(shape) == 2:
		return &converter{copies: true}, nil
	case out.Format == dataset.IDX:
		return nil, fmt.Errorf("converting %q: only grey images, of IDX and synthetic://digits, can be written as IDX", from.Path)
	case out.Format != dataset.RecordIO && out.Format != dataset.TFRecord && out.Format != "":
		return nil, fmt.Errorf("output format %q is not known; use %q, %q or %q", out.Format, dataset.RecordIO, dataset.TFRecord, dataset.IDX)
	case out.Format == dataset.TFRecord && out.RecordsPerChunk > 0:
		return nil, fmt.Errorf("converting %q: TFRecord has no chunks of records; leave out the %d records per chunk, or write RecordIO", from.Path, out.RecordsPerChunk)
	}
	target, features := out.Codec, from.Features
	if pixels {
		if target == "" {
			target = dataset.BytesCodec
			if out.Format == dataset.TFRecord {
				target = dataset.TFExampleCodec
			}
		}
		if len(features) == 0 {
			features = PixelFeatures(shape)
		}
	} else {
		source := ds.Codec()
		if target == "" || target == source {
			return &converter{copies: true}, nil
		}
		if len(features) == 0 {
			var err error
			if features, err = exampleFeatures(ctx, ds, from, source); err != nil {
				return nil, err
			}
		}
	}
	decoder, err := ds.NewDecoder(features)
	if err != nil {
		return nil, err
	}
	return &converter{decoder: decoder, features: features, codec: target, values: codec.NewExample(features)}, nil
}

// PixelFeatures is the schema that ElasticDL's generator gave images: image float32[1, height, width], label int64[1].
func PixelFeatures(shape []int) []graph.Feature {
	if len(shape) == 2 {
		shape = append([]int{1}, shape...)
	}
	return []graph.Feature{
		{Name: "image", DType: graph.Float32, Shape: shape},
		{Name: "label", DType: graph.Int64, Shape: []int{1}},
	}
}

// convert returns a record that is valid until the next call.
func (c *converter) convert(record []byte) (_ []byte, err error) {
	if c.copies {
		return record, nil
	}
	if err := c.decoder.Decode(record, c.values); err != nil {
		return nil, err
	}
	c.record, err = codec.Append(c.record[:0], c.codec, c.features, c.values)
	return c.record, err
}
