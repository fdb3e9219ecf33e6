package provider_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// createClass creates a class as another client does, and removes it after the test.
func createClass(t *testing.T, manager string, object *schedulingv1.PriorityClass) {
	t.Helper()
	classes := adminClient(t).SchedulingV1().PriorityClasses()
	if _, err := classes.Create(t.Context(), object, metav1.CreateOptions{FieldManager: manager}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteClass(t, object.Name) })
}

func deleteClass(t *testing.T, name string) {
	t.Helper()
	// The test's own context has ended when its cleanup runs.
	err := adminClient(t).SchedulingV1().PriorityClasses().Delete(cleanupContext(t), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// owners are the managers of a class, each with its operation.
func owners(t *testing.T, name string) []string {
	t.Helper()
	var owners []string
	for _, entry := range liveClass(t, name).ManagedFields {
		owners = append(owners, entry.Manager+" "+string(entry.Operation))
	}
	return owners
}

func TestCreateDoesNotAdopt(t *testing.T) {
	createClass(t, "kubectl-create", &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "exists"}, Value: 5})
	steps(t, resource.TestStep{
		Config: asAdmin("") + priorityClass("exists", "value = 6"),
		ExpectError: wantText("Cannot create PriorityClass exists", "exists already", "written by kubectl-create",
			"terraform import elastic_priority_class.ADDRESS exists", "import {", `id = "exists"`),
	})
	if live := liveClass(t, "exists"); live.Value != 5 {
		t.Errorf("the value became %d", live.Value)
	}
}

func TestOneApplyEntryOwnsWhatWeWrote(t *testing.T) {
	name := "one-owner"
	steps(t,
		resource.TestStep{Config: asAdmin("") + priorityClass(name, "value = 1\n labels = { a = \"1\" }")},
		resource.TestStep{
			Config:           asAdmin("") + priorityClass(name, "value = 1\n labels = { a = \"2\" }"),
			ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			Check: func(*terraformState) error {
				if diff := cmp.Diff([]string{"terraform-provider-elastic Apply"}, owners(t, name)); diff != "" {
					t.Error(diff)
				}
				return nil
			},
		},
		resource.TestStep{ // under another name the fields become the new one's
			Config:           asAdmin(`field_manager = "platform-team"`) + priorityClass(name, "value = 1\n labels = { a = \"3\" }"),
			ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
		},
		resource.TestStep{ // and are removed with the attribute
			Config:           asAdmin(`field_manager = "platform-team"`) + priorityClass(name, "value = 1"),
			ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			Check: func(*terraformState) error {
				if labels := liveClass(t, name).Labels; len(labels) != 0 {
					t.Errorf("labels %v", labels)
				}
				return nil
			},
		},
	)
}

func TestAnImportTakesOwnershipOfEqualFields(t *testing.T) {
	name := "imported"
	steps(t,
		resource.TestStep{
			PreConfig: func() {
				createClass(t, "kubectl-create", &schedulingv1.PriorityClass{
					ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": "ml", "theirs": "x"}},
					Value:       9,
					Description: "made by hand",
				})
			},
			Config:             asAdmin("") + priorityClass(name, "value = 9\n description = \"made by hand\"\n labels = { team = \"ml\" }"),
			ResourceName:       class,
			ImportState:        true,
			ImportStateId:      name,
			ImportStatePersist: true,
		},
		resource.TestStep{ // labels are not ours yet, so that setting them is an update; nothing is in conflict
			Config:           asAdmin("") + priorityClass(name, "value = 9\n description = \"made by hand\"\n labels = { team = \"ml\" }"),
			ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
		},
		resource.TestStep{ // what is ours can be changed and removed, and what is theirs stays
			Config:           asAdmin("") + priorityClass(name, "value = 9\n description = \"by terraform\""),
			ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			Check: func(*terraformState) error {
				live := liveClass(t, name)
				if diff := cmp.Diff(map[string]string{"theirs": "x"}, live.Labels); diff != "" {
					t.Error(diff)
				}
				if live.Description != "by terraform" {
					t.Errorf("description %q", live.Description)
				}
				return nil
			},
		},
	)
}

func TestWhatIsImportedIsChangedWhereItDiffers(t *testing.T) {
	name := "imported-other"
	steps(t,
		resource.TestStep{
			PreConfig: func() {
				createClass(t, "kubectl-create", &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 9, Description: "made by hand"})
			},
			Config:             asAdmin("") + priorityClass(name, "value = 9"),
			ResourceName:       class,
			ImportState:        true,
			ImportStateId:      name,
			ImportStatePersist: true,
		},
		resource.TestStep{
			Config:           asAdmin("") + priorityClass(name, "value = 9\n description = \"by terraform\""),
			ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
		},
	)
}

func TestImportOfAMissingObjectIsAnError(t *testing.T) {
	steps(t, resource.TestStep{
		Config:        asAdmin("") + priorityClass("not-there", "value = 9"),
		ResourceName:  class,
		ImportState:   true,
		ImportStateId: "not-there",
		ExpectError:   wantText("Cannot import non-existent remote object"),
	})
}

func TestAnObjectIsFoundAfterTheResponseToItsCreationWasLost(t *testing.T) {
	p := newProxy(t)
	name := "lost-answer"
	var once atomic.Bool
	p.setFault(func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		if r.Method != http.MethodPost || once.Swap(true) {
			return false
		}
		forward.ServeHTTP(httptest.NewRecorder(), r) // processed
		drop(w)                                      // and not answered
		return true
	})
	steps(t, resource.TestStep{
		Config:            p.config("") + priorityClass(name, "value = 1"),
		ConfigPlanChecks:  planned(plancheck.ResourceActionCreate),
		ConfigStateChecks: []statecheck.StateCheck{state("uid", knownvalue.NotNull())},
	})
	if !once.Load() {
		t.Error("no answer was lost")
	}
}

func TestACreateThatNeverArrivedIsAnError(t *testing.T) {
	p := newProxy(t)
	p.setFault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method == http.MethodPost {
			drop(w)
		}
		return r.Method == http.MethodPost
	})
	steps(t, resource.TestStep{
		Config:      p.config("") + priorityClass("never-arrived", "value = 1"),
		ExpectError: wantText("Cannot create PriorityClass never-arrived", "EOF"),
	})
}

func TestAnObjectThatOthersReplacedIsNeitherChangedNorDeleted(t *testing.T) {
	p := newProxy(t)
	name := "made-anew"
	steps(t,
		resource.TestStep{Config: p.config("") + priorityClass(name, "value = 1")},
		resource.TestStep{ // between plan and apply another client deletes the class and creates it again
			PreConfig: func() {
				var reads atomic.Int32
				p.setFault(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
					// plan's and apply's refresh read it first
					if r.Method == http.MethodGet && reads.Add(1) == 2 {
						deleteClass(t, name)
						createClass(t, "somebody", &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 1})
					}
					return false
				})
			},
			Config:      p.config("") + priorityClass(name, "value = 1\n description = \"x\""),
			ExpectError: wantText("Cannot update PriorityClass made-anew", "recreated by another client", "Nothing was changed"),
		},
	)
}
