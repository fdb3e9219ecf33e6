package command

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/nodeagent"
)

// answerPatience bounds how long `status` waits for an API server that may just be away.
const answerPatience = 5 * time.Second

func statusCommand(layout layoutFunc) *cobra.Command {
	command := &cobra.Command{
		Use:   "status",
		Short: "Show the cluster's components and nodes",
		Long: `Show whether the cluster is running and since when, its kubeconfig, its components with
their processes, and its nodes.`,
		Example: "  simcluster status",
		Args:    cli.NeedsArguments(),
		RunE: func(command *cobra.Command, _ []string) error {
			l, status, err := runningCluster(layout)
			if err != nil {
				return err
			}
			return showStatus(command.Context(), command.OutOrStdout(), l, status)
		},
	}
	exitsWithoutCluster(command)
	return command
}

// exitsWithoutCluster documents how commands end that ask a cluster.
func exitsWithoutCluster(commands ...*cobra.Command) {
	for _, command := range commands {
		cli.Exits(command, exitNotRunning, "the cluster is not running")
	}
}

func showStatus(ctx context.Context, out io.Writer, l controlplane.Layout, status controlplane.Status) error {
	table := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	// Errors of the table's writer come out of Flush.
	row := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format+"\n", args...) }
	row("%s since %s, https://127.0.0.1:%d", status.Phase, status.Started.Format(time.DateTime), status.Ports.APIServer)
	row("%s%s\n", kubeconfigPrefix, l.AdminKubeconfig())
	row("COMPONENT\tPID\tAGE\tRESTARTS")
	for _, component := range status.Components {
		pid, age := "-", "-"
		if component.PID != 0 {
			pid, age = fmt.Sprint(component.PID), time.Since(component.Started).Round(time.Second).String()
		}
		row("%s\t%s\t%s\t%d", component.Name, pid, age, component.Restarts)
	}
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	nodes, err := listNodes(ctx, l)
	if err != nil {
		row("\nnodes: %v", err)
		return table.Flush()
	}
	row("\nNODE\tREADY\tCPU\tALLOCATABLE\tMEMORY")
	for i := range nodes {
		n := &nodes[i]
		row("%s\t%s\t%s\t%s\t%s", n.Name, readiness(n), n.Status.Capacity.Cpu(), n.Status.Allocatable.Cpu(), n.Status.Capacity.Memory())
	}
	return table.Flush()
}

func readiness(n *corev1.Node) string {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return string(condition.Status)
		}
	}
	return string(corev1.ConditionUnknown)
}

func listNodes(ctx context.Context, l controlplane.Layout) ([]corev1.Node, error) {
	client, err := client(l)
	if err != nil {
		return nil, err
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func client(l controlplane.Layout) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.AdminKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's kubeconfig: %w", err)
	}
	return kubernetes.NewForConfig(config)
}

func nodeCommand(layout layoutFunc) *cobra.Command {
	command := &cobra.Command{
		Use:   "node",
		Short: "Stop and start nodes",
	}
	var gone bool
	stop := &cobra.Command{
		Use:   "stop NAME",
		Short: "Simulate a node failure: kill its processes and stop its heartbeats",
		Long: `Simulate a node failure: kill the node's processes and stop renewing its lease.
Kubernetes marks the node NotReady after 50 seconds. It deletes the node's pods when
their toleration of unreachable nodes ends: 15 seconds later for pods of training jobs,
5 minutes later by default. A deleted pod remains Terminating, and some Jobs do not
replace it, until the node starts again or its Node object is deleted.

With --gone the Node object is deleted too, as a cloud provider does when the machine is
gone, and the pods are deleted immediately.`,
		Example: `  simcluster node stop node-2
  simcluster node stop node-2 --gone`,
		Args:              cli.NeedsArguments("NAME"),
		ValidArgsFunction: cli.FirstArgument(nodes(layout, false)),
		RunE: func(command *cobra.Command, args []string) error {
			l, _, err := runningCluster(layout)
			if err != nil {
				return err
			}
			return nodeagent.Dial(l.ControlSocket()).Stop(command.Context(), args[0], gone)
		},
	}
	stop.Flags().BoolVar(&gone, "gone", false, "delete the Node object too")
	start := &cobra.Command{
		Use:   "start NAME",
		Short: "Start a stopped node",
		Long: `Start a stopped node, as a reboot does. If its Node object was deleted, the node
registers again.`,
		Example:           "  simcluster node start node-2",
		Args:              cli.NeedsArguments("NAME"),
		ValidArgsFunction: cli.FirstArgument(nodes(layout, true)),
		RunE: func(command *cobra.Command, args []string) error {
			l, _, err := runningCluster(layout)
			if err != nil {
				return err
			}
			return nodeagent.Dial(l.ControlSocket()).Start(command.Context(), args[0])
		},
	}
	exitsWithoutCluster(stop, start)
	command.AddCommand(stop, start)
	return command
}

func logsCommand(layout layoutFunc) *cobra.Command {
	var namespace string
	var options corev1.PodLogOptions
	command := &cobra.Command{
		Use:   "logs POD",
		Short: "Print the logs of a pod's container",
		Long: `Print the logs of a pod's container, as kubectl logs does, on a machine without
kubectl.`,
		Example: `  simcluster logs my-pod -f
  simcluster logs my-pod -n team-a -c init --previous`,
		Args:              cli.NeedsArguments("POD"),
		ValidArgsFunction: cli.FirstArgument(pods(layout, &namespace)),
		RunE: func(command *cobra.Command, args []string) error {
			l, _, err := runningCluster(layout)
			if err != nil {
				return err
			}
			client, err := client(l)
			if err != nil {
				return err
			}
			stream, err := client.CoreV1().Pods(namespace).GetLogs(args[0], &options).Stream(command.Context())
			if err != nil {
				return fmt.Errorf("logs of pod %s/%s: %w", namespace, args[0], err)
			}
			defer stream.Close() //nolint:errcheck // Reading returns its errors.
			_, err = io.Copy(command.OutOrStdout(), stream)
			return err
		},
	}
	command.Flags().StringVarP(&namespace, "namespace", "n", metav1.NamespaceDefault, "namespace of the pod")
	command.Flags().StringVarP(&options.Container, "container", "c", "", "container name, if the pod has several")
	command.Flags().BoolVarP(&options.Follow, "follow", "f", false, "follow the logs")
	command.Flags().BoolVarP(&options.Previous, "previous", "p", false, "logs of the previous run of the container")
	cli.CompleteFlag(command, "namespace", namespaces(layout))
	cli.CompleteFlag(command, "container", containers(layout, &namespace))
	exitsWithoutCluster(command)
	return command
}
