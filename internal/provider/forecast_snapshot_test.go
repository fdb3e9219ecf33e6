package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// oneNode is a cluster as `kubectl get -o yaml` prints it.
const oneNode = `
{apiVersion: v1, kind: Node, metadata: {name: node-1}, status: {allocatable: {cpu: "4", pods: "10"}, conditions: [{type: Ready, status: "True", lastHeartbeatTime: "2026-11-21T10:04:07Z"}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: old, namespace: default}, spec: {nodeName: node-1, priority: -10, containers: [{name: c, resources: {requests: {cpu: 3}}}]}, status: {phase: Running}}
`

func TestAForecastFromASnapshotNeedsNoCluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(file, []byte(oneNode), 0o600); err != nil {
		t.Fatal(err)
	}
	// No request can be sent to this host.
	c := newConnection(cluster.Config{Host: "https://127.0.0.1:0"}, nil, forecastConfig{mode: forecastOff, timeout: patience.Medium})
	d := &forecastData{dataSource{connection: c}}
	model := &forecastDataModel{Snapshot: types.StringValue(file), Manifest: types.StringValue("{apiVersion: v1, kind: Pod, metadata: {name: new}, spec: {containers: [{name: c, resources: {requests: {cpu: 3}}}]}}")}
	answer, diags, err := d.forecastFromFile(t.Context(), model)
	if err != nil || diags.HasError() || len(answer.Evicts) != 1 || answer.Evicts[0].Name != "old" || answer.AsOf.Minute() != 4 {
		t.Errorf("%v %v %s", err, diags, answer.Text())
	}
	model.Snapshot = types.StringValue(file + "x")
	if _, diags, _ = d.forecastFromFile(t.Context(), model); !diags.HasError() || !strings.Contains(diags[0].Detail(), "cluster.yamlx") {
		t.Error(diags)
	}
}
