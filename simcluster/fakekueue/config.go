package fakekueue

// Config says where the cluster is and as whom to act. All fields are required.
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
}
