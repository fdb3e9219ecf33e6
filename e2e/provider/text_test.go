package provider_test

import (
	"regexp"

	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// terraformState is the argument of a Check function, which these tests do not need.
type terraformState = terraform.State

// errorText is providertest.ErrorText, which reads better without its package.
func wantText(sentences ...string) *regexp.Regexp { return providertest.ErrorText(sentences...) }
