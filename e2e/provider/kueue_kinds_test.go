package provider_test

// kueueKind describes a resource of Kueue's for the tests that all of them pass. Fields are JSON as the API server has
// them after the configuration beside them was applied: all of spec, or of the object's own fields.
type kueueKind struct {
	resource   string
	namespaced bool // in namespace default
	flat       bool // its fields are the object's own, without spec

	created, createdFields string // as it is made
	updated, updatedFields string // everything changed and added, in place
	reduced, reducedFields string // with only what is required, after that
	replaced               string // a change that replaces it; "" where only another name does

	// later is the output of another resource, given as its input, and unknown are attributes that come from it.
	later, unknown, unknownFields string
}

const (
	preemptionDefaults = `"preemption":{"withinClusterQueue":"Never","reclaimWithinCohort":"Never","borrowWithinCohort":{"policy":"Never"}}`
	queueDefaults      = `"queueingStrategy":"BestEffortFIFO","stopPolicy":"None","flavorFungibility":{"whenCanBorrow":"MayStopSearch","whenCanPreempt":"TryNextFlavor"}`
)

func kueueKinds() []kueueKind {
	return []kueueKind{
		{
			resource: "elastic_workload_priority_class", flat: true,
			created: `value = 100`, createdFields: `{"value":100}`,
			updated:       "value = -200\n description = \"for experiments\"",
			updatedFields: `{"value":-200,"description":"for experiments"}`,
			reduced:       `value = -200`, reducedFields: `{"value":-200}`,
			later: `{ value = 7, text = "made later" }`, unknown: "value = LATER.value\n description = LATER.text",
			unknownFields: `{"value":7,"description":"made later"}`,
		},
		{
			resource: "elastic_resource_flavor",
			created:  `node_labels = { "example.com/gpu" = "t4" }`, createdFields: `{"nodeLabels":{"example.com/gpu":"t4"}}`,
			updated: `
				node_labels = { "example.com/gpu" = "a100", "example.com/spot" = "true" }
				node_taints = [{ key = "example.com/spot", value = "true", effect = "NoSchedule" }]
				tolerations = [
				  { key = "example.com/spot", operator = "Exists", effect = "NoSchedule" },
				  { key = "example.com/slow", value = "yes", effect = "NoExecute", toleration_seconds = 60 },
				]`,
			updatedFields: `{
				"nodeLabels":{"example.com/gpu":"a100","example.com/spot":"true"},
				"nodeTaints":[{"key":"example.com/spot","value":"true","effect":"NoSchedule"}],
				"tolerations":[{"key":"example.com/spot","operator":"Exists","effect":"NoSchedule"},
				  {"key":"example.com/slow","value":"yes","effect":"NoExecute","tolerationSeconds":60}]}`,
			reduced: `node_labels = { "example.com/gpu" = "a100" }`, reducedFields: `{"nodeLabels":{"example.com/gpu":"a100"}}`,
			later: `{ labels = { zone = "a" }, taint = "x", key = "y", topology = "t" }`,
			unknown: `
				node_labels   = LATER.labels
				node_taints   = [{ key = LATER.taint, effect = "NoSchedule" }]
				tolerations   = [{ key = LATER.key, operator = "Exists" }]
				topology_name = LATER.topology`,
			unknownFields: `{"nodeLabels":{"zone":"a"},"nodeTaints":[{"key":"x","effect":"NoSchedule"}],"tolerations":[{"key":"y","operator":"Exists"}],"topologyName":"t"}`,
		},
		{
			resource: "elastic_cluster_queue",
			created: `
				namespace_selector = {}
				resource_groups = [{
				  covered_resources = ["cpu", "memory"]
				  flavors = [{ name = "spot", resources = [{ name = "cpu", nominal_quota = "4000m" }, { name = "memory", nominal_quota = "1024Mi" }] }]
				}]`,
			createdFields: `{` + queueDefaults + `,` + preemptionDefaults + `,"namespaceSelector":{},
				"resourceGroups":[{"coveredResources":["cpu","memory"],"flavors":[
				  {"name":"spot","resources":[{"name":"cpu","nominalQuota":"4"},{"name":"memory","nominalQuota":"1Gi"}]}]}]}`,
			updated: `
				cohort_name        = "research"
				queueing_strategy  = "StrictFIFO"
				stop_policy        = "Hold"
				namespace_selector = {
				  match_labels      = { team = "ml" }
				  match_expressions = [{ key = "tier", operator = "In", values = ["gold", "silver"] }, { key = "old", operator = "DoesNotExist" }]
				}
				resource_groups = [{
				  covered_resources = ["cpu"]
				  flavors = [
				    { name = "spot", resources = [{ name = "cpu", nominal_quota = "8", borrowing_limit = "2", lending_limit = "500m" }] },
				    { name = "on-demand", resources = [{ name = "cpu", nominal_quota = "0" }] },
				  ]
				}]
				preemption = {
				  within_cluster_queue  = "LowerPriority"
				  reclaim_within_cohort = "Any"
				  borrow_within_cohort  = { policy = "LowerPriority", max_priority_threshold = -5 }
				}
				flavor_fungibility        = { when_can_borrow = "TryNextFlavor", when_can_preempt = "TryNextFlavor", preference = "PreemptionOverBorrowing" }
				admission_checks_strategy = { admission_checks = [{ name = "provisioned", on_flavors = ["spot"] }] }
				fair_sharing              = { weight = "2500m" }
				admission_scope           = { admission_mode = "UsageBasedAdmissionFairSharing" }`,
			updatedFields: `{"cohortName":"research","queueingStrategy":"StrictFIFO","stopPolicy":"Hold",
				"namespaceSelector":{"matchLabels":{"team":"ml"},"matchExpressions":[{"key":"tier","operator":"In","values":["gold","silver"]},{"key":"old","operator":"DoesNotExist"}]},
				"resourceGroups":[{"coveredResources":["cpu"],"flavors":[
				  {"name":"spot","resources":[{"name":"cpu","nominalQuota":"8","borrowingLimit":"2","lendingLimit":"500m"}]},
				  {"name":"on-demand","resources":[{"name":"cpu","nominalQuota":"0"}]}]}],
				"preemption":{"withinClusterQueue":"LowerPriority","reclaimWithinCohort":"Any","borrowWithinCohort":{"policy":"LowerPriority","maxPriorityThreshold":-5}},
				"flavorFungibility":{"whenCanBorrow":"TryNextFlavor","whenCanPreempt":"TryNextFlavor","preference":"PreemptionOverBorrowing"},
				"admissionChecksStrategy":{"admissionChecks":[{"name":"provisioned","onFlavors":["spot"]}]},
				"fairSharing":{"weight":"2500m"},"admissionScope":{"admissionMode":"UsageBasedAdmissionFairSharing"}}`,
			reduced:       `preemption = { within_cluster_queue = "LowerPriority" }`,
			reducedFields: `{` + queueDefaults + `,"preemption":{"withinClusterQueue":"LowerPriority","reclaimWithinCohort":"Never","borrowWithinCohort":{"policy":"Never"}}}`,
			later:         `{ flavor = "spot", quota = "4", cohort = "c", within = "LowerPriority", selector = { team = "ml" } }`,
			unknown: `
				cohort_name        = LATER.cohort
				namespace_selector = { match_labels = LATER.selector }
				preemption         = { within_cluster_queue = LATER.within }
				resource_groups = [{
				  covered_resources = ["cpu"]
				  flavors           = [{ name = LATER.flavor, resources = [{ name = "cpu", nominal_quota = LATER.quota, borrowing_limit = LATER.quota }] }]
				}]
				admission_checks_strategy = { admission_checks = [{ name = "c", on_flavors = [LATER.flavor] }] }`,
			unknownFields: `{` + queueDefaults + `,"cohortName":"c","namespaceSelector":{"matchLabels":{"team":"ml"}},
				"preemption":{"withinClusterQueue":"LowerPriority","reclaimWithinCohort":"Never","borrowWithinCohort":{"policy":"Never"}},
				"resourceGroups":[{"coveredResources":["cpu"],"flavors":[{"name":"spot","resources":[{"name":"cpu","nominalQuota":"4","borrowingLimit":"4"}]}]}],
				"admissionChecksStrategy":{"admissionChecks":[{"name":"c","onFlavors":["spot"]}]}}`,
		},
		{
			resource: "elastic_local_queue", namespaced: true,
			created: `cluster_queue = "research"`, createdFields: `{"clusterQueue":"research","stopPolicy":"None"}`,
			updated:       "cluster_queue = \"research\"\n stop_policy = \"HoldAndDrain\"\n fair_sharing = { weight = \"0\" }",
			updatedFields: `{"clusterQueue":"research","stopPolicy":"HoldAndDrain","fairSharing":{"weight":"0"}}`,
			reduced:       `cluster_queue = "research"`, reducedFields: `{"clusterQueue":"research","stopPolicy":"None"}`,
			replaced: `cluster_queue = "production"`,
			later:    `{ queue = "q", stop = "Hold", weight = "2" }`, unknown: "cluster_queue = LATER.queue\n stop_policy = LATER.stop\n fair_sharing = { weight = LATER.weight }",
			unknownFields: `{"clusterQueue":"q","stopPolicy":"Hold","fairSharing":{"weight":"2"}}`,
		},
		{
			resource: "elastic_cohort",
			created:  `fair_sharing = {}`, createdFields: `{"fairSharing":{"weight":"1"}}`,
			updated: `
				parent_name     = "root"
				resource_groups = [{
				  covered_resources = ["cpu"]
				  flavors           = [{ name = "spot", resources = [{ name = "cpu", nominal_quota = "2", borrowing_limit = "1", lending_limit = "3" }] }]
				}]
				fair_sharing = { weight = "2" }`,
			updatedFields: `{"parentName":"root","fairSharing":{"weight":"2"},"resourceGroups":[{"coveredResources":["cpu"],"flavors":[
				{"name":"spot","resources":[{"name":"cpu","nominalQuota":"2","borrowingLimit":"1","lendingLimit":"3"}]}]}]}`,
			reduced: `parent_name = "root"`, reducedFields: `{"parentName":"root"}`,
			later: `{ parent = "p", quota = "1" }`,
			unknown: `
				parent_name     = LATER.parent
				resource_groups = [{ covered_resources = ["cpu"], flavors = [{ name = "f", resources = [{ name = "cpu", nominal_quota = LATER.quota, lending_limit = "1" }] }] }]`,
			unknownFields: `{"parentName":"p","resourceGroups":[{"coveredResources":["cpu"],"flavors":[{"name":"f","resources":[{"name":"cpu","nominalQuota":"1","lendingLimit":"1"}]}]}]}`,
		},
		{
			resource: "elastic_topology",
			created:  `levels = [{ node_label = "example.com/rack" }]`, createdFields: `{"levels":[{"nodeLabel":"example.com/rack"}]}`,
			updated:       "levels = [{ node_label = \"example.com/rack\" }]\n labels = { team = \"ml\" }",
			updatedFields: `{"levels":[{"nodeLabel":"example.com/rack"}]}`,
			reduced:       `levels = [{ node_label = "example.com/rack" }]`, reducedFields: `{"levels":[{"nodeLabel":"example.com/rack"}]}`,
			replaced: `levels = [{ node_label = "example.com/rack" }, { node_label = "kubernetes.io/hostname" }]`,
			later:    `{ rack = "example.com/rack" }`, unknown: `levels = [{ node_label = LATER.rack }]`,
			unknownFields: `{"levels":[{"nodeLabel":"example.com/rack"}]}`,
		},
		{
			resource: "elastic_admission_check",
			created:  `controller_name = "example.com/checker"`, createdFields: `{"controllerName":"example.com/checker"}`,
			updated:       "controller_name = \"example.com/checker\"\n parameters = { api_group = \"example.com\", kind = \"Config\", name = \"strict\" }",
			updatedFields: `{"controllerName":"example.com/checker","parameters":{"apiGroup":"example.com","kind":"Config","name":"strict"}}`,
			reduced:       `controller_name = "example.com/checker"`, reducedFields: `{"controllerName":"example.com/checker"}`,
			replaced: `controller_name = "example.com/other"`,
			later:    `{ controller = "c", name = "n" }`, unknown: "controller_name = LATER.controller\n parameters = { api_group = \"g\", kind = \"Kind\", name = LATER.name }",
			unknownFields: `{"controllerName":"c","parameters":{"apiGroup":"g","kind":"Kind","name":"n"}}`,
		},
	}
}
