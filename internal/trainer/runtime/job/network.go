package job

import (
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/safetensors"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
)

// Network computes gradients and applies updates. nn.Network is the implementation for model files, framework.Network
// for scripts; the tests of exactly-once have another one. Its state is one []float32, a gradient another and the rows
// of the embedding tables; see package nn for what each method guarantees.
type Network interface {
	StateSize() int
	TrainableSize() int // of the dense part of a gradient
	StatsSize() int
	Tables() []gradient.Table
	Init(state []float32, seed uint64)
	Gradient(state []float32, b *graph.Batch, stepRecords int, step int64, virtualWorker int, seed uint64, out []float32, rows []gradient.Rows) (nn.Result, error)
	Apply(state []float32, sum gradient.Sum, stats [][]float32, step int64) error
	Evaluate(state []float32, b *graph.Batch) (nn.Result, error)
	Export(state []float32) []safetensors.Tensor
	Snapshot(state []float32) []safetensors.Tensor
	Restore(state []float32, tensors []safetensors.Tensor) error
	Close()
}

// compiled is a model file's network with its tensors in the format of stored models.
type compiled struct{ *nn.Network }

func compile(m *graph.Model, o nn.Options) (Network, error) {
	n, err := nn.Compile(m, o)
	if err != nil {
		return nil, err
	}
	return compiled{n}, nil
}

func (c compiled) Export(state []float32) []safetensors.Tensor {
	return stored(c.Network.Export(state))
}

func (c compiled) Snapshot(state []float32) []safetensors.Tensor {
	return stored(c.Network.Snapshot(state))
}

func (c compiled) Restore(state []float32, tensors []safetensors.Tensor) error {
	snapshot := make([]nn.Tensor, len(tensors))
	for i, t := range tensors {
		data, err := t.Float32s()
		if err != nil {
			return err
		}
		snapshot[i] = nn.Tensor{Name: t.Name, Shape: t.Shape, Data: data}
	}
	return c.Network.Restore(state, snapshot)
}

func stored(tensors []nn.Tensor) []safetensors.Tensor {
	out := make([]safetensors.Tensor, len(tensors))
	for i, t := range tensors {
		out[i] = safetensors.Float32(t.Name, t.Shape, t.Data)
	}
	return out
}
