package commandline

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// Between refuses values of an integer flag outside of [least, most] where flags are read, before anything is made of them.
func Between(c *cobra.Command, flag string, least, most int64) {
	f := c.Flags().Lookup(flag)
	f.Value = bounded{f.Value, least, most}
}

// bounded is a flag's value that checks before it sets.
type bounded struct {
	pflag.Value
	least, most int64
}

// Set leaves texts that are no integers to the flag's own type.
func (b bounded) Set(text string) error {
	if n, err := strconv.ParseInt(text, 0, 64); err == nil && (n < b.least || n > b.most) {
		return fmt.Errorf("give a number from %s to %s", wording.Count(b.least), wording.Count(b.most))
	}
	return b.Value.Set(text)
}
