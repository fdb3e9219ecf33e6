package table

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/example"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// Options say what the header and the model's schema do not.
type Options struct {
	// Columns are the columns of a feature, one for each of its elements in order, by the feature's name. A feature
	// that is not named is the column of its name, and one of n elements the columns NAME_0 to NAME_n−1.
	Columns map[string][]string
	// Words are the words of a column in the order of their numbers, by the column's name: such a cell holds one of
	// them and stands for its position, 0 for the first.
	Words map[string][]string
}

// Schema is the features of a record and the columns that they are made of. It is safe for concurrent use.
type Schema struct {
	fields []field
}

type field struct {
	feature string
	dtype   graph.DType // "" is text
	columns []column
}

type column struct {
	name     string
	position int              // in the header
	words    map[string]int64 // nil: its cells are not words
}

// NewSchema finds the columns of a model's features. Columns that feed none are left out.
func NewSchema(columns []string, features []graph.Feature, o Options) (*Schema, error) {
	if err := o.check(columns); err != nil {
		return nil, err
	}
	s := &Schema{}
	for _, f := range features {
		made := field{feature: f.Name, dtype: f.DType}
		names := o.columnsOf(f)
		for _, name := range names {
			if f.DType == graph.String && o.Words[name] != nil {
				return nil, fmt.Errorf("words are given for the column %q, and the model's feature %q takes its text as it is; leave them out", name, f.Name)
			}
		}
		if len(names) != f.Elements() {
			return nil, fmt.Errorf("the model's feature %q (%s%v) has %d elements, and %d columns are given for it", f.Name, f.DType, f.Shape, f.Elements(), len(names))
		}
		for _, name := range names {
			i := slices.Index(columns, name)
			if i < 0 {
				return nil, fmt.Errorf("the model's feature %q (%s%v) needs a column %q, and the header has %s", f.Name, f.DType, f.Shape, name, list(columns))
			}
			made.columns = append(made.columns, o.column(name, i))
		}
		s.fields = append(s.fields, made)
	}
	return s, nil
}

// columnsOf are the names of the columns of a feature's elements.
func (o Options) columnsOf(f graph.Feature) []string {
	if names := o.Columns[f.Name]; names != nil {
		return names
	}
	if f.Elements() == 1 {
		return []string{f.Name}
	}
	names := make([]string, f.Elements())
	for i := range names {
		names[i] = fmt.Sprintf("%s_%d", f.Name, i)
	}
	return names
}

// column is a column of a feature, with its words where it has some.
func (o Options) column(name string, position int) column {
	c := column{name: name, position: position}
	if words := o.Words[name]; words != nil {
		c.words = make(map[string]int64, len(words))
		for i, w := range words {
			c.words[w] = int64(i)
		}
	}
	return c
}

// check rejects options that name missing columns, and words that are equal.
func (o Options) check(columns []string) error {
	for column, words := range o.Words {
		if !slices.Contains(columns, column) {
			return fmt.Errorf("words are given for a column %q, and the header has %s", column, list(columns))
		}
		seen := map[string]bool{}
		for _, w := range words {
			if seen[w] {
				return fmt.Errorf("column %q: the word %q is given twice", column, w)
			}
			seen[w] = true
		}
	}
	return nil
}

// list writes column names for a message.
func list(columns []string) string {
	const most = 12 // enough to recognize a file
	if len(columns) > most {
		return fmt.Sprintf("%q and %d more", columns[:most], len(columns)-most)
	}
	return fmt.Sprintf("%q", columns)
}

