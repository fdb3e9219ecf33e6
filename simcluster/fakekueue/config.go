package fakekueue

import "github.com/elastic-training/terraform-provider-elastic/internal/scheduler/quota"

// Config defines where the cluster is and as whom to act. All fields but FairSharing are required.
type Config struct {
	// AdminKubeconfig is the kubeconfig of an administrator, with which the API, the roles and the webhooks are installed.
	AdminKubeconfig string
	// Kubeconfig is the controller's own, for which those roles are: the ServiceAccount
	// kueue-system/kueue-controller-manager.
	Kubeconfig string
	// WebhookPort is the port on 127.0.0.1 of the webhooks and of /healthz and /readyz.
	WebhookPort int
	// CertFile and KeyFile are the server's certificate for 127.0.0.1, and CAFile the authority that signed it.
	CertFile, KeyFile, CAFile string
	// FairSharing switches fair sharing on, as Kueue's configuration does. Off by default.
	FairSharing bool
}

// engine is the configuration of the engine, which decides.
func (c Config) engine() quota.Config {
	if c.FairSharing {
		return quota.Config{FairSharing: &quota.FairSharing{}}
	}
	return quota.Config{}
}
