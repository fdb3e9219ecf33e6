package commandline

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestBetweenNamesTheLimitOfAFlagAndLeavesOtherTextsToItsType(t *testing.T) {
	for value, want := range map[string]string{
		"1": "", "0x10": "", "1000": "",
		"0":                    "give a number from 1 to 1,000",
		"-1":                   "give a number from 1 to 1,000",
		"4611686018427387904":  "give a number from 1 to 1,000",
		"99999999999999999999": "out of range",
		"NaN":                  "invalid syntax",
		"":                     "invalid syntax",
	} {
		c := &cobra.Command{}
		n := c.Flags().Int("number", 7, "")
		Between(c, "number", 1, 1000)
		err := c.Flags().Set("number", value)
		if want == "" && (err != nil || *n == 7) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("--number=%q: %v (%d); want %q", value, err, *n, want)
		}
	}
}
