package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

const (
	// Marker is the first line of every report in Markdown, by which a workflow finds its own comment.
	Marker = "<!-- elastic-sim forecast -->"
	// maxMarkdown keeps a report below GitHub's limit of 65,536 characters for a comment.
	maxMarkdown = 60_000
	// maxRows limits the rows of the table; the report counts the others.
	maxRows = 100
)

// headlines are the first lines for each worst outcome.
var headlines = map[forecast.Outcome]string{
	forecast.Fits:     "all start immediately, without evictions",
	forecast.Preempts: "others are evicted",
	forecast.Pends:    "not all start before others end",
	forecast.Never:    "not all can ever run",
}

// Markdown writes a table of the jobs, and the details of each.
func (r Report) Markdown(out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n### Forecast: %s\n\n", Marker, r.headline())
	if len(r.Entries) > 0 {
		text.WriteString("| outcome | job | change | evicts |\n|---|---|---|---|\n")
	}
	for i, entry := range r.Entries {
		if i == maxRows {
			fmt.Fprintf(&text, "\n%d more jobs are not listed.\n", len(r.Entries)-maxRows)
			break
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", entry.outcome(), escape(jobName(entry)), escape(strings.TrimSpace(entry.Action+" "+entry.Address)), escape(evicted(entry.Answer)))
	}
	for _, skipped := range r.Skipped {
		fmt.Fprintf(&text, "\n- not forecast: %s", escape(skipped))
	}
	if len(r.Skipped) > 0 {
		text.WriteString("\n")
	}
	for i, entry := range r.Entries {
		if entry.Unknown != "" {
			continue
		}
		details := fmt.Sprintf("\n<details><summary>%s</summary>\n<pre>\n%s\n</pre>\n</details>\n", escape(entry.Summary()), escape(entry.Text()))
		if text.Len()+len(details) > maxMarkdown {
			fmt.Fprintf(&text, "\nThe details of %d more jobs do not fit here.\n", len(r.Entries)-i)
			break
		}
		text.WriteString(details)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func (r Report) headline() string {
	if len(r.Entries) == 0 {
		return "no pods are created"
	}
	unknown := len(r.Skipped)
	for _, entry := range r.Entries {
		if entry.Unknown != "" {
			unknown++
		}
	}
	jobs := fmt.Sprintf("%d jobs", len(r.Entries))
	if len(r.Entries) == 1 {
		jobs = "1 job"
	}
	line := jobs + ", " + headlines[r.Worst()]
	switch unknown {
	case 0:
		return line
	case len(r.Entries):
		return jobs + ", none of them known before the apply"
	default:
		return fmt.Sprintf("%s; %d not known", line, unknown)
	}
}

func jobName(e Entry) string {
	if e.Namespace == "" || e.Namespace == "default" {
		return e.Name
	}
	return e.Namespace + "/" + e.Name
}

func (e Entry) outcome() string {
	switch {
	case e.Unknown != "":
		return "not known: " + escape(e.Unknown)
	case len(e.Unaccepted()) > 0:
		return string(e.Outcome) + " (approximate)"
	default:
		return string(e.Outcome)
	}
}

// maxNamed bounds the number of victims that a row names.
const maxNamed = 5

// evicted names the pods and workloads that stop for a job.
func evicted(a forecast.Answer) string {
	var names []string
	for _, e := range a.Evicts {
		if e.Own {
			continue
		}
		name := e.Namespace + "/" + e.Name
		if e.Owner != "" {
			name += " of " + e.Owner
		}
		if !e.Certain {
			name += " (perhaps)"
		}
		names = append(names, name)
	}
	if len(names) > maxNamed {
		names = append(names[:maxNamed], fmt.Sprintf("%d more", len(names)-maxNamed))
	}
	return strings.Join(names, ", ")
}

// escape escapes a text so that Markdown shows it unchanged, without columns, links, mentions or tags.
func escape(text string) string {
	var escaped strings.Builder
	for _, c := range text {
		switch {
		case strings.ContainsRune("&<>|`*_[]@~#\\!", c):
			fmt.Fprintf(&escaped, "&#%d;", c)
		default:
			escaped.WriteRune(c)
		}
	}
	return escaped.String()
}
