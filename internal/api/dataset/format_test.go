package dataset

import (
	"strings"
	"testing"
)

func TestTheDocumentationNamesEveryFormat(t *testing.T) {
	for _, name := range Formats() {
		if !strings.Contains(FormatChoice(), name) || !strings.Contains(FormatsMarkdown(), "`"+name+"`") {
			t.Errorf("%s is not in %q or not in %q", name, FormatChoice(), FormatsMarkdown())
		}
	}
	if !strings.HasPrefix(FormatsMarkdown(), "`"+DefaultFormat+"` (default), ") {
		t.Errorf("%q does not say which format is the default", FormatsMarkdown())
	}
}
