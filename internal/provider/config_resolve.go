package provider

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// Environment is the part of the configuration that comes from the process.
type Environment struct {
	Variable         func(name string) string // as os.Getenv
	HomeDirectory    string                   // replaces ~
	WorkingDirectory string                   // what relative paths are relative to
}

// ProcessEnvironment is this process's environment.
func ProcessEnvironment() (Environment, error) {
	working, err := os.Getwd()
	if err != nil {
		return Environment{}, fmt.Errorf("working directory: %w", err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "~" // paths with ~ then name a file that does not exist, and only they fail
	}
	return Environment{Variable: os.Getenv, HomeDirectory: home, WorkingDirectory: working}, nil
}

// resolve turns configuration and environment into the cluster's configuration: pure, it reads no file. An attribute
// beats its environment variable. The names of attributes that are not known yet are returned, and then the
// configuration is incomplete. Diagnostics carry the path of the attribute they are about.
func resolve(ctx context.Context, model configModel, env Environment) (cluster.Config, []string, diag.Diagnostics) {
	r := &resolver{env: env}
	config := cluster.Config{
		Host:               r.text("host", model.Host, "KUBE_HOST"),
		Token:              r.text("token", model.Token, "KUBE_TOKEN"),
		TLSServerName:      r.text("tls_server_name", model.TLSServerName, "KUBE_TLS_SERVER_NAME"),
		ProxyURL:           r.text("proxy_url", model.ProxyURL, "KUBE_PROXY_URL"),
		Insecure:           r.truth("insecure", model.Insecure, "KUBE_INSECURE"),
		CAData:             r.pem("cluster_ca_certificate", model.ClusterCACertificate, "KUBE_CLUSTER_CA_CERT_DATA"),
		CertData:           r.pem("client_certificate", model.ClientCertificate, "KUBE_CLIENT_CERT_DATA"),
		KeyData:            r.pem("client_key", model.ClientKey, "KUBE_CLIENT_KEY_DATA"),
		Kubeconfigs:        r.kubeconfigs(ctx, model),
		Context:            r.text("config_context", model.ConfigContext, "KUBE_CTX"),
		ContextCluster:     r.text("config_context_cluster", model.ConfigContextCluster, "KUBE_CTX_CLUSTER"),
		ContextAuthInfo:    r.text("config_context_auth_info", model.ConfigContextAuthInfo, "KUBE_CTX_AUTH_INFO"),
		Exec:               r.exec(ctx, model.Exec),
		InCluster:          r.truth("in_cluster", model.InCluster, ""),
		FieldManager:       r.text("field_manager", model.FieldManager, ""),
		ForceConflicts:     r.truth("force_conflicts", model.ForceConflicts, ""),
		ExpectedClusterUID: r.text("expected_cluster_uid", model.ExpectedClusterUID, ""),
		HidePodLogs:        r.known("show_pod_logs", model.ShowPodLogs) && !model.ShowPodLogs.IsNull() && !model.ShowPodLogs.ValueBool(),
	}
	config.FieldManager = cmp.Or(config.FieldManager, cluster.DefaultFieldManager)
	r.limits(&config, model)
	r.check(config, model)
	return config, r.unknown, r.diags
}

// resolver collects what resolve finds.
type resolver struct {
	env     Environment
	unknown []string
	diags   diag.Diagnostics
}

func (r *resolver) fail(attribute, summary, detail string) {
	r.diags.AddAttributeError(path.Root(attribute), summary, detail)
}

// known notes an attribute that is not known yet.
func (r *resolver) known(attribute string, value attr.Value) bool {
	if value.IsUnknown() {
		r.unknown = append(r.unknown, attribute)
	}
	return !value.IsUnknown()
}

func (r *resolver) variable(name string) string {
	if name == "" {
		return ""
	}
	return r.env.Variable(name)
}

func (r *resolver) text(attribute string, value types.String, variable string) string {
	switch {
	case !r.known(attribute, value):
		return ""
	case !value.IsNull():
		return value.ValueString()
	default:
		return r.variable(variable)
	}
}

func (r *resolver) truth(attribute string, value types.Bool, variable string) bool {
	if !r.known(attribute, value) {
		return false
	}
	text := r.variable(variable)
	if !value.IsNull() || text == "" {
		return value.ValueBool()
	}
	truth, err := strconv.ParseBool(text)
	if err != nil {
		r.fail(attribute, "Environment variable is not a truth value", variable+" is "+strconv.Quote(text)+"; write true or false.")
	}
	return truth
}

// pem reads a certificate or key, which clouds often encode in base64 once more.
func (r *resolver) pem(attribute string, value types.String, variable string) []byte {
	text := r.text(attribute, value, variable)
	if text == "" {
		return nil
	}
	if block, _ := pem.Decode([]byte(text)); block != nil {
		return []byte(text)
	}
	advice := "It must be the text itself, beginning with -----BEGIN; where it is in a file, write file(\"…\")."
	if decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil {
		if block, _ := pem.Decode(decoded); block != nil {
			advice = "It is PEM in base64: write base64decode(…) around it."
		}
	}
	r.fail(attribute, "Not PEM", "The value of "+attribute+" (or "+variable+") is not PEM. "+advice)
	return nil
}

// kubeconfigs are absolute paths. The attributes are alternatives, and either beats both environment variables.
func (r *resolver) kubeconfigs(ctx context.Context, model configModel) []string {
	single, several := model.ConfigPath, model.ConfigPaths
	pathKnown, pathsKnown := r.known("config_path", single), r.known("config_paths", several)
	if !pathKnown || !pathsKnown {
		return nil
	}
	if !single.IsNull() && !several.IsNull() {
		r.fail("config_paths", "config_path and config_paths are alternatives", "Give one of them; several files go into config_paths.")
		return nil
	}
	var paths []string
	switch {
	case !single.IsNull():
		paths = []string{single.ValueString()}
	case !several.IsNull():
		paths = r.texts(ctx, "config_paths", several)
	case r.variable("KUBE_CONFIG_PATHS") != "":
		paths = filepath.SplitList(r.variable("KUBE_CONFIG_PATHS"))
	case r.variable("KUBE_CONFIG_PATH") != "":
		paths = []string{r.variable("KUBE_CONFIG_PATH")}
	}
	var absolute []string
	for _, p := range paths {
		if p != "" {
			absolute = append(absolute, r.absolute(p))
		}
	}
	return absolute
}

// absolute expands ~ and makes a relative path one below the working directory.
func (r *resolver) absolute(p string) string {
	switch {
	case p == "~":
		return r.env.HomeDirectory
	case strings.HasPrefix(p, "~/"):
		return filepath.Join(r.env.HomeDirectory, p[2:])
	case filepath.IsAbs(p):
		return filepath.Clean(p)
	default:
		return filepath.Join(r.env.WorkingDirectory, p)
	}
}

func (r *resolver) texts(ctx context.Context, attribute string, list basetypes.ListValue) []string {
	var values []types.String
	r.diags.Append(list.ElementsAs(ctx, &values, false)...)
	var texts []string
	for _, value := range values {
		if !r.known(attribute, value) {
			return nil
		}
		texts = append(texts, value.ValueString())
	}
	return texts
}

func (r *resolver) exec(ctx context.Context, value types.Object) *cluster.Exec {
	if !r.known("exec", value) || value.IsNull() {
		return nil
	}
	var model execModel
	r.diags.Append(value.As(ctx, &model, basetypes.ObjectAsOptions{})...)
	exec := &cluster.Exec{
		APIVersion: r.text("exec.api_version", model.APIVersion, ""),
		Command:    r.text("exec.command", model.Command, ""),
	}
	if r.known("exec.args", model.Args) {
		exec.Args = r.texts(ctx, "exec.args", model.Args)
	}
	if !r.known("exec.env", model.Env) || model.Env.IsNull() {
		return exec
	}
	exec.Env = map[string]string{}
	var variables map[string]types.String
	r.diags.Append(model.Env.ElementsAs(ctx, &variables, false)...)
	for name, variable := range variables {
		if !r.known("exec.env", variable) {
			break
		}
		exec.Env[name] = variable.ValueString()
	}
	return exec
}

func (r *resolver) limits(config *cluster.Config, model configModel) {
	qpsKnown, burstKnown := r.known("qps", model.QPS), r.known("burst", model.Burst)
	if !qpsKnown || !burstKnown {
		return
	}
	if model.QPS.IsNull() {
		if burst := model.Burst.ValueInt64(); burst >= minBurst && burst <= maxBurst { // any other is refused by itself
			r.fail("burst", "burst needs qps", "Without qps there is no limit that burst could exceed; set qps too, or remove burst.")
		}
		return
	}
	config.QPS = float32(model.QPS.ValueFloat64())
	config.Burst = max(int(2*config.QPS), 1)
	if !model.Burst.IsNull() {
		config.Burst = int(model.Burst.ValueInt64())
	}
}

// check refuses combinations that cannot be meant. What is not known yet is checked when it is.
func (r *resolver) check(config cluster.Config, model configModel) {
	if config.Insecure && len(config.CAData) > 0 {
		r.fail("insecure", "insecure and cluster_ca_certificate contradict each other",
			"With insecure = true nothing would be verified by cluster_ca_certificate. Remove one of them (KUBE_INSECURE and KUBE_CLUSTER_CA_CERT_DATA count too).")
	}
	if (len(config.CertData) > 0) != (len(config.KeyData) > 0) && !model.ClientCertificate.IsUnknown() && !model.ClientKey.IsUnknown() && !r.diags.HasError() {
		r.fail("client_certificate", "client_certificate and client_key belong together", "Only one of them is set.")
	}
	if config.Host != "" {
		if problem := hostProblem(config.Host); problem != "" {
			r.fail("host", "Not the address of an API server", "host is "+strconv.Quote(config.Host)+": "+problem+" Write https://NAME:PORT.")
		}
	}
	if config.ProxyURL != "" {
		proxy, err := url.Parse(config.ProxyURL)
		if err != nil || proxy.Host == "" || proxy.Scheme != "http" && proxy.Scheme != "https" && proxy.Scheme != "socks5" {
			r.fail("proxy_url", "Not the address of a proxy", "proxy_url must be http://…, https://… or socks5://….")
		}
	}
	if config.InCluster && (config.Host != "" || len(config.Kubeconfigs) > 0) {
		r.fail("in_cluster", "in_cluster and another cluster contradict each other",
			"in_cluster = true means the cluster in which Terraform runs. Remove it, or remove host and config_path (KUBE_HOST, KUBE_CONFIG_PATH and KUBE_CONFIG_PATHS count too).")
	}
}

// hostProblem is the problem with an API server's address, or "". It accepts a bare name:port, as client-go does.
func hostProblem(host string) string {
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	parsed, err := url.Parse(host)
	switch {
	case err != nil:
		return "it cannot be read as an address."
	case parsed.Scheme != "https" && parsed.Scheme != "http":
		return "its scheme is " + parsed.Scheme + "."
	case parsed.Host == "":
		return "it names no host."
	default:
		return ""
	}
}
