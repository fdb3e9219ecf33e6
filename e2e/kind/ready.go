package kind

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// faults are what is wrong with the nodes, of which those names were expected: a node that did not register, one that
// is not Ready, a worker of another size. Of each node it is the first fault.
func faults(names []string, isWorker func(string) bool, nodes []corev1.Node, machine Machine) map[string]string {
	found := map[string]string{}
	byName := map[string]*corev1.Node{}
	for i := range nodes {
		byName[nodes[i].Name] = &nodes[i]
	}
	for _, name := range names {
		node := byName[name]
		switch {
		case node == nil:
			found[name] = "it has not registered"
		case unready(node) != "":
			found[name] = unready(node)
		case isWorker(name) && wrongSize(node, machine) != "":
			found[name] = wrongSize(node, machine)
		}
	}
	return found
}

// unready is why a node is not Ready; "" when it is.
func unready(node *corev1.Node) string {
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		if condition.Status == corev1.ConditionTrue {
			return ""
		}
		return fmt.Sprintf("it is not Ready: %s: %s", condition.Reason, condition.Message)
	}
	return "it is not Ready, and has not said why"
}

// wrongSize is in what a node differs from the machine; "" when it does not.
func wrongSize(node *corev1.Node, machine Machine) string {
	cpus := resource.NewQuantity(int64(machine.CPUs), resource.DecimalSI)
	allocatable := cpus.DeepCopy()
	allocatable.Sub(machine.SystemReserved)
	for _, size := range []struct {
		what      string
		is, wants resource.Quantity
	}{
		{"CPUs", *node.Status.Capacity.Cpu(), *cpus},
		{"memory", *node.Status.Capacity.Memory(), machine.Memory},
		{"allocatable CPUs", *node.Status.Allocatable.Cpu(), allocatable},
	} {
		if size.is.Cmp(size.wants) != 0 {
			return fmt.Sprintf("it reports %s %s instead of %s", size.is.String(), size.what, size.wants.String())
		}
	}
	return ""
}

const (
	readyLimit    = 3 * time.Minute
	readyInterval = 500 * time.Millisecond
)

// awaitNodes waits until all nodes are Ready and the workers report the machine's size. kind itself waits for the
// control plane only, and calls a cluster with dead workers a success. A wait in vain is an error that names the nodes,
// what is wrong with them, and the last words of their kubelets.
func (c *Cluster) awaitNodes(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, fmt.Errorf("not all nodes are as they should be after %s", readyLimit))
	defer cancel()
	for {
		found, err := c.look(ctx, client)
		if err == nil && len(found) == 0 {
			return nil
		}
		select {
		case <-time.After(readyInterval):
			continue
		case <-ctx.Done():
		}
		if err != nil && len(found) == 0 {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		var sentences []string
		for _, name := range c.names {
			if fault, ok := found[name]; ok {
				sentences = append(sentences, fmt.Sprintf("node %s: %s%s", name, fault, c.lastWords(name)))
			}
		}
		return fmt.Errorf("%w: %s", context.Cause(ctx), strings.Join(sentences, "; "))
	}
}

func (c *Cluster) look(ctx context.Context, client kubernetes.Interface) (map[string]string, error) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	return faults(c.names, c.isWorker, list.Items, c.machine), nil
}

// lastWords is the last error that a node's kubelet wrote to its journal, where there is one.
func (c *Cluster) lastWords(node string) string {
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	text, err := c.engine.run(ctx, answerLimit, "exec", node, "journalctl", "-u", "kubelet", "--no-pager", "-o", "cat", "-n", "200")
	if err != nil {
		return "; its journal cannot be read: " + err.Error()
	}
	last := ""
	for line := range strings.Lines(text) {
		// klog's errors, and what a kubelet says before it gives up.
		if strings.HasPrefix(line, "E") || strings.Contains(line, "failed") {
			last = strings.TrimSpace(line)
		}
	}
	if last == "" {
		return ""
	}
	return "; its kubelet's last error: " + last
}
