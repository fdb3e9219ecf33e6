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

// censusFields are the categories of the 1994 census ("Adult") data set, in ElasticDL's names, by number instead of by
// name.
var censusFields = []struct {
	name       string
	categories uint32
	weight     int64 // of the hidden numbers
}{
	{"workclass", 9, 4},
	{"education", 16, 14},
	{"marital-status", 7, 12},
	{"occupation", 15, 12},
	{"relationship", 6, 8},
	{"race", 5, 1},
	{"sex", 2, 4},
	{"native-country", 42, 3},
}

// education and occupation are the fields that have a weight together.
const (
	education  = 1
	occupation = 3
)

// census is a set like the census data: who earns much, about a quarter. The score is a hidden weight of each category,
// one of each pair of education and occupation, and a function of age (highest at 50), hours, gains and losses.
func census() Table {
	t := Table{Name: "census", Version: "census 1", number: 2, fill: fillCensus}
	for _, f := range censusFields {
		t.Features = append(t.Features, graph.Feature{Name: f.name, DType: graph.Int64, Shape: []int{1}})
	}
	for _, name := range []string{"age", "capital-gain", "capital-loss", "hours-per-week"} {
		t.Features = append(t.Features, graph.Feature{Name: name, DType: graph.Float32, Shape: []int{1}})
	}
	t.Features = append(t.Features, graph.Feature{Name: "label", DType: graph.Int64, Shape: []int{1}})
	return t
}

func fillCensus(w world, random *philox.Stream, values graph.Example) {
	score := int64(0)
	for i, f := range censusFields {
		category := random.Below(f.categories)
		values[i].Ints[0] = int64(category)
		score += w.between(uint32(i), category, f.weight)
	}
	both := uint32(values[education].Ints[0])*censusFields[occupation].categories + uint32(values[occupation].Ints[0])
	score += w.between(uint32(len(censusFields)), both, 10)

	age := 17 + int64(random.Below(40)+random.Below(34))
	score += 12 - (age-50)*(age-50)/40
	gain, loss := int64(0), int64(0)
	switch random.Below(12) { // most have neither
	case 0:
		gain = 500 + int64(random.Below(20000))
		score += gain / 800
	case 1:
		loss = 500 + int64(random.Below(2500))
		score += loss / 400
	}
	hours := 10 + int64(random.Below(31)+random.Below(31))
	score += (hours - 40) / 2
	numbers := values[len(censusFields):]
	for i, v := range []int64{age, gain, loss, hours} {
		numbers[i].Floats[0] = float32(v)
	}
	numbers[4].Ints[0] = label(score + noise(random, 6) - censusThreshold)
}

// censusThreshold is where a quarter of the scores are above.
const censusThreshold = 20

// frappeFields are how many categories each of the ten fields of the Frappe data set has: user, app, time of day,
// weekday, weekend, place, cost, weather, country and city. One behind the other, from 1 on, they are the numbers 1 to
// 5382 that ElasticDL's deepfm model looks up in a table of 5383 rows.
var frappeFields = [10]uint32{957, 4082, 7, 7, 2, 3, 2, 9, 80, 233}

// frappe is a set like Frappe: who uses which app in which context. A third of the records have label 1. The score is a
// hidden weight of each category, and what each pair of categories has in common: the product of two hidden vectors of
// three.
func frappe() Table {
	return Table{
		Name: "frappe", Version: "frappe 1", number: 1,
		Features: []graph.Feature{{Name: "feature", DType: graph.Int64, Shape: []int{len(frappeFields)}}, {Name: "label", DType: graph.Int64, Shape: []int{1}}},
		fill: func(w world, random *philox.Stream, values graph.Example) {
			before, score := uint32(1), int64(0)
			var sum, squares [3]int64
			for i, categories := range frappeFields {
				id := before + skewed(random, categories)
				before += categories
				values[0].Ints[i] = int64(id)
				score += 2 * w.between(0, id, 3)
				for k := range sum {
					v := w.between(1+uint32(k), id, 1)
					sum[k] += v
					squares[k] += v * v
				}
			}
			for k := range sum { // all pairs: half of the square of the sum without the squares
				score += 2 * (sum[k]*sum[k] - squares[k]) / 2
			}
			values[1].Ints[0] = label(score + noise(random, 5) - frappeThreshold)
		},
	}
}

// frappeThreshold is where a third of the scores are above.
const frappeThreshold = -7
