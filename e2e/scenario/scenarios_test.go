package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryScenarioHasAnIntroductionASummaryAndAGuide(t *testing.T) {
	const root, mostLines, mostColumns = "../..", 5, 120
	for _, scenario := range Scenarios(ForDemo) {
		t.Run(scenario.Name, func(t *testing.T) {
			lines := strings.Split(scenario.About, "\n")
			if len(lines) < 3 || len(lines) > mostLines {
				t.Errorf("it is introduced in %d lines", len(lines))
			}
			for _, line := range lines {
				if len(line) > mostColumns {
					t.Errorf("a line of %d columns: %s", len(line), line)
				}
			}
			if scenario.Summary == "" {
				t.Error("it has no summary")
			}
			for _, path := range []string{scenario.Guide, scenario.Example()} {
				if _, err := os.Stat(filepath.Join(root, path)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
