package kube

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/store"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
)

// Keys of ConfigMap NAME-model, which holds the newest state of a job without an output directory until the job has its
// model.
const (
	checkpointKey     = "checkpoint.safetensors"
	checkpointStepKey = "checkpoint.step"
	withdrawnKey      = "withdrawn.safetensors" // a state that must not be resumed from
)

// headerRoom is how much a checkpoint may hold besides its tensors.
const headerRoom = 64 << 10

// reportTimeout bounds the report of a checkpoint: a master that is signalled to end has little time.
const reportTimeout = 2 * time.Second

// KeepsCheckpoints implements master.Store.
func (s Store) KeepsCheckpoints(bytes int) bool {
	return s.Output != nil || bytes+headerRoom <= trainingjob.MaxModelConfigMapBytes
}

// Checkpoints implements master.Store. The ConfigMap belongs to the job, so its content is of the job's
// lineage, or is rejected when it is read.
func (s Store) Checkpoints(lineage string) ([]master.StoredCheckpoint, error) {
	if s.Output != nil {
		return s.Output.Checkpoints(lineage)
	}
	configMap, err := s.configMap(context.Background())
	if err != nil {
		return nil, err
	}
	file, there := configMap.BinaryData[checkpointKey]
	if !there {
		return nil, nil
	}
	path := checkpointPath(configMap)
	step, err := strconv.ParseInt(configMap.Data[checkpointStepKey], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%s: its step: %w", path, err)
	}
	return []master.StoredCheckpoint{{Step: step, Path: path, Read: func() ([]byte, error) { return file, nil }}}, nil
}

// WithdrawCheckpoints implements master.Store. There is only one; without it the job starts again from step 0.
func (s Store) WithdrawCheckpoints(ctx context.Context, lineage string, steps []int64) ([]string, error) {
	if s.Output != nil {
		return s.Output.WithdrawCheckpoints(ctx, lineage, steps)
	}
	configMap, err := s.configMap(ctx)
	if err != nil {
		return nil, err
	}
	step, err := strconv.ParseInt(configMap.Data[checkpointStepKey], 10, 64)
	if file, there := configMap.BinaryData[checkpointKey]; there && err == nil && slices.Contains(steps, step) {
		configMap.BinaryData = map[string][]byte{withdrawnKey: file}
		return []string{checkpointPath(configMap)}, s.put(ctx, configMap)
	}
	return nil, nil
}

func checkpointPath(configMap *corev1.ConfigMap) string {
	return fmt.Sprintf("configmap://%s/%s/%s", configMap.Namespace, configMap.Name, checkpointKey)
}

// SaveCheckpoint implements master.Store, and reports the time on the Job.
func (s Store) SaveCheckpoint(ctx context.Context, name master.CheckpointName, file []byte, check func(context.Context) error) error {
	at := time.Now() // the state is of before it is written
	if err := s.saveCheckpoint(ctx, name, file, check); err != nil {
		return err
	}
	reporting, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	_ = s.Cluster.ReportCheckpoint(reporting, at) // training does not depend on it, and the next checkpoint reports again
	return nil
}

// ReportCheckpoint annotates the Job with the time of its last checkpoint, from which `elastic-trainer checkpoint-age`
// derives its priority among equals; the zero time says that there is none yet.
func (c *Cluster) ReportCheckpoint(ctx context.Context, at time.Time) error {
	text := ""
	if !at.IsZero() {
		text = at.UTC().Format(time.RFC3339)
	}
	return c.patch(ctx, c.batch, "jobs", c.Job.Name, map[string]any{"metadata": map[string]any{
		"uid": c.Job.UID, "annotations": map[string]string{trainingjob.AnnotationLastCheckpoint: text},
	}})
}

// ReportNoCheckpoint writes on the Job that there is no checkpoint yet, unless an earlier master has reported one.
func (c *Cluster) ReportNoCheckpoint(ctx context.Context) error {
	if c.reported {
		return nil
	}
	return c.ReportCheckpoint(ctx, time.Time{})
}

// saveCheckpoint does not overwrite a final model, which is the end of a job.
func (s Store) saveCheckpoint(ctx context.Context, name master.CheckpointName, file []byte, check func(context.Context) error) error {
	if s.Output != nil {
		return s.Output.SaveCheckpoint(ctx, name, file, check)
	}
	configMap, err := s.configMap(ctx)
	if err != nil {
		return err
	}
	if configMap.Data[store.InfoFile] != "" {
		return nil
	}
	if err := check(ctx); err != nil {
		return err
	}
	configMap.BinaryData = map[string][]byte{checkpointKey: file}
	configMap.Data = map[string]string{checkpointStepKey: strconv.FormatInt(name.Step, 10)}
	return s.put(ctx, configMap)
}
