package simcluster_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/simcluster"
)

// A program starts a cluster with Run; a test uses Start or Main, which stop it when the test ends.
func ExampleRun() {
	ctx := context.Background()
	var options simcluster.Options
	simcluster.Nodes(2, "8", "30Gi")(&options)
	cluster, err := simcluster.Run(ctx, options)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cluster.Close() }() // the example's output shows whether it worked

	client, err := cluster.Client()
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, node := range nodes.Items {
		fmt.Println(node.Name, node.Status.Capacity.Cpu(), node.Status.NodeInfo.KubeletVersion)
	}
	// Output:
	// node-1 8 v1.37.1
	// node-2 8 v1.37.1
}
