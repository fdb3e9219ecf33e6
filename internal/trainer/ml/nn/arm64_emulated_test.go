package nn_test

import (
	"os"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel/arm64test"
)

func TestTheTutorialsNetworkHasTheKnownStateOnARM64(t *testing.T) {
	if os.Getenv("ELASTIC_SOAK") == "" {
		t.Skip("ten steps take minutes in an emulator; make soak does them")
	}
	flags := []string{"-test.run", "TestMNISTSteps/with_neon|TestEqualBits", "-test.timeout", "2h"}
	arm64test.Tests(t, flags, "TestMNISTSteps/ten_steps_of_the_tutorial's_network_with_neon_and_1_threads_end_in_the_known_state", "TestEqualBits")
}
