package drift

import (
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Comparison is the input of an apply's check for conflicts.
type Comparison struct {
	// Planned is the state that the plan was made for, and Desired the planned state.
	Planned, Desired map[string]tftypes.Value
	// Live is the result of a refresh of Planned now, and LiveAsDesired one of Desired: each keeps the spelling of its
	// first value if the cluster's value means the same.
	Live, LiveAsDesired map[string]tftypes.Value
	Config              map[string]tftypes.Value
	// Before is the observation of the plan's refresh, and Now the current one.
	Before, Now Observation
	Compared    func(attribute string) bool
}

// Conflict is an attribute that others have changed after the plan was made, to another value than the plan sets.
type Conflict struct {
	Change         // from the value that the plan was made for to the one that it sets
	Live   *string // the current value, as text; nil if it is not shown
	Writer Writer  // "" if managedFields name no writer
	Ignore string  // what ignore_changes has to name
}

// Conflicts are all of them. What has changed since the plan and is as the plan would make it is no conflict.
func Conflicts(c Comparison) []Conflict {
	var conflicts []Conflict
	add := func(change Change, live *string) {
		attribute := change.Path.String()
		writer, _ := c.Now.writerOf(attribute)
		desired, ok := at(c.Desired, change.Path)
		if !ok {
			desired = tftypes.NewValue(change.From.Type(), nil)
		}
		conflicts = append(conflicts, Conflict{
			Change: Change{Path: change.Path, From: change.From, To: desired}, Live: live, Writer: writer,
			Ignore: IgnorePath(c.Config, change.Path).String(),
		})
	}
	unmet := Changes(c.Desired, c.LiveAsDesired, c.Compared)
	for _, since := range Changes(c.Planned, c.Live, c.Compared) {
		for _, change := range unmet {
			if overlap(since.Path.String(), change.Path.String()) {
				live := Text(since.To)
				add(since, &live)
				break
			}
		}
	}
	// Labels and annotations that become the resource's with this apply: their values were others' when it was planned.
	for _, change := range Changes(c.Planned, c.Desired, c.Compared) {
		attribute := change.Path.String()
		now, isOthers := c.Now.Others[attribute]
		var wanted string
		if !isOthers || !isEntryOfMetadata(attribute) || change.To.As(&wanted) != nil || now == Digest(wanted) {
			continue
		}
		if before, was := c.Before.Others[attribute]; !was || before != now {
			add(change, nil)
		}
	}
	return conflicts
}
