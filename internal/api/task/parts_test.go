package task

import (
	"slices"
	"strings"
	"testing"
)

func TestLossOfKnowsEveryPart(t *testing.T) {
	parts := 0
	for _, nodes := range []int{1, 2} {
		for _, part := range NamedParts(Task{Name: "train", Namespace: "ml", NumNodes: nodes, SecretValues: []string{"TOKEN"}}) {
			parts++
			loss := LossOf("train", part)
			for _, text := range []string{loss.Without, loss.Repair} {
				if text == "" || strings.HasSuffix(text, ".") {
					t.Errorf("%T %s: %+v does not end a sentence", part, part.GetName(), loss)
				}
			}
		}
	}
	if parts != 2+6 {
		t.Errorf("%d parts", parts)
	}
}

func TestAsMadeUsesFieldsThatOnlyTheJobHas(t *testing.T) {
	made := Task{Name: "train", Namespace: "ml", NumNodes: 2, Run: "true", Image: "debian:12", TrainerImage: "trainer:1", SecretValues: []string{"A", "B"}}
	o, err := Render(made, Given{Secrets: map[string]string{"A": "", "B": ""}})
	if err != nil {
		t.Fatal(err)
	}
	got := Task{Name: "train", Namespace: "ml", NumNodes: 2, Run: "true", Image: "debian:13", TrainerImage: "trainer:2"}.AsMade(o.Job)
	if got.Image != made.Image || got.TrainerImage != made.TrainerImage || !slices.Equal(got.SecretValues, made.SecretValues) {
		t.Errorf("%+v", got)
	}
}
