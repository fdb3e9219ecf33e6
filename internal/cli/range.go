package cli

import (
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// InRange refuses values of an integer flag outside of [least, most] where flags are read, before anything is made of
// them.
func InRange(c *cobra.Command, flag string, least, most int64) {
	f := c.Flags().Lookup(flag)
	f.Value = inRange{f.Value, big.NewInt(least), big.NewInt(most), fmt.Sprintf("must be a number from %s to %s", wording.Count(least), wording.Count(most))}
}

// Seed refuses values of a flag that no uint64 has.
func Seed(c *cobra.Command, flag string) {
	f := c.Flags().Lookup(flag)
	most := new(big.Int).SetUint64(1<<64 - 1)
	f.Value = inRange{f.Value, big.NewInt(0), most, fmt.Sprintf("must be a number from 0 to %s", most)}
}

// NotNegative refuses values of a flag of a duration below 0.
func NotNegative(c *cobra.Command, flag string) {
	f := c.Flags().Lookup(flag)
	f.Value = notNegative{f.Value}
}

// inRange is a flag's value that checks before it sets.
type inRange struct {
	pflag.Value
	least, most *big.Int
	remedy      string
}

// Set leaves texts that are no integers to the flag's own type.
func (b inRange) Set(text string) error {
	if n, ok := new(big.Int).SetString(text, 0); ok && (n.Cmp(b.least) < 0 || n.Cmp(b.most) > 0) {
		return errors.New(b.remedy)
	}
	return b.Value.Set(text)
}

// notNegative is a flag's duration that checks before it sets.
type notNegative struct{ pflag.Value }

func (n notNegative) Set(text string) error {
	if d, err := time.ParseDuration(text); err == nil && d < 0 {
		return errors.New("must be a duration of at least 0, such as 90s")
	}
	return n.Value.Set(text)
}
