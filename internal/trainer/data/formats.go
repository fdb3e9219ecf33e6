package data

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/idx"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/objectstore"
)

// openFiles lists the files and opens each.
func (d *Dataset) openFiles(ctx context.Context) error {
	d.in = disk{d.spec.Path}
	if objectstore.Is(d.spec.Path) {
		in, err := openBucket(ctx, d.spec.Path, d.spec.Stores)
		if err != nil {
			return err
		}
		d.in = in
	}
	entries, notices, err := d.in.list(ctx)
	if err != nil {
		return err
	}
	d.notices = notices
	if d.spec.Format == "" {
		d.spec.Format = guessFormat(names(entries))
	}
	var open func(context.Context, entry) (source, error)
	switch d.spec.Format {
	case dataset.IDX:
		return d.openPair(ctx, entries)
	case dataset.RecordIO:
		open = openRecordIO
	case dataset.TFRecord:
		open = d.openTFRecord
	case dataset.CSV:
		open = d.openCSV
	default:
		return fmt.Errorf("data format %q is not known; use %s", d.spec.Format, dataset.FormatChoice())
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if e.stamp.size == 0 {
			d.notices = append(d.notices, fmt.Sprintf("data %q is empty and is left out", e.absolute))
			continue
		}
		s, err := open(ctx, e)
		if err == nil {
			err = d.add(ctx, e.relative, s)
		}
		switch {
		case err == nil:
		case d.spec.Damaged != nil && ctx.Err() == nil:
			d.spec.Damaged(e.relative, err)
		default:
			return err
		}
	}
	return nil
}

// guessFormat is the format that the names of a data set's files suggest; the paths are slash-separated. It is the
// default where they suggest none.
func guessFormat(files []string) string {
	hasExtension := func(name string, extensions ...string) bool { return slices.Contains(extensions, path.Ext(name)) }
	for _, file := range files {
		name := strings.ToLower(path.Base(file))
		switch {
		case hasExtension(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zlib"), ".tfrecord", ".tfrecords"):
			return dataset.TFRecord
		case hasExtension(name, ".csv"):
			return dataset.CSV
		case idx.IsImagesName(name):
			return dataset.IDX
		}
	}
	return dataset.DefaultFormat
}

func names(entries []entry) []string {
	var names []string
	for _, e := range entries {
		names = append(names, e.relative)
	}
	return names
}

// openPair opens the pair of files of IDX, which is a data set of one file.
func (d *Dataset) openPair(ctx context.Context, entries []entry) error {
	images, labels, err := pickPair(ctx, d.spec.Path, entries)
	if err != nil {
		return err
	}
	s, err := openIDX(ctx, images, labels)
	if err != nil {
		return err
	}
	return d.add(ctx, images.relative, s)
}
