package provider_test

import (
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-testing/terraform"
)

// terraformState is what a Check function gets and these tests do not need.
type terraformState = terraform.State

// says matches a message that holds the sentences in this order, however terraform wraps its lines.
func says(sentences ...string) *regexp.Regexp {
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
