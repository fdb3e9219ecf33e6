package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// keepLimit is how long the keeping of logs may take: they are of use, and the cluster's end must not wait for them.
const keepLimit = time.Minute

// SaveLogs writes the logs of nodes and pods below a directory, as `kind export logs` does. What cannot be had, a dead
// node's journal for instance, is said and left out.
func (c *Cluster) SaveLogs(dir string) {
	done := make(chan error, 1)
	go func() { done <- c.provider.CollectLogs(c.name, dir) }()
	select {
	case err := <-done:
		if err != nil {
			path := filepath.Join(dir, "missing.txt")
			c.logf("not every log could be kept: %s says which", path)
			if err := os.WriteFile(path, []byte(err.Error()+"\n"), 0o644); err != nil {
				c.logf("%v", err)
			}
		}
	case <-time.After(keepLimit):
		c.logf("not every log could be kept in %s within %s", dir, keepLimit)
	}
}

// SaveEvents writes the events of all namespaces into a file, one JSON object per line.
func (c *Cluster) SaveEvents(ctx context.Context, path string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("keep the cluster's events: %w", err)
		}
	}()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err
	}
	config.Timeout = answerLimit
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	events, err := client.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(file)
	for i := range events.Items {
		events.Items[i].ManagedFields = nil
		err = errors.Join(err, lines.Encode(&events.Items[i]))
	}
	return errors.Join(err, file.Close())
}
