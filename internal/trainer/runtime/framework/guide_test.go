package framework

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/torchtest"
)

// shown returns the Python blocks of the guide that contain a text.
func shown(t *testing.T, with string) string {
	t.Helper()
	guide, err := os.ReadFile("../../../../templates/guides/pytorch.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(guide), "```python\n")[1:] {
		if code, _, _ := strings.Cut(block, "```"); strings.Contains(code, with) {
			return code
		}
	}
	t.Fatalf("the guide shows no Python with %q", with)
	return ""
}

func TestTheGuidesScriptWithoutAFrameworkFindsTheLine(t *testing.T) {
	n := start(t, Options{
		Command: []string{torchtest.Find(t, "numpy")}, Name: "line.py", Script: []byte(shown(t, "class Line")), Seed: 1, MinibatchSize: 3,
		Finite: kernel.Portable().Finite,
	})
	state := make([]float32, n.StateSize())
	n.Init(state, 1)
	batch := &graph.Batch{N: 3}
	for _, x := range []float32{1, 2, 3} {
		batch.Records = append(batch.Records, wire.Bytes([]float32{x, 2.5 * x}))
	}
	out := make([]float32, 1)
	for step := range int64(60) {
		if _, err := n.Gradient(state, batch, 3, step, 0, 1, out, nil); err != nil {
			t.Fatal(err)
		}
		if err := n.Apply(state, gradient.Sum{Dense: out}, nil, step); err != nil {
			t.Fatal(err)
		}
	}
	if math.Abs(float64(state[0])-2.5) > 1e-4 {
		t.Errorf("w is %v, and the line's 2.5", state[0])
	}
}

func TestTheGuidesFirstStepTurnsALoopIntoAScript(t *testing.T) {
	const given = `import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = torch.nn.Linear(4, 3)
    def forward(self, x):
        return self.dense(x)

torch.manual_seed(0)
dataset = torch.utils.data.TensorDataset(torch.randn(8, 4), torch.arange(8) % 3)
`
	n := start(t, Options{
		Command: []string{torchtest.Find(t)}, Name: "train.py", Script: []byte(given + shown(t, "dataset=dataset")), Seed: 1, MinibatchSize: 8, Threads: 1,
		Finite: kernel.Portable().Finite,
	})
	state, out := make([]float32, n.StateSize()), make([]float32, n.TrainableSize()+n.StatsSize())
	n.Init(state, 1)
	all := minibatch(0, 1, 2, 3, 4, 5, 6, 7)
	var measured []nn.Result
	for step := range int64(20) {
		r, err := n.Gradient(state, all, 8, step, 0, 1, out, nil)
		if err != nil {
			t.Fatal(err)
		}
		measured = append(measured, r)
		dense, stats := out[:n.TrainableSize()], [][]float32{out[n.TrainableSize():]}
		if err := n.Apply(state, gradient.Sum{Dense: dense}, stats, step); err != nil {
			t.Fatal(err)
		}
	}
	if first, last := measured[0], measured[19]; last.LossSum >= first.LossSum || len(last.Counts) != 1 {
		t.Errorf("the loss was %v, and is %v after 20 steps", first, last)
	}
	if d := n.Description(); d.Model != "Net" || d.Optimizer != "SGD" || !strings.HasPrefix(d.Framework, "torch ") {
		t.Errorf("%+v", d)
	}
}
