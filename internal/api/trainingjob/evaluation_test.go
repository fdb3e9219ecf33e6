package trainingjob

import "testing"

func TestAnEvaluationIsDueBySteps(t *testing.T) {
	due := func(e *Evaluation) (steps []int64) {
		for step := int64(1); step <= 12; step++ {
			if e.Due(step, 4) {
				steps = append(steps, step)
			}
		}
		return steps
	}
	for name, c := range map[string]struct {
		of   *Evaluation
		want []int64
	}{
		"never where nothing is said":           {nil, nil},
		"every five steps":                      {&Evaluation{Steps: 5}, []int64{5, 10}},
		"every two epochs of four steps":        {&Evaluation{Epochs: 2}, []int64{8}},
		"every epoch, and every six steps, too": {&Evaluation{Steps: 6, Epochs: 1}, []int64{4, 6, 8, 12}},
	} {
		t.Run(name, func(t *testing.T) {
			got := due(c.of)
			if len(got) != len(c.want) {
				t.Fatal(got)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Fatal(got)
				}
			}
		})
	}
}
