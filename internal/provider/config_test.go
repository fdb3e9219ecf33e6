package provider

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

const (
	certificatePEM = "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n"
	keyPEM         = "-----BEGIN PRIVATE KEY-----\nAQID\n-----END PRIVATE KEY-----\n"
)

// configured is the configuration with the given attributes, as Terraform sends it.
func configured(t *testing.T, attributes map[string]tftypes.Value) configModel {
	t.Helper()
	var schema provider.SchemaResponse
	(&elastic{}).Schema(t.Context(), provider.SchemaRequest{}, &schema)
	object, ok := schema.Schema.Type().TerraformType(t.Context()).(tftypes.Object)
	if !ok {
		t.Fatal("the schema is no object")
	}
	values := map[string]tftypes.Value{}
	for name, kind := range object.AttributeTypes {
		values[name] = tftypes.NewValue(kind, nil)
		if given, ok := attributes[name]; ok {
			values[name] = given
		}
	}
	config := tfsdk.Config{Schema: schema.Schema, Raw: tftypes.NewValue(object, values)}
	var model configModel
	if diags := config.Get(t.Context(), &model); diags.HasError() {
		t.Fatal(diags)
	}
	return model
}

func str(s string) tftypes.Value           { return tftypes.NewValue(tftypes.String, s) }
func boolean(b bool) tftypes.Value         { return tftypes.NewValue(tftypes.Bool, b) }
func number(n float64) tftypes.Value       { return tftypes.NewValue(tftypes.Number, n) }
func unknown(t tftypes.Type) tftypes.Value { return tftypes.NewValue(t, tftypes.UnknownValue) }

func list(items ...tftypes.Value) tftypes.Value {
	return tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, items)
}

func execValue(apiVersion, command, args, env tftypes.Value) tftypes.Value {
	return tftypes.NewValue(tftypes.Object{AttributeTypes: map[string]tftypes.Type{
		"api_version": tftypes.String, "command": tftypes.String,
		"args": tftypes.List{ElementType: tftypes.String}, "env": tftypes.Map{ElementType: tftypes.String},
	}}, map[string]tftypes.Value{"api_version": apiVersion, "command": command, "args": args, "env": env})
}

func strMap(entries map[string]tftypes.Value) tftypes.Value {
	return tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, entries)
}

func environment(variables map[string]string) Environment {
	return Environment{
		Variable:         func(name string) string { return variables[name] },
		HomeDirectory:    "/home/jane",
		WorkingDirectory: "/srv/infra",
	}
}

