package provider

import (
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/zoo"
)

func TestAModelFileIsReadWhenItIsPlanned(t *testing.T) {
	built, err := zoo.Load("mnist")
	if err != nil {
		t.Fatal(err)
	}
	mnist := string(built.Source)
	for name, c := range map[string]struct {
		text, wants string
		command     []string
	}{
		"a model file":                  {text: mnist},
		"a built-in model":              {text: ""},
		"a file that does not parse":    {text: "x = (\n", wants: "model.content:"},
		"a layer that is not there":     {text: strings.Replace(mnist, "layers.Dense(", "layers.Dens(", 1), wants: "Dens"},
		"a file without a model":        {text: "import tensorflow as tf\n", wants: "model.content: "},
		"a script of another framework": {text: "import torch\n", command: []string{"python3"}},
	} {
		t.Run(name, func(t *testing.T) {
			diags := checkModelFile(trainingjob.Definition{ModelText: c.text, Job: trainingjob.Job{Command: c.command}})
			switch {
			case c.wants == "" && diags.HasError():
				t.Errorf("refused: %v", diags)
			case c.wants != "" && (!diags.HasError() || !strings.Contains(diags[0].Detail(), c.wants) || !strings.Contains(diags[0].Detail(), "elastic-trainer model")):
				t.Errorf("got %v, want %q", diags, c.wants)
			}
		})
	}
}
