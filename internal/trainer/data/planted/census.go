package planted

import (
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/philox"
)

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
