package trainingjob_test

// The tests make pod templates with overrides.
import _ "github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob/strategicmerge"
