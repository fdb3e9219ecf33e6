package nn_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os/exec"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/torchtest"
)

// torchCase is what testdata/torch_reference.py computes.
type torchCase struct {
	Model   json.RawMessage `json:"model"`
	Weights []nn.Tensor     `json:"weights"`
	Inputs  []any           `json:"inputs"`
	Labels  []int32         `json:"labels"`
	Targets []float32       `json:"targets"`
	Steps   int             `json:"steps"`
}

type torchAnswer struct {
	Loss      float64              `json:"loss"`
	Gradients map[string][]float64 `json:"gradients"`
	Weights   map[string][]float64 `json:"weights"` // after the steps
}

// torchModels are the models of the other tests with Dropout's rates at 0, and one for every optimizer. That one has no
// BatchNorm: the biases before it have gradients of rounding errors, which optimizers that divide by their size
// enlarge.
func torchModels() map[string]*graph.Model {
	models := map[string]*graph.Model{}
	for name, build := range testModels {
		m := build()
		for i := range m.Nodes {
			if m.Nodes[i].Op == graph.Dropout {
				m.Nodes[i].Dropout.Rate = 0
			}
		}
		models[name] = m
	}
	for _, o := range testOptimizers {
		if o.Kind == graph.RMSProp && o.Momentum > 0 {
			o.Epsilon = 1e-16 // which Keras adds under the root, and PyTorch behind it
		}
		m := model(13).dense(33).activation(graph.Tanh).dense(5).build()
		m.Optimizer = o
		models[o.String()] = m
		if o.Momentum == 0 && o.Kind != graph.AdaMax { // with these, Keras leaves rows alone that have no gradient, and PyTorch does not
			m := model(5).dense(6).activation(graph.Tanh).ids(2).embedding(11, 3).flatten().merge(graph.Concatenate, 2).dense(5).build()
			m.Optimizer = o
			models[o.String()+", with a table"] = m
		}
	}
	return models
}

func TestPyTorch(t *testing.T) {
	const records, steps = 6, 8
	var names []string
	var cases []torchCase
	models := torchModels()
	for name, m := range models {
		n := compile(t, m, kernel.Available()[0], 1, records)
		b := batch(m, records, 5)
		c := torchCase{Model: graph.Canonical(m), Weights: trainableTensors(n, randomState(n)), Inputs: inputsOf(b), Labels: b.Labels, Targets: b.Targets}
		if strings.Contains(name, "learning rate") {
			c.Steps = steps
		}
		names, cases = append(names, name), append(cases, c)
	}
	answers := askTorch(t, cases)
	for i, name := range names {
		t.Run(name+": PyTorch computes the same", func(t *testing.T) {
			m, want := models[name], answers[i]
			n := compile(t, m, kernel.Available()[0], 1, records)
			state, out, rows := randomState(n), gradientBuffer(n), rowsBuffer(n)
			result, err := n.Gradient(state, batch(m, records, 5), records, 0, 0, 1, out, rows)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(result.LossSum/records-want.Loss) > 1e-5*(1+want.Loss) {
				t.Errorf("loss %v, PyTorch %v", result.LossSum/records, want.Loss)
			}
			total := 0.0
			for _, g := range want.Gradients {
				for _, v := range g {
					total += v * v
				}
			}
			for _, g := range trainableTensors(n, scattered(n, out, rows)) {
				if e, norm := distance(g.Data, want.Gradients[g.Name]); len(g.Data) != len(want.Gradients[g.Name]) || e > 2e-5*norm+1e-6*(1+math.Sqrt(total)) {
					t.Errorf("the gradient of %s differs from PyTorch's by %.2g, its norm is %.2g", g.Name, e, norm)
				}
			}
			for step := range cases[i].Steps {
				if step > 0 {
					if _, err := n.Gradient(state, batch(m, records, 5), records, int64(step), 0, 1, out, rows); err != nil {
						t.Fatal(err)
					}
				}
				if err := n.Apply(state, gradient.Sum{Dense: out[:n.TrainableSize()], Rows: rows}, nil, int64(step)); err != nil {
					t.Fatal(err)
				}
			}
			for _, w := range trainableTensors(n, state) {
				if e, norm := distance(w.Data, want.Weights[w.Name]); e > 1e-5*(1+norm) {
					t.Errorf("%s after %d steps differs from PyTorch's by %.2g, its norm is %.2g", w.Name, cases[i].Steps, e, norm)
				}
			}
		})
	}
}

// inputsOf are a minibatch's inputs in order.
func inputsOf(b *graph.Batch) []any {
	var all []any
	for i, floats := range b.Inputs {
		if floats == nil {
			all = append(all, b.Integers[i])
			continue
		}
		all = append(all, floats)
	}
	return all
}

// trainableTensors are the trainable variables of a state, or their gradients.
func trainableTensors(n *nn.Network, values []float32) []nn.Tensor {
	var tensors []nn.Tensor
	for i, p := range n.Params() {
		if p.Trainable {
			tensors = append(tensors, n.Export(values)[i])
		}
	}
	return tensors
}

func askTorch(t *testing.T, cases []torchCase) []torchAnswer {
	t.Helper()
	python := torchtest.Find(t)
	question, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), python, "testdata/torch_reference.py")
	command.Stdin, command.Stderr = bytes.NewReader(question), &stderr
	text, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var answers []torchAnswer
	if err := json.Unmarshal(text, &answers); err != nil {
		t.Fatal(err)
	}
	return answers
}
