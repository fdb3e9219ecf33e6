package datacmd

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
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
	if !ok || len(shape) != 2 && (len(shape) != 3 || shape[2] != 3) {
		return fmt.Errorf("data %q has no grey or coloured images to show; a sheet is made of IDX and synthetic data", spec.Path)
	}
	height, width := shape[0], shape[1]
	count = min(max(count, 1), ds.Files()[0].Records)
	records, err := ds.Read(ctx, 0, 0, count)
	if err != nil {
		return err
	}
	const gap = 2
	rows := (len(records) + sheetColumns - 1) / sheetColumns
	area := image.Rect(0, 0, sheetColumns*(width+gap), rows*(height+gap))
	var sheet draw.Image = image.NewGray(area)
	if len(shape) == 3 {
		sheet = image.NewNRGBA(area)
	}
	for i, r := range records {
		left, top := i%sheetColumns*(width+gap), i/sheetColumns*(height+gap)
		for k := range height * width {
			var pixel color.Color = color.Gray{Y: r[k]}
			if len(shape) == 3 {
				pixel = color.NRGBA{R: r[3*k], G: r[3*k+1], B: r[3*k+2], A: 255}
			}
			sheet.Set(left+k%width, top+k/width, pixel)
		}
	}
	if err := png.Encode(w, sheet); err != nil {
		return fmt.Errorf("writing a sheet of images: %w", err)
	}
	return nil
}
