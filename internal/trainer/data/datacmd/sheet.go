package datacmd

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
)

// sheetColumns makes a sheet of 28×28 images about 600 pixels wide.
const sheetColumns = 20

// Sheet writes the first count images of IDX or synthetic data as one PNG, twenty a row, so that a person can look at
// what a model learns from.
func Sheet(ctx context.Context, spec data.Spec, count int64, w io.Writer) (err error) {
	ds, err := data.Open(ctx, spec)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	shape, ok := ds.Pixels()
	if !ok || len(shape) != 2 {
		return fmt.Errorf("data %q has no grey images to show; a sheet is made of IDX and synthetic data", spec.Path)
	}
	height, width := shape[0], shape[1]
	count = min(max(count, 1), ds.Files()[0].Records)
	records, err := ds.Read(ctx, 0, 0, count)
	if err != nil {
		return err
	}
	const gap = 2
	rows := (len(records) + sheetColumns - 1) / sheetColumns
	sheet := image.NewGray(image.Rect(0, 0, sheetColumns*(width+gap), rows*(height+gap)))
	for i, r := range records {
		left, top := i%sheetColumns*(width+gap), i/sheetColumns*(height+gap)
		for k, v := range r[:height*width] {
			sheet.SetGray(left+k%width, top+k/width, color.Gray{Y: v})
		}
	}
	if err := png.Encode(w, sheet); err != nil {
		return fmt.Errorf("writing a sheet of images: %w", err)
	}
	return nil
}
