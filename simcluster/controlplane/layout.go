package controlplane

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxSocketPath is the length of the longest path that a Unix socket can be bound to on Linux: sun_path has 108 bytes,
// and the last is NUL (unix(7)).
const maxSocketPath = 107

// A Layout says where everything of one cluster lies. All paths are absolute.
type Layout struct {
	// Dir is the state directory; everything but (perhaps) the sockets is below it.
	Dir string
	// Sockets is the directory of the Unix sockets: Dir/run where that is short and plain enough for a socket's
	// address, else a directory of its own below the system's temporary directory, whose name is derived from Dir.
	Sockets string
}

// NewLayout returns the layout of the cluster whose state directory is dir. It creates nothing.
func NewLayout(dir string) (Layout, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Layout{}, fmt.Errorf("state directory %q: %w", dir, err)
	}
	layout := Layout{Dir: abs, Sockets: filepath.Join(abs, "run")}
	if layout.socketsFit() {
		return layout, nil
	}
	sum := sha256.Sum256([]byte(abs))
	name := "simcluster-" + strconv.Itoa(os.Getuid()) + "-" + hex.EncodeToString(sum[:6])
	// TMPDIR may itself be what is too long; /tmp exists wherever Linux does.
	for _, parent := range []string{os.TempDir(), "/tmp"} {
		layout.Sockets = filepath.Join(parent, name)
		if layout.socketsFit() {
			break
		}
	}
	return layout, nil
}

func (l Layout) socketsFit() bool {
	for _, socket := range []string{l.EtcdSocket(), l.EtcdPeerSocket(), l.ControlSocket()} {
		if len(socket) > maxSocketPath || strings.ContainsFunc(socket, notPlain) {
			return false
		}
	}
	return true
}

// notPlain reports characters that mean something in a URL or in a list of URLs, which is how the API server is given
// etcd's socket.
func notPlain(r rune) bool {
	plain := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._-", r)
	return !plain
}

// RemoveSockets removes the sockets' directory, which is of no use without processes.
func (l Layout) RemoveSockets() error { return os.RemoveAll(l.Sockets) }

// PKI is the directory of keys and certificates.
func (l Layout) PKI() string { return filepath.Join(l.Dir, "pki") }

// Logs is the directory of the components' logs, NAME.log, and those of the run before, NAME.log.1.
func (l Layout) Logs() string { return filepath.Join(l.Dir, "logs") }

// Log is the file to which the named component, or Supervisor, writes.
func (l Layout) Log(name string) string { return filepath.Join(l.Logs(), name+".log") }

// NodeState is the node agent's directory.
func (l Layout) NodeState() string { return filepath.Join(l.Dir, "node") }

// EtcdData is etcd's data directory.
func (l Layout) EtcdData() string { return filepath.Join(l.Dir, "etcd") }

// EtcdSocket serves etcd's clients, of which there is one, the API server.
func (l Layout) EtcdSocket() string { return filepath.Join(l.Sockets, "etcd.sock") }

// EtcdPeerSocket serves other members of the etcd cluster, of which there are none.
func (l Layout) EtcdPeerSocket() string { return filepath.Join(l.Sockets, "etcd-peer.sock") }

// ControlSocket serves the node agent's own interface (node.Dial).
func (l Layout) ControlSocket() string { return filepath.Join(l.Sockets, "node.sock") }

// AdminKubeconfig is the kubeconfig of the cluster's administrator (group system:masters).
func (l Layout) AdminKubeconfig() string { return l.Kubeconfig("admin") }

// UserKubeconfig is the kubeconfig of UserName, who may do nothing but what a test grants.
func (l Layout) UserKubeconfig() string { return l.Kubeconfig("user") }

// Kubeconfig is the kubeconfig of the named client (see clients in pki.go).
func (l Layout) Kubeconfig(client string) string { return filepath.Join(l.Dir, client+".kubeconfig") }

// configFile holds the cluster as it was declared.
func (l Layout) configFile() string { return filepath.Join(l.Dir, "cluster.json") }

// statusFile holds what runs: written by the supervisor, read by everyone else.
func (l Layout) statusFile() string { return filepath.Join(l.Dir, "status.json") }

// lockFile is locked as long as a supervisor runs.
func (l Layout) lockFile() string { return filepath.Join(l.Dir, "lock") }

// markerFile marks that the state directory was made, or found empty, by a cluster's start.
func (l Layout) markerFile() string { return filepath.Join(l.Dir, ".simcluster-state") }

// agentConfigFile is the node agent's configuration.
func (l Layout) agentConfigFile() string { return filepath.Join(l.Dir, "node-agent.json") }

// admissionConfigFile configures the API server's admission plugins, where the declaration does.
func (l Layout) admissionConfigFile() string { return filepath.Join(l.Dir, "admission.json") }

// addons is the folder of the add-ons' files.
func (l Layout) addons() string { return filepath.Join(l.Dir, "addons") }

// addonDir is the folder of an add-on's files.
func (l Layout) addonDir(name string) string { return filepath.Join(l.addons(), name) }

// addonConfig is an add-on's configuration.
func (l Layout) addonConfig(name string) string {
	return filepath.Join(l.addonDir(name), "config.yaml")
}

// addonCertificates is the folder of the certificate of an add-on's webhooks: controller-runtime's default, below the
// folder for temporary files.
func (l Layout) addonCertificates(name string) string {
	return filepath.Join(l.addonDir(name), "k8s-webhook-server", "serving-certs")
}

func (l Layout) pki(name string) string { return filepath.Join(l.PKI(), name) }

// writePrivate writes a file that only its owner may read, at once or not at all.
func writePrivate(path string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // created with mode 0600
	if err != nil {
		return err
	}
	_, err = temporary.Write(content)
	if closeErr := temporary.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}
