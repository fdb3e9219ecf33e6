package truth_test

import "github.com/elastic-training/terraform-provider-elastic/e2e/truth"

// knownFile is this one.
const knownFile = "known_test.go"

// known are the situations in testdata that are not always forecast rightly yet, and their verdicts: several where the order in
// which things happen differs from run to run. Take out what is right, and add nothing.
var known = map[string][]truth.Verdict{
	"01-service":        {truth.Wrong},
	"02-limitrange":     {truth.Wrong},
	"03-quota":          {truth.Wrong},
	"04-jobname-anti":   {truth.Wrong},
	"05-matchlabelkeys": {truth.Wrong},
	"07-suspend":        {truth.Wrong},
	"08-runtimeclass":   {truth.Approximate},
	"15-two":            {truth.Approximate},
	"18-nodename":       {truth.Wrong, truth.Right},
	"24-dra-extended":   {truth.Wrong},
	"30-podsecurity":    {truth.Wrong},
	"36-pdb-gang4":      {truth.Wrong},
	"37-pdb-two-jobs":   {truth.Wrong, truth.Right},
	"45-default-queue":  {truth.Wrong},
}

func verdictsOf(name string) []truth.Verdict {
	if verdicts, ok := known[name]; ok {
		return verdicts
	}
	return []truth.Verdict{truth.Right}
}
