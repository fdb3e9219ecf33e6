//go:build !podsonly

package trainingjob

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// ParseDefinition reads a definition back from ConfigMap NAME-job: the inverse of Definition.ConfigData. A template in
// workers.json that somebody changed by hand shows in the definition, as far as the definition can say it. Labels and
// annotations are left to the caller, who knows which of an object's are the user's, and so is ActiveDeadlineSeconds,
// which is in the Job.
func ParseDefinition(cm *corev1.ConfigMap) (Definition, error) {
	fail := func(key string, err error) (Definition, error) {
		return Definition{}, fmt.Errorf("read %s of ConfigMap %s/%s: %w", key, cm.Namespace, cm.Name, err)
	}
	for _, key := range []string{JobKey, WorkersKey, ModelKey, DefinitionKey} {
		if _, ok := cm.Data[key]; !ok {
			return fail(key, fmt.Errorf("there is none; the ConfigMap of a training job has %s, %s, %s and %s",
				JobKey, WorkersKey, ModelKey, DefinitionKey))
		}
	}
	d := Definition{ModelText: cm.Data[ModelKey]}
	var workers Workers
	for key, into := range map[string]any{JobKey: &d.Job, WorkersKey: &workers, DefinitionKey: &d.Settings} {
		if err := StrictDecode([]byte(cm.Data[key]), into); err != nil {
			return fail(key, err)
		}
	}
	// Indented with the rest of definition.json; the user's own spacing is not known any more.
	for _, overrides := range []*json.RawMessage{&d.Master.PodOverrides, &d.Workers.PodOverrides} {
		var compact bytes.Buffer
		if len(*overrides) > 0 && json.Compact(&compact, *overrides) == nil {
			*overrides = compact.Bytes()
		}
	}
	d.Min, d.Max, d.MinPriorityClassName, d.Queue = workers.Min, workers.Max, workers.MinPriorityClassName, workers.Queue
	written, err := d.WorkerTemplate()
	if err != nil {
		return fail(DefinitionKey, err)
	}
	d.Workers = d.Workers.withEdits(settingsOf(written), settingsOf(workers.Template))
	return d, nil
}

// withEdits takes over what differs between the template that the settings make and the one that is there. What is
// equal stays as the user wrote it, who may have said it by pod_overrides.
func (s PodSettings) withEdits(written, live PodSettings) PodSettings {
	fields, was, is := reflect.ValueOf(&s).Elem(), reflect.ValueOf(written), reflect.ValueOf(live)
	for i := range fields.NumField() {
		if !equality.Semantic.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
			fields.Field(i).Set(is.Field(i))
		}
	}
	return s
}

// settingsOf are the settings that a template shows, without what every pod of a job has.
func settingsOf(t corev1.PodTemplateSpec) PodSettings {
	s := PodSettings{
		PriorityClassName:             t.Spec.PriorityClassName,
		NodeSelector:                  t.Spec.NodeSelector,
		Affinity:                      t.Spec.Affinity,
		Annotations:                   t.Annotations,
		TerminationGracePeriodSeconds: t.Spec.TerminationGracePeriodSeconds,
	}
	if t.Spec.RuntimeClassName != nil {
		s.RuntimeClassName = *t.Spec.RuntimeClassName
	}
	ours := defaultTolerations()
	for _, toleration := range t.Spec.Tolerations {
		if !slices.ContainsFunc(ours, func(o corev1.Toleration) bool { return equality.Semantic.DeepEqual(o, toleration) }) {
			s.Tolerations = append(s.Tolerations, toleration)
		}
	}
	s.Labels = maps.Clone(t.Labels)
	maps.DeleteFunc(s.Labels, func(key, _ string) bool { return ReservedLabel(key) })
	if i := slices.IndexFunc(t.Spec.Containers, func(c corev1.Container) bool { return c.Name == t.Labels[LabelRole] }); i >= 0 {
		c := t.Spec.Containers[i]
		s.Resources = &c.Resources
		s.InitContainers = initContainersOf(t.Spec.InitContainers, c)
		s.SecurityContext = securityOf(t.Spec.SecurityContext, c.SecurityContext)
		s.Env = map[string]string{}
		for _, v := range c.Env {
			if v.ValueFrom == nil {
				s.Env[v.Name] = v.Value
			}
		}
	}
	return s
}
