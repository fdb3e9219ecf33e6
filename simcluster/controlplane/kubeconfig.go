package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// contextName names cluster and context in the kubeconfigs, so that `kubectl config get-contexts` shows what this is.
const contextName = "simcluster"

// writeKubeconfigs writes a kubeconfig per client, with everything inside it so that it can be copied, for an API
// server on the given port. Files that are right already are left alone.
func writeKubeconfigs(layout Layout, port int) error {
	authority, err := os.ReadFile(layout.pki(clusterCA + ".crt"))
	if err != nil {
		return fmt.Errorf("writing kubeconfigs: %w", err)
	}
	for _, client := range clients() {
		if err := writeKubeconfig(layout, client, authority, port); err != nil {
			return fmt.Errorf("writing the kubeconfig of %s: %w", client.commonName, err)
		}
	}
	return nil
}

func writeKubeconfig(layout Layout, client leaf, authority []byte, port int) error {
	certificate, err := os.ReadFile(layout.pki(client.file + ".crt"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(layout.pki(client.file + ".key"))
	if err != nil {
		return err
	}
	config := api.NewConfig()
	config.Clusters[contextName] = &api.Cluster{Server: serverURL(port), CertificateAuthorityData: authority}
	config.AuthInfos[client.commonName] = &api.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.Contexts[contextName] = &api.Context{Cluster: contextName, AuthInfo: client.commonName}
	config.CurrentContext = contextName
	want, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	path := layout.Kubeconfig(client.file)
	have, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if bytes.Equal(have, want) {
		return nil
	}
	return writePrivate(path, want)
}

func serverURL(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }
