package kube

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/store"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
)

// Store keeps the final model in ConfigMap NAME-model if it is small, and in the output directory if there
// is one; before the end, the ConfigMap or the directory has the newest state. It implements master.Store.
type Store struct {
	Cluster *Cluster
	Output  *store.Directory // nil for none
}

// Finished implements master.Store.
func (s Store) Finished(jobDigest string) (*master.ModelInfo, error) {
	if s.Output != nil {
		return s.Output.Finished(jobDigest)
	}
	configMap, err := s.configMap(context.Background())
	if err != nil {
		return nil, err
	}
	text := configMap.Data[store.InfoFile]
	if text == "" {
		return nil, nil
	}
	var info master.ModelInfo
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		return nil, fmt.Errorf("read %s of ConfigMap %s/%s: %w", store.InfoFile, configMap.Namespace, configMap.Name, err)
	}
	if info.Job != jobDigest {
		return nil, nil
	}
	info.Files = s.files()
	return &info, nil
}

// SaveReport implements master.Store. Without an output directory there is no report: the ConfigMap is for the model.
func (s Store) SaveReport(ctx context.Context, name master.ReportName, page []byte, check func(context.Context) error) (string, error) {
	if s.Output != nil {
		return s.Output.SaveReport(ctx, name, page, check)
	}
	return "", nil
}

func (s Store) files() []string {
	return []string{fmt.Sprintf("configmap://%s/%s/%s", s.Cluster.Namespace, trainingjob.ModelName(s.Cluster.Job.Name), store.ModelFile)}
}

func (s Store) configMap(ctx context.Context) (*corev1.ConfigMap, error) {
	configMap := &corev1.ConfigMap{}
	name := trainingjob.ModelName(s.Cluster.Job.Name)
	if err := s.Cluster.get(ctx, s.Cluster.core, "configmaps", name, configMap); err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", s.Cluster.Namespace, name, err)
	}
	return configMap, nil
}

// Fits implements master.Store.
func (s Store) Fits(bytes int) error {
	if s.Output == nil && bytes > trainingjob.MaxModelConfigMapBytes {
		return fmt.Errorf("the final model has %d bytes and a ConfigMap holds %d: set output to a directory of a volume that the master mounts", bytes, trainingjob.MaxModelConfigMapBytes)
	}
	return nil
}

// Save implements master.Store. With an output directory the model is saved there, and the ConfigMap is a copy.
func (s Store) Save(ctx context.Context, model []byte, info master.ModelInfo, run master.RunInfo, check func(context.Context) error) ([]string, error) {
	var files []string
	if s.Output != nil {
		var err error
		if files, err = s.Output.Save(ctx, model, info, run, check); err != nil {
			return nil, err
		}
	}
	if err := s.Fits(len(model)); err != nil {
		return nil, err
	}
	if len(model) > trainingjob.MaxModelConfigMapBytes {
		return files, nil
	}
	if err := check(ctx); err != nil {
		return nil, err
	}
	if err := s.keepCopy(ctx, model, info); err != nil {
		return nil, err
	}
	return append(files, s.files()...), nil
}

func (s Store) keepCopy(ctx context.Context, model []byte, info master.ModelInfo) error {
	configMap, err := s.configMap(ctx)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return err
	}
	configMap.BinaryData = map[string][]byte{store.ModelFile: model}
	configMap.Data = map[string]string{store.InfoFile: string(text)}
	return s.put(ctx, configMap)
}

func (s Store) put(ctx context.Context, configMap *corev1.ConfigMap) error {
	err := s.Cluster.core.Put().Namespace(configMap.Namespace).Resource("configmaps").Name(configMap.Name).Body(configMap).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", configMap.Namespace, configMap.Name, err)
	}
	return nil
}
