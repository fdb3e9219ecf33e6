package draw

import "fmt"

// admissionFairSharing draws Kueue's configuration of it. Now and then quota is shared fairly as well.
func (d *drawing) admissionFairSharing() object {
	d.with.fair = d.chance(25)
	settings := object{
		"usageHalfLifeTime":     pick(d, "0s", "5s", "30s", "2m", "1h"),
		"usageSamplingInterval": pick(d, "5s", "7s", "30s", "5m"),
	}
	if d.chance(40) {
		settings["resourceWeights"] = pick(d, object{"cpu": 0.1}, object{"cpu": 0}, object{"cpu": 2, "example.com/gpu": 7.5}, object{"example.com/gpu": 0})
	}
	return settings
}

// severalLocals draws the LocalQueues of a ClusterQueue, which may order workloads by their usage.
func (d *drawing) severalLocals(queue string, spec object) (locals []object) {
	if d.chance(85) {
		spec["admissionScope"] = object{"admissionMode": pick(d, "UsageBasedAdmissionFairSharing", "UsageBasedAdmissionFairSharing",
			"UsageBasedAdmissionFairSharing", "UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing")}
	}
	for i := range d.below(1, 3) {
		local := object{"name": fmt.Sprintf("lq-%s%d", queue, i+1), "clusterQueue": queue}
		if d.chance(50) {
			local["fairSharing"] = object{"weight": pick(d, "2", "500m", "3", "0")}
		}
		d.locals = append(d.locals, local["name"].(string))
		locals = append(locals, local)
	}
	return locals
}
