// Package planted generates records of categories and numbers with a planted structure that the tabular models of the
// zoo can learn, so that a machine without data sets can train and test them. A record is a pure function of (seed,
// index). The meaning of the categories is the same for every seed, so the records of one seed can test a model that
// was trained on another.
//
// All arithmetic is integer arithmetic over Philox streams, so every platform generates the same bytes. The generated
// records are part of job lineages: changing them requires a new Version.
package planted

import (
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/codec"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/example"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/philox"
)

// Table is a generator of records, each a tf.train.Example.
type Table struct {
	Name     string          // after synthetic://
	Version  string          // in fingerprints
	Features []graph.Feature // the label last
	number   uint32          // of its streams
	fill     func(w world, random *philox.Stream, values graph.Example)
}

// All lists the tables.
func All() []Table { return []Table{frappe(), census()} }

// ByName is the table of that name.
func ByName(name string) (Table, bool) {
	for _, t := range All() {
		if t.Name == name {
			return t, true
		}
	}
	return Table{}, false
}

// Record is record index of a seed.
func (t Table) Record(seed uint64, index uint32) []byte {
	values := codec.NewExample(t.Features)
	t.fill(world{t.number}, philox.NewStream(seed, philox.Synth, philox.Index{index, t.number}), values)
	return example.Append(nil, t.Features, values)
}

// world is what the categories of a table mean: hidden numbers that no seed changes.
type world struct{ table uint32 }

// worldSeed is that of the hidden numbers' stream, whose third index word is not 0 as that of records is.
const worldSeed = 20191121

// between is a hidden number of a category, uniform over −most … most; kind selects one of its several numbers.
func (w world) between(kind, category uint32, most int64) int64 {
	random := philox.NewStream(worldSeed, philox.Synth, philox.Index{category, w.table, 1 + kind})
	return int64(random.Below(uint32(2*most+1))) - most
}

// skewed draws a category from 0 … n−1 of which the first are the most frequent, as people and things are: half of all
// records have one of the first eighth.
func skewed(random *philox.Stream, n uint32) uint32 {
	u := uint64(random.Uint32() >> 11) // 21 bits, whose cube fits
	return uint32(u * u * u >> 32 * uint64(n) >> 31)
}

// noise is a sum of uniform numbers, nearly normal, with deviation scale.
func noise(random *philox.Stream, scale int64) int64 {
	sum := int64(0)
	for range 12 { // of variance 1/12 each, times 1024²
		sum += int64(random.Below(1025)) - 512
	}
	return sum * scale / 1024
}

// label is 1 where the score is above 0.
func label(score int64) int64 {
	if score > 0 {
		return 1
	}
	return 0
}
