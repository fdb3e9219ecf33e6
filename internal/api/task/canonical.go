package task

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/accelerator"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// Same reports whether two tasks with all their images are the same, however each of them is written: the objects that
// they consist of are equal. A task that makes none is the same as none.
func Same(a, b Task) bool {
	x, errX := a.outcome()
	y, errY := b.outcome()
	return errX == nil && errY == nil && equality.Semantic.DeepEqual(x, y)
}

// outcome is all that a task decides: its Job, what its pods read, and its further objects.
type outcome struct {
	Job   *batchv1.Job
	Files map[string]string
	Parts []string
}

func (t Task) outcome() (outcome, error) {
	t = t.Canonical()
	given := Given{Secrets: map[string]string{}}
	for _, name := range t.SecretValues {
		given.Secrets[name] = ""
	}
	objects, err := Render(t, given)
	if err != nil {
		return outcome{}, err
	}
	objects.Job.Spec.Template = trainingjob.CanonicalTemplate(objects.Job.Spec.Template)
	o := outcome{Job: objects.Job, Files: objects.ConfigMap.Data}
	delete(o.Files, definitionKey) // in the user's spelling
	for _, part := range objects.Parts() {
		o.Parts = append(o.Parts, part.GetObjectKind().GroupVersionKind().Kind+" "+part.GetName())
	}
	return o, nil
}

// Canonical is the one way to write a task among all that make the same objects: what has a default says it, and what
// has no order is sorted. CPUs and Memory stay as they are, see Amounts; and pod_overrides can still say something that
// an attribute says too.
func (t Task) Canonical() Task {
	// A shell does not need the end of the last line.
	t.Run, t.Setup = strings.TrimRight(t.Run, "\n"), strings.TrimRight(t.Setup, "\n")
	t.Image = cmp.Or(t.Image, DefaultImage)
	if !t.gang() {
		t.TrainerImage = ""
	}
	if policy := trainingjob.PullPolicy(t.Image); !t.gang() || policy == trainingjob.PullPolicy(t.TrainerImage) {
		t.ImagePullPolicy = cmp.Or(t.ImagePullPolicy, policy)
	}
	t.ImagePullSecrets = trainingjob.Sorted(t.ImagePullSecrets)
	t.Volumes = trainingjob.CanonicalVolumes(t.Volumes)
	for i, v := range t.Volumes {
		t.Volumes[i].ReadOnly, t.Volumes[i].Mount = new(v.ReadOnly != nil && *v.ReadOnly), ""
	}
	t.canonicalAccelerators()
	t.Recovery.RecoverOnExitCodes = trainingjob.Sorted(t.Recovery.RecoverOnExitCodes)
	t.Tolerations = trainingjob.CanonicalTolerations(t.Tolerations)
	t.TerminationGracePeriodSeconds = new(t.gracePeriodSeconds())
	t.PodOverrides = trainingjob.CanonicalOverrides(t.PodOverrides)
	return t
}

// canonicalAccelerators gives accelerators their names of the table, and those of equal rank an order.
func (t *Task) canonicalAccelerators() {
	labels := make(map[string]accelerator.Definition, len(t.AcceleratorLabels))
	for name, d := range t.AcceleratorLabels {
		d.Labels = maps.Clone(d.Labels)
		for key, values := range d.Labels {
			d.Labels[key] = trainingjob.Sorted(values)
		}
		labels[name] = d
	}
	t.AcceleratorLabels = labels
	table, err := accelerator.New(labels)
	if err != nil {
		return
	}
	t.Accelerators = slices.Clone(t.Accelerators)
	for i, request := range t.Accelerators {
		if name, _, err := table.Lookup(request.Name); err == nil {
			t.Accelerators[i].Name = name
		}
	}
	if !t.Ordered {
		slices.SortFunc(t.Accelerators, func(a, b accelerator.Request) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Count, b.Count))
		})
	}
}

// Amounts are CPUs and Memory of each node, in one spelling for all of an amount. What is no amount stays as it is.
func (t Task) Amounts() (cpus, memory string) {
	of := func(text string, parse func(string) (amount, error)) string {
		a, err := parse(text)
		if err != nil {
			return text
		}
		exact, ok := new(big.Rat).SetString(a.AsDec().String())
		if !ok {
			return text
		}
		if a.atLeast {
			return exact.RatString() + "+"
		}
		return exact.RatString()
	}
	return of(t.CPUs, parseCPUs), of(t.Memory, parseMemory)
}
