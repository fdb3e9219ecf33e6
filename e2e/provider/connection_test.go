package provider_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

func TestAPlanOfWhatIsNewNeedsNoCluster(t *testing.T) {
	for where, config := range map[string]string{
		"with no provider configuration":      `provider "elastic" {}`,
		"with a kubeconfig that is not there": `provider "elastic" { config_path = "made/later" }`,
		"with a host that is not known":       unknownHost,
		"with a host without a server":        `provider "elastic" { host = "https://127.0.0.1:1" }`,
	} {
		t.Run(where, func(t *testing.T) {
			steps(t, resource.TestStep{
				Config:             config + "\n" + priorityClass("planned", "value = 1"),
				PlanOnly:           true,
				ExpectNonEmptyPlan: true,
			})
		})
	}
}

const unknownHost = `
	resource "terraform_data" "cluster" {
	  input            = "https://127.0.0.1:1"
	  triggers_replace = plantimestamp()
	}
	provider "elastic" { host = terraform_data.cluster.output }`

func TestWithoutAClusterTheErrorNamesWhatToDo(t *testing.T) {
	for where, c := range map[string]struct {
		config   string
		wantText []string
	}{
		"no cluster is configured": {`provider "elastic" {}`, []string{
			"No cluster is configured", "config_path (or KUBE_CONFIG_PATH), host (or KUBE_HOST), or in_cluster = true", "never reads ~/.kube/config", "never assumes localhost",
		}},
		"the kubeconfig is not there": {`provider "elastic" { config_path = "/nowhere/kubeconfig" }`, []string{
			"kubeconfig /nowhere/kubeconfig", "no such file",
		}},
		"the context is not there": {asAdmin(`config_context = "other"`), []string{`context "other" does not exist`}},
		"no server listens": {`provider "elastic" { host = "https://127.0.0.1:1" }`, []string{
			"Cannot create PriorityClass nowhere", "https://127.0.0.1:1", "cannot be reached", "connection refused", "Check that the cluster runs",
		}},
		"the name does not exist": {`provider "elastic" { host = "https://cluster.invalid:6443" }`, []string{
			"https://cluster.invalid:6443", "cannot be reached",
		}},
		"it is not in a pod": {`provider "elastic" { in_cluster = true }`, []string{"in_cluster", "service account token"}},
	} {
		t.Run(where, func(t *testing.T) {
			steps(t, resource.TestStep{Config: c.config + "\n" + priorityClass("nowhere", "value = 1"), ExpectError: wantText(c.wantText...)})
		})
	}
}

func TestAServerThatAcceptsAndIsSilentIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts; no server answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	steps(t, resource.TestStep{
		Config:      fmt.Sprintf("provider \"elastic\" { host = \"https://%s\" }\n", listener.Addr()) + priorityClass("silent", "value = 1"),
		ExpectError: wantText(listener.Addr().String(), "cannot be reached", "no connection within 8s"),
	})
}

func TestAnUntrustedServerIsNamed(t *testing.T) {
	steps(t, resource.TestStep{
		Config:      fmt.Sprintf("provider \"elastic\" { host = %q }\n", adminConfig(t).Host) + priorityClass("untrusted", "value = 1"),
		ExpectError: wantText("is not trusted", "signed by an unknown authority", "cluster_ca_certificate"),
	})
}

func TestARefreshWithAHostThatIsNotKnownNamesTheAttribute(t *testing.T) {
	p := newProxy(t)
	config := func(trigger string) string {
		return fmt.Sprintf(`
			resource "terraform_data" "cluster" {
			  input            = %q
			  triggers_replace = %s
			}
			provider "elastic" { host = terraform_data.cluster.output }
			`, p.server.URL, trigger) + priorityClass("unknown-host", "value = 1")
	}
	steps(t,
		resource.TestStep{Config: config(`"a"`)}, // known at apply: it is made
		resource.TestStep{
			Config:      config(`"b"`), // and is not known while planning its replacement
			ExpectError: wantText("Unknown cluster", "attribute host is not known until apply", "-target"),
		},
		resource.TestStep{Config: config(`"a"`), ConfigPlanChecks: planned(plancheck.ResourceActionNoop)},
	)
}

func TestTheWrongClusterIsRefused(t *testing.T) {
	namespace, err := adminClient(t).CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := priorityClass("right-cluster", "value = 1")
	steps(t,
		resource.TestStep{
			Config:      asAdmin(`expected_cluster_uid = "00000000-0000-0000-0000-000000000000"`) + config,
			ExpectError: wantText("This is not the expected cluster", string(namespace.UID), "Nothing was changed"),
		},
		resource.TestStep{
			Config:           asAdmin(fmt.Sprintf("expected_cluster_uid = %q", namespace.UID)) + config,
			ConfigPlanChecks: planned(plancheck.ResourceActionCreate),
		},
	)
}

func TestMissingPermissionsAreNamed(t *testing.T) {
	admin := adminConfig(t)
	nobody := providertest.Account(t, admin, "nobody", "")
	class := priorityClass("forbidden", "value = 1")
	steps(t,
		resource.TestStep{
			Config: nobody + class,
			ExpectError: wantText(`"system:serviceaccount:default:nobody" may not create priorityclasses.scheduling.k8s.io in the whole cluster`,
				"Missing are:", "get, list, watch, create, patch, delete of clusterqueues.kueue.x-k8s.io", "get, list, create, patch, delete of priorityclasses.scheduling.k8s.io",
				"kubectl create clusterrolebinding default-nobody-elastic-admin --clusterrole=elastic-admin --serviceaccount=default:nobody"),
		},
		resource.TestStep{Config: providertest.Connection(admin, "expired", "") + class, ExpectError: wantText("does not accept the credentials (401 Unauthorized)")},
	)
}

// TestClientRetriesAfterTheTimeThatTheServerSets covers the answers after which a request is sent again.
func TestClientRetriesAfterTheTimeThatTheServerSets(t *testing.T) {
	for answer, reply := range map[string]func(http.ResponseWriter){
		"429 with Retry-After": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"503": func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"500 of a webhook that is starting": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,` +
				`"message":"Internal error occurred: failed calling webhook \"x\": connection refused"}`))
		},
	} {
		t.Run(answer, func(t *testing.T) {
			p := newProxy(t)
			var refused atomic.Int32
			p.setFault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if r.Method != http.MethodPost || refused.Add(1) > 2 {
					return false
				}
				reply(w)
				return true
			})
			steps(t, resource.TestStep{Config: p.config("") + priorityClass("patience", "value = 1"), ConfigPlanChecks: planned(plancheck.ResourceActionCreate)})
			var posts []string
			for _, r := range p.take() {
				if strings.HasPrefix(r, "POST") {
					posts = append(posts, r)
				}
			}
			want := "POST /apis/scheduling.k8s.io/v1/priorityclasses"
			if diff := cmp.Diff([]string{want, want, want}, posts); diff != "" {
				t.Error(diff)
			}
		})
	}
}
