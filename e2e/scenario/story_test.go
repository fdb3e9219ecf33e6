package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryStoryTellsANewcomerWhatItIsAboutAndWhereToGoOn(t *testing.T) {
	const root, mostLines, mostColumns = "../..", 5, 120
	for _, story := range Stories(ToWatch) {
		t.Run(story.Name, func(t *testing.T) {
			lines := strings.Split(story.About, "\n")
			if len(lines) < 3 || len(lines) > mostLines {
				t.Errorf("it is introduced in %d lines", len(lines))
			}
			for _, line := range lines {
				if len(line) > mostColumns {
					t.Errorf("a line of %d columns: %s", len(line), line)
				}
			}
			if story.Moral == "" {
				t.Error("it does not say what it has shown")
			}
			for _, path := range []string{story.Guide, story.Example()} {
				if _, err := os.Stat(filepath.Join(root, path)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
