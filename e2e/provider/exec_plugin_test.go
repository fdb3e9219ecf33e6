package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// execPlugin writes a credential plugin, as gke-gcloud-auth-plugin and aws eks get-token are. It prints the token that its
// environment variable TOKEN_FILE names, and counts its calls in the file calls. Without the argument "token" it fails.
func execPlugin(t *testing.T, token string) (plugin, tokenFile, calls string) {
	t.Helper()
	dir := t.TempDir()
	plugin, tokenFile, calls = filepath.Join(dir, "auth-plugin"), filepath.Join(dir, "token"), filepath.Join(dir, "calls")
	script := fmt.Sprintf(`#!/bin/sh
echo called >> %s
[ "$1" = token ] || { echo "please log in first" >&2; exit 3; }
printf '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "%%s"}}' "$(cat "$TOKEN_FILE")"
`, calls)
	for path, text := range map[string]string{plugin: script, tokenFile: token} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // a program of this test's own
			t.Fatal(err)
		}
	}
	return plugin, tokenFile, calls
}

func TestAnExecPluginsCredentialIsUsed(t *testing.T) {
	admin := adminConfig(t)
	token := providertest.Token(t, admin, "by-plugin", providertest.Everywhere(providertest.ExampleRoles(t)["elastic-admin"].Rules))
	plugin, tokenFile, calls := execPlugin(t, token)
	kubeconfig := func(argument string) string {
		config := clientcmdapi.NewConfig()
		config.Clusters["c"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData}
		config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: plugin, Args: []string{argument},
			Env: []clientcmdapi.ExecEnvVar{{Name: "TOKEN_FILE", Value: tokenFile}}, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}}
		config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
		config.CurrentContext = "x"
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("provider \"elastic\" { config_path = %q }\n", path)
	}
	attribute := func(argument string) string {
		return fmt.Sprintf(`
			provider "elastic" {
			  host                   = %q
			  cluster_ca_certificate = %q
			  exec = { api_version = "client.authentication.k8s.io/v1", command = %q, args = [%q], env = { TOKEN_FILE = %q } }
			}
			`, admin.Host, admin.CAData, plugin, argument, tokenFile)
	}
	class := priorityClass("by-plugin", "value = 1")
	for where, config := range map[string]func(argument string) string{"of a kubeconfig": kubeconfig, "of the provider's attribute exec": attribute} {
		t.Run(where, func(t *testing.T) {
			if err := os.WriteFile(calls, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			steps(t,
				resource.TestStep{Config: config("logout") + class, ExpectError: wantText(filepath.Base(plugin), "exit code 3")},
				resource.TestStep{Config: config("token") + class, ConfigPlanChecks: planned(plancheck.ResourceActionCreate)},
			)
			if output, err := os.ReadFile(calls); err != nil || !strings.Contains(string(output), "called") {
				t.Errorf("the plugin was not called: %q, %v", output, err)
			}
		})
	}
}