// Infer makes a feature of each that Options.Columns names, and of every other column by itself. It infers their types
// from all rows: int64 where every cell is a whole number (or one of the words of Options), float32 where every one is
// a number, else text.
func Infer(r io.ReaderAt, index Index, file string, o Options) (*Schema, error) {
	if err := o.check(index.Columns); err != nil {
		return nil, fmt.Errorf("data %q: %w", file, err)
	}
	s := &Schema{}
	grouped := map[string]bool{}
	for _, feature := range slices.Sorted(maps.Keys(o.Columns)) {
		made := field{feature: feature, dtype: graph.Int64}
		for _, name := range o.Columns[feature] {
			i := slices.Index(index.Columns, name)
			if i < 0 {
				return nil, fmt.Errorf("data %q: a column %q is given for feature %q, and the header has %s", file, name, feature, list(index.Columns))
			}
			grouped[name] = true
			made.columns = append(made.columns, o.column(name, i))
		}
		s.fields = append(s.fields, made)
	}
	for i, name := range index.Columns {
		if !grouped[name] {
			s.fields = append(s.fields, field{feature: name, dtype: graph.Int64, columns: []column{o.column(name, i)}})
		}
	}
	for chunk := range index.Chunks {
		if err := index.Read(r, chunk, file, func(_ int64, cells []string) error {
			for i := range s.fields {
				s.fields[i].widen(cells)
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// widen makes the type of a feature one that has room for its cells in a row.
func (f *field) widen(cells []string) {
	for _, c := range f.columns {
		if c.words != nil {
			continue
		}
		cell := cells[c.position]
		if f.dtype == graph.Int64 {
			if _, err := whole(cell, 64); err != nil {
				f.dtype = graph.Float32
			}
		}
		if f.dtype == graph.Float32 {
			if _, err := number(cell); err != nil {
				f.dtype = ""
			}
		}
	}
}

// Features are the schema of the records, for those who read them; ok is false where a column is text, which no feature
// of a model is.
func (s *Schema) Features() (features []graph.Feature, ok bool) {
	for _, f := range s.fields {
		if f.dtype == "" {
			return nil, false
		}
		features = append(features, graph.Feature{Name: f.feature, DType: f.dtype, Shape: []int{len(f.columns)}})
	}
	return features, true
}

// Encoder turns rows into records. It serves one goroutine.
type Encoder struct {
	fields []field
	named  []example.Named
}

// NewEncoder returns an encoder of the schema's records.
func (s *Schema) NewEncoder() *Encoder {
	e := &Encoder{fields: s.fields, named: make([]example.Named, len(s.fields))}
	for i, f := range s.fields {
		e.named[i].Name = f.feature
	}
	return e
}

// Append appends the record of a row to b.
func (e *Encoder) Append(b []byte, cells []string) ([]byte, error) {
	for i := range e.fields {
		if err := e.fields[i].fill(&e.named[i], cells); err != nil {
			return b, err
		}
	}
	return example.AppendNamed(b, e.named), nil
}

// fill sets the values of a feature from a row.
func (f *field) fill(n *example.Named, cells []string) error {
	n.Floats, n.Ints, n.Strings = n.Floats[:0], n.Ints[:0], n.Strings[:0]
	var elements []byte
	for _, c := range f.columns {
		cell := cells[c.position]
		var err error
		var integer int64
		var value float32
		switch {
		case f.dtype == graph.String:
		case c.words != nil && f.dtype != "":
			var known bool
			if integer, known = c.words[cell]; !known {
				err = fmt.Errorf("is none of its %d words", len(c.words))
			}
			value = float32(integer)
		case f.dtype == graph.Float32:
			value, err = number(cell)
		case f.dtype == graph.Int32:
			integer, err = whole(cell, 32)
		case f.dtype == graph.Uint8:
			integer, err = whole(cell, 64)
			if err == nil && (integer < 0 || integer > math.MaxUint8) {
				err = errors.New("is not in 0 to 255 (uint8)")
			}
		case f.dtype == graph.Int64:
			integer, err = whole(cell, 64)
		}
		if err != nil {
			return fmt.Errorf("column %q: %q %w: %w", c.name, clip(cell), err, ErrType)
		}
		switch f.dtype {
		case graph.Float32:
			n.Kind, n.Floats = example.FloatKind, append(n.Floats, value)
		case graph.Uint8:
			elements = append(elements, byte(integer))
			n.Kind, n.Strings = example.BytesKind, append(n.Strings[:0], elements)
		case "", graph.String:
			n.Kind, n.Strings = example.BytesKind, append(n.Strings, []byte(cell))
		default:
			n.Kind, n.Ints = example.Int64Kind, append(n.Ints, integer)
		}
	}
	return nil
}

var (
	errEmpty  = errors.New("is empty")
	errNumber = errors.New("is no finite decimal number")
)

// number reads a decimal number, spaces around it allowed. Infinities and NaN would spoil a model without a word.
func number(cell string) (float32, error) {
	cell = strings.TrimSpace(cell)
	v, err := strconv.ParseFloat(cell, 32)
	switch {
	case cell == "":
		return 0, errEmpty
	case err != nil || math.IsInf(v, 0) || math.IsNaN(v) || strings.ContainsAny(cell, "_xX"):
		return 0, errNumber
	}
	return float32(v), nil
}

func whole(cell string, bits int) (int64, error) {
	cell = strings.TrimSpace(cell)
	v, err := strconv.ParseInt(cell, 10, bits)
	switch {
	case cell == "":
		return 0, errEmpty
	case err != nil:
		return 0, fmt.Errorf("is no whole number of %d bits; words are numbered by giving the column's words", bits)
	}
	return v, nil
}

// clip keeps a message short when a cell holds a novel.
func clip(cell string) string {
	const most = 40
	if len(cell) > most {
		return cell[:most] + "…"
	}
	return cell
}
