package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// waitForActive is the value of wait_for, besides waitForCreated, for objects whose controller reports the condition
// Active.
const waitForActive = "active"

// silence is how long a wait continues without any condition of the object: Kueue answers within a second, and if it
// does not run there will be none.
const silence = 20 * time.Second

var errNoProgress = errors.New("no condition was reported")

// wait waits for the condition Active, if requested. A timeout is never an error: the object exists, and an error would
// taint it.
func (o *object[T]) wait(ctx context.Context, client *cluster.Client, v values, made T) diag.Diagnostics {
	var diags diag.Diagnostics
	if o.active == nil || v.text("wait_for") != waitForActive {
		return diags
	}
	watching, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	quiet := time.AfterFunc(silence, func() { giveUp(errNoProgress) })
	defer quiet.Stop()
	begin := time.Now()
	var last *metav1.Condition
	err := o.watch(watching, client, v.text("namespace"), v.text("name"), func(found []T) (bool, error) {
		if len(found) == 0 || found[0].GetUID() != made.GetUID() {
			return false, fmt.Errorf("%s %s was deleted during the wait", o.title, o.importID(v))
		}
		condition := o.active(found[0])
		if condition == nil || condition.ObservedGeneration != 0 && condition.ObservedGeneration < made.GetGeneration() {
			return false, nil
		}
		quiet.Stop()
		last = condition
		return condition.Status == metav1.ConditionTrue, nil
	})
	if err != nil {
		diags.AddWarning(fmt.Sprintf("%s %s is not active yet", o.title, o.importID(v)), notActive(o.title, last, time.Since(begin), err))
	}
	return diags
}

// notActive describes why a wait has ended early, and the last condition; nil for none.
func notActive(title string, last *metav1.Condition, waited time.Duration, err error) string {
	why := whyEnded(err)
	if errors.Is(err, errNoProgress) {
		why = "no condition was reported in that time"
	}
	found := "It has no condition Active, which Kueue's controller sets: Kueue does not seem to run in this cluster, though its CRDs are there. " +
		"Check whether it runs: kubectl get pods -n kueue-system"
	if last != nil {
		found = fmt.Sprintf("Its condition Active is %s, reason %s: %s.", last.Status, last.Reason, strings.TrimSuffix(last.Message, "."))
	}
	return fmt.Sprintf("Waited %s for its condition Active to be True; %s. The %s exists; workloads are admitted once it is active.\n\n%s",
		waited.Round(time.Second), why, title, found)
}
