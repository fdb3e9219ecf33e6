package snapshot

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/configuration"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// Write writes the state of a cluster as a file that Parse reads: a list of objects in JSON, one a line, without what no
// forecast reads, such as environments, commands and most annotations.
func Write(out io.Writer, s *forecast.Snapshot) error { return write(out, objectsOf(s)) }

// WriteAnonymized is Write without names: see names.
func WriteAnonymized(out io.Writer, s *forecast.Snapshot) error {
	objects := objectsOf(s)
	namesOf(objects).rename(objects)
	return write(out, objects)
}

func write(out io.Writer, objects []object) error {
	buffered := bufio.NewWriter(out)
	_, _ = buffered.WriteString(`{"apiVersion":"v1","kind":"List","items":[`) // Flush returns the error
	for i, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			return err
		}
		if i > 0 {
			_ = buffered.WriteByte(',')
		}
		_ = buffered.WriteByte('\n')
		_, _ = buffered.Write(text)
	}
	_, _ = buffered.WriteString("\n]}\n")
	return buffered.Flush()
}

// objectsOf are the objects of a file, which may be changed.
func objectsOf(s *forecast.Snapshot) []object {
	kinds := kindsOf(s)
	if s.Queues != nil {
		kinds = append(kinds, queueKinds(s.Queues)...)
	}
	objects := []object{index(s, kinds)}
	if s.Queues != nil && s.Queues.Configuration != nil {
		objects = append(objects, configurationMap(s.Queues.Configuration))
	}
	for _, name := range slices.SortedFunc(maps.Keys(s.Jobs), compareNames) {
		objects = append(objects, jobMaps(name, s.Jobs[name])...)
	}
	for _, k := range kinds {
		objects = append(objects, k.copies()...)
	}
	for _, object := range objects {
		strip(object)
	}
	return objects
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// index says what a list of objects does not.
func index(s *forecast.Snapshot, kinds []kind) *corev1.ConfigMap {
	unread := map[string]string{}
	for _, kind := range s.Unread {
		unread[string(kind.Kind)] = kind.Verb
	}
	if s.Queues != nil && s.Queues.TopologiesUnread != "" {
		unread[string(forecast.Topologies)] = s.Queues.TopologiesUnread
	}
	var read, denied []string
	for i := range kinds {
		switch verb, missing := unread[kinds[i].Kind]; {
		case !missing:
			read = append(read, kinds[i].resource())
		case verb == kinds[i].verb():
			denied = append(denied, kinds[i].resource())
		}
	}
	data := map[string]string{indexTime: s.AsOf.Format(time.RFC3339Nano), indexVersion: s.Version, indexKinds: strings.Join(read, " ")}
	if len(denied) > 0 {
		data[indexDenied] = strings.Join(denied, " ")
	}
	if s.Queues != nil && s.Queues.ConfigurationUnread != "" {
		data[indexConfiguration] = s.Queues.ConfigurationUnread
	}
	return configMap(types.NamespacedName{Name: indexName}, data)
}

func configMap(name types.NamespacedName, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Data: data,
	}
}

// configurationMap is Kueue's configuration as far as forecasts read it, with the feature gates of its Deployment.
func configurationMap(c *configuration.Configuration) *corev1.ConfigMap {
	text, err := yaml.Marshal(c)
	if err != nil {
		panic(err) // it has been read from YAML
	}
	return configMap(types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.ConfigMap}, map[string]string{configuration.Key: string(text)})
}

// jobMaps are a training job's ConfigMaps with the numbers that forecasts read.
func jobMaps(name types.NamespacedName, job forecast.TrainingJob) []object {
	of := func(configMapName, key string, value any) object {
		text, err := json.Marshal(value)
		if err != nil {
			panic(err) // numbers and words
		}
		return configMap(types.NamespacedName{Namespace: name.Namespace, Name: configMapName}, map[string]string{key: string(text)})
	}
	workers := trainingjob.Workers{Min: job.Workers.Min, Max: job.Workers.Max}
	workers.Template.Spec = corev1.PodSpec{ // without which there are no workers
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: trainingjob.RoleWorker}},
	}
	status := trainingjob.Status{
		Phase: job.Status.Phase, Generation: job.Status.Generation, StepsDone: job.Status.StepsDone, StepsTotal: job.Status.StepsTotal,
	}
	return []object{
		of(trainingjob.ConfigMapName(name.Name), trainingjob.WorkersKey, workers),
		of(trainingjob.StatusName(name.Name), trainingjob.StatusKey, status),
	}
}
