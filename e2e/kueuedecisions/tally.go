package kueuedecisions

import (
	"fmt"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/e2e/kueuedecisions/draw"
)

// Counts are numbers of scenarios, by result, and of the steps of them that were compared.
type Counts struct {
	Results [Different + 1]int
	Steps   int
}

// Scenarios is the number of all scenarios.
func (c Counts) Scenarios() (n int) {
	for _, r := range c.Results {
		n += r
	}
	return n
}

func (c Counts) plus(other Counts) Counts {
	for i, n := range other.Results {
		c.Results[i] += n
	}
	c.Steps += other.Steps
	return c
}

// Tally has the counts of each family.
type Tally map[string]Counts

// Count adds the comparison of a scenario of a family.
func (t Tally) Count(family string, c *Comparison) {
	one := Counts{Steps: c.Steps}
	one.Results[c.Result] = 1
	t[family] = t[family].plus(one)
}

// Sum are the counts of all families.
func (t Tally) Sum() (sum Counts) {
	for _, c := range t {
		sum = sum.plus(c)
	}
	return sum
}

// Rows are the rows of a table in Markdown, one for each family and one with the sum: family, scenarios, steps, equal, tied,
// restless, different.
func (t Tally) Rows() string {
	var b strings.Builder
	row := func(name string, c Counts) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d |\n", name, c.Scenarios(), c.Steps,
			c.Results[Equal], c.Results[Tied], c.Results[Restless], c.Results[Different])
	}
	for _, family := range draw.Families() {
		if c, compared := t[family]; compared {
			row(family, c)
		}
	}
	row("**all**", t.Sum())
	return b.String()
}
