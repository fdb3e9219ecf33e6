package framework

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/nn"
)

func TestADescriptionThatMakesNoStateIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		tensors []tensor
		want    string
	}{
		"nothing to train":    {[]tensor{{"mean", []int{2}, statistic}}, "nothing to train"},
		"an unknown role":     {[]tensor{{"w", []int{2}, "weights"}}, `role "weights"`},
		"the wrong order":     {[]tensor{{"mean", []int{2}, statistic}, {"w", []int{2}, parameter}}, "stands behind"},
		"one name twice":      {[]tensor{{"w", []int{2}, parameter}, {"w", []int{2}, slot}}, `called "w"`},
		"no name":             {[]tensor{{"", []int{2}, parameter}}, "without a name"},
		"a negative size":     {[]tensor{{"w", []int{-2}, parameter}}, "shape [-2]"},
		"an overflowing size": {[]tensor{{"w", []int{1 << 30, 1 << 30, 1 << 30}, parameter}}, "shape"},
		"too much of all":     {[]tensor{{"a", []int{1 << 30, 16}, parameter}, {"b", []int{1 << 30, 16}, parameter}}, "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := layOut(Description{Tensors: c.tensors})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; wanted %q", err, c.want)
			}
		})
	}
}

func TestASnapshotRestoresTheStateAndAModelLeavesTheOptimizersSlotsOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d Description
		names := []string{"a", "b", "c", "d", "e", "f"}
		count := rapid.IntRange(1, len(names)).Draw(t, "tensors")
		role := 0
		for i := range count {
			d.Tensors = append(d.Tensors, tensor{names[i], rapid.SliceOfN(rapid.IntRange(0, 3), 0, 3).Draw(t, "shape"), roles[role]})
			role = rapid.IntRange(role, len(roles)-1).Draw(t, "role")
		}
		d.Tensors[0].Shape = []int{2}
		l, err := layOut(d)
		if err != nil {
			t.Fatal(err)
		}
		state := make([]float32, l.state)
		for i := range state {
			state[i] = float32(i + 1)
		}
		snapshot := rapid.Permutation(l.export(state, true)).Draw(t, "order")
		again := make([]float32, l.state)
		if err := l.restore(again, snapshot); err != nil || !slices.Equal(again, state) {
			t.Fatalf("%v restored as %v: %v", state, again, err)
		}
		for _, m := range l.export(state, false) {
			if i := slices.IndexFunc(d.Tensors, func(t tensor) bool { return t.Name == m.Name }); d.Tensors[i].Role == slot {
				t.Errorf("%s is in the model", m.Name)
			}
		}
		if err := l.restore(again, snapshot[1:]); err == nil || !strings.Contains(err.Error(), snapshot[0].Name) {
			t.Errorf("without %s: %v", snapshot[0].Name, err)
		}
		other := append([]nn.Tensor{{Name: snapshot[0].Name, Shape: []int{9}, Data: make([]float32, 9)}}, snapshot[1:]...)
		if err := l.restore(again, other); err == nil || !strings.Contains(err.Error(), "another model") {
			t.Errorf("with another %s: %v", snapshot[0].Name, err)
		}
	})
}
