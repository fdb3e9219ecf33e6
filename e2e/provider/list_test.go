package provider_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// searcher drives the provider as `terraform query` does, which this machine's terraform may not have.
type searcher struct {
	*testing.T
	*providertest.Server
}

func newSearcher(t *testing.T) searcher {
	t.Helper()
	return searcher{t, providertest.NewServer(t, map[string]string{"config_path": adminKubeconfig()})}
}

// search returns the objects found, each with its UID if whole is set.
func (s searcher) search(kind string, config map[string]string, whole bool, limit int64) (names, uids []string) {
	s.Helper()
	stream, err := s.ListResource(s.Context(), &tfprotov6.ListResourceRequest{
		TypeName: kind, Config: providertest.Encoded(s.T, s.Schemas.ListResourceSchemas[kind].ValueType(), config), IncludeResource: whole, Limit: limit,
	})
	if err != nil {
		s.Fatal(err)
	}
	for result := range stream.Results {
		providertest.NoErrors(s.T, nil, result.Diagnostics)
		names = append(names, result.DisplayName)
		if whole {
			value, err := result.Resource.Unmarshal(s.Schemas.ResourceSchemas[kind].ValueType())
			if err != nil {
				s.Fatal(err)
			}
			attributes, uid := map[string]tftypes.Value{}, ""
			if err := value.As(&attributes); err != nil {
				s.Fatal(err)
			}
			if err := attributes["uid"].As(&uid); err != nil {
				s.Fatal(err)
			}
			uids = append(uids, uid)
		}
	}
	return names, uids
}

func TestEveryKindOfKueuesIsFoundByASearch(t *testing.T) {
	s := newSearcher(t)
	for _, k := range kueueKinds() {
		t.Run(k.resource, func(t *testing.T) {
			s.T = t
			var want, uids []string
			for _, name := range []string{"searched-a", "searched-b"} {
				created := k.create(t, name, "somebody", k.createdFields)
				if k.namespaced {
					name = created.GetNamespace() + "/" + name
				}
				want, uids = append(want, name), append(uids, string(created.GetUID()))
				k.patch(t, created.GetName(), "somebody", fmt.Sprintf(`{"metadata":{"labels":{"searched":%q}}}`, created.GetName()))
			}
			selected := map[string]string{"label_selector": "searched"}
			if got, _ := s.search(k.resource, selected, false, 0); !slices.Equal(got, want) {
				t.Errorf("found %v, want %v", got, want)
			}
			if got, read := s.search(k.resource, selected, true, 0); !slices.Equal(got, want) || !slices.Equal(read, uids) {
				t.Errorf("read %v with UIDs %v, want %v with %v", got, read, want, uids)
			}
			if got, _ := s.search(k.resource, selected, true, 1); !slices.Equal(got, want[:1]) {
				t.Errorf("at most one: found %v", got)
			}
			if got, _ := s.search(k.resource, map[string]string{"label_selector": "searched=searched-b"}, false, 0); !slices.Equal(got, want[1:]) {
				t.Errorf("by a label: found %v", got)
			}
			if got, _ := s.search(k.resource, nil, false, 0); !slices.Contains(got, want[0]) {
				t.Errorf("without a selector: found %v", got)
			}
		})
	}
}

func TestTrainingJobsAreFoundByASearchWithoutTheirParts(t *testing.T) {
	const name = "searched"
	s := newSearcher(t)
	steps(t, resource.TestStep{
		Config: asAdmin("") + trainingJob(name, `labels = { searched = "yes" }`),
		Check: func(*terraform.State) error {
			live := liveJob(t, name)
			got, uids := s.search("elastic_training_job", map[string]string{"namespace": "default", "label_selector": "searched"}, true, 0)
			if !slices.Equal(got, []string{"default/" + name}) || !slices.Equal(uids, []string{string(live.UID)}) {
				return fmt.Errorf("found %v with UIDs %v, want the one with UID %s", got, uids, live.UID)
			}
			if got, _ := s.search("elastic_task", map[string]string{"label_selector": "searched"}, false, 0); len(got) > 0 {
				return fmt.Errorf("found tasks %v", got)
			}
			if got, _ := s.search("elastic_training_job", map[string]string{"namespace": metav1.NamespacePublic}, false, 0); len(got) > 0 {
				return fmt.Errorf("found %v in another namespace", got)
			}
			return nil
		},
	})
}

// TestASearchForPriorityClassesLeavesOutThoseThatNoConfigurationCanHave looks for Kubernetes' own two classes, of which
// generated configuration could not be planned; they do not count for a limit either.
func TestASearchForPriorityClassesLeavesOutThoseThatNoConfigurationCanHave(t *testing.T) {
	s := newSearcher(t)
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	classes := client.SchedulingV1().PriorityClasses()
	for _, name := range []string{"system-node-critical", "system-cluster-critical"} {
		if _, err := classes.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	mine := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "zz-searched"}, Value: 7}
	if _, err := classes.Create(t.Context(), mine, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = classes.Delete(context.WithoutCancel(t.Context()), mine.Name, metav1.DeleteOptions{}) })
	got, _ := s.search("elastic_priority_class", nil, true, 0)
	if !slices.Contains(got, mine.Name) || slices.ContainsFunc(got, func(name string) bool { return strings.HasPrefix(name, "system-") }) {
		t.Errorf("found %v", got)
	}
}

func TestASearchWithWhatIsNoSelectorNamesTheAttribute(t *testing.T) {
	s := newSearcher(t)
	stream, err := s.ListResource(t.Context(), &tfprotov6.ListResourceRequest{
		TypeName: "elastic_cohort", Config: providertest.Encoded(t, s.Schemas.ListResourceSchemas["elastic_cohort"].ValueType(), map[string]string{"label_selector": "a==,"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	for result := range stream.Results {
		for _, d := range result.Diagnostics {
			if d.Severity == tfprotov6.DiagnosticSeverityError && d.Attribute.String() == `AttributeName("label_selector")` {
				return
			}
		}
	}
	t.Error("no error at label_selector")
}
