package command

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/nodeagent"
)

// completionPatience is how long somebody who has pressed Tab waits.
const completionPatience = 2 * time.Second

// fromCluster completes by what the running cluster knows, and by nothing where none runs or answers.
func fromCluster(layout layoutFunc, ask func(ctx context.Context, l controlplane.Layout, args []string) ([]string, error)) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		l, _, err := runningCluster(layout)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(command.Context(), completionPatience)
		defer cancel()
		names, err := ask(ctx, l, args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return cli.Beginning(typed, names)
	}
}

// nodes completes by the nodes that are stopped, or by the others.
func nodes(layout layoutFunc, stopped bool) cobra.CompletionFunc {
	return fromCluster(layout, func(ctx context.Context, l controlplane.Layout, _ []string) ([]string, error) {
		states, err := nodeagent.Dial(l.ControlSocket()).Nodes(ctx)
		var names []string
		for _, state := range states {
			if state.Running != stopped {
				names = append(names, state.Name)
			}
		}
		return names, err
	})
}

// fromServer completes by what the API server knows.
func fromServer(layout layoutFunc, ask func(ctx context.Context, client kubernetes.Interface, args []string) ([]string, error)) cobra.CompletionFunc {
	return fromCluster(layout, func(ctx context.Context, l controlplane.Layout, args []string) ([]string, error) {
		client, err := client(l)
		if err != nil {
			return nil, err
		}
		return ask(ctx, client, args)
	})
}

func namespaces(layout layoutFunc) cobra.CompletionFunc {
	return fromServer(layout, func(ctx context.Context, client kubernetes.Interface, _ []string) ([]string, error) {
		list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names, nil
	})
}

// pods completes by those of the namespace, each with its phase.
func pods(layout layoutFunc, namespace *string) cobra.CompletionFunc {
	return fromServer(layout, func(ctx context.Context, client kubernetes.Interface, _ []string) ([]string, error) {
		list, err := client.CoreV1().Pods(*namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		var names []string
		for i := range list.Items {
			names = append(names, cobra.CompletionWithDesc(list.Items[i].Name, string(list.Items[i].Status.Phase)))
		}
		return names, nil
	})
}

// containers completes by those of the pod that is named already.
func containers(layout layoutFunc, namespace *string) cobra.CompletionFunc {
	return fromServer(layout, func(ctx context.Context, client kubernetes.Interface, args []string) ([]string, error) {
		if len(args) == 0 {
			return nil, nil
		}
		pod, err := client.CoreV1().Pods(*namespace).Get(ctx, args[0], metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		var names []string
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			names = append(names, c.Name)
		}
		return names, nil
	})
}
