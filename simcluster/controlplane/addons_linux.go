package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/addon"
)

// An installable is an add-on of this cluster, as far as it can be read before anything is started.
type installable struct {
	addon.Addon
	program   string
	manifests []*unstructured.Unstructured
	settings  addon.Settings
}

func readAddons(options Options) ([]installable, error) {
	var all []installable
	for _, name := range options.Config.Addons {
		a, err := addon.ByName(name)
		if err != nil {
			return nil, err
		}
		i := installable{Addon: a}
		if i.program, err = a.Program(options.Addons); err != nil {
			return nil, err
		}
		if i.manifests, err = a.Manifests(options.Addons); err != nil {
			return nil, err
		}
		if name == addon.Kueue {
			if i.settings, err = addon.ReadSettings(options.Config.KueueConfig, options.Config.KueueFeatureGates); err != nil {
				return nil, fmt.Errorf("settings of Kueue: %w", err)
			}
		}
		all = append(all, i)
	}
	return all, nil
}

// install applies the add-on's manifests, and writes its configuration and the certificate of its webhooks.
func (i installable) install(ctx context.Context, layout Layout, ports AddonPorts) error {
	if err := i.writeCertificate(layout); err != nil {
		return err
	}
	authority, err := os.ReadFile(layout.pki(clusterCA + ".crt"))
	if err != nil {
		return err
	}
	objects, configuration, err := i.Adapt(i.manifests, i.settings, authority, i.endpoint(layout, ports))
	if err != nil {
		return err
	}
	if err := writePrivate(layout.addonConfig(i.Name), configuration); err != nil {
		return err
	}
	admin, errAdmin := clientcmd.BuildConfigFromFlags("", layout.AdminKubeconfig())
	own, errOwn := clientcmd.BuildConfigFromFlags("", layout.Kubeconfig(i.Name))
	if err := errors.Join(errAdmin, errOwn); err != nil {
		return err
	}
	admin.QPS, own.QPS = -1, -1 // the default of five requests a second is for programs that share an API server
	return addon.Install(ctx, admin, own, objects)
}

// writeCertificate puts the webhooks' certificate where controller-runtime looks for it.
func (i installable) writeCertificate(layout Layout) error {
	if err := os.MkdirAll(layout.addonCertificates(i.Name), 0o700); err != nil {
		return err
	}
	for from, to := range map[string]string{"webhooks.crt": "tls.crt", "webhooks.key": "tls.key"} {
		content, err := os.ReadFile(layout.pki(from))
		if err == nil {
			err = writePrivate(filepath.Join(layout.addonCertificates(i.Name), to), content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (i installable) endpoint(layout Layout, ports AddonPorts) addon.Endpoint {
	return addon.Endpoint{WebhookPort: ports.Webhook, HealthPort: ports.Health, CertificateDir: layout.addonCertificates(i.Name)}
}

// command is how the add-on's program is run, once it is installed.
func (i installable) command(layout Layout, ports AddonPorts) (executable string, arguments, environment []string) {
	endpoint := i.endpoint(layout, ports)
	arguments, environment = i.Command(layout.addonConfig(i.Name), layout.addonDir(i.Name), layout.Kubeconfig(i.Name), endpoint)
	return i.program, arguments, environment
}
