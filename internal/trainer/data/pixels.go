package data

import (
	"fmt"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/codec"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// pixelsDecoder decodes the records of IDX and synthetic data: pixels, then one byte of label. The schema's feature of
// many elements is the image and the one of a single element the label, whatever they are called; pixel values become
// the schema's type as they are, 0 to 255.
type pixelsDecoder struct {
	image, label         int // positions in the schema
	imageType, labelType graph.DType
	pixels               int
}

func newPixelsDecoder(shape []int, features []graph.Feature) (*pixelsDecoder, error) {
	if err := codec.CheckFeatures(features); err != nil {
		return nil, err
	}
	pixels := 1
	for _, d := range shape {
		pixels *= d
	}
	misfit := func(why string) error {
		return fmt.Errorf("the records are an image of %v pixels and a label, and the model's schema is %s: %s", shape, codec.Describe(features), why)
	}
	if len(features) != 2 {
		return nil, misfit(fmt.Sprintf("%d features, not 2", len(features)))
	}
	d := &pixelsDecoder{image: 0, label: 1, pixels: pixels}
	if features[0].Elements() < features[1].Elements() {
		d.image, d.label = 1, 0
	}
	d.imageType, d.labelType = features[d.image].DType, features[d.label].DType
	switch image, label := features[d.image], features[d.label]; {
	case label.Elements() != 1:
		return nil, misfit(fmt.Sprintf("no feature has a single element for the label (%q has %d)", label.Name, label.Elements()))
	case image.Elements() != pixels:
		return nil, misfit(fmt.Sprintf("%q has %d elements, and the image %d", image.Name, image.Elements(), pixels))
	case image.DType == graph.String || label.DType == graph.String:
		return nil, misfit("text is no image, and no label")
	case label.DType == graph.Float32:
		return nil, misfit(fmt.Sprintf("the label %q is of float32, and labels here are whole numbers", label.Name))
	}
	return d, nil
}

func (d *pixelsDecoder) Decode(record []byte, dst graph.Example) error {
	if len(record) != d.pixels+1 {
		return fmt.Errorf("the record has %d bytes, and an image of %d pixels and its label have %d", len(record), d.pixels, d.pixels+1)
	}
	fromBytes(&dst[d.image], d.imageType, record[:d.pixels])
	fromBytes(&dst[d.label], d.labelType, record[d.pixels:])
	return nil
}

func fromBytes(v *graph.Value, t graph.DType, b []byte) {
	switch t {
	case graph.Float32:
		v.Floats = v.Floats[:0]
		for _, x := range b {
			v.Floats = append(v.Floats, float32(x))
		}
	case graph.Uint8:
		v.Bytes = append(v.Bytes[:0], b...)
	default:
		v.Ints = v.Ints[:0]
		for _, x := range b {
			v.Ints = append(v.Ints, int64(x))
		}
	}
}
