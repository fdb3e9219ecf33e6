package kueue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	kueueclient "github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/client"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation/validationtest"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

// dryRun asks for the API server's verdict only.
var dryRun = []string{metav1.DryRunAll}

func TestKueueRefusesWhatTheRulesRefuse(t *testing.T) {
	client := client(t)
	for _, c := range validationtest.Cases() {
		t.Run(c.Behaviour, func(t *testing.T) {
			if c.Existing != nil {
				// What only a cluster without Kueue has let in, to be changed, is refused to begin with.
				if errs := validationtest.Validate(c.Existing, nil); validationtest.Refused(errs, validation.Webhook) {
					sameVerdict(t, errs, verdict(t.Context(), client, c.Existing, nil))
					return
				}
			}
			errs := validationtest.Validate(c.Object, c.Existing)
			err := verdict(t.Context(), client, c.Object, c.Existing)
			sameVerdict(t, errs, err)
			if err == nil {
				return
			}
			// Rules about a whole object name its root or spec; the others name the field that is wrong.
			for _, field := range causes(err) {
				if !slices.ContainsFunc(c.Wrong, func(wrong string) bool { return strings.HasPrefix(wrong, strings.TrimSuffix(field, ".")) }) {
					t.Errorf("the API server finds fault with %q, we with %q", field, c.Wrong)
				}
			}
		})
	}
}

func TestKueueRefusesDrawnObjectsWhenTheRulesDo(t *testing.T) {
	client := client(t)
	accepted, refused := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		object := validationtest.Draw(r)
		errs := validationtest.Validate(object, nil)
		err := verdict(t.Context(), client, object, nil)
		if err == nil {
			accepted++
		} else {
			refused++
		}
		sameVerdict(r, errs, err)
	})
	t.Logf("%d objects accepted by both, %d refused by both", accepted, refused)
}

// sameVerdict fails when only one of both refuses, or when the API server fails for another reason than that its schema or
// Kueue's webhook refuses the object. Objects that only our own rules refuse are accepted.
func sameVerdict(t interface {
	Helper()
	Errorf(format string, args ...any)
}, ours field.ErrorList, theirs error,
) {
	t.Helper()
	refused := validationtest.Refused(ours, validation.CRD) || validationtest.Refused(ours, validation.Webhook)
	switch {
	case theirs != nil && !apierrors.IsInvalid(theirs) && !deniedByWebhook(theirs):
		t.Errorf("the API server gave no verdict: %v", theirs)
	case refused && theirs == nil:
		t.Errorf("Kueue accepts what we refuse: %v", ours.ToAggregate())
	case !refused && theirs != nil:
		t.Errorf("Kueue refuses what we accept: %v", theirs)
	}
}

func deniedByWebhook(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "admission webhook")
}

// causes are the fields that the API server names. A webhook's are in its message only.
func causes(err error) []string {
	var fields []string
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field != "" && cause.Field != "<nil>" {
			fields = append(fields, strings.NewReplacer("'", "", `"`, "").Replace(cause.Field))
		}
	}
	return fields
}

// verdict is what the API server says to an object that is created, or to which existing is changed.
func verdict(ctx context.Context, client *kueueclient.Client, object, existing validationtest.Object) error {
	switch object := object.(type) {
	case *kueue.AdmissionCheck:
		return put(ctx, client.AdmissionChecks(), object, existing)
	case *kueue.ClusterQueue:
		return put(ctx, client.ClusterQueues(), object, existing)
	case *kueue.Cohort:
		return put(ctx, client.Cohorts(), object, existing)
	case *kueue.LocalQueue:
		return put(ctx, client.LocalQueues(validationtest.Namespace), object, existing)
	case *kueue.ResourceFlavor:
		return put(ctx, client.ResourceFlavors(), object, existing)
	case *kueue.Topology:
		return put(ctx, client.Topologies(), object, existing)
	case *kueue.WorkloadPriorityClass:
		return put(ctx, client.WorkloadPriorityClasses(), object, existing)
	default:
		return fmt.Errorf("no client for a %T", object)
	}
}

func put[T validationtest.Object, L runtime.Object](ctx context.Context, resource kueueclient.Resource[T, L], object T, existing validationtest.Object) error {
	if existing == nil {
		_, err := resource.Create(ctx, object, metav1.CreateOptions{DryRun: dryRun})
		return err
	}
	name := existing.GetName()
	if _, err := resource.Create(ctx, existing.(T), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making what is to be changed: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience.Medium)
	defer cancel()
	verdict := update(ctx, resource, object, name)
	for apierrors.IsConflict(verdict) { // Kueue writes the status and a finalizer
		verdict = update(ctx, resource, object, name)
	}
	if err := resource.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("removing what was to be changed: %w", err)
	}
	const pause = 20 * time.Millisecond // between two looks
	return errors.Join(verdict, await.Until(ctx, name+" is gone", pause, func(ctx context.Context) error {
		if _, err := resource.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %w", err)
		}
		return nil
	}))
}

// update changes what is there to an object, as a dry run.
func update[T validationtest.Object, L runtime.Object](ctx context.Context, resource kueueclient.Resource[T, L], object T, name string) error {
	current, err := resource.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	updated := object.DeepCopyObject().(T)
	updated.SetResourceVersion(current.GetResourceVersion())
	_, err = resource.Update(ctx, updated, metav1.UpdateOptions{DryRun: dryRun})
	return err
}

// client has all rights.
func client(t *testing.T) *kueueclient.Client {
	t.Helper()
	client, err := cluster.Kueue()
	if err != nil {
		t.Fatal(err)
	}
	return client
}
