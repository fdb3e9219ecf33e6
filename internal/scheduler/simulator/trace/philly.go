package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// Columns of cluster_machine_list.
const (
	machineColumn = "machineId"
	gpusColumn    = "number of GPUs"
)

func (b *builder) philly() error {
	if !b.nodesGiven {
		err := each(b.trace.Nodes, func(t *table) error {
			gpus, err := t.count(gpusColumn)
			if err != nil {
				return err
			}
			return t.at(b.node(t.text(machineColumn), scenariofile.Resources{gpu: quantity(gpus)}, nil))
		}, machineColumn, gpusColumn)
		if err != nil {
			return err
		}
	}
	f, err := os.Open(filepath.Clean(b.trace.Jobs))
	if err != nil {
		return fmt.Errorf("read the trace: %w", err)
	}
	defer f.Close()
	offset, err := b.phillyJobs(f)
	if err != nil {
		line, column := b.place(offset)
		return fmt.Errorf("%s:%d:%d: %w", b.trace.Jobs, line, column, err)
	}
	return nil
}

// place is where in the file of jobs an offset is.
func (b *builder) place(offset int64) (line, column int) {
	line, column = 1, 1
	f, err := os.Open(filepath.Clean(b.trace.Jobs))
	if err != nil {
		return line, column
	}
	defer f.Close()
	from := io.LimitReader(f, offset)
	for buffer := make([]byte, 1<<16); ; {
		n, err := from.Read(buffer)
		line += bytes.Count(buffer[:n], []byte("\n"))
		if last := bytes.LastIndexByte(buffer[:n], '\n'); last >= 0 {
			column = n - last
		} else {
			column += n
		}
		if err != nil {
			return line, column
		}
	}
}

// phillyJob is an entry of cluster_job_log.
type phillyJob struct {
	VC        string `json:"vc"`
	ID        string `json:"jobid"`
	Submitted string `json:"submitted_time"`
	Attempts  []struct {
		Start  string `json:"start_time"`
		End    string `json:"end_time"`
		Detail []struct {
			GPUs []string `json:"gpus"`
		} `json:"detail"`
	} `json:"attempts"`
}

// phillyJobs reads a list of jobs, one at a time; its errors contain the byte offset.
func (b *builder) phillyJobs(f io.Reader) (offset int64, err error) {
	limited := &counted{from: f, most: maxRow}
	decoder := json.NewDecoder(limited)
	if start, err := decoder.Token(); err != nil || start != json.Delim('[') {
		return 0, errors.New("is not a JSON list of jobs")
	}
	for decoder.More() && !b.full() {
		limited.since = 0
		var j phillyJob
		start := decoder.InputOffset()
		if err := decoder.Decode(&j); err != nil {
			var syntax *json.SyntaxError
			var kind *json.UnmarshalTypeError
			switch {
			case errors.As(err, &syntax):
				return max(syntax.Offset-1, 0), err
			case errors.As(err, &kind):
				return start + kind.Offset, err
			}
			return decoder.InputOffset(), err
		}
		if err := b.phillyRow(j); err != nil {
			return start + 1, err
		}
	}
	if b.full() {
		return 0, nil
	}
	if _, err := decoder.Token(); err != nil {
		return decoder.InputOffset(), fmt.Errorf("the list of jobs does not end: %w", err)
	}
	return 0, nil
}

func (b *builder) phillyRow(j phillyJob) error {
	if len(j.Attempts) == 0 {
		b.omit("of jobs that never ran")
		return nil
	}
	submitted, known, err := phillyTime(j.Submitted)
	if err != nil {
		return fmt.Errorf("job %s: submitted_time %w", short(j.ID), err)
	}
	runs := int64(0)
	for i, a := range j.Attempts {
		start, began, err := phillyTime(a.Start)
		if err != nil {
			return fmt.Errorf("job %s: attempts[%d].start_time %w", short(j.ID), i, err)
		}
		end, ended, err := phillyTime(a.End)
		if err != nil {
			return fmt.Errorf("job %s: attempts[%d].end_time %w", short(j.ID), i, err)
		}
		if !began || !ended || !known {
			b.omit("of jobs with an attempt without a start or an end")
			return nil
		}
		runs += max(end-start, 0)
	}
	last := j.Attempts[len(j.Attempts)-1].Detail
	most := 0
	for _, server := range last {
		most = max(most, len(server.GPUs))
	}
	if most == 0 {
		b.omit("of jobs whose GPUs are not known")
		return nil
	}
	return b.add(row{
		name: j.ID, group: j.VC, submitted: submitted, runs: runs, pods: len(last), requests: scenariofile.Resources{gpu: quantity(int64(most))},
	})
}

// phillyTime reads a time; the log has null, "" and "None" where there is none.
func phillyTime(text string) (seconds int64, known bool, err error) {
	if slices.Contains([]string{"", "None"}, text) {
		return 0, false, nil
	}
	at, err := time.Parse(timestamp, text)
	if err != nil {
		return 0, false, fmt.Errorf("is %q where a time like %q is wanted", short(text), timestamp)
	}
	return at.Unix(), true, nil
}
