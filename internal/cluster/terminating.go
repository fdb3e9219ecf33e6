package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Terminating is an object that was deleted and is still there, because finalizers hold it.
type Terminating struct {
	Ref        Ref
	Since      time.Time
	Finalizers []string
}

// TerminatingOf is nil for an object that is not being deleted.
func TerminatingOf(ref Ref, object metav1.Object) *Terminating {
	if object.GetDeletionTimestamp() == nil {
		return nil
	}
	return &Terminating{Ref: ref, Since: object.GetDeletionTimestamp().Time, Finalizers: object.GetFinalizers()}
}

// String reports since when it is being deleted and what holds it, in a sentence.
func (t Terminating) String() string {
	since := ""
	if !t.Since.IsZero() {
		since = " since " + t.Since.UTC().Format(time.RFC3339)
	}
	if len(t.Finalizers) == 0 {
		return fmt.Sprintf("It is marked for deletion%s, and no finalizer holds it.", since)
	}
	return fmt.Sprintf("It is marked for deletion%s and held by finalizers: %s.", since, strings.Join(t.Finalizers, ", "))
}

// Remedy reports who removes the finalizers, and how to do it where nobody does, in sentences; "" without finalizers.
func (t Terminating) Remedy() string {
	var sentences []string
	others := slices.DeleteFunc(slices.Clone(t.Finalizers), func(finalizer string) bool {
		return finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents
	})
	if len(others) < len(t.Finalizers) {
		sentences = append(sentences,
			"Kubernetes' garbage collector, a part of kube-controller-manager, removes its own finalizer when it has deleted what the object owns.")
	}
	if len(others) > 0 {
		namespace := ""
		if t.Ref.Namespace != "" {
			namespace = "-n " + t.Ref.Namespace + " "
		}
		sentences = append(sentences, fmt.Sprintf("The controller that set %s removes it; see that it runs. Where it is gone for good: "+
			"kubectl patch %s %s%s --type=merge -p '{\"metadata\":{\"finalizers\":null}}'",
			strings.Join(others, ", "), strings.ToLower(t.Ref.Kind), namespace, t.Ref.Name))
	}
	return strings.Join(sentences, " ")
}
