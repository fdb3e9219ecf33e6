package framework

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/safetensors"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
)

// of is a tensor of float32.
func of(name, role string, shape ...int) tensor { return tensor{Name: name, Shape: shape, Role: role} }

func TestADescriptionThatMakesNoStateIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		tensors []tensor
		want    string
	}{
		"nothing to train":    {[]tensor{of("mean", statistic, 2)}, "nothing to train"},
		"an unknown role":     {[]tensor{of("w", "weights", 2)}, `role "weights"`},
		"an unknown type":     {[]tensor{{Name: "w", Shape: []int{2}, Role: parameter, DType: "F8"}}, `element type "F8"`},
		"the wrong order":     {[]tensor{of("mean", statistic, 2), of("w", parameter, 2)}, "stands behind"},
		"one name twice":      {[]tensor{of("w", parameter, 2), of("w", slot, 2)}, `called "w"`},
		"an alias twice":      {[]tensor{of("w", parameter, 2), {Name: "v", Shape: []int{2}, Role: slot, Aliases: []string{"w"}}}, `called "w"`},
		"no name":             {[]tensor{of("", parameter, 2)}, "without a name"},
		"a negative size":     {[]tensor{of("w", parameter, -2)}, "shape [-2]"},
		"an overflowing size": {[]tensor{of("w", parameter, 1<<30, 1<<30, 1<<30)}, "shape"},
		"too much of all":     {[]tensor{of("a", parameter, 1<<30, 16), of("b", parameter, 1<<30, 16)}, "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := layOut(Description{Tensors: c.tensors})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; wanted %q", err, c.want)
			}
		})
	}
}

func TestASnapshotRestoresTheStateToTheBitAndAModelLeavesTheOptimizersSlotsOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d Description
		names := []string{"a", "b", "c", "d", "e", "f"}
		dtypes := []string{"", safetensors.F32, safetensors.F64, safetensors.BF16, safetensors.I64, safetensors.U8, safetensors.Bool}
		role := 0
		for i := range rapid.IntRange(1, len(names)).Draw(t, "tensors") {
			d.Tensors = append(d.Tensors, tensor{
				Name: names[i], Role: roles[role], DType: rapid.SampledFrom(dtypes).Draw(t, "dtype"),
				Shape: rapid.SliceOfN(rapid.IntRange(0, 3), 0, 3).Draw(t, "shape"),
			})
			role = rapid.IntRange(role, len(roles)-1).Draw(t, "role")
		}
		d.Tensors[0].Shape = []int{2}
		l, err := layOut(d)
		if err != nil {
			t.Fatal(err)
		}
		state := make([]float32, l.state)
		for _, p := range l.tensors {
			if p.Role != report {
				copy(wire.Bytes(p.data(state)), rapid.SliceOfN(rapid.Byte(), p.bytes, p.bytes).Draw(t, "bytes"))
			}
		}
		snapshot := rapid.Permutation(l.snapshot(state)).Draw(t, "order")
		again := make([]float32, l.state)
		for i := range again {
			again[i] = -1
		}
		if err := l.restore(again, snapshot); err != nil || !bytes.Equal(wire.Bytes(again), wire.Bytes(state)) {
			t.Fatalf("%x restored as %x: %v", wire.Bytes(state), wire.Bytes(again), err)
		}
		for _, m := range l.export(state) {
			i := slices.IndexFunc(d.Tensors, func(t tensor) bool { return t.Name == m.Name })
			if role := d.Tensors[i].Role; role == slot || role == report {
				t.Errorf("%s, a %s, is in the model", m.Name, role)
			}
		}
		if err := l.restore(again, snapshot[1:]); err == nil || !strings.Contains(err.Error(), snapshot[0].Name) {
			t.Errorf("without %s: %v", snapshot[0].Name, err)
		}
		other := append([]safetensors.Tensor{safetensors.Float32(snapshot[0].Name, []int{9}, make([]float32, 9))}, snapshot[1:]...)
		if err := l.restore(again, other); err == nil || !strings.Contains(err.Error(), "another model") {
			t.Errorf("with another %s: %v", snapshot[0].Name, err)
		}
	})
}

func TestATensorWithSeveralNamesIsSavedUnderEachAndKeptOnce(t *testing.T) {
	l, err := layOut(Description{Tensors: []tensor{{Name: "embedding", Shape: []int{2}, Role: parameter, Aliases: []string{"head"}}}})
	if err != nil {
		t.Fatal(err)
	}
	state := []float32{1, 2}
	saved, kept := l.export(state), l.snapshot(state)
	if len(saved) != 2 || saved[0].Name != "embedding" || saved[1].Name != "head" || !bytes.Equal(saved[0].Data, saved[1].Data) || len(kept) != 1 {
		t.Errorf("saved %v, kept %v", saved, kept)
	}
}

func TestOnlyFloatsThatBecomeInfiniteMeanThatTrainingDiverged(t *testing.T) {
	l, err := layOut(Description{Tensors: []tensor{
		of("weight", parameter, 1), of("mask", statistic, 1), {Name: "count", Shape: []int{1}, Role: statistic, DType: safetensors.I32},
	}})
	if err != nil {
		t.Fatal(err)
	}
	infinity := float32(math.Inf(1)) // its bytes are the integer 2139095040
	before := []float32{1, infinity, 0}
	if name, diverged := l.diverged(before, []float32{2, infinity, infinity}, kernel.Portable().Finite); diverged {
		t.Errorf("%s diverged", name)
	}
	if name, diverged := l.diverged(before, []float32{infinity, infinity, 0}, kernel.Portable().Finite); !diverged || name != "weight" {
		t.Errorf("%q %v", name, diverged)
	}
}
