package provider_test

import (
	"os"
	"path/filepath"
	"testing"
)

// Functions are called by their provider's local name, which has to be declared for them.
const requiredProvider = "terraform {\n  required_providers {\n    elastic = { source = \"hashicorp/elastic\" }\n  }\n}\n"

// TestTheExamplesOfFunctionsCanBePlanned also says that the values of functions are what resources take.
func TestTheExamplesOfFunctionsCanBePlanned(t *testing.T) {
	examples, err := filepath.Glob("../../examples/functions/*/function.tf")
	if err != nil || len(examples) == 0 {
		t.Fatalf("there are no examples of functions (%v)", err)
	}
	model, err := os.ReadFile("../../examples/models/mnist_functional_api.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range examples {
		t.Run(filepath.Base(filepath.Dir(example)), func(t *testing.T) {
			config, err := os.ReadFile(example)
			if err != nil {
				t.Fatal(err)
			}
			r := newTerminal(t)
			if err := os.WriteFile(filepath.Join(r.Directory, "mnist_functional_api.py"), model, 0o600); err != nil {
				t.Fatal(err)
			}
			if printed, code := r.run(t, requiredProvider+asAdmin("")+string(config), "plan"); code != 0 {
				t.Errorf("plan exited with %d:\n%s", code, printed)
			}
		})
	}
}
