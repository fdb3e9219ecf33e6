package datacmd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/codec"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/example"
)

// Verify reads every record of a data set, which verifies every checksum and count, decodes it (where spec.Features
// does not say how, a tf_example has to be one), and writes a line per file. It continues after a file that is not
// right; its error holds one finding for each, with file and offset.
func Verify(ctx context.Context, spec data.Spec, progress func(done, total int64), w io.Writer) (err error) {
	if spec.CacheBytes == 0 {
		spec.CacheBytes = 1 // every chunk is needed once
	}
	var damaged []error
	spec.Damaged = func(path string, err error) { damaged = append(damaged, fileError{path, err}) }
	ds, err := data.Open(ctx, spec)
	if err != nil {
		return errors.Join(append(damaged, err)...)
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	check, err := checkOf(ds, spec)
	if err != nil {
		return err
	}
	findings := damaged
	done := int64(0)
	for _, finding := range damaged {
		if _, err := io.WriteString(w, line(finding)); err != nil {
			return err
		}
	}
	for i, f := range ds.Files() {
		finding := verifyFile(ctx, ds, i, check, func(records int64) {
			if progress != nil {
				progress(done+records, ds.Records())
			}
		})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		done += f.Records
		text := fmt.Sprintf("%s: %d records are right\n", f.Path, f.Records)
		if finding != nil {
			finding = fileError{f.Path, finding}
			findings = append(findings, finding)
			text = line(finding)
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return errors.Join(findings...)
}

// fileError is what is not right with a file.
type fileError struct {
	path string
	error
}

func (e fileError) Unwrap() error { return e.error }

func line(finding error) string {
	var f fileError
	errors.As(finding, &f)
	return fmt.Sprintf("%s: NOT RIGHT: %v\n", f.path, f.error)
}

// checkOf is what is done with every record besides reading it.
func checkOf(ds *data.Dataset, spec data.Spec) (func([]byte) error, error) {
	switch {
	case len(spec.Features) > 0:
		decoder, err := ds.NewDecoder(spec.Features)
		if err != nil {
			return nil, err
		}
		values := codec.NewExample(spec.Features)
		return func(record []byte) error { return decoder.Decode(record, values) }, nil
	case ds.Codec() == dataset.TFExampleCodec:
		return func(record []byte) error {
			_, err := example.Look(record)
			return err
		}, nil
	default:
		return func([]byte) error { return nil }, nil
	}
}

func verifyFile(ctx context.Context, ds *data.Dataset, file int, check func([]byte) error, progress func(int64)) error {
	total := ds.Files()[file].Records
	for at := int64(0); at < total; at += readRecords {
		records, err := ds.Read(ctx, file, at, min(at+readRecords, total))
		if err != nil {
			return err
		}
		for i, r := range records {
			if err := check(r); err != nil {
				return ds.RecordError(file, at+int64(i), err)
			}
		}
		progress(at + int64(len(records)))
	}
	return nil
}
