// Package terraformplan reads the output of terraform show -json as the jobs of a forecast: what a plan creates,
// changes, replaces and destroys of the providers elastic, kubernetes, kubectl and helm, in the order in which
// Terraform may apply it. It is pure. Values of a plan may be secret: only names, kinds and what affects pods leaves
// the package, and no error quotes a value.
package terraformplan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/manifest"
)

// MaxBytes limits a plan, which contains state and configuration besides the changes.
const MaxBytes = 64 << 20

// Given is the context in which a plan is read.
type Given struct {
	manifest.Given
	// Elastic reads a resource of this provider from its attributes.
	Elastic func(resourceType string, attributes []byte) (*forecast.Job, runtime.Object, error)
}

// Job is a job of a plan.
type Job struct {
	Address string // "module.a.kubernetes_job_v1.train[0]"
	Action  string // "create", "update" or "replace"
	forecast.Job
	// Unknown lists what is not known until the plan is applied; there is no forecast of such a job.
	Unknown string
}

// Contents is the effect of a plan on a cluster.
type Contents struct {
	Jobs      []Job
	Objects   []runtime.Object
	Deletions []forecast.Deletion
	// Skipped are resources that may create pods, or affect them, and that the package does not understand, with the reason.
	Skipped []string
}

// plan is the part of Terraform's JSON that is read (format version 1).
type plan struct {
	FormatVersion   string           `json:"format_version"`
	ResourceChanges []resourceChange `json:"resource_changes"`
	Configuration   struct {
		RootModule module `json:"root_module"`
	} `json:"configuration"`
}

type resourceChange struct {
	Address      string `json:"address"`
	Mode         string `json:"mode"`
	Type         string `json:"type"`
	Name         string `json:"name"`
	ProviderName string `json:"provider_name"`
	Change       struct {
		Actions      []string        `json:"actions"`
		Before       json.RawMessage `json:"before"`
		After        json.RawMessage `json:"after"`
		AfterUnknown json.RawMessage `json:"after_unknown"`
	} `json:"change"`
}

// action is the action of a change, in one word; "" for none.
func (c resourceChange) action() string {
	switch {
	case slices.Contains(c.Change.Actions, "create") && slices.Contains(c.Change.Actions, "delete"):
		return "replace"
	case slices.Contains(c.Change.Actions, "create"), slices.Contains(c.Change.Actions, "update"), slices.Contains(c.Change.Actions, "delete"):
		return c.Change.Actions[0]
	}
	return ""
}

// Read reads a plan.
func Read(text []byte, given Given) (Contents, error) {
	var p plan
	if len(text) > MaxBytes {
		return Contents{}, fmt.Errorf("the plan has more than the %d bytes of the largest that is read", MaxBytes)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return Contents{}, errors.New("not a plan in JSON: run terraform show -json on a file that terraform plan -out has written")
	}
	if !strings.HasPrefix(p.FormatVersion, "1.") {
		return Contents{}, fmt.Errorf("format_version is %q; this reads plans of version 1, as terraform show -json prints them", p.FormatVersion)
	}
	r := reader{given: given}
	changes := slices.DeleteFunc(slices.Clone(p.ResourceChanges), func(c resourceChange) bool { return c.Mode != "managed" || c.action() == "" })
	order(changes, p.Configuration.RootModule)
	for _, change := range changes {
		r.add(change)
	}
	return r.contents()
}

// reader collects the effects of a plan.
type reader struct {
	given  Given
	found  Contents
	parsed []parsed
}

// parsed is an object of a change, or a job of this provider.
type parsed struct {
	change  resourceChange
	object  *unstructured.Unstructured
	job     *forecast.Job
	before  *forecast.Job // the old version of a job of this provider that changes
	unknown string
}

func (r *reader) add(change resourceChange) {
	switch action := change.action(); {
	case action == "delete":
		r.delete(change)
	case action == "update" && !changesPods(change):
	case action == "update":
		r.create(change) // whether its pods stay is decided after both are read
	default:
		if action == "replace" {
			r.delete(change) // the old object makes room for the new one
		}
		r.create(change)
	}
}

