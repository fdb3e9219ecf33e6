package datacmd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/codec"
)

// Verify reads every record of a data set, which verifies every checksum, decodes it where spec.Features says how, and
// writes a line per file. It goes on after a file that is not right; its error holds one finding for each.
func Verify(ctx context.Context, spec data.Spec, progress func(done, total int64), w io.Writer) (err error) {
	if spec.CacheBytes == 0 {
		spec.CacheBytes = 1 // every chunk is needed once
	}
	ds, err := data.Open(ctx, spec)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	check := func([]byte) error { return nil }
	if len(spec.Features) > 0 {
		decoder, err := ds.NewDecoder(spec.Features)
		if err != nil {
			return err
		}
		values := codec.NewExample(spec.Features)
		check = func(record []byte) error { return decoder.Decode(record, values) }
	}
	var findings []error
	done := int64(0)
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
		line := fmt.Sprintf("%s: %d records are right\n", f.Path, f.Records)
		if finding != nil {
			findings = append(findings, finding)
			line = fmt.Sprintf("%s: NOT RIGHT: %v\n", f.Path, finding)
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return errors.Join(findings...)
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
				return fmt.Errorf("data %q: record %d: %w", ds.Files()[file].Path, at+int64(i), err)
			}
		}
		progress(at + int64(len(records)))
	}
	return nil
}
