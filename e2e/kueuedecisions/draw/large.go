package draw

import (
	"fmt"
	"strconv"
)

// large is a scenario for timing: that many queues in cohorts of ten, ten workloads for each, and five times as many nodes
// of 8 CPUs in three levels: blocks of 200 nodes, racks of 20, and hosts. The workloads are submitted in turns.
func large(queues int) object {
	levels := []object{{"nodeLabel": "cloud/block"}, {"nodeLabel": "cloud/rack"}, {"nodeLabel": hostname}}
	kinds := []string{"spot", "on-demand"}
	s := object{
		"format": 1, "name": fmt.Sprintf("large-%d", queues), "cohorts": []object{},
		"priorityClasses": []object{{"name": "low", "value": 10}, {"name": "mid", "value": 100}, {"name": "high", "value": 1000}},
		"topologies":      []object{{"name": "default", "spec": object{"levels": levels}}},
	}
	var nodes, flavors, clusterQueues, localQueues, steps []object
	for i := range 5 * queues {
		name := fmt.Sprintf("node-%05d", i)
		nodes = append(nodes, object{
			"name": name,
			"labels": map[string]string{
				"kind": kinds[i%2], "cloud/block": fmt.Sprintf("b%d", i/200), "cloud/rack": fmt.Sprintf("r%d", i/20), hostname: name,
			},
			"allocatable": map[string]string{"cpu": "8", "memory": "64Gi", "pods": "110"},
		})
	}
	for _, kind := range kinds {
		flavors = append(flavors, object{"name": kind, "spec": object{"topologyName": "default", "nodeLabels": map[string]string{"kind": kind}}})
	}
	quota := func(kind, cpu string) object {
		return object{"name": kind, "resources": []object{{"name": "cpu", "nominalQuota": cpu}}}
	}
	for i := range queues {
		name := fmt.Sprintf("q%04d", i)
		clusterQueues = append(clusterQueues, object{"name": name, "spec": object{
			"queueingStrategy": []string{"BestEffortFIFO", "StrictFIFO"}[i%2], "cohortName": fmt.Sprintf("team-%d", i/10),
			"preemption": object{"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
			"resourceGroups": []object{{
				"coveredResources": []string{"cpu"}, "flavors": []object{quota("spot", "10"), quota("on-demand", "6")},
			}},
		}})
		localQueues = append(localQueues, object{"name": "lq-" + name, "clusterQueue": name})
	}
	for i := range 10 * queues {
		request := []object{{"required": "cloud/rack"}, {"preferred": "cloud/block"}, {"required": "cloud/block"}, {"unconstrained": true}}[i/queues%4]
		steps = append(steps, object{"op": "submit", "workload": object{
			"name": fmt.Sprintf("w%05d", i), "queue": fmt.Sprintf("lq-q%04d", i%queues), "priorityClass": []string{"low", "mid", "high"}[i/queues%3],
			"count": 1 + i%4, "requests": map[string]string{"cpu": strconv.Itoa(1 + i%2)}, "topologyRequest": request,
		}})
	}
	s["nodes"], s["flavors"], s["clusterQueues"], s["localQueues"], s["steps"] = nodes, flavors, clusterQueues, localQueues, steps
	return s
}
