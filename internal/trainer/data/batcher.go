package data

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/codec"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// Batcher makes minibatches of a data set as a model's feed says. It serves one goroutine; several may share a Dataset.
type Batcher struct {
	dataset  *Dataset
	feed     graph.Feed
	maxBatch int
	decoder  codec.Decoder
	columns  []column
	label    int             // position in the schema; -1 when the feed's Function finds the labels itself, or there are none
	real     bool            // the label is a float32
	examples []graph.Example // one, or maxBatch for a Function
}

// column is graph.Column with its feature looked up and its numbers rounded.
type column struct {
	feature    int
	dtype      graph.DType
	elements   int
	transforms []transform
	integer    bool // the input takes whole numbers as they are
	parts      []part
	weights    string
	sparse     bool // rows below 0 are missing: there are weights for them
}

type transform struct {
	op    byte // '/', '*', '+', '-'
	value float32
}

// NewBatcher checks that the feed can be served from the data set's records. maxBatch is the largest minibatch.
func NewBatcher(ds *Dataset, feed graph.Feed, maxBatch int) (*Batcher, error) {
	if maxBatch < 1 {
		return nil, fmt.Errorf("minibatches of %d records; use at least 1", maxBatch)
	}
	if feed.Raw {
		return &Batcher{dataset: ds, feed: feed, maxBatch: maxBatch}, nil
	}
	decoder, err := ds.NewDecoder(feed.Features)
	if err != nil {
		return nil, fmt.Errorf("data %q: %w", ds.spec.Path, err)
	}
	b := &Batcher{dataset: ds, feed: feed, maxBatch: maxBatch, decoder: decoder, label: -1}
	if (feed.Function == nil) == (len(feed.Columns) == 0) {
		return nil, fmt.Errorf("the model's feed has %d columns and a function: %t; it needs exactly one of the two", len(feed.Columns), feed.Function != nil)
	}
	if feed.Function != nil {
		for range maxBatch {
			b.examples = append(b.examples, codec.NewExample(feed.Features))
		}
		return b, nil
	}
	b.examples = []graph.Example{codec.NewExample(feed.Features)}
	for _, c := range feed.Columns {
		made, err := newColumn(c, feed.Features)
		if err != nil {
			return nil, err
		}
		b.columns = append(b.columns, made)
	}
	if feed.Label == "" {
		return b, nil // for predictions
	}
	if b.label, err = indexOf(feed.Features, feed.Label); err != nil {
		return nil, err
	}
	f := feed.Features[b.label]
	if f.Elements() != 1 {
		return nil, fmt.Errorf("the label %q is %s%v; a label is one number", f.Name, f.DType, f.Shape)
	}
	b.real = f.DType == graph.Float32
	return b, nil
}

func newColumn(c graph.Column, features []graph.Feature) (column, error) {
	if len(c.Parts) > 0 {
		return newMadeColumn(c, features)
	}
	i, err := indexOf(features, c.Feature)
	if err != nil {
		return column{}, err
	}
	made := column{feature: i, dtype: features[i].DType, elements: features[i].Elements(), integer: c.Integer}
	if made.dtype == graph.String {
		return column{}, fmt.Errorf("feature %q is text, and the model's input takes numbers", c.Feature)
	}
	if c.Integer && (made.dtype == graph.Float32 || len(c.Transforms) > 0) {
		return column{}, fmt.Errorf("feature %q (%s, %d transforms) is the model's input of whole numbers; it must be one of integers, as it is", c.Feature, made.dtype, len(c.Transforms))
	}
	for _, t := range c.Transforms {
		op, ok := map[string]byte{"divide": '/', "multiply": '*', "add": '+', "subtract": '-'}[t.Op]
		if !ok {
			return column{}, fmt.Errorf("feature %q: the feed's operation %q is not one of divide, multiply, add, subtract", c.Feature, t.Op)
		}
		made.transforms = append(made.transforms, transform{op, float32(t.Value)})
	}
	return made, nil
}

