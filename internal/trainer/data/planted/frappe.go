package planted

import (
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/philox"
)

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
