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

// String lists the numbers by result.
func (c Counts) String() string {
	parts := make([]string, len(c.Results))
	for r, n := range c.Results {
		parts[r] = fmt.Sprintf("%d %s", n, Result(r))
	}
	return strings.Join(parts, ", ")
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

// Count adds the comparison of a scenario of a family, which had so many steps.
func (t Tally) Count(family string, result Result, steps int) {
	one := Counts{Steps: steps}
	one.Results[result] = 1
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