func TestResolve(t *testing.T) {
	with := func(change func(*cluster.Config)) cluster.Config {
		config := cluster.Config{FieldManager: cluster.DefaultFieldManager}
		change(&config)
		return config
	}
	for behaviour, c := range map[string]struct {
		attributes map[string]tftypes.Value
		variables  map[string]string
		want       cluster.Config
		unknown    []string
	}{
		"nothing given is no cluster, and no limit on requests": {want: with(func(*cluster.Config) {})},
		"the attributes": {
			attributes: map[string]tftypes.Value{
				"host": str("https://h:6443"), "token": str("t"), "tls_server_name": str("s"), "proxy_url": str("http://p:1"),
				"cluster_ca_certificate": str(certificatePEM), "client_certificate": str(certificatePEM), "client_key": str(keyPEM),
				"field_manager": str("me"), "force_conflicts": boolean(true), "expected_cluster_uid": str("u"),
				"config_context": str("c"), "config_context_cluster": str("cc"), "config_context_auth_info": str("ca"),
			},
			want: cluster.Config{
				Host: "https://h:6443", Token: "t", TLSServerName: "s", ProxyURL: "http://p:1",
				CAData: []byte(certificatePEM), CertData: []byte(certificatePEM), KeyData: []byte(keyPEM),
				FieldManager: "me", ForceConflicts: true, ExpectedClusterUID: "u",
				Context: "c", ContextCluster: "cc", ContextAuthInfo: "ca",
			},
		},
		"the environment, as hashicorp/kubernetes reads it": {
			variables: map[string]string{
				"KUBE_HOST": "https://e:6443", "KUBE_TOKEN": "t", "KUBE_INSECURE": "true", "KUBE_TLS_SERVER_NAME": "s", "KUBE_PROXY_URL": "socks5://p:1",
				"KUBE_CLIENT_CERT_DATA": certificatePEM, "KUBE_CLIENT_KEY_DATA": keyPEM,
				"KUBE_CTX": "c", "KUBE_CTX_CLUSTER": "cc", "KUBE_CTX_AUTH_INFO": "ca", "KUBE_CONFIG_PATH": "/k",
			},
			want: with(func(c *cluster.Config) {
				c.Host, c.Token, c.Insecure, c.TLSServerName, c.ProxyURL = "https://e:6443", "t", true, "s", "socks5://p:1"
				c.CertData, c.KeyData = []byte(certificatePEM), []byte(keyPEM)
				c.Context, c.ContextCluster, c.ContextAuthInfo = "c", "cc", "ca"
				c.Kubeconfigs = []string{"/k"}
			}),
		},
		"an attribute beats its variable": {
			attributes: map[string]tftypes.Value{"host": str("https://h"), "insecure": boolean(false), "config_path": str("/a")},
			variables:  map[string]string{"KUBE_HOST": "https://e", "KUBE_INSECURE": "true", "KUBE_CONFIG_PATH": "/e", "KUBE_CONFIG_PATHS": "/e:/f"},
			want:       with(func(c *cluster.Config) { c.Host, c.Kubeconfigs = "https://h", []string{"/a"} }),
		},
		"KUBE_CONFIG_PATHS beats KUBE_CONFIG_PATH": {
			variables: map[string]string{"KUBE_CONFIG_PATH": "/a", "KUBE_CONFIG_PATHS": "/b::~/c"},
			want:      with(func(c *cluster.Config) { c.Kubeconfigs = []string{"/b", "/home/jane/c"} }),
		},
		"paths are made absolute": {
			attributes: map[string]tftypes.Value{"config_paths": list(str("k"), str("../k"), str("~/k"), str("/k"), str("~"))},
			want: with(func(c *cluster.Config) {
				c.Kubeconfigs = []string{"/srv/infra/k", "/srv/k", "/home/jane/k", "/k", "/home/jane"}
			}),
		},
		"qps doubles into burst": {
			attributes: map[string]tftypes.Value{"qps": number(50)},
			want:       with(func(c *cluster.Config) { c.QPS, c.Burst = 50, 100 }),
		},
		"burst may be given": {
			attributes: map[string]tftypes.Value{"qps": number(0.5), "burst": number(3)},
			want:       with(func(c *cluster.Config) { c.QPS, c.Burst = 0.5, 3 }),
		},
		"a command for the credential": {
			attributes: map[string]tftypes.Value{"exec": execValue(str("client.authentication.k8s.io/v1"), str("gke-gcloud-auth-plugin"),
				list(str("--cluster"), str("c")), strMap(map[string]tftypes.Value{"A": str("b")}))},
			want: with(func(c *cluster.Config) {
				c.Exec = &cluster.Exec{APIVersion: "client.authentication.k8s.io/v1", Command: "gke-gcloud-auth-plugin", Args: []string{"--cluster", "c"}, Env: map[string]string{"A": "b"}}
			}),
		},
		"what is not known yet is named": {
			attributes: map[string]tftypes.Value{
				"host": unknown(tftypes.String), "cluster_ca_certificate": unknown(tftypes.String), "client_certificate": unknown(tftypes.String),
				"client_key": str(keyPEM), "config_paths": list(str("/a"), unknown(tftypes.String)), "insecure": boolean(true),
				"exec": execValue(str("client.authentication.k8s.io/v1"), str("x"), list(unknown(tftypes.String)), strMap(map[string]tftypes.Value{"A": unknown(tftypes.String)})),
			},
			want: with(func(c *cluster.Config) {
				c.Insecure, c.KeyData = true, []byte(keyPEM)
				c.Exec = &cluster.Exec{APIVersion: "client.authentication.k8s.io/v1", Command: "x", Env: map[string]string{}}
			}),
			unknown: []string{"host", "cluster_ca_certificate", "client_certificate", "config_paths", "exec.args", "exec.env"},
		},
	} {
		t.Run(behaviour, func(t *testing.T) {
			got, unknown, diags := resolve(t.Context(), configured(t, c.attributes), environment(c.variables))
			if diags.HasError() {
				t.Fatal(diags)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.unknown, unknown); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResolveRefuses(t *testing.T) {
	for what, c := range map[string]struct {
		attributes map[string]tftypes.Value
		variables  map[string]string
		at         string
		wantText   string
	}{
		"insecure with a CA":                    {attributes: map[string]tftypes.Value{"insecure": boolean(true), "cluster_ca_certificate": str(certificatePEM)}, at: "insecure", wantText: "Remove one"},
		"insecure with a CA of the environment": {attributes: map[string]tftypes.Value{"insecure": boolean(true)}, variables: map[string]string{"KUBE_CLUSTER_CA_CERT_DATA": certificatePEM}, at: "insecure", wantText: "KUBE_CLUSTER_CA_CERT_DATA"},
		"a path in place of PEM":                {attributes: map[string]tftypes.Value{"client_key": str("/etc/key")}, at: "client_key", wantText: `file("…")`},
		"PEM in base64":                         {attributes: map[string]tftypes.Value{"cluster_ca_certificate": str(base64.StdEncoding.EncodeToString([]byte(certificatePEM)))}, at: "cluster_ca_certificate", wantText: "base64decode(…)"},
		"a certificate without its key":         {attributes: map[string]tftypes.Value{"client_certificate": str(certificatePEM)}, at: "client_certificate", wantText: "Only one"},
		"both kinds of path":                    {attributes: map[string]tftypes.Value{"config_path": str("a"), "config_paths": list(str("b"))}, at: "config_paths", wantText: "Give one"},
		"a variable that is no truth value":     {variables: map[string]string{"KUBE_INSECURE": "maybe"}, at: "insecure", wantText: `KUBE_INSECURE is "maybe"`},
		"another scheme":                        {attributes: map[string]tftypes.Value{"host": str("ftp://h")}, at: "host", wantText: "ftp"},
		"a host without a name":                 {attributes: map[string]tftypes.Value{"host": str("https://")}, at: "host", wantText: "names no host"},
		"a proxy of another kind":               {attributes: map[string]tftypes.Value{"proxy_url": str("gopher://p")}, at: "proxy_url", wantText: "socks5"},
		"in_cluster with a host":                {attributes: map[string]tftypes.Value{"in_cluster": boolean(true), "host": str("https://h")}, at: "in_cluster", wantText: "KUBE_HOST"},
		"burst without qps":                     {attributes: map[string]tftypes.Value{"burst": number(5)}, at: "burst", wantText: "set qps too"},
	} {
		t.Run(what, func(t *testing.T) {
			_, _, diags := resolve(context.Background(), configured(t, c.attributes), environment(c.variables))
			if len(diags) != 1 {
				t.Fatalf("got %v", diags)
			}
			located, ok := diags[0].(interface{ Path() path.Path })
			if !ok || !located.Path().Equal(path.Root(c.at)) {
				t.Errorf("the error is not at %s: %v", c.at, diags[0])
			}
			if !strings.Contains(diags[0].Detail(), c.wantText) {
				t.Errorf("detail %q lacks %q", diags[0].Detail(), c.wantText)
			}
			if strings.Contains(diags[0].Detail(), "/etc/key") {
				t.Error("the detail repeats a value that may be secret")
			}
		})
	}
}
