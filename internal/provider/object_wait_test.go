package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// reported is an observation of a queue after a while.
type reported struct {
	after     time.Duration
	condition *metav1.Condition
	uid       string
}

// waiting is a resource whose watch reports the given observations, and then stays open.
func waiting(observations ...reported) *object[*kueue.LocalQueue] {
	return &object[*kueue.LocalQueue]{kind: &kind[*kueue.LocalQueue]{
		title: "LocalQueue", namespaced: true,
		active: func(queue *kueue.LocalQueue) *metav1.Condition { return conditionActive(queue.Status.Conditions) },
		watch: func(ctx context.Context, _ *cluster.Client, _, _ string, done func([]*kueue.LocalQueue) (bool, error)) error {
			for _, s := range observations {
				time.Sleep(s.after)
				queue := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{UID: "u-1"}}
				if s.uid != "" {
					queue.UID = "u-2"
				}
				if s.condition != nil {
					queue.Status.Conditions = []metav1.Condition{*s.condition}
				}
				if ready, err := done([]*kueue.LocalQueue{queue}); ready || err != nil {
					return err
				}
			}
			<-ctx.Done()
			return fmt.Errorf("watch: %w", context.Cause(ctx))
		},
	}}
}

func TestWaitsEndWhenNothingMoreIsToBeExpected(t *testing.T) {
	condition := func(status metav1.ConditionStatus, generation int64) *metav1.Condition {
		return &metav1.Condition{Type: "Active", Status: status, Reason: "Because", Message: "of something.", ObservedGeneration: generation}
	}
	for behaviour, c := range map[string]struct {
		waitFor      string
		observations []reported
		takes        time.Duration
		wantText     []string // none where there is no warning
	}{
		"created is not waited for":                           {waitFor: waitForCreated},
		"active at once":                                      {waitForActive, []reported{{condition: condition("True", 2)}}, 0, nil},
		"active after a while":                                {waitForActive, []reported{{}, {after: 10 * time.Second, condition: condition("False", 2)}, {after: time.Minute, condition: condition("True", 2)}}, 70 * time.Second, nil},
		"a condition without generation counts":               {waitForActive, []reported{{condition: condition("True", 0)}}, 0, nil},
		"no condition is reported":                            {waitForActive, []reported{{}}, silence, []string{"Waited 20s", "no condition was reported", "Kueue does not seem to run", "kubectl get pods -n kueue-system"}},
		"a condition of an earlier generation does not count": {waitForActive, []reported{{condition: condition("True", 1)}}, silence, []string{"no condition was reported"}},
		"inactive until the time limit":                       {waitForActive, []reported{{condition: condition("False", 2)}}, 5 * time.Minute, []string{"Waited 5m0s", "the time limit was reached", "is False, reason Because: of something."}},
		"another client deletes it":                           {waitForActive, []reported{{condition: condition("False", 2)}, {after: time.Second, uid: "u-2"}}, time.Second, []string{"was deleted during the wait"}},
	} {
		t.Run(behaviour, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Minute, errTimeIsUp)
				defer cancel()
				v := values{}
				v.setText("name", "q")
				v.setText("namespace", "n")
				v.setText("wait_for", c.waitFor)
				begin := time.Now()
				diags := waiting(c.observations...).wait(ctx, nil, v, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{UID: "u-1", Generation: 2}})
				if took := time.Since(begin); took != c.takes {
					t.Errorf("it took %s, want %s", took, c.takes)
				}
				if diags.HasError() || len(diags) != min(len(c.wantText), 1) {
					t.Fatalf("got %v", diags)
				}
				for _, sentence := range c.wantText {
					if !strings.Contains(diags[0].Detail(), sentence) {
						t.Errorf("%q is missing: %s", sentence, diags[0].Detail())
					}
				}
			})
		})
	}
}

func TestAnInterruptedWaitIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		v := values{}
		v.setText("wait_for", waitForActive)
		diags := waiting(reported{}).wait(ctx, nil, v, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{UID: "u-1"}})
		if len(diags) != 1 || !strings.Contains(diags[0].Detail(), "it was interrupted") {
			t.Errorf("got %v", diags)
		}
	})
	if got := notActive("LocalQueue", nil, time.Second, &cluster.Error{Verb: "watch", Ref: cluster.Ref{Kind: "LocalQueue"}, Err: errors.New("no right")}); !strings.Contains(got, "no right;") && !strings.Contains(got, "no right.") {
		t.Errorf("the text is %s", got)
	}
}
