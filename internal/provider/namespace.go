package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// aNamespace is a kind that no resource of this provider makes: nothing is known of those that the configuration makes.
const aNamespace refKind = "Namespace"

// checkNamespace warns, once in a plan, about a namespace in which something will be created and that does not exist.
// There is no warning if that is not certain: if the namespace is not known, if the account may not read it, and if the
// cluster does not answer.
//
// Another provider may create the namespace in the same apply. This provider cannot see that: neither depends_on nor
// the target of a reference reaches a provider, and a reference to a configured name is known when it is planned. The
// text explains this; a reference to the namespace's id, which is not known before its creation, avoids the warning.
func (c *connection) checkNamespace(ctx context.Context, namespace, what string) diag.Diagnostics {
	var diags diag.Diagnostics
	if namespace == "" || namespace == metav1.NamespaceDefault || c.planned.isUnreachable() || !c.planned.isFirst(reference{kind: aNamespace, name: namespace}) {
		return diags
	}
	client, problems := c.cluster()
	if problems.HasError() {
		return diags
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	_, err := cluster.Get(ctx, client, client.Kubernetes().CoreV1().Namespaces(), namespace)
	var answer apierrors.APIStatus
	if err != nil && !errors.As(err, &answer) {
		c.planned.markUnreachable()
	}
	if !apierrors.IsNotFound(err) || cluster.IsNotServed(err) {
		return diags
	}
	diags.AddAttributeWarning(path.Root("namespace"), fmt.Sprintf("Namespace %s does not exist", namespace), fmt.Sprintf(
		"namespace is %q, which does not exist in the cluster at %s; without it, the %s cannot be created. "+
			dependOnNamespace+"; a provider cannot see depends_on or the target of a reference, so this warning appears before the first apply anyway. "+
			"It does not appear if you use the id, such as kubernetes_namespace_v1.NAME.id.", namespace, client.Host(), what))
	return diags
}

const dependOnNamespace = "If this configuration creates the namespace, make the resource depend on it"

// isFirst reports whether there was no warning about an object yet in this plan, and notes that there is one now.
func (p *planned) isFirst(object reference) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.warned[object] {
		return false
	}
	p.warned[object] = true
	return true
}
