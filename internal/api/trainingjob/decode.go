package trainingjob

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// DecodeJob reads job.json. A field that this version does not know is refused: ignoring it would train another
// model. The job is checked; the error lists every problem.
func DecodeJob(text []byte) (Job, error) { return decode(JobKey, text, Job.Problems) }

// DecodeWorkers reads workers.json, as DecodeJob does.
func DecodeWorkers(text []byte) (Workers, error) { return decode(WorkersKey, text, Workers.Problems) }

func decode[T any](file string, text []byte, problems func(T) []Problem) (value T, err error) {
	if err = StrictDecode(text, &value); err != nil {
		return *new(T), fmt.Errorf("read %s: %w", file, err)
	}
	if err = asError(file, problems(value)); err != nil {
		return *new(T), err
	}
	return value, nil
}

// DecodeStatus reads the status from ConfigMap NAME-status. Fields of a newer master are ignored; a ConfigMap without
// a status is a job whose master has not reported yet.
func DecodeStatus(cm *corev1.ConfigMap) (Status, error) {
	text, ok := cm.Data[StatusKey]
	if !ok || text == "" {
		return Status{Phase: PhasePending}, nil
	}
	var s Status
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return Status{}, fmt.Errorf("read %s of ConfigMap %s/%s: %w", StatusKey, cm.Namespace, cm.Name, err)
	}
	s.Phase = cmp.Or(s.Phase, PhasePending)
	return s, nil
}

// Finished reports whether a job has come to its end.
func (p Phase) Finished() bool { return p == PhaseSucceeded || p == PhaseFailed }

// StrictDecode decodes one JSON value, refusing unknown fields and anything behind it.
func StrictDecode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the end of the JSON value")
	}
	return nil
}

// asError is one error with a line for each problem, or nil.
func asError(file string, problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.String()
	}
	return fmt.Errorf("%s: %s", file, strings.Join(lines, "; "))
}
