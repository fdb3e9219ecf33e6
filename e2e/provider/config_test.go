package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider"
)

func TestTheKubeconfigMayBeNamedInEveryWay(t *testing.T) {
	home, working := t.TempDir(), t.TempDir()
	kubeconfig, err := os.ReadFile(adminKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, directory := range []string{home, working} {
		if err := os.WriteFile(filepath.Join(directory, "config"), kubeconfig, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for way, c := range map[string]struct {
		config    string
		variables map[string]string
	}{
		"relative to the working directory": {config: `provider "elastic" { config_path = "config" }`},
		"below the home directory":          {config: `provider "elastic" { config_path = "~/config" }`},
		"as one of several":                 {config: `provider "elastic" { config_paths = ["not-there", "config"] }`},
		"by KUBE_CONFIG_PATH":               {config: `provider "elastic" {}`, variables: map[string]string{"KUBE_CONFIG_PATH": "config"}},
		"by KUBE_CONFIG_PATHS":              {config: `provider "elastic" {}`, variables: map[string]string{"KUBE_CONFIG_PATHS": "not-there:~/config"}},
	} {
		t.Run(way, func(t *testing.T) {
			environment := provider.Environment{
				Variable:         func(name string) string { return c.variables[name] },
				HomeDirectory:    home,
				WorkingDirectory: working,
			}
			resource.Test(t, resource.TestCase{
				IsUnitTest: true,
				ProtoV6ProviderFactories: map[string]func() (tfprotov6.ProviderServer, error){
					"elastic": providerserver.NewProtocol6WithError(provider.New("test", environment)()),
				},
				Steps: []resource.TestStep{{Config: c.config + "\n" + priorityClass("named", "value = 1")}},
			})
		})
	}
}

func TestContradictionsAreRefusedWithTheAttribute(t *testing.T) {
	for contradiction, c := range map[string]struct{ lines, wantText string }{
		"insecure with a CA":         {"insecure = true\n cluster_ca_certificate = file(\"%CA%\")", "insecure and cluster_ca_certificate contradict each other"},
		"a CA that is no PEM":        {`cluster_ca_certificate = "/etc/ca.crt"`, `write file("…")`},
		"a CA in base64":             {"cluster_ca_certificate = filebase64(\"%CA%\")", "write base64decode(…) around it"},
		"a certificate without key":  {"client_certificate = file(\"%CA%\")", "client_certificate and client_key belong together"},
		"in_cluster with a host":     {"in_cluster = true\n host = \"https://h\"", "in_cluster and another cluster contradict each other"},
		"two kinds of config_path":   {"config_path = \"a\"\n config_paths = [\"b\"]", "config_path and config_paths are alternatives"},
		"burst without qps":          {`burst = 10`, "burst needs qps"},
		"a host that is a file":      {`host = "ftp://h"`, "its scheme is ftp"},
		"exec without a command":     {`exec = { api_version = "client.authentication.k8s.io/v1" }`, `attribute "command" is required`},
		"an unknown version of exec": {`exec = { api_version = "v1", command = "x" }`, "client.authentication.k8s.io/v1"},
	} {
		t.Run(contradiction, func(t *testing.T) {
			ca := filepath.Join(t.TempDir(), "ca.crt")
			if err := os.WriteFile(ca, adminConfig(t).CAData, 0o600); err != nil {
				t.Fatal(err)
			}
			lines := strings.ReplaceAll(c.lines, "%CA%", ca)
			steps(t, resource.TestStep{
				Config:      "provider \"elastic\" {\n" + lines + "\n}\n" + priorityClass("contradiction", "value = 1"),
				PlanOnly:    true,
				ExpectError: wantText(c.wantText),
			})
		})
	}
}