// delete notes the old objects of a resource.
func (r *reader) delete(change resourceChange) {
	for _, object := range objectsOf(change.Type, change.Change.Before) {
		namespace := object.GetNamespace()
		if namespace == "" && !manifest.ClusterScoped(object.GetKind()) {
			namespace = r.given.Namespace
		}
		r.found.Deletions = append(r.found.Deletions, forecast.Deletion{Kind: object.GetKind(), Namespace: namespace, Name: object.GetName()})
	}
	if kind := elasticKinds[change.Type]; kind != "" {
		name, namespace := nameOf(change.Change.Before)
		r.found.Deletions = append(r.found.Deletions, forecast.Deletion{Kind: kind, Namespace: namespace, Name: name})
	}
}

// create reads the new objects of a resource.
func (r *reader) create(change resourceChange) {
	unknown := unknownOf(change)
	if kind := elasticKinds[change.Type]; kind != "" {
		name, namespace := nameOf(change.Change.After)
		if unknown != "" {
			r.parsed = append(r.parsed, parsed{change: change, unknown: unknown, job: &forecast.Job{Noun: kind, Namespace: namespace, Name: name}})
			return
		}
		job, object, err := r.given.Elastic(change.Type, change.Change.After)
		switch {
		case err != nil:
			r.skip(change, err.Error())
		case job != nil && change.action() == "update":
			before, _, err := r.given.Elastic(change.Type, change.Change.Before)
			if err != nil {
				r.skip(change, err.Error())
				return
			}
			r.parsed = append(r.parsed, parsed{change: change, job: job, before: before})
		case job != nil:
			r.parsed = append(r.parsed, parsed{change: change, job: job})
		case object != nil:
			r.found.Objects = append(r.found.Objects, object)
		}
		return
	}
	objects := objectsOf(change.Type, change.Change.After)
	if len(objects) == 0 {
		if unknown != "" && makesPods(change.Type) {
			r.skip(change, unknown)
		}
		return
	}
	for _, object := range objects {
		r.parsed = append(r.parsed, parsed{change: change, object: object, unknown: unknown})
	}
}

func (r *reader) skip(change resourceChange, reason string) {
	r.found.Skipped = append(r.found.Skipped, change.Address+": "+reason)
}

// contents reads the objects, which may refer to each other.
func (r *reader) contents() (Contents, error) {
	var objects []*unstructured.Unstructured
	for _, p := range r.parsed {
		if p.object != nil {
			objects = append(objects, p.object)
		}
	}
	set := manifest.NewSet(objects, r.given.Given)
	for _, p := range r.parsed {
		switch {
		case p.before != nil:
			r.update(p.change, *p.before, *p.job)
		case p.object == nil:
			r.found.Jobs = append(r.found.Jobs, Job{Address: p.change.Address, Action: p.change.action(), Job: *p.job, Unknown: p.unknown})
		case p.unknown != "" && manifest.MakesPods(p.object.GroupVersionKind().GroupKind()):
			namespace := p.object.GetNamespace()
			if namespace == "" {
				namespace = r.given.Namespace
			}
			job := forecast.Job{Noun: p.object.GetKind(), Namespace: namespace, Name: p.object.GetName()}
			r.found.Jobs = append(r.found.Jobs, Job{Address: p.change.Address, Action: p.change.action(), Job: job, Unknown: p.unknown})
		default:
			contents, err := set.Read(p.object)
			if kind := p.object.GroupVersionKind().GroupKind(); err != nil && (manifest.MakesPods(kind) || kind.Group == kueue.SchemeGroupVersion.Group) {
				r.skip(p.change, redacted(err))
				continue
			}
			r.found.Objects = append(r.found.Objects, contents.Objects...)
			for _, job := range contents.Jobs {
				if p.change.action() == "update" {
					r.changed(p.change, job)
					continue
				}
				r.found.Jobs = append(r.found.Jobs, Job{Address: p.change.Address, Action: p.change.action(), Job: job})
			}
		}
	}
	return r.found, nil
}

// redacted is an error without the values that decoders quote.
func redacted(err error) string {
	text := err.Error()
	for _, marker := range []string{"json: cannot unmarshal", "quantities must match", "unable to parse"} {
		if at := strings.Index(text, marker); at >= 0 {
			return strings.TrimRight(text[:at], " :") + ": a value does not have the type of its field"
		}
	}
	return text
}
