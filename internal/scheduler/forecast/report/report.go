// Package report writes the forecasts of several jobs for people and programs: as text, as lines of JSON, and as
// Markdown for a comment on a pull request.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// Entry is one job of a report.
type Entry struct {
	// Address and Action are those of a plan: "kubernetes_job_v1.train", "replace".
	Address, Action string
	// Unknown lists the attributes that are not known until the plan is applied; such a job has a name, but no
	// forecast.
	Unknown string
	forecast.Answer
}

// Report is the forecasts of a file or a plan.
type Report struct {
	Entries []Entry
	// Skipped are resources that may create pods and that the report does not understand, with the reason.
	Skipped []string
}

// worse are the outcomes in ascending order of severity.
var worse = map[forecast.Outcome]int{forecast.Fits: 0, forecast.Preempts: 1, forecast.Pends: 2, forecast.Never: 3}

// Worst is the worst outcome of all.
func (r Report) Worst() forecast.Outcome {
	worst := forecast.Fits
	for _, entry := range r.Entries {
		if entry.Unknown == "" && worse[entry.Outcome] > worse[worst] {
			worst = entry.Outcome
		}
	}
	return worst
}

func (e Entry) title() string {
	name := e.Name
	if name == "" {
		name = "a job without a name yet"
	}
	if e.Address == "" {
		return name
	}
	return fmt.Sprintf("%s (%s %s)", name, e.Action, e.Address)
}

// Text writes a paragraph for each job.
func (r Report) Text(out io.Writer) error {
	var text strings.Builder
	for _, entry := range r.Entries {
		switch {
		case entry.Unknown != "":
			fmt.Fprintf(&text, "%s cannot be forecast: %s.\n", entry.title(), entry.Unknown)
		case entry.Address != "":
			fmt.Fprintf(&text, "%s (%s %s)\n%s\n", entry.Summary(), entry.Action, entry.Address, entry.Text())
		default:
			fmt.Fprintf(&text, "%s\n%s\n", entry.Summary(), entry.Text())
		}
	}
	for _, skipped := range r.Skipped {
		fmt.Fprintf(&text, "not forecast: %s\n", skipped)
	}
	if len(r.Entries) == 0 {
		text.WriteString("The plan creates no pods.\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// JSON writes a line for each job, and for each resource that was skipped.
func (r Report) JSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for _, entry := range r.Entries {
		var line any = struct {
			Address string `json:"address,omitempty"`
			Action  string `json:"action,omitempty"`
			forecast.Answer
			Claims forecast.Claims `json:"claims"`
		}{entry.Address, entry.Action, entry.Answer, entry.Claims()}
		if entry.Unknown != "" {
			line = map[string]string{"address": entry.Address, "action": entry.Action, "namespace": entry.Namespace, "name": entry.Name, "unknown": entry.Unknown}
		}
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	for _, skipped := range r.Skipped {
		if err := encoder.Encode(map[string]string{"skipped": skipped}); err != nil {
			return err
		}
	}
	return nil
}
