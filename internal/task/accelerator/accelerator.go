// Package accelerator knows what an accelerator is called on nodes: from its name ("T4") to the labels by which clouds,
// node labellers and people mark the nodes that have it, and back. One table says it, and users extend the table.
package accelerator

// Request asks for so many accelerators of a kind in each pod: SkyPilot's "T4:4".
type Request struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Definition is one row of the table.
type Definition struct {
	// Resource is what a pod requests: "nvidia.com/gpu", "google.com/tpu" or "amd.com/gpu". "" is nvidia.com/gpu.
	Resource string `json:"resource,omitempty" yaml:"resource"`
	// Labels are the values by label key, any of which marks a node that has the accelerator.
	Labels map[string][]string `json:"labels" yaml:"labels"`
	// Topologies, by count, are values that GKE's TPU nodes have in the label cloud.google.com/gke-tpu-topology besides.
	Topologies map[int]string `json:"topologies,omitempty" yaml:"topologies"`
}
