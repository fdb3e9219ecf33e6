package datacmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/codec"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/example"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// InspectOptions say what to look for.
type InspectOptions struct {
	// RecordsPerTask is the size of a range: chunks of more than four ranges are pointed out. 0 leaves that out.
	RecordsPerTask int
}

// firstRecords is how many records of the first file are looked at.
const firstRecords = 10

// Inspect writes what a data set is made of: its files as a table, what its records look like, the first labels, the
// fingerprint, and what a person should know before training on it.
func Inspect(ctx context.Context, spec data.Spec, options InspectOptions, w io.Writer) (err error) {
	ds, err := data.Open(ctx, spec)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	first, err := ds.Read(ctx, 0, 0, min(firstRecords, ds.Files()[0].Records))
	if err != nil {
		return err
	}
	var text strings.Builder
	writeFiles(&text, ds)
	fmt.Fprintf(&text, "\n%s", describeRecords(ds, spec, first))
	fmt.Fprintf(&text, "fingerprint  %x\n", ds.Fingerprint())
	for _, notice := range append(slices.Clone(ds.Notices()), warnings(ds, options.RecordsPerTask)...) {
		fmt.Fprintf(&text, "note: %s\n", notice)
	}
	_, err = io.WriteString(w, text.String())
	return err
}

func writeFiles(text *strings.Builder, ds *data.Dataset) {
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	row := func(format string, args ...any) { fmt.Fprintf(table, format, args...) } //nolint:errcheck // a strings.Builder does not fail
	row("FILE\tFORMAT\tRECORDS\tBYTES\tCHUNKS\tLARGEST CHUNK\tCOMPRESSION\n")
	for i, f := range ds.Files() {
		l := ds.Layout(i)
		row("%s\t%s\t%d\t%d\t%d\t%d\t%s\n", f.Path, l.Format, f.Records, f.Bytes, l.Chunks, l.LargestChunk, l.Compression)
	}
	if len(ds.Files()) > 1 {
		bytes := int64(0)
		for _, f := range ds.Files() {
			bytes += f.Bytes
		}
		row("%d files\t\t%d\t%d\t\t\t\n", len(ds.Files()), ds.Records(), bytes)
	}
	table.Flush() //nolint:errcheck // a strings.Builder does not fail
}

// describeRecords describes the first records, with their labels if these are known.
func describeRecords(ds *data.Dataset, spec data.Spec, first [][]byte) string {
	sizes := fmt.Sprintf("first record %d bytes", len(first[0]))
	if shape, ok := ds.Pixels(); ok {
		var labels []int64
		for _, r := range first {
			labels = append(labels, int64(r[len(r)-1]))
		}
		return fmt.Sprintf("records      image uint8%v and label\nlabels       %v …\n", shape, labels)
	}
	if found, err := example.Look(first[0]); err == nil && len(found) > 0 {
		text := fmt.Sprintf("records      %s; codec %s\n", sizes, dataset.TFExampleCodec)
		if ds.Layout(0).Format == dataset.CSV {
			text = "records      rows, read as tf_example; columns of words are fed to a model by numbering the words\n"
		}
		for _, f := range found {
			text += fmt.Sprintf("feature      %q %s of %d\n", f.Name, f.Kind, f.Count)
		}
		for _, f := range found {
			if f.Kind == example.Int64Kind && f.Count == 1 {
				label := []graph.Feature{{Name: f.Name, DType: graph.Int64}}
				text += valuesOf(dataset.TFExampleCodec, label, f.Name, first)
			}
		}
		return text
	}
	features, guess := spec.Features, ""
	if mnist := PixelFeatures([]int{28, 28}); len(features) == 0 && len(first[0]) == codec.BytesSize(mnist) {
		features, guess = mnist, ", as ElasticDL wrote MNIST"
	}
	if len(features) == 0 {
		return fmt.Sprintf("records      %s; no tf_example, so codec %s\n", sizes, dataset.BytesCodec)
	}
	text := fmt.Sprintf("records      %s; codec %s: %s%s\n", sizes, dataset.BytesCodec, codec.Describe(features), guess)
	for _, f := range features {
		if f.Elements() == 1 && f.DType != graph.Float32 && f.DType != graph.Uint8 {
			text += valuesOf(dataset.BytesCodec, features, f.Name, first)
		}
	}
	return text
}

// valuesOf is the line with the first values of a feature of one whole number; nothing when a record does not fit.
func valuesOf(codecName string, features []graph.Feature, name string, records [][]byte) string {
	decoder, err := codec.NewDecoder(codecName, features)
	if err != nil {
		return ""
	}
	at := slices.IndexFunc(features, func(f graph.Feature) bool { return f.Name == name })
	values, line := codec.NewExample(features), []int64{}
	for _, r := range records {
		if decoder.Decode(r, values) != nil {
			return ""
		}
		line = append(line, values[at].Ints[0])
	}
	return fmt.Sprintf("%-12s %v …\n", name, line)
}

// warnings points out chunks that make random access dear: a worker reads and decompresses a whole chunk for a range.
func warnings(ds *data.Dataset, recordsPerTask int) []string {
	const ranges = 4 // up to here a chunk is mostly used while it is in the cache
	var all []string
	for i, f := range ds.Files() {
		if l := ds.Layout(i); l.Format == dataset.TFRecord && l.Compression != "none" && l.Chunks > 1 {
			all = append(all, fmt.Sprintf("data %q is compressed as a whole (%s) and does not fit half the cache: opening it decompresses all of it, and reading a range decompresses all before that; `data convert` writes RecordIO, whose chunks are compressed one by one", f.Path, l.Compression))
		}
		if l := ds.Layout(i); recordsPerTask > 0 && l.LargestChunk > ranges*int64(recordsPerTask) && l.Format == dataset.RecordIO {
			all = append(all, fmt.Sprintf("data %q has a chunk of %d records, which is %d ranges of %d: every range needs the whole chunk decompressed unless the data fits the cache; `data convert --records-per-chunk %d` writes it in smaller ones",
				f.Path, l.LargestChunk, l.LargestChunk/int64(recordsPerTask), recordsPerTask, recordsPerTask))
		}
	}
	return all
}

// exampleFeatures is the schema of a tf_example source as its first record has it.
func exampleFeatures(ctx context.Context, ds *data.Dataset, from data.Spec, source string) ([]graph.Feature, error) {
	if source != dataset.TFExampleCodec {
		return nil, fmt.Errorf("converting %q from codec %q: its records do not say what they hold; give the model file whose schema they have", from.Path, source)
	}
	first, err := ds.Read(ctx, 0, 0, 1)
	if err != nil {
		return nil, err
	}
	found, err := example.Look(first[0])
	if err != nil {
		return nil, fmt.Errorf("converting %q: %w", from.Path, err)
	}
	var features []graph.Feature
	for _, f := range found {
		feature := graph.Feature{Name: f.Name, Shape: []int{f.Count}}
		switch f.Kind {
		case example.FloatKind:
			feature.DType = graph.Float32
		case example.Int64Kind:
			feature.DType = graph.Int64
		default:
			return nil, fmt.Errorf("converting %q: feature %q is %s; give the model file whose schema says what its elements are", from.Path, f.Name, f.Kind)
		}
		features = append(features, feature)
	}
	return features, nil
}
