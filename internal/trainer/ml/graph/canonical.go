package graph

import (
	"encoding/json"
	"fmt"
)

// Canonical is the text of what a model computes, for digests: two model files that build the same network give the
// same bytes, whatever their layout, helper functions or names for the model and its metrics. Metrics are left out
// because they observe training and decide nothing. Layer names stay: they name the weights in checkpoints.
//
// The fields of this package's types and their order are part of the format: a change of either changes every digest.
// Canonical panics on numbers that JSON cannot hold (NaN, infinities), which no loaded model has.
func Canonical(m *Model) []byte {
	out, err := json.Marshal(struct {
		Nodes     []Node    `json:"nodes"`
		Output    int       `json:"output"`
		Loss      LossKind  `json:"loss"`
		Optimizer Optimizer `json:"optimizer"`
		Feed      Feed      `json:"feed"`

		SumOfLosses   bool           `json:"sum_of_losses,omitempty"`
		LearningRates *LearningRates `json:"learning_rates,omitempty"`
	}{m.Nodes, m.Output, m.Loss, m.Optimizer, m.Feed, m.SumOfLosses, m.LearningRates})
	if err != nil {
		panic(fmt.Sprintf("graph: model %q holds a number that is not finite: %v", m.Name, err))
	}
	return out
}
