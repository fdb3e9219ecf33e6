package drift

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// Warning is the warning of a plan about its changes that set back fields which others have written; a plan without
// such changes has none. consequence is a sentence about the effect of setting an attribute back, or "".
func Warning(
	of string, changes []Change, o Observation, config map[string]tftypes.Value, consequence func(Change) string,
) (summary, detail string, found bool) {
	var lines, ignored, consequences []string
	for _, change := range changes {
		attribute := change.Path.String()
		writer, written := o.writerOf(attribute)
		switch {
		case written && isEntryOfMetadata(attribute) && change.From.IsNull():
			lines = append(lines, fmt.Sprintf("%s: another value, %s", attribute, writer))
		case written:
			lines = append(lines, fmt.Sprintf("%s: %s, %s", attribute, Text(change.From), writer))
		case o.lost(attribute):
			lines = append(lines, fmt.Sprintf("%s: %s, changed by a client that managedFields do not name", attribute, Text(change.From)))
		default:
			continue
		}
		ignored = append(ignored, IgnorePath(config, change.Path).String())
		if sentence := consequence(change); sentence != "" {
			consequences = append(consequences, sentence)
		}
	}
	if len(lines) == 0 {
		return "", "", false
	}
	var b strings.Builder
	b.WriteString("These fields have values that were not written by this resource:\n\n" + list(lines))
	b.WriteString("\nApplying this plan sets them to the values that it shows.")
	for _, sentence := range distinct(consequences) {
		b.WriteString(" " + sentence)
	}
	b.WriteString(" To leave them to others instead, have the resource ignore them:\n\n" + ignoreChanges(ignored, "  "))
	return of + " was changed outside of this configuration", b.String(), true
}

func (o Observation) lost(attribute string) bool {
	for _, lost := range o.Lost {
		if overlap(lost, attribute) {
			return true
		}
	}
	return false
}

// ConflictError is an apply that would overwrite what others changed after its plan was made.
type ConflictError struct {
	Ref       cluster.Ref
	Conflicts []Conflict
}

func (e *ConflictError) Error() string {
	attributes := make([]string, len(e.Conflicts))
	for i, c := range e.Conflicts {
		attributes[i] = c.Path.String()
	}
	return "changed by others after the plan was made: " + strings.Join(attributes, ", ")
}

// Explain is the error for the user who applies, with possible remedies.
func (e *ConflictError) Explain() (summary, detail string) {
	var lines, ignored []string
	for _, c := range e.Conflicts {
		live, by := "another value", "removed, or written by another run of this provider"
		if c.Live != nil {
			live = *c.Live
		}
		if c.Writer.Manager != "" {
			by = c.Writer.String()
		}
		lines = append(lines, fmt.Sprintf("%s: %s, %s; the plan was made for %s and sets %s", c.Path, live, by, Text(c.From), Text(c.To)))
		ignored = append(ignored, c.Ignore)
	}
	return fmt.Sprintf("Cannot update %s", e.Ref), "Others have changed these fields since the plan was made:\n\n" + list(lines) +
		"\nThey were left as they are. There are three ways out:\n\n" +
		"  1. Run terraform plan again: it shows the values of now, and applying that plan overwrites them.\n\n" +
		"  2. Leave the fields to the other manager, in the resource block:\n\n" + ignoreChanges(ignored, "       ") +
		"\n  3. Set force_conflicts = true in the provider's configuration: applies then overwrite such changes, too."
}

// String is the writer and the time, to follow a value.
func (w Writer) String() string {
	if w.Time.IsZero() {
		return fmt.Sprintf("written by %q", w.Manager)
	}
	return fmt.Sprintf("written by %q at %s", w.Manager, w.Time.UTC().Format(time.RFC3339))
}

func list(lines []string) string { return "  - " + strings.Join(lines, "\n  - ") + "\n" }

func ignoreChanges(attributes []string, indent string) string {
	return fmt.Sprintf("%slifecycle {\n%s  ignore_changes = [%s]\n%s}\n", indent, indent, strings.Join(distinct(attributes), ", "), indent)
}

func distinct(texts []string) []string {
	var once []string
	for _, text := range texts {
		if !slices.Contains(once, text) {
			once = append(once, text)
		}
	}
	return once
}

// longestText bounds how much of a value a message shows, in runes.
const longestText = 80

// Text is a value as a configuration writes it, on one line and not too long.
func Text(value tftypes.Value) string {
	text := []rune(write(value))
	if len(text) > longestText {
		return string(text[:longestText]) + "…"
	}
	return string(text)
}

func write(value tftypes.Value) string {
	if value.Type() == nil || value.IsNull() {
		return "unset"
	}
	if !value.IsKnown() {
		return "a value known after apply"
	}
	switch kind := value.Type(); {
	case kind.Is(tftypes.String):
		var text string
		_ = value.As(&text)
		return strconv.Quote(text)
	case kind.Is(tftypes.Number):
		number := new(big.Float)
		_ = value.As(&number)
		return number.Text('g', -1)
	case kind.Is(tftypes.Bool):
		var truth bool
		_ = value.As(&truth)
		return strconv.FormatBool(truth)
	case kind.Is(tftypes.List{}), kind.Is(tftypes.Set{}):
		var texts []string
		for _, item := range items(value) {
			texts = append(texts, write(item))
		}
		return "[" + strings.Join(texts, ", ") + "]"
	default:
		var texts []string
		all := Entries(value)
		for _, name := range sortedKeys(all) {
			if entry := all[name]; !entry.IsNull() {
				if kind.Is(tftypes.Map{}) {
					name = strconv.Quote(name)
				}
				texts = append(texts, name+" = "+write(entry))
			}
		}
		return "{ " + strings.Join(texts, ", ") + " }"
	}
}
