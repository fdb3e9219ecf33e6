package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// explainHeld adds the error of a deletion; of one that a finalizer holds up it names what is still in use, and the way
// out.
func (o *object[T]) explainHeld(ctx context.Context, diags *diag.Diagnostics, client *cluster.Client, v values, err error) {
	var still *cluster.StillThereError
	if o.holders == nil || !errors.As(err, &still) || len(still.Finalizers) == 0 {
		o.subject(ctx, v).explain(diags, err)
		return
	}
	// The context has ended, but the user needs the reason.
	gather, cancel := context.WithTimeout(context.WithoutCancel(ctx), gatherTimeout)
	defer cancel()
	found, listErr := o.holders(gather, client, v.text("name"))
	var b strings.Builder
	fmt.Fprintf(&b, "The %s is marked for deletion, and held by finalizers: %s.\n\n", o.title, strings.Join(still.Finalizers, ", "))
	switch {
	case listErr != nil:
		_, detail := cluster.Explain(listErr)
		fmt.Fprintf(&b, "The objects that use it cannot be listed: %s", detail)
	case len(found) == 0:
		b.WriteString("No workload or queue that uses it was found. Kueue's controller removes the finalizer; check that it runs (kubectl get pods -n kueue-system). " +
			"If Kueue was uninstalled: kubectl patch " + strings.ToLower(o.title) + ".kueue.x-k8s.io " + v.text("name") +
			" --type=merge -p '{\"metadata\":{\"finalizers\":null}}'")
	default:
		fmt.Fprintf(&b, "It is in use by:\n\n  %s\n\n%s", strings.Join(found, "\n  "), o.release)
	}
	b.WriteString("\n\nRun the same command again then. timeouts.delete limits the wait.")
	diags.AddError(fmt.Sprintf("%s %s is not deleted yet", o.title, o.importID(v)), b.String())
}

// warnTerminating warns that an object is being deleted: a plan would find nothing to change in it.
func (o *object[T]) warnTerminating(diags *diag.Diagnostics, v values, live T) {
	ref := cluster.Ref{Kind: o.title, Namespace: v.text("namespace"), Name: v.text("name")}
	if terminating := cluster.TerminatingOf(ref, live); terminating != nil {
		diags.AddWarning(fmt.Sprintf("%s %s is being deleted", o.title, o.importID(v)),
			terminating.String()+" "+goneAndMadeAgain+o.remedy(terminating))
	}
}

// remedy describes how the deletion of an object can complete. For one of Kueue's objects, the destroy names the users:
// its finalizer protects them.
func (k *kind[T]) remedy(terminating *cluster.Terminating) string {
	if k.holders != nil {
		return ""
	}
	return "\n\n" + terminating.Remedy()
}

// goneAndMadeAgain is the consequence of the deletion of an object.
const goneAndMadeAgain = "A deletion cannot be undone. If the configuration still contains it, the first plan after the deletion creates it again."
