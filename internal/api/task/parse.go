package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// stored is definition.json: a Task without the texts, which are keys of the same ConfigMap, and the paths of the
// workdir's files in the order of their keys.
type stored struct {
	Task
	Files []string `json:"workdir_files,omitempty"`
}

func (t Task) encode() (string, error) {
	s := stored{Task: t, Files: t.workdirFiles()}
	s.Run, s.Setup, s.Workdir = "", "", nil
	text, err := trainingjob.Encode(s)
	if err != nil {
		return "", fmt.Errorf("encode %s: %w", definitionKey, err)
	}
	return text, nil
}

// Of reads a task back from ConfigMap NAME-task and its Job: the inverse of Render. What can change while the Job lives
// is read from the Job: the queue, the priority class, how many restarts, how long it may run, and when it is removed
// after its end. Labels
// and annotations are those that the task was made with.
func Of(cm *corev1.ConfigMap, job *batchv1.Job) (Task, error) {
	fail := func(key string, err error) (Task, error) {
		return Task{}, fmt.Errorf("read %s of ConfigMap %s/%s: %w", key, cm.Namespace, cm.Name, err)
	}
	text := func(key string) (string, error) {
		value, ok := cm.Data[key]
		if !ok {
			return "", errors.New("there is none; the ConfigMap of a task has " + definitionKey + ", " + runKey + " and a key for each file of the workdir")
		}
		return value, nil
	}
	definition, err := text(definitionKey)
	if err != nil {
		return fail(definitionKey, err)
	}
	var s stored
	if err := trainingjob.StrictDecode([]byte(definition), &s); err != nil {
		return fail(definitionKey, err)
	}
	t := s.Task
	if t.Run, err = text(runKey); err != nil {
		return fail(runKey, err)
	}
	t.Setup = cm.Data[setupKey]
	for i, name := range s.Files {
		if t.Workdir == nil {
			t.Workdir = map[string]string{}
		}
		if t.Workdir[name], err = text(fileKey(i)); err != nil {
			return fail(fileKey(i), err)
		}
	}
	// Indented with the rest of definition.json; the user's own spacing is not known any more.
	var compact bytes.Buffer
	if len(t.PodOverrides) > 0 && json.Compact(&compact, t.PodOverrides) == nil {
		t.PodOverrides = compact.Bytes()
	}
	return t.OfJob(job), nil
}

// OfJob is the task with what can change while its Job lives as the Job has it.
func (t Task) OfJob(job *batchv1.Job) Task {
	t.Queue, t.PriorityClass = job.Labels[LabelQueue], job.Labels[LabelPriorityClass]
	t.TTLSecondsAfterFinished, t.ActiveDeadlineSeconds = job.Spec.TTLSecondsAfterFinished, job.Spec.ActiveDeadlineSeconds
	if limit := job.Spec.BackoffLimit; limit != nil {
		t.Recovery.MaxRestartsOnErrors = int(*limit)
	}
	return t
}
