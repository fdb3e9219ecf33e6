// Package inference opens a trained model for use: the compiled network of a model file with the weights of a final
// model or of a checkpoint. It verifies that the weights are complete and undamaged, and that they belong to this
// network; an error names the tensor that does not fit. Its callers run the computations.
package inference

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/checkpoint"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/safetensors"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/store"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
)

// Weights are a file's.
type Weights struct {
	Path    string
	Step    int64             // updates that led to them; −1 where the file does not say
	Info    *master.ModelInfo // of a final model in its directory; nil for others
	tensors []nn.Tensor
}

// ReadDir reads the final model of a job from its directory, OUTPUT/1a2b3c4d; OUTPUT itself will do where one job's
// model is below it.
func ReadDir(dir string) (Weights, error) {
	if _, err := os.Stat(filepath.Join(dir, store.InfoFile)); errors.Is(err, os.ErrNotExist) {
		below, err := filepath.Glob(filepath.Join(dir, "*", store.InfoFile))
		if err != nil {
			return Weights{}, err
		}
		switch len(below) {
		case 0:
			return Weights{}, fmt.Errorf("directory %q: no %s in it or below it: no job has finished there; name a checkpoint's file instead", dir, store.InfoFile)
		case 1:
			dir = filepath.Dir(below[0])
		default:
			return Weights{}, fmt.Errorf("directory %q holds the models of %d jobs: %s; name one of them", dir, len(below), strings.Join(parents(below), ", "))
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, store.InfoFile))
	if err != nil {
		return Weights{}, fmt.Errorf("read the model's description: %w", err)
	}
	info := &master.ModelInfo{}
	if err := json.Unmarshal(text, info); err != nil {
		return Weights{}, fmt.Errorf("read %s: %w", filepath.Join(dir, store.InfoFile), err)
	}
	w, sum, err := readFile(filepath.Join(dir, store.ModelFile))
	if err != nil {
		return Weights{}, err
	}
	if sum != info.SHA256 {
		return Weights{}, fmt.Errorf("%s: SHA-256 %s, and %s beside it says %s: the file is damaged", w.Path, sum, store.InfoFile, info.SHA256)
	}
	w.Step, w.Info = info.Steps, info
	return w, nil
}

func parents(paths []string) []string {
	var dirs []string
	for _, p := range paths {
		dirs = append(dirs, filepath.Dir(p))
	}
	return dirs
}

// ReadFile reads a checkpoint, or any file of safetensors with a model's variables.
func ReadFile(path string) (Weights, error) {
	w, _, err := readFile(path)
	return w, err
}

func readFile(path string) (w Weights, sum string, err error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return w, "", fmt.Errorf("read the weights: %w", err)
	}
	w = Weights{Path: path, Step: -1}
	tensors, metadata, err := safetensors.Read(bytes.NewReader(file), int64(len(file)))
	if err == nil && checkpoint.Is(metadata) {
		var c checkpoint.Checkpoint
		c, err = checkpoint.Decode(file)
		w.Step, tensors = c.Step, c.Tensors
	}
	if err != nil {
		return w, "", fmt.Errorf("%s: %w", path, err)
	}
	for _, t := range tensors {
		values, err := t.Float32s()
		if err != nil {
			return w, "", fmt.Errorf("%s: %w", path, err)
		}
		w.tensors = append(w.tensors, nn.Tensor{Name: t.Name, Shape: t.Shape, Data: values})
	}
	digest := sha256.Sum256(file)
	return w, hex.EncodeToString(digest[:]), nil
}

// Model is a network with its weights. Close ends the network's threads.
type Model struct {
	Graph   *graph.Model
	Network *nn.Network
	State   []float32
}

// New compiles a model and gives it the weights, which must be those of its variables and no others. A checkpoint's
// optimizer slots are of no use here.
func New(m *graph.Model, w Weights, o nn.Options) (*Model, error) {
	n, err := nn.Compile(m, o)
	if err != nil {
		return nil, err
	}
	state := make([]float32, n.StateSize())
	if err := importWeights(n, state, w); err != nil {
		n.Close()
		return nil, fmt.Errorf("%s does not fit the model %s: %w", w.Path, m.Name, err)
	}
	return &Model{Graph: m, Network: n, State: state}, nil
}

func importWeights(n *nn.Network, state []float32, w Weights) error {
	if err := n.Import(state, w.tensors); err != nil {
		return err
	}
	for _, t := range w.tensors {
		known := slices.ContainsFunc(n.Params(), func(p nn.Param) bool { return p.Name == t.Name })
		if !known && !strings.HasPrefix(t.Name, nn.SlotPrefix) {
			return fmt.Errorf("the file has a tensor %q, and the model no such variable; the file belongs to another model", t.Name)
		}
	}
	return nil
}

// Close ends the network's threads.
func (m *Model) Close() { m.Network.Close() }
