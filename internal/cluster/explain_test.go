package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestExplain(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	high := Ref{Kind: "PriorityClass", Name: "high"}
	wrap := func(verb string, ref Ref, err error) error {
		return fmt.Errorf("around: %w", &Error{Verb: verb, Ref: ref, Host: "https://h:6443", Err: err})
	}
	for what, c := range map[string]struct {
		err     error
		summary string
		details []string
	}{
		"a namespaced 403 names the role": {
			wrap("create", Ref{Kind: "Pod", Namespace: "ml", Name: "p"}, apierrors.NewForbidden(pods, "p",
				errors.New(`User "jane" cannot create resource "pods" in API group "" in the namespace "ml"`))),
			"Cannot create Pod ml/p",
			[]string{
				`User "jane" may not create pods in namespace ml (403 Forbidden)`,
				"kubectl apply -f https://raw.githubusercontent.com/elastic-training/terraform-provider-elastic/main/examples/rbac/rbac.yaml",
				"kubectl create rolebinding jane-elastic-accounts --clusterrole=elastic-accounts --user=jane --namespace=ml",
				"by service_account_name", "kind: Role\n", "namespace: ml", "kubectl create rolebinding jane-elastic-accounts --role=elastic-accounts --user=jane --namespace=ml",
			},
		},
		"a cluster-wide 403 of a service account names the cluster role": {
			wrap("get", high, apierrors.NewForbidden(schema.GroupResource{Group: "scheduling.k8s.io", Resource: "priorityclasses"}, "high",
				errors.New(`User "system:serviceaccount:ci:terraform" cannot get resource "priorityclasses" in API group "scheduling.k8s.io" at the cluster scope`))),
			"Cannot get PriorityClass high",
			[]string{"may not get priorityclasses.scheduling.k8s.io in the whole cluster", "create clusterrolebinding ci-terraform-elastic-admin --clusterrole=elastic-admin --serviceaccount=ci:terraform"},
		},
		"a kind that is not installed": {
			wrap("list", Ref{Kind: "Workload"}, apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{Group: "kueue.x-k8s.io", Resource: "workloads"}, "", "404 page not found", 0, true)),
			"Cannot list Workload objects",
			[]string{"does not know objects of this kind", "Kueue 0.19 or later"},
		},
		"a 403 of nobody's asks for a credential and grants nothing": {
			wrap("get", high, apierrors.NewForbidden(pods, "high", errors.New(`User "system:anonymous" cannot get resource "pods" in API group "" at the cluster scope`))),
			"Cannot get PriorityClass high",
			[]string{"without a credential", "client_certificate and client_key, exec"},
		},
		"a command that prints no credential": {
			wrap("create", high, errors.New(`Post "https://h:6443/x": getting credentials: exec: executable plugin not found`)),
			"Cannot create PriorityClass high",
			[]string{"No credential", "executable plugin not found", "by hand"},
		},
		"a lost answer": {
			wrap("create", high, &LostAnswerError{Create: errors.New("EOF"), Get: errors.New("connection refused")}),
			"Cannot create PriorityClass high",
			[]string{"not known whether the object was made", "EOF", "connection refused", "import it"},
		},
		"plain HTTP to a server of HTTPS": {
			&Error{Verb: "get", Ref: high, Host: "http://h:6443", Err: apierrors.NewBadRequest("the server rejected our request for an unknown reason")},
			"Cannot get PriorityClass high",
			[]string{"http://h:6443 does not understand plain HTTP"},
		},
		"a kubeconfig that is not there": {
			&ConfigError{Err: fmt.Errorf("kubeconfig /k: %w", fs.ErrNotExist)},
			"Cannot connect as configured",
			[]string{"kubeconfig /k", "KUBE_CONFIG_PATH"},
		},
		"a 403 with other reasons is passed on": {
			wrap("create", high, apierrors.NewForbidden(pods, "p", errors.New("exceeded quota"))),
			"Cannot create PriorityClass high",
			[]string{"The API server refused the request", "exceeded quota"},
		},
		"a 401 speaks of credentials": {
			wrap("get", high, apierrors.NewUnauthorized("no")),
			"Cannot get PriorityClass high",
			[]string{"401 Unauthorized", "token may have expired"},
		},
		"a refused connection names the host": {
			wrap("get", high, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}),
			"Cannot get PriorityClass high",
			[]string{"https://h:6443 cannot be reached", "connection refused", "VPN"},
		},
		"a name that does not resolve is named": {
			wrap("get", high, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "h"}}),
			"Cannot get PriorityClass high",
			[]string{"the name h cannot be resolved (no such host)"},
		},
		"an unknown authority leads to the attribute": {
			wrap("get", high, x509.UnknownAuthorityError{}),
			"Cannot get PriorityClass high",
			[]string{"not trusted", "cluster_ca_certificate"},
		},
		"no connection in time": {
			wrap("get", high, &NoAnswerError{After: 8 * time.Second}),
			"Cannot get PriorityClass high",
			[]string{"cannot be reached", "no connection within 8s"},
		},
		"no answer in time": {
			wrap("get", high, &NoAnswerError{Connected: true, After: 9 * time.Second}),
			"Cannot get PriorityClass high",
			[]string{"does not answer", "no answer within 9s"},
		},
		"finalizers are named": {
			wrap("delete", high, &StillThereError{Finalizers: []string{"kueue.x-k8s.io/resource-in-use"}, Deleting: true, Err: context.DeadlineExceeded}),
			"Cannot delete PriorityClass high",
			[]string{"held by finalizers: kueue.x-k8s.io/resource-in-use", "kubectl patch priorityclass high --type=merge"},
		},
		"an object in the way that is being deleted is waited for, and not imported": {
			wrap("create", Ref{Kind: "Job", Namespace: "ml", Name: "low"}, &AlreadyExistsError{Managers: []string{"kubectl"}, Terminating: &Terminating{
				Ref: Ref{Kind: "Job", Namespace: "ml", Name: "low"}, Since: time.Unix(0, 0), Finalizers: []string{"example.com/hold"},
			}}),
			"Cannot create Job ml/low",
			[]string{"is being deleted", "marked for deletion since 1970-01-01T00:00:00Z", "again when it is gone", "kubectl patch job -n ml low"},
		},
		"an interrupted operation is no fault of the server's": {
			wrap("watch", Ref{Kind: "Pod", Namespace: "ml"}, context.Canceled),
			"Cannot watch Pod objects in namespace ml",
			[]string{"interrupted"},
		},
		"no cluster": {ErrNoCluster, "No cluster is configured", []string{"never assumes localhost"}},
		"the wrong cluster": {
			&WrongClusterError{Host: "h", Expected: "a", Got: "b"},
			"This is not the expected cluster",
			[]string{"is b, but expected_cluster_uid is a"},
		},
		"anything else is said as it is": {errors.New("strange"), "Request to the cluster failed", []string{"strange."}},
	} {
		t.Run(what, func(t *testing.T) {
			summary, detail := Explain(c.err)
			if summary != c.summary {
				t.Errorf("summary %q, want %q", summary, c.summary)
			}
			for _, part := range c.details {
				if !strings.Contains(detail, part) {
					t.Errorf("detail lacks %q:\n%s", part, detail)
				}
			}
		})
	}
}

func TestAMissingObjectIsOfAKindThatIsServed(t *testing.T) {
	workloads := schema.GroupResource{Group: "kueue.x-k8s.io", Resource: "workloads"}
	if IsNotServed(&Error{Err: apierrors.NewNotFound(workloads, "low")}) {
		t.Error("a missing object is taken for a missing kind")
	}
	if !IsNotServed(&Error{Err: apierrors.NewGenericServerResponse(404, "get", workloads, "low", "404 page not found", 0, true)}) {
		t.Error("a missing kind is taken for a missing object")
	}
}
