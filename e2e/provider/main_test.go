// Package provider_test is the provider's acceptance tests: the real terraform, the provider in this process, and the
// API server of an embedded cluster. The tests check from outside what terraform plans, its state, its requests and its
// error messages.
package provider_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
)

// kubeconfigVariable names the kubeconfig of a cluster with Kueue to test against instead of starting one. Its user needs
// all rights.
const kubeconfigVariable = "ELASTIC_TEST_KUBECONFIG"

// cluster is the embedded cluster that all tests of this binary share, unless kubeconfigVariable names another.
var cluster *simcluster.Cluster

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if err := providertest.Prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if os.Getenv(kubeconfigVariable) != "" {
		return m.Run()
	}
	return simcluster.Main(m, &cluster, simcluster.Nodes(3, "4", "15Gi"), simcluster.PodSecurity("baseline"), simcluster.Kueue())
}

// adminKubeconfig is the path of the kubeconfig with which the tests look at the cluster and prepare it.
func adminKubeconfig() string {
	if path := os.Getenv(kubeconfigVariable); path != "" {
		return path
	}
	return cluster.Kubeconfig
}

// steps runs the steps of a test through the real terraform and the provider in this process.
func steps(t *testing.T, steps ...resource.TestStep) {
	t.Helper()
	resource.Test(t, resource.TestCase{
		IsUnitTest:               true,
		ProtoV6ProviderFactories: factories(t, nil),
		Steps:                    steps,
	})
}

// factories serve the provider with an environment of its own, and nothing of this process's.
func factories(t *testing.T, variables map[string]string) map[string]func() (tfprotov6.ProviderServer, error) {
	t.Helper()
	return providertest.Factories(t, variables)
}

// adminConfig is full access to the shared cluster.
func adminConfig(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", adminKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

func adminClient(t *testing.T) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(adminConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// asAdmin is the provider's configuration for the shared cluster, with more lines in it.
func asAdmin(lines string) string {
	return fmt.Sprintf("provider \"elastic\" {\n  config_path = %q\n%s\n}\n", adminKubeconfig(), lines)
}

// cleanupContext outlives the test, whose own context has ended when its cleanup runs.
func cleanupContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience.Medium)
	t.Cleanup(cancel)
	return ctx
}
