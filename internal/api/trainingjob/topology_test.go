package trainingjob

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"
)

func TestTheLabelsAndAnnotationsOfAQueueAndATopologyAreKueues(t *testing.T) {
	for ours, theirs := range map[string]string{
		queueNameLabel: controllerconstants.QueueLabel, workloadClassLabel: controllerconstants.WorkloadPriorityClassLabel,
		requiredTopology: kueue.PodSetRequiredTopologyAnnotation, preferredTopology: kueue.PodSetPreferredTopologyAnnotation,
		unconstrainedTopology: kueue.PodSetUnconstrainedTopologyAnnotation, sliceRequiredTopology: kueue.PodSetSliceRequiredTopologyAnnotation,
		sliceSize: kueue.PodSetSliceSizeAnnotation, sliceConstraints: kueue.PodSetSliceRequiredTopologyConstraintsAnnotation,
		podSetGroup: kueue.PodSetGroupName, podIndexLabel: kueue.PodGroupPodIndexLabelAnnotation,
	} {
		if ours != theirs {
			t.Errorf("%s, not %s", ours, theirs)
		}
	}
}

// racked puts a definition under a queue, with a topology.
func racked(d *Definition, t Topology) {
	d.Queue = &Queue{Name: "q", PriorityClass: "low", MinPriorityClass: "mid", Topology: &t}
}

func TestATopologyIsOfThePodsThatTheQueueAdmitsTogether(t *testing.T) {
	const prefix = "kueue.x-k8s.io/podset-"
	for name, c := range map[string]struct {
		of                     *Topology
		master, minimum, burst map[string]string
	}{
		"none": {nil, nil, nil, nil},
		"required": {
			&Topology{Required: "rack"},
			map[string]string{"required-topology": "rack", "group-name": "core"},
			map[string]string{"required-topology": "rack", "group-name": "core"},
			map[string]string{"unconstrained-topology": "true"},
		},
		"preferred": {
			&Topology{Preferred: "rack"},
			map[string]string{"preferred-topology": "rack", "group-name": "core"},
			map[string]string{"preferred-topology": "rack", "group-name": "core"},
			map[string]string{"unconstrained-topology": "true"},
		},
		"unconstrained": {
			&Topology{Unconstrained: true},
			map[string]string{"unconstrained-topology": "true"},
			map[string]string{"unconstrained-topology": "true"},
			map[string]string{"unconstrained-topology": "true"},
		},
		"slices, which Kueue joins with nothing": {
			&Topology{Required: "block", SliceSize: 2, SliceRequired: "rack"},
			map[string]string{"unconstrained-topology": "true"},
			map[string]string{"required-topology": "block", "slice-required-topology": "rack", "slice-size": "2"},
			map[string]string{"unconstrained-topology": "true"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := queued()
			d.Queue.Topology = c.of
			d.Workers.Annotations = map[string]string{"example.com/scrape": "true"}
			if problems := d.Problems(); len(problems) > 0 {
				t.Fatal(problems)
			}
			o, err := Render(d, credentials())
			if err != nil {
				t.Fatal(err)
			}
			w, ref := workersOf(t, d), JobRef{Name: d.Job.Name, Namespace: d.Job.Namespace, UID: "3f0c"}
			for pods, of := range map[string]struct{ got, want map[string]string }{
				"the master":                      {o.Job.Spec.Template.Annotations, c.master},
				"the minimum workers":             {o.MinJob.Spec.Template.Annotations, c.minimum},
				"a minimum worker, in a forecast": {WorkerPod(w, ref, 1, true, "").Annotations, c.minimum},
				"a worker above the minimum":      {WorkerPod(w, ref, 2, false, "").Annotations, c.burst},
			} {
				got := map[string]string{}
				for key, value := range of.got {
					if short, ours := strings.CutPrefix(key, prefix); ours {
						got[short] = value
					}
				}
				if !maps.Equal(got, of.want) {
					t.Errorf("%s request %v, not %v", pods, got, of.want)
				}
				if pods != "the master" && of.got["example.com/scrape"] != "true" {
					t.Errorf("%s lost the user's annotations: %v", pods, of.got)
				}
			}
			sliced := c.of != nil && c.of.SliceSize > 0
			if index := o.MinJob.Spec.Template.Annotations["kueue.x-k8s.io/pod-group-pod-index-label"]; (index == "batch.kubernetes.io/job-completion-index") != sliced {
				t.Errorf("the minimum workers are numbered by %q", index)
			}
			back, err := ParseDefinition(o.ConfigMap)
			if err != nil || !reflect.DeepEqual(back.Queue, d.Queue) {
				t.Errorf("read back: %v, %v", back.Queue, err)
			}
		})
	}
}

func TestWorkersThatATopologyIsNotAboutAreAWarning(t *testing.T) {
	for name, c := range map[string]struct {
		of  Topology
		max int
		at  string
	}{
		"with a requirement":                 {Topology{Required: "rack"}, 4, "topology.required"},
		"with slices":                        {Topology{SliceSize: 2, SliceRequired: "rack"}, 4, "topology.slice_required"},
		"but not with a preference":          {Topology{Preferred: "rack"}, 4, ""},
		"nor if all are minimum workers":     {Topology{Required: "rack"}, 2, ""},
		"nor where they may be in any place": {Topology{Unconstrained: true}, 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := queued()
			d.Max, d.Queue.Topology = c.max, &c.of
			at := ""
			for _, p := range d.Warnings() {
				if strings.HasPrefix(p.Field, "topology") {
					at = p.Field
				}
			}
			if at != c.at {
				t.Errorf("the warning is at %q", at)
			}
		})
	}
}
