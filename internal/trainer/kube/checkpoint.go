package kube

import (
	"context"
	"fmt"
	"strconv"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/master"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/store"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// What stands in ConfigMap NAME-model of a job without an output directory until its model is there: the newest state.
const (
	checkpointKey     = "checkpoint.safetensors"
	checkpointStepKey = "checkpoint.step"
)

// headerRoom is what a checkpoint may have besides its tensors.
const headerRoom = 64 << 10

// KeepsCheckpoints implements master.Store.
func (s Store) KeepsCheckpoints(bytes int) bool {
	return s.Output != nil || bytes+headerRoom <= trainingjob.MaxModelConfigMapBytes
}

// Checkpoints implements master.Store. The ConfigMap is the job's own, so that whatever it holds is of the job's lineage
// or refused when it is read.
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
	path := fmt.Sprintf("configmap://%s/%s/%s", configMap.Namespace, configMap.Name, checkpointKey)
	step, err := strconv.ParseInt(configMap.Data[checkpointStepKey], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%s: its step: %w", path, err)
	}
	return []master.StoredCheckpoint{{Step: step, Path: path, Read: func() ([]byte, error) { return file, nil }}}, nil
}

// SaveCheckpoint implements master.Store. A final model is not overwritten: nothing follows it in the same job.
func (s Store) SaveCheckpoint(ctx context.Context, name master.CheckpointName, file []byte, check func(context.Context) error) error {
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
