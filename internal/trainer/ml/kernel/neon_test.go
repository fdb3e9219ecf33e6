package kernel_test

import (
	"os"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel/arm64test"
)

func TestTheKernelsOfARM64HaveThePortableKernelsBits(t *testing.T) {
	checks := "300"
	if os.Getenv("ELASTIC_SOAK") != "" {
		checks = "10000"
	}
	// Rational arithmetic, slow enough without an emulator, says nothing about a processor.
	flags := []string{"-test.skip", "OfARM64|TestFMA/rational", "-test.timeout", "1h", "-rapid.checks", checks, "-rapid.nofailfile"}
	arm64test.Tests(t, flags, "TestFMA", "TestGemm/neon_has_the_portable_kernel's_bits", "TestDropoutMask/neon_has_the_portable_kernel's_bits")
}
