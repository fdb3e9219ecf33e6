package conformance

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The guide "Elastic jobs under Kueue" says what to do about each message of a workload that waits. Its first table has
// messages of the recordings, with … for names and amounts.
func TestTheGuidesMessagesAreThoseOfARealKueue(t *testing.T) {
	text, err := os.ReadFile("../../../templates/guides/elastic-jobs-under-kueue.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| message |")
	table, _, _ = strings.Cut(table, "\n\n")
	var messages []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1) {
		messages = append(messages, match[1])
	}
	if len(messages) == 0 {
		t.Fatal("the guide has no table of messages")
	}
	all := recordedMessages(t)
	for _, message := range messages {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(message), "…", ".*")
		if !regexp.MustCompile(pattern).MatchString(all) {
			t.Errorf("no Kueue of the recordings said %q", message)
		}
	}
}

// recordedMessages are those of all workloads that waited, a line each.
func recordedMessages(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for s, err := range Read("testdata") {
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range s.Outcomes {
			for _, w := range o.Workloads {
				if w.Why != nil {
					all.WriteString(w.Why.Message + "\n")
				}
			}
		}
	}
	return all.String()
}
