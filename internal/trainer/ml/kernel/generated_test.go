package kernel_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel/assembly"
)

func TestGeneratedFiles(t *testing.T) {
	files, err := assembly.Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		t.Run(name+" is what the generator writes", func(t *testing.T) {
			got, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Error("it differs; run go generate ./internal/trainer/ml/kernel")
			}
		})
	}
}