// newMadeColumn is that of an input that is made by steps.
func newMadeColumn(c graph.Column, features []graph.Feature) (column, error) {
	made := column{integer: c.Integer, weights: c.Weights, sparse: c.Sparse}
	if !slices.Contains([]string{"", "sum", "mean", "sqrtn"}, c.Weights) || c.Integer && c.Weights != "" {
		return column{}, fmt.Errorf("the feed's weights %q are not one of sum, mean, sqrtn", c.Weights)
	}
	for _, p := range c.Parts {
		part, err := newPart(p, features)
		if err != nil {
			return column{}, err
		}
		if part.width > 1 && (c.Integer || c.Weights != "") {
			return column{}, fmt.Errorf("feature %q: %s makes no row numbers", p.Feature, graph.OneHot)
		}
		made.parts = append(made.parts, part)
		made.elements += part.elements * part.width
	}
	return made, nil
}

func indexOf(features []graph.Feature, name string) (int, error) {
	i := slices.IndexFunc(features, func(f graph.Feature) bool { return f.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("the model's feed names feature %q, which its schema does not hold: %s", name, codec.Describe(features))
	}
	return i, nil
}

// Fill makes dst the minibatch of the records of file at indices, in that order: inputs converted to float32, then each
// transform as one float32 operation per element, elements in the record's order; those of integer inputs as they are.
// dst's slices are reused; with feed.Columns nothing is allocated once they and the cache hold what is needed. A raw
// feed's records are the cache's. An error names file and record, and leaves dst undefined.
func (b *Batcher) Fill(ctx context.Context, file int, indices []int64, dst *graph.Batch) error {
	if len(indices) < 1 || len(indices) > b.maxBatch {
		return fmt.Errorf("a minibatch of %d records; the batcher was made for 1 to %d", len(indices), b.maxBatch)
	}
	switch {
	case b.feed.Raw:
		dst.N, dst.Records = len(indices), dst.Records[:0]
	case b.feed.Function == nil:
		b.shape(len(indices), dst)
	}
	var records [][]byte
	var first int64
	for n, index := range indices {
		if err := b.dataset.checkRange(file, index, index+1); err != nil {
			return err
		}
		if index < first || index >= first+int64(len(records)) {
			var err error
			if records, first, err = b.dataset.chunk(ctx, file, index); err != nil {
				return err
			}
		}
		if b.feed.Raw {
			dst.Records = append(dst.Records, records[index-first])
			continue
		}
		example := b.examples[min(n, len(b.examples)-1)]
		if err := b.decoder.Decode(records[index-first], example); err != nil {
			return b.dataset.RecordError(file, index, err)
		}
		if b.feed.Function == nil {
			if err := b.place(n, example, dst); err != nil {
				return b.dataset.RecordError(file, index, err)
			}
		}
	}
	if b.feed.Function != nil {
		return b.call(len(indices), dst)
	}
	return nil
}

// shape gives dst slices for n records, and room for maxBatch.
func (b *Batcher) shape(n int, dst *graph.Batch) {
	dst.N = n
	if cap(dst.Labels) < n {
		dst.Labels = make([]int32, b.maxBatch)
	}
	if cap(dst.Targets) < n && b.real {
		dst.Targets = make([]float32, b.maxBatch)
	}
	dst.Labels, dst.Targets = dst.Labels[:n], dst.Targets[:0]
	if b.label < 0 {
		dst.Labels = dst.Labels[:0]
	}
	if b.real {
		dst.Labels, dst.Targets = dst.Labels[:0], dst.Targets[:n]
	}
	if len(dst.Inputs) != len(b.columns) {
		dst.Inputs = make([][]float32, len(b.columns))
	}
	for i, c := range b.columns {
		if c.integer {
			if len(dst.Integers) != len(b.columns) {
				dst.Integers = make([][]int32, len(b.columns))
			}
			if cap(dst.Integers[i]) < n*c.elements {
				dst.Integers[i] = make([]int32, b.maxBatch*c.elements)
			}
			dst.Integers[i] = dst.Integers[i][:n*c.elements]
			continue
		}
		if cap(dst.Inputs[i]) < n*c.elements {
			dst.Inputs[i] = make([]float32, b.maxBatch*c.elements)
		}
		dst.Inputs[i] = dst.Inputs[i][:n*c.elements]
	}
}

// place puts one decoded record at position n of a minibatch.
func (b *Batcher) place(n int, example graph.Example, dst *graph.Batch) error {
	for i := range b.columns {
		c := &b.columns[i]
		if c.parts != nil {
			var floats []float32
			var integers []int32
			if c.integer {
				integers = dst.Integers[i][n*c.elements : (n+1)*c.elements]
			} else {
				floats = dst.Inputs[i][n*c.elements : (n+1)*c.elements]
			}
			if err := c.made(example, floats, integers); err != nil {
				return err
			}
			continue
		}
		if c.integer {
			if err := c.integers(example[c.feature], dst.Integers[i][n*c.elements:(n+1)*c.elements]); err != nil {
				return fmt.Errorf("the feature %q: %w", b.feed.Features[c.feature].Name, err)
			}
			continue
		}
		input := dst.Inputs[i][n*c.elements : (n+1)*c.elements]
		c.convert(example[c.feature], input)
		for _, t := range c.transforms {
			t.apply(input)
		}
	}
	if b.label < 0 {
		return nil
	}
	v := example[b.label]
	if b.real {
		dst.Targets[n] = v.Floats[0]
		return nil
	}
	if len(v.Bytes) > 0 {
		dst.Labels[n] = int32(v.Bytes[0])
		return nil
	}
	label := v.Ints[0]
	if label < math.MinInt32 || label > math.MaxInt32 {
		return fmt.Errorf("the label %q is %d; a label is a class number", b.feed.Label, label)
	}
	dst.Labels[n] = int32(label)
	return nil
}

// integers copies row numbers, which fit into 32 bits or are none.
func (c *column) integers(v graph.Value, input []int32) error {
	for i, x := range v.Bytes {
		input[i] = int32(x)
	}
	for i, x := range v.Ints {
		if x < math.MinInt32 || x > math.MaxInt32 {
			return fmt.Errorf("%d is no row of a table", x)
		}
		input[i] = int32(x)
	}
	return nil
}

func (c *column) convert(v graph.Value, input []float32) {
	switch c.dtype {
	case graph.Float32:
		copy(input, v.Floats)
	case graph.Uint8:
		for i, x := range v.Bytes {
			input[i] = float32(x)
		}
	default:
		for i, x := range v.Ints {
			input[i] = float32(x)
		}
	}
}

// apply rounds after every operation: each is stored before the next one begins, so that no compiler can fuse two.
func (t transform) apply(input []float32) {
	switch t.op {
	case '/':
		for i := range input {
			input[i] /= t.value
		}
	case '*':
		for i := range input {
			input[i] *= t.value
		}
	case '+':
		for i := range input {
			input[i] += t.value
		}
	case '-':
		for i := range input {
			input[i] -= t.value
		}
	}
}

// call runs the feed's function on the first n examples and copies what it returns, which may be the function's own.
func (b *Batcher) call(n int, dst *graph.Batch) error {
	inputs, labels, err := b.feed.Function(b.examples[:n])
	if err != nil {
		return fmt.Errorf("data %q: the model's input function on %d records: %w", b.dataset.spec.Path, n, err)
	}
	if len(labels) != n {
		return fmt.Errorf("data %q: the model's input function returned %d labels for %d records", b.dataset.spec.Path, len(labels), n)
	}
	dst.N = n
	dst.Labels, dst.Targets = append(dst.Labels[:0], labels...), dst.Targets[:0]
	if len(dst.Inputs) != len(inputs) {
		dst.Inputs = make([][]float32, len(inputs))
	}
	for i, input := range inputs {
		if len(input) == 0 || len(input)%n != 0 {
			return fmt.Errorf("data %q: the model's input function returned %d elements for input %d, which is no multiple of %d records", b.dataset.spec.Path, len(input), i, n)
		}
		dst.Inputs[i] = append(dst.Inputs[i][:0], input...)
	}
	return nil
}
