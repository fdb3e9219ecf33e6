package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider/numeric"
)

// maxFieldManagerLength leaves room, in the API's 128 characters, for the token under which objects are created.
const maxFieldManagerLength = 110

// minBurst and maxBurst bound the requests above qps.
const minBurst, maxBurst = 1, 100_000

// configModel is the provider's configuration as Terraform sends it.
type configModel struct {
	Host                 types.String `tfsdk:"host"`
	Token                types.String `tfsdk:"token"`
	ClusterCACertificate types.String `tfsdk:"cluster_ca_certificate"`
	ClientCertificate    types.String `tfsdk:"client_certificate"`
	ClientKey            types.String `tfsdk:"client_key"`
	Insecure             types.Bool   `tfsdk:"insecure"`
	TLSServerName        types.String `tfsdk:"tls_server_name"`
	ProxyURL             types.String `tfsdk:"proxy_url"`

	ConfigPath            types.String `tfsdk:"config_path"`
	ConfigPaths           types.List   `tfsdk:"config_paths"`
	ConfigContext         types.String `tfsdk:"config_context"`
	ConfigContextCluster  types.String `tfsdk:"config_context_cluster"`
	ConfigContextAuthInfo types.String `tfsdk:"config_context_auth_info"`
	Exec                  types.Object `tfsdk:"exec"`
	InCluster             types.Bool   `tfsdk:"in_cluster"`

	QPS                types.Float64 `tfsdk:"qps"`
	Burst              types.Int64   `tfsdk:"burst"`
	FieldManager       types.String  `tfsdk:"field_manager"`
	ForceConflicts     types.Bool    `tfsdk:"force_conflicts"`
	ExpectedClusterUID types.String  `tfsdk:"expected_cluster_uid"`
	ShowPodLogs        types.Bool    `tfsdk:"show_pod_logs"`

	Forecast                types.String `tfsdk:"forecast"`
	ForecastAcceptedReasons types.List   `tfsdk:"forecast_accepted_reasons"`
	ForecastTimeout         types.String `tfsdk:"forecast_timeout"`
}

// execModel is the value of exec.
type execModel struct {
	APIVersion types.String `tfsdk:"api_version"`
	Command    types.String `tfsdk:"command"`
	Args       types.List   `tfsdk:"args"`
	Env        types.Map    `tfsdk:"env"`
}

func configAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		// The cluster and the credentials.
		"host": settingText("Address of the API server, such as `https://203.0.113.7:6443`. Environment: `KUBE_HOST`."),
		"token": schema.StringAttribute{
			MarkdownDescription: "Bearer token. Environment: `KUBE_TOKEN`.",
			Optional:            true,
			Sensitive:           true,
		},
		"cluster_ca_certificate": settingText("CA certificates (PEM) with which the API server's certificate is verified. Environment: `KUBE_CLUSTER_CA_CERT_DATA`."),
		"client_certificate":     settingText("Client certificate (PEM); needs `client_key`. Environment: `KUBE_CLIENT_CERT_DATA`."),
		"client_key": schema.StringAttribute{
			MarkdownDescription: "Key (PEM) of `client_certificate`. Environment: `KUBE_CLIENT_KEY_DATA`.",
			Optional:            true,
			Sensitive:           true,
		},
		"insecure":        settingFlag("Do not verify the API server's certificate; cannot be combined with `cluster_ca_certificate`. Environment: `KUBE_INSECURE`."),
		"tls_server_name": settingText("Server name to verify in the API server's certificate, if it differs from the host's. Environment: `KUBE_TLS_SERVER_NAME`."),
		"proxy_url":       settingText("Proxy (http, https or socks5) for all requests. Environment: `KUBE_PROXY_URL`."),

		// From a kubeconfig.
		"config_path":              settingText("Path of a kubeconfig file. Without it, no file is read. Environment: `KUBE_CONFIG_PATH`."),
		"config_paths":             settingTexts("Paths of several kubeconfig files, merged as kubectl does. Environment: `KUBE_CONFIG_PATHS`, separated as in `PATH`."),
		"config_context":           settingText("Context to use instead of the kubeconfig's current one. Environment: `KUBE_CTX`."),
		"config_context_cluster":   settingText("Cluster to use instead of the context's. Environment: `KUBE_CTX_CLUSTER`."),
		"config_context_auth_info": settingText("User to use instead of the context's. Environment: `KUBE_CTX_AUTH_INFO`."),
		"exec":                     execAttribute(),
		"in_cluster":               settingFlag("Use the service account of the pod in which Terraform runs."),

		// How to talk to it.
		"qps": schema.Float64Attribute{
			CustomType:          numeric.Float64{},
			MarkdownDescription: "Requests per second of this client. There is no limit by default: the client retries when the API server's priority and fairness responds with status 429.",
			Optional:            true,
			Validators:          []validator.Float64{float64validator.AtLeast(0.1)},
		},
		"burst": schema.Int64Attribute{
			CustomType:          numeric.Int64{},
			MarkdownDescription: "Number of requests that may exceed `qps` for a short time; needs `qps`, and is twice `qps` by default.",
			Optional:            true,
			Validators:          []validator.Int64{int64validator.Between(minBurst, maxBurst)},
		},
		"field_manager": settingText("Name under which fields are owned in server-side apply; `terraform-provider-elastic` by default. If it is changed, the old name still owns the fields that it wrote.",
			stringvalidator.LengthBetween(1, maxFieldManagerLength)),
		"force_conflicts": settingFlag("Whether an apply overwrites fields that other field managers have changed since the plan. By default (`false`) the apply fails with " +
			"an error that lists these fields. Changes from before the plan are always reset: the plan shows them, with the client that made them."),
		"expected_cluster_uid": settingText("UID of the namespace `kube-system` (`kubectl get namespace kube-system -o jsonpath={.metadata.uid}`). If the cluster has another UID, the provider neither reads nor writes anything."),
		"show_pod_logs": settingFlag("Show the last lines of a failed pod's log in errors and warnings. True by default; with false, Terraform's output does not contain the output of jobs, " +
			"which CI systems keep. The messages in the job's status are not affected. Control characters are always removed."),

		// Forecasts in plans.
		"forecast": settingText("Forecasts of plans for new jobs and tasks: whether a job fits, its position in its queue, and which pods it evicts. `warn` (default) adds a warning, "+
			"and never fails a plan; `error` fails the plan if another job's pod or workload would be evicted, if a pod can never run, or if the outcome or the evictions are not certain; "+
			"`off` makes no forecasts. See the guide \"Will my job preempt other pods?\".",
			stringvalidator.OneOf(forecastOff, forecastWarn, forecastError)),
		"forecast_accepted_reasons": settingTexts("Codes of reasons for which the outcome or the evictions may be uncertain with `forecast = \"error\"`, such as `too-many-choices`. None by default. The guide \"Will my job preempt other pods?\" lists the codes."),
		"forecast_timeout":          settingText("Time limit for all forecasts of a plan together, for reading the cluster and for computing; `10s` by default. A forecast that runs out of time says which of its claims are uncertain."),
	}
}

// The attributes of the provider, all of which are optional.

func settingText(description string, rules ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{MarkdownDescription: description, Optional: true, Validators: rules}
}

func settingTexts(description string, rules ...validator.List) schema.ListAttribute {
	return schema.ListAttribute{MarkdownDescription: description, ElementType: types.StringType, Optional: true, Validators: rules}
}

func settingFlag(description string) schema.BoolAttribute {
	return schema.BoolAttribute{MarkdownDescription: description, Optional: true}
}

func execAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "A command that prints a credential, such as `gke-gcloud-auth-plugin`.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"api_version": schema.StringAttribute{
				MarkdownDescription: "`client.authentication.k8s.io/v1` or `client.authentication.k8s.io/v1beta1`.",
				Required:            true,
				Validators: []validator.String{stringvalidator.OneOf(
					"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")},
			},
			"command": schema.StringAttribute{
				MarkdownDescription: "Program to run.",
				Required:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"args": settingTexts("Arguments of the program."),
			"env": schema.MapAttribute{
				MarkdownDescription: "Environment variables of the program, in addition to Terraform's.",
				ElementType:         types.StringType,
				Optional:            true,
				Sensitive:           true,
			},
		},
	}
}
