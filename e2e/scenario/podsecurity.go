package scenario

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// enforceLabel is the label of a namespace with its Pod Security Standard.
const enforceLabel = "pod-security.kubernetes.io/enforce"

// Pod Security Standards.
const (
	baseline   = "baseline"
	privileged = "privileged"
)

// enforceStandard enforces a Pod Security Standard in a namespace, unless the namespace has one already. restore undoes
// it.
func enforceStandard(ctx context.Context, client kubernetes.Interface, namespace string, level string) (restore func(context.Context) error, err error) {
	current, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	if _, enforced := current.Labels[enforceLabel]; enforced {
		return func(context.Context) error { return nil }, nil
	}
	label := func(ctx context.Context, value string) error {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, enforceLabel, value)
		if _, err := client.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("label namespace %s: %w", namespace, err)
		}
		return nil
	}
	if err := label(ctx, fmt.Sprintf("%q", level)); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return label(ctx, "null") }, nil
}
