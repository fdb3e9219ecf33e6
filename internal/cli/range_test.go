package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestBetweenNamesTheLimitOfAFlagAndLeavesOtherTextsToItsType(t *testing.T) {
	for value, want := range map[string]string{
		"1": "", "0x10": "", "1000": "",
		"0":                    "must be a number from 1 to 1,000",
		"-1":                   "must be a number from 1 to 1,000",
		"4611686018427387904":  "must be a number from 1 to 1,000",
		"99999999999999999999": "must be a number from 1 to 1,000",
		"NaN":                  "invalid syntax",
		"":                     "invalid syntax",
	} {
		c := &cobra.Command{}
		n := c.Flags().Int("number", 7, "")
		InRange(c, "number", 1, 1000)
		err := c.Flags().Set("number", value)
		if want == "" && (err != nil || *n == 7) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("--number=%q: %v (%d); want %q", value, err, *n, want)
		}
	}
}

func TestSeedsAndDurationsNameWhatTheyMayBe(t *testing.T) {
	c := &cobra.Command{}
	seed, pause := c.Flags().Uint64("seed", 7, ""), c.Flags().Duration("pause", 1, "")
	Seed(c, "seed")
	NotNegative(c, "pause")
	for _, value := range []string{"-1", "18446744073709551616"} {
		if err := c.Flags().Set("seed", value); err == nil || !strings.Contains(err.Error(), "must be a number from 0 to 18446744073709551615") {
			t.Errorf("--seed=%s: %v", value, err)
		}
	}
	if err := c.Flags().Set("pause", "-1s"); err == nil || !strings.Contains(err.Error(), "at least 0") {
		t.Errorf("--pause=-1s: %v", err)
	}
	if err := errors.Join(c.Flags().Set("seed", "18446744073709551615"), c.Flags().Set("pause", "0")); err != nil || *seed != 1<<64-1 || *pause != 0 {
		t.Errorf("%v, %d, %v", err, *seed, *pause)
	}
}
