package providertest

import (
	"regexp"
	"strings"
	"testing"
)

// ErrorText matches a message that holds the sentences in this order, however terraform wraps its lines.
func ErrorText(sentences ...string) *regexp.Regexp {
	var patterns []string
	for _, sentence := range sentences {
		words := strings.Fields(sentence)
		for i, word := range words {
			words[i] = regexp.QuoteMeta(word)
		}
		patterns = append(patterns, strings.Join(words, `[\s│]+`))
	}
	return regexp.MustCompile(`(?s)` + strings.Join(patterns, `.*`))
}

// ExpectText checks what terraform printed.
func ExpectText(t *testing.T, printed string, sentences ...string) {
	t.Helper()
	if !ErrorText(sentences...).MatchString(printed) {
		t.Errorf("does not contain %q:\n%s", sentences, printed)
	}
}
