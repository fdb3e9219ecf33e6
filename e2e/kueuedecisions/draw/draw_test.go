package draw

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/conformance"
)

// A change of what a seed draws takes the recordings' origin away, and the meaning of seeds in reports.
func TestAFamilyAndASeedGiveTheScenarioThatWasRecorded(t *testing.T) {
	n := 0
	for recorded, err := range conformance.Read("../../../internal/scheduler/conformance/testdata/drawn.jsonl.gz") {
		if err != nil {
			t.Fatal(err)
		}
		family := recorded.Family()
		var seed uint64
		if _, err := fmt.Sscanf(recorded.Name, "v-"+family+"-%d", &seed); err != nil {
			continue
		}
		n++
		drawn, err := Scenario(family, seed)
		if err != nil {
			t.Fatal(err)
		}
		if want, got := input(t, recorded), input(t, drawn); want != got {
			t.Errorf("family %s, seed %d draws\n%s\nbut was recorded as\n%s", family, seed, got, want)
		}
	}
	if n < 300 {
		t.Errorf("only %d recordings are of a family and a seed", n)
	}
}

// input is what is there and what is done, as JSON.
func input(t *testing.T, s *conformance.Scenario) string {
	t.Helper()
	s.Outcomes, s.Kueue, s.Checks = nil, "", conformance.Checks{}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
