package provider

import (
	"maps"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
)

// Why an attribute's values have one spelling.
const (
	aName   = "the name of something"
	aNumber = "a number"
	aWord   = "one word of several, without a default"
	aText   = "a text that is taken as it is"
	aLevel  = "the key of a label"
	aPlace  = "without it there is none, and an empty one is refused"
)

type (
	entries = map[string]any
	items   = []any
)

func alike(groups ...[]any) spelling { return spelling{same: groups} }

func (s spelling) but(other any) spelling {
	s.other = other
	return s
}

func (s spelling) given(with map[string]any) spelling {
	s.with = with
	return s
}

func one(why string, other any) spelling { return spelling{only: why, other: other} }

// byDefault is an attribute with a default, which can be written out.
func byDefault(value, other any) spelling { return alike(items{nil, value}).but(other) }

// labelled are the attributes of all resources.
func labelled(timeout, seconds string) map[string]spelling {
	all := map[string]spelling{
		"generate_name": one("the name begins with it", "other-").given(entries{"name": nil, "generate_name": "low-"}),
		"labels":        alike(items{nil, entries{}}).but(entries{"a": "b"}),
		"annotations":   alike(items{nil, entries{}}).but(entries{"a": "b"}),
		"timeouts":      alike(items{nil, entries{}, entries{"create": timeout, "update": seconds}}, items{entries{"create": "90s"}, entries{"create": "1m30s"}}).but(entries{"delete": "1h"}),
	}
	for _, operation := range []string{"create", "update", "delete"} {
		all["timeouts."+operation] = alike(items{nil, timeout, seconds}, items{"90s", "1m30s", "1.5m"}).but("1h").given(entries{"timeouts": entries{}})
	}
	return all
}

var (
	rack   = entries{"required": "rack"}
	sliced = entries{"slice_size": 1, "slice_required": "rack"}
)

// racked is a topology, which only a job in a queue can have.
func racked(topology any) map[string]any {
	return map[string]any{"queue": entries{"name": "q"}, "topology": topology}
}

func together(tables ...map[string]spelling) map[string]spelling {
	all := map[string]spelling{}
	for _, table := range tables {
		maps.Copy(all, table)
	}
	return all
}

func baselines() map[string]baseline {
	return map[string]baseline{
		"elastic_task": taskBaseline(), "elastic_training_job": trainingJobBaseline(),
		"elastic_priority_class": priorityClassBaseline(), "elastic_workload_priority_class": workloadPriorityClassBaseline(),
		"elastic_cluster_queue": clusterQueueBaseline(), "elastic_local_queue": localQueueBaseline(), "elastic_cohort": cohortBaseline(),
		"elastic_resource_flavor": resourceFlavorBaseline(), "elastic_topology": topologyBaseline(), "elastic_admission_check": admissionCheckBaseline(),
	}
}

func jobSpellings() map[string]spelling {
	return together(labelled("10m", "600s"), map[string]spelling{
		"name":                 one(aName, "another"),
		"namespace":            byDefault("default", "ml"),
		"service_account_name": one(aName, "another"),
		"image_pull_secrets":   alike(items{nil, items{}}, items{items{"a", "b"}, items{"b", "a"}}).but(items{"a"}),
		"wait_for":             byDefault("created", "running"),

		"active_deadline_seconds": one(aNumber+", and none where it is left out", 60),
		"fail_on_error":           byDefault(false, true),
		"on_finished":             byDefault("keep", "recreate"),
	})
}

func volumeSpellings() map[string]spelling {
	from := func(source string) map[string]any {
		volume := entries{"name": "data", "mount_path": "/data"}
		if source == "empty_dir" {
			volume["empty_dir"] = entries{}
		} else {
			volume[source] = map[string]any{"host_path": "/x", "claim_name": "x", "config_map": "x"}[source]
		}
		return entries{"volumes": items{volume}}
	}
	return map[string]spelling{
		"volumes": alike(items{nil, items{}}, items{
			items{entries{"name": "a", "mount_path": "/a", "claim_name": "a"}, entries{"name": "b", "mount_path": "/b", "claim_name": "b"}},
			items{entries{"name": "b", "mount_path": "/b", "claim_name": "b"}, entries{"name": "a", "mount_path": "/a", "claim_name": "a"}},
		}, items{
			items{entries{"name": "a", "mount_path": "/a", "claim_name": "a"}},
			items{entries{"name": "a", "mount_path": "/a", "claim_name": "a", "host_path": "", "config_map": ""}},
		}).but(items{entries{"name": "a", "mount_path": "/a", "claim_name": "a"}}),
		"volumes[].name":                 one(aName, "other").given(from("claim_name")),
		"volumes[].mount_path":           alike(items{"/data", "/data/"}).but("/other").given(from("claim_name")),
		"volumes[].claim_name":           one(aName, "y").given(from("claim_name")),
		"volumes[].host_path":            alike(items{"/x", "/x/", "/y/../x"}).given(from("host_path")).but("/y"),
		"volumes[].config_map":           one(aName, "y").given(from("config_map")),
		"volumes[].empty_dir":            alike(items{entries{}, entries{"medium": nil}}).given(from("empty_dir")).but(entries{"medium": "Memory"}),
		"volumes[].empty_dir.medium":     one("nothing or Memory", "Memory").given(from("empty_dir")),
		"volumes[].empty_dir.size_limit": alike(items{"1Gi", "1024Mi", "1073741824"}).given(from("empty_dir")).but("2Gi"),
	}
}

func tolerationSpellings() map[string]spelling {
	exists := entries{"key": "spot", "operator": "Exists"}
	gpu := entries{"key": "gpu", "value": "a", "effect": "NoSchedule"}
	equal := entries{"tolerations": items{entries{"key": "gpu", "value": "a"}}}
	return map[string]spelling{
		"tolerations":                      alike(items{nil, items{}}, items{items{exists, gpu}, items{gpu, exists}}).but(items{exists}),
		"tolerations[].key":                alike(items{nil, ""}).given(entries{"tolerations": items{entries{"operator": "Exists"}}}).but("spot"),
		"tolerations[].operator":           alike(items{nil, "Equal"}).given(equal).but("Exists").given(entries{"tolerations": items{entries{"key": "gpu"}}}),
		"tolerations[].value":              alike(items{nil, ""}).given(entries{"tolerations": items{entries{"key": "gpu"}}}).but("b"),
		"tolerations[].effect":             one(aWord, "NoExecute").given(equal),
		"tolerations[].toleration_seconds": one(aNumber, 5).given(entries{"tolerations": items{entries{"key": "gpu", "value": "a", "effect": "NoExecute"}}}),
	}
}

// settingSpellings are those of rights, and of what runs before the pod's own container.
func settingSpellings(user int) map[string]spelling {
	fetch := entries{"name": "fetch", "volume_mounts": items{entries{"name": "data", "mount_path": "/data"}}, "resources": entries{}}
	init := entries{"init_containers": items{fetch}, "pod_overrides": `{"spec":{"volumes":[{"name":"data","emptyDir":{}}]}}`}
	rights := entries{"security_context": entries{}}
	seccomp := entries{"security_context": entries{"seccomp_profile": entries{"type": "Unconfined"}}}
	capabilities := entries{"security_context": entries{"capabilities": entries{"add": items{"IPC_LOCK"}}}}
	const isSet = "a set, which is not empty"
	return map[string]spelling{
		"security_context":                                   alike(items{nil, entries{}, entries{"capabilities": entries{}}}).but(entries{"run_as_user": user + 1}),
		"security_context.run_as_user":                       one(aNumber, user+1).given(rights),
		"security_context.run_as_group":                      one(aNumber, user+1).given(rights),
		"security_context.run_as_non_root":                   one("true or false; the image decides otherwise", false).given(rights),
		"security_context.fs_group":                          one(aNumber, user+1).given(rights),
		"security_context.supplemental_groups":               one(isSet, items{5}).given(rights),
		"security_context.seccomp_profile":                   one("without it the pod's own", entries{"type": "Unconfined"}).given(rights),
		"security_context.seccomp_profile.type":              one(aWord, "RuntimeDefault").given(seccomp),
		"security_context.seccomp_profile.localhost_profile": one(aName, "b").given(entries{"security_context": entries{"seccomp_profile": entries{"type": "Localhost", "localhost_profile": "a"}}}),
		"security_context.read_only_root_filesystem":         one("true or false; the cluster decides otherwise", false).given(rights),
		"security_context.allow_privilege_escalation":        one("true or false; the cluster decides otherwise", true).given(rights),
		"security_context.capabilities":                      alike(items{nil, entries{}}).but(entries{"add": items{"IPC_LOCK"}}).given(rights),
		"security_context.capabilities.add":                  one(isSet, items{"SYS_NICE"}).given(capabilities),
		"security_context.capabilities.drop":                 one(isSet, items{"KILL"}).given(capabilities),

		"init_containers":                              alike(items{nil, items{}}).but(items{entries{"name": "fetch"}}),
		"init_containers[].name":                       one(aName, "other").given(init),
		"init_containers[].image":                      one(aName, "other").given(init),
		"init_containers[].command":                    one("the words of a command are in order", items{"a"}).given(init),
		"init_containers[].args":                       one("arguments are in order", items{"a"}).given(init),
		"init_containers[].env":                        alike(items{nil, entries{}}).but(entries{"A": "b"}).given(init),
		"init_containers[].volume_mounts":              alike(items{nil, items{}}).but(items{entries{"name": "data", "mount_path": "/a"}}).given(init),
		"init_containers[].volume_mounts[].name":       one(aName, "more").given(besides(init, "pod_overrides", `{"spec":{"volumes":[{"name":"data","emptyDir":{}},{"name":"more","emptyDir":{}}]}}`)),
		"init_containers[].volume_mounts[].mount_path": alike(items{"/data", "/data/"}).but("/b").given(init),
		"init_containers[].volume_mounts[].sub_path":   one(aName, "b").given(init),
		"init_containers[].volume_mounts[].read_only":  byDefault(false, true).given(init),
		"init_containers[].resources":                  alike(items{entries{"requests": entries{"cpu": "1"}}, entries{"requests": entries{"cpu": "1000m"}, "limits": entries{}}}).but(entries{"requests": entries{"cpu": "2"}}).given(init),
		"init_containers[].resources.requests":         alike(items{nil, entries{}}, items{entries{"cpu": "1"}, entries{"cpu": "1000m"}}).but(entries{"cpu": "2"}).given(init),
		"init_containers[].resources.limits":           alike(items{nil, entries{}}, items{entries{"cpu": "1"}, entries{"cpu": "1000m"}}).but(entries{"cpu": "2"}).given(init),
	}
}

func besides(config map[string]any, path string, value any) map[string]any {
	changed := maps.Clone(config)
	changed[path] = value
	return changed
}

func taskBaseline() baseline {
	lambda := entries{"labels": entries{"gpu": items{"a"}}}
	yaml := entries{"run": nil, "yaml": "run: echo\n"}
	return baseline{
		config: entries{"name": "low", "run": "echo"},
		spellings: together(jobSpellings(), volumeSpellings(), tolerationSpellings(), settingSpellings(1000), map[string]spelling{
			"yaml": alike(items{
				"run: echo\n", "# prints nothing\nrun:   echo", "{run: echo}", "num_nodes: 1\nrun: |\n  echo\n", "resources: {}\nrun: 'echo'\n",
			}, items{
				"run: echo\nnum_nodes: 2\nresources: {accelerators: T4:1, cpus: 1}\n", "resources:\n  cpus: '1'\n  accelerators: {T4: 1}\nnum_nodes: 2\nrun: echo",
			}).given(yaml).but("run: sleep"),
			"run":                             alike(items{"echo", "echo\n"}).but("sleep"),
			"setup":                           alike(items{nil, ""}, items{"pip", "pip\n"}).but("pip"),
			"num_nodes":                       byDefault(1, 2),
			"rejoin":                          byDefault(false, true).given(entries{"num_nodes": 2}),
			"env":                             alike(items{nil, entries{}}).but(entries{"A": "b"}),
			"workdir":                         alike(items{nil, entries{}}).but(entries{"a.py": "b"}),
			"image":                           byDefault(task.DefaultImage, "debian"),
			"image_pull_policy":               alike(items{nil, "IfNotPresent"}).but("Always"),
			"cpus":                            alike(items{"1", "1000m", "1.0", "1e0"}, items{"4+", "4000m+"}).but("2"),
			"memory":                          alike(items{"1", "1Gi", "1024Mi", "1GB", "1.0"}, items{"0.5+", "512Mi+"}).but("1G"),
			"recovery":                        alike(items{nil, entries{}, entries{"max_restarts_on_errors": 0}, entries{"recover_on_exit_codes": items{}}}).but(entries{"max_restarts_on_errors": 1}),
			"recovery.max_restarts_on_errors": byDefault(0, 1).given(entries{"recovery": entries{}}),
			"recovery.recover_on_exit_codes":  alike(items{nil, items{}}, items{items{1, 2}, items{2, 1}}).but(items{1}).given(entries{"recovery": entries{}}),
			"accelerators": alike(items{"T4:4", "t4:4", items{"T4:4"}, listOf{"T4:4"}}, items{"H100", "H100:1"},
				items{items{"H100:8", "A100:8"}, listOf{"H100:8", "A100:8"}}, items{set{"H100:8", "A100:8"}, set{"a100:8", "H100:8"}}).but("T4:2"),
			"accelerator_labels":              alike(items{nil, entries{}}).but(entries{"T4": lambda}).given(entries{"accelerators": "T4"}),
			"accelerator_labels[].resource":   byDefault("nvidia.com/gpu", "amd.com/gpu").given(entries{"accelerator_labels": entries{"X": lambda}, "accelerators": "X"}),
			"accelerator_labels[].labels":     alike(items{entries{"gpu": items{"a", "b"}}, entries{"gpu": items{"b", "a"}}}).but(entries{"gpu": items{"c"}}).given(entries{"accelerator_labels": entries{"X": lambda}, "accelerators": "X"}),
			"accelerator_labels[].topologies": alike(items{nil, entries{}}).but(entries{"1": "1x1"}).given(entries{"accelerator_labels": entries{"X": lambda}, "accelerators": "X"}),
			"queue":                           one("without it there is none, and an empty one is refused", entries{"name": "another"}),
			"queue.name":                      one(aName, "another").given(entries{"queue": entries{"workload_priority_class": "low"}}),
			"queue.workload_priority_class":   one(aName, "another").given(entries{"queue": entries{"name": "user-queue"}}),
			"topology":                        one(aPlace, rack).given(racked(nil)),
			"topology.required":               one(aLevel, "block").given(racked(rack)),
			"topology.preferred":              one(aLevel, "block").given(racked(entries{"preferred": "rack"})),
			"topology.unconstrained":          byDefault(false, true).given(racked(sliced)),
			"topology.slice_size":             one(aNumber, 2).given(racked(sliced)),
			"topology.slice_required":         one(aLevel, "block").given(racked(sliced)),
			"secrets":                         alike(items{nil, entries{}}).but(entries{"TOKEN": entries{"secret_name": "a", "key": "b"}}),
			"secrets[].secret_name":           one(aName, "another").given(entries{"secrets": entries{"TOKEN": entries{"secret_name": "a", "key": "b"}}}),
			"secrets[].key":                   one(aName, "another").given(entries{"secrets": entries{"TOKEN": entries{"secret_name": "a", "key": "b"}}}),
			"secrets_wo": {
				only: "its values are in neither state nor plan", unseen: "secrets_wo_version tells that the values are others",
				with: entries{"secrets_wo": entries{"TOKEN": "a"}, "secrets_wo_version": 1},
			},
			"secrets_wo_version":               one(aNumber, 2).given(entries{"secrets_wo": entries{"TOKEN": "a"}, "secrets_wo_version": 1}),
			"volumes[].read_only":              byDefault(false, true).given(entries{"volumes": items{entries{"name": "a", "mount_path": "/a", "claim_name": "a"}}}),
			"supervisor_image":                 byDefault(task.DefaultTrainerImage("test"), "another").given(entries{"num_nodes": 2}),
			"priority_class_name":              one(aName, "high"),
			"node_selector":                    alike(items{nil, entries{}}).but(entries{"a": "b"}),
			"runtime_class_name":               one(aName, "gvisor"),
			"termination_grace_period_seconds": byDefault(30, 60),
			"pod_overrides": alike(items{nil, "{}", " { } ", `{"spec":{}}`, `{"spec":{"terminationGracePeriodSeconds":30}}`},
				items{`{"spec":{"hostNetwork":true,"hostPID":true}}`, "{ \"spec\": {\n \"hostPID\": true, \"hostNetwork\": true } }"}).but(`{"spec":{"hostNetwork":true}}`),
			"ttl_seconds_after_finished": one(aNumber+", and none where it is left out", 60),
		}),
	}
}

func podSpellings(resources map[string]any) map[string]spelling {
	return together(tolerationSpellings(), settingSpellings(65532), map[string]spelling{
		"priority_class_name": one(aName, "another"),
		"resources": alike(items{nil, resources, entries{"limits": resources["limits"]}}, items{
			entries{"requests": entries{"cpu": "2", "memory": "1Gi"}}, entries{"requests": entries{"memory": "1024Mi", "cpu": "2000m"}, "limits": entries{}},
		}).but(entries{"requests": entries{"cpu": "2"}}),
		"resources.requests": alike(items{entries{"cpu": "1"}, entries{"cpu": "1000m"}, entries{"cpu": "1.0"}}).but(entries{"cpu": "2"}).given(entries{"resources": entries{}}),
		"resources.limits":   alike(items{nil, entries{}}, items{entries{"memory": "1Gi"}, entries{"memory": "1024Mi"}}).but(entries{"memory": "2Gi"}).given(entries{"resources": entries{}}),
		"node_selector":      alike(items{nil, entries{}}).but(entries{"a": "b"}),
		"affinity": alike(items{nil, "{}"}, items{
			`{"nodeAffinity":{},"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a"}]}}`,
			`{ "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ {"topologyKey":"a"} ]}, "nodeAffinity":{} }`,
		}).but(`{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"b"}]}}`),
		"env":                              alike(items{nil, entries{}}).but(entries{"A": "b"}),
		"labels":                           alike(items{nil, entries{}}).but(entries{"a": "b"}),
		"annotations":                      alike(items{nil, entries{}}).but(entries{"a": "b"}),
		"termination_grace_period_seconds": byDefault(30, 60),
		"runtime_class_name":               one(aName, "gvisor"),
		"pod_overrides":                    alike(items{nil, "{}", ` {"spec": {}}`, `{"spec":{"terminationGracePeriodSeconds":30}}`}).but(`{"spec":{"hostNetwork":true}}`),
	})
}

func trainingJobBaseline() baseline {
	resources := func(cpu, memory string) map[string]any {
		return entries{"requests": entries{"cpu": cpu, "memory": memory}, "limits": entries{"cpu": cpu, "memory": memory}}
	}
	pods := func(of string, spellings map[string]spelling) map[string]spelling {
		all := map[string]spelling{}
		for name, s := range spellings {
			with := entries{}
			for path, value := range s.with {
				with[of+"."+path] = value
			}
			all[of+"."+name] = s.given(with)
		}
		return all
	}
	output := entries{"output": "/out"}
	script := entries{"model": entries{"content": "x = 1"}, "workers.command": items{"python3", "-u"}}
	collectives := entries{
		"model": entries{"content": "x = 1"}, "workers.command": items{"python3"}, "output": "/out",
		"data":    entries{"training": "indices://mine?records=100", "records_per_task": 100},
		"volumes": items{entries{"name": "out", "mount_path": "/out", "claim_name": "models"}},
	}
	restarted := entries{"model": nil, "data": nil, "training": nil, "workers.command": items{"python3", "train.py"}, "workers.elastic": "restart"}
	csv := entries{"data.format": "csv", "data.csv": entries{"vocabularies": entries{"a": items{"b"}}}}
	return baseline{
		config: entries{
			"name": "low", "image": "trainer:1", "model": entries{"name": "mnist"}, "master": entries{},
			"data":     entries{"training": "/data/train", "validation": "/data/test", "records_per_task": 100},
			"training": entries{"minibatch_size": 10}, "workers": entries{"max": 2},
		},
		spellings: together(jobSpellings(), volumeSpellings(), pods("master", podSpellings(resources("0.1", "1Gi"))), pods("workers", podSpellings(resources("1", "4Gi"))), map[string]spelling{
			"image":             one("short names and tags are the node's to resolve", "trainer:2"),
			"image_pull_policy": alike(items{nil, "IfNotPresent"}).but("Always"),
			"model":             alike(items{entries{"name": "mnist"}, entries{"name": "mnist", "content": nil}}).but(entries{"name": "iris"}),
			"model.name":        one(aName, "iris"),
			"model.content":     one(aText+": it decides the model's bits", "def f(): pass").given(script),

			"data": alike(items{
				entries{"training": "/data/train", "records_per_task": 100}, entries{"training": "/data/train/", "records_per_task": 100, "format": "recordio", "codec": "bytes", "csv": entries{}},
			}).but(entries{"training": "/data/train", "records_per_task": 10}),
			"data.training": alike(items{"/data/train", "/data/train/", "/data//train"},
				items{"synthetic://digits", "synthetic://digits?seed=1", "synthetic://digits?seed=1&records=10000", "synthetic://digits?records=10000&seed=1"}).but("/data/other"),
			"data.validation":       alike(items{"/data/test", "/data/test/."}).but("/data/other"),
			"data.format":           byDefault("recordio", "tfrecord"),
			"data.codec":            byDefault("bytes", "tf_example"),
			"data.csv":              alike(items{nil, entries{}, entries{"columns": entries{}, "vocabularies": entries{}}}).but(entries{"vocabularies": entries{"a": items{"b"}}}).given(entries{"data.format": "csv"}),
			"data.csv.columns":      alike(items{nil, entries{}}).but(entries{"a": items{"b"}}).given(csv),
			"data.csv.vocabularies": one("the order of words is that of their numbers", entries{"a": items{"c"}}).given(csv),
			"data.records_per_task": one(aNumber, 50),

			"training":                alike(items{entries{"minibatch_size": 10}, entries{"minibatch_size": 10, "epochs": 1, "aggregation": "master"}}).but(entries{"minibatch_size": 10, "epochs": 2}),
			"training.minibatch_size": one(aNumber, 20),
			"training.epochs":         byDefault(1, 2),
			"training.grads_to_wait":  byDefault(1, 2),
			"training.seed":           byDefault(1, 2),
			"training.learning_rate":  one(aNumber+", and without it the model file's", 0.5),
			"training.aggregation":    byDefault("master", "allreduce"),

			"master":                          alike(items{nil, entries{}, entries{"termination_grace_period_seconds": 30}, entries{"resources": resources("100m", "1024Mi"), "env": entries{}}}).but(entries{"priority_class_name": "high"}),
			"workers":                         alike(items{entries{"max": 2}, entries{"max": 2, "min": 1, "resources": resources("1000m", "4096Mi"), "tolerations": items{}}}).but(entries{"max": 3}),
			"workers.max":                     one(aNumber, 3),
			"workers.min":                     byDefault(1, 2),
			"workers.min_priority_class_name": alike(items{nil, "low"}).but("high").given(entries{"workers.priority_class_name": "low"}),
			"workers.command":                 one("the words of a command are in order, and an empty one is refused", items{"python3"}).given(script),
			"master_priority_check":           byDefault("warn", "error"),
			"workers.elastic":                 byDefault("gradients", "collectives").given(collectives),

			"workers.processes":                alike(items{nil, 1}).but(2).given(restarted),
			"workers.step":                     byDefault(1, 2).given(entries{"model": nil, "data": nil, "training": nil, "workers.command": items{"python3", "train.py"}, "workers.elastic": "restart", "workers.min": 2}),
			"workers.restart_interval_seconds": byDefault(60, 90).given(restarted),

			"output":                     alike(items{"/out", "/out/"}).but("/other").given(output),
			"checkpoint":                 alike(items{nil, entries{}, entries{"max_to_keep": 3}, entries{"directory": "/out/checkpoints"}}).but(entries{"interval_steps": 5}).given(output),
			"checkpoint.interval_steps":  one(aNumber+", and without it an epoch's", 5).given(entries{"checkpoint": entries{}}),
			"checkpoint.max_to_keep":     byDefault(3, 4).given(entries{"checkpoint": entries{}}),
			"checkpoint.directory":       alike(items{nil, "/out/checkpoints", "/out/checkpoints/"}).but("/c").given(entries{"checkpoint": entries{}, "output": "/out"}),
			"evaluation":                 one("without it there is none on the way, and an empty one is refused", entries{"interval_steps": 5}),
			"evaluation.interval_steps":  one(aNumber, 5).given(entries{"evaluation": entries{"interval_epochs": 1}}),
			"evaluation.interval_epochs": one(aNumber, 5).given(entries{"evaluation": entries{"interval_epochs": 1}}),

			"queue":                             alike(items{entries{"name": "q", "workload_priority_class": "a"}, entries{"name": "q", "workload_priority_class": "a", "min_workload_priority_class": "a"}}).but(entries{"name": "r"}),
			"queue.name":                        one(aName, "r").given(entries{"queue": entries{"name": "q"}}),
			"queue.workload_priority_class":     one(aName, "b").given(entries{"queue": entries{"name": "q"}}),
			"queue.min_workload_priority_class": alike(items{nil, "a"}).but("b").given(entries{"queue": entries{"name": "q", "workload_priority_class": "a"}}),
			"topology":                          one(aPlace, rack).given(racked(nil)),
			"topology.required":                 one(aLevel, "block").given(racked(rack)),
			"topology.preferred":                one(aLevel, "block").given(racked(entries{"preferred": "rack"})),
			"topology.unconstrained":            byDefault(false, true).given(racked(sliced)),
			"topology.slice_size":               one(aNumber, 2).given(racked(sliced)),
			"topology.slice_required":           one(aLevel, "block").given(racked(sliced)),

			"volumes[].read_only": alike(items{nil, true}).but(false).given(entries{"volumes": items{entries{"name": "a", "mount_path": "/a", "claim_name": "a", "mount_on": "workers"}}}),
			"volumes[].mount_on":  byDefault("all", "master").given(entries{"volumes": items{entries{"name": "a", "mount_path": "/a", "claim_name": "a"}}}),
		}),
	}
}

func priorityClassBaseline() baseline {
	return baseline{
		config: entries{"name": "high", "value": 1000},
		spellings: together(labelled("2m", "120s"), map[string]spelling{
			"name":              one(aName, "low"),
			"value":             one(aNumber, 5),
			"global_default":    byDefault(false, true),
			"preemption_policy": byDefault("PreemptLowerPriority", "Never"),
			"description":       byDefault("", "urgent"),
		}),
	}
}

func workloadPriorityClassBaseline() baseline {
	return baseline{
		config: entries{"name": "high", "value": 1000},
		spellings: together(labelled("2m", "120s"), map[string]spelling{
			"name": one(aName, "low"), "value": one(aNumber, 5), "description": byDefault("", "urgent"),
		}),
	}
}

// groupSpellings are those of quota; limits need what is above.
func groupSpellings(lending spelling) map[string]spelling {
	quota := func(name, nominal string) map[string]any { return entries{"name": name, "nominal_quota": nominal} }
	groups := func(covered items, resources ...any) items {
		return items{entries{"covered_resources": covered, "flavors": items{entries{"name": "spot", "resources": resources}}}}
	}
	return map[string]spelling{
		"resource_groups": alike(items{nil, items{}}, items{
			groups(items{"cpu", "memory"}, quota("cpu", "4"), quota("memory", "1Gi")), groups(items{"memory", "cpu"}, quota("memory", "1024Mi"), quota("cpu", "4000m")),
		}).but(groups(items{"cpu"}, quota("cpu", "4"))),
		"resource_groups[].covered_resources":                     one("its order is that of the flavors' resources; see resource_groups", items{"memory"}).unless("a resource that no flavor has is refused"),
		"resource_groups[].flavors":                               one("they are tried in this order", items{entries{"name": "other", "resources": items{quota("cpu", "4")}}}),
		"resource_groups[].flavors[].name":                        one(aName, "other"),
		"resource_groups[].flavors[].resources":                   alike(items{items{quota("cpu", "4")}, items{quota("cpu", "4000m")}}).but(items{quota("cpu", "5")}),
		"resource_groups[].flavors[].resources[].name":            one(aName, "memory").unless("a resource that is not covered is refused"),
		"resource_groups[].flavors[].resources[].nominal_quota":   alike(items{"4", "4000m", "4.0", "4e0"}).but("5"),
		"resource_groups[].flavors[].resources[].borrowing_limit": alike(items{"1", "1000m"}).but("2"),
		"resource_groups[].flavors[].resources[].lending_limit":   lending,
		"fair_sharing":        alike(items{entries{}, entries{"weight": "1"}, entries{"weight": "1000m"}}).but(entries{"weight": "2"}),
		"fair_sharing.weight": alike(items{nil, "1", "1000m"}, items{"0.5", "500m"}).but("2").given(entries{"fair_sharing": entries{}}),
	}
}

func (s spelling) unless(why string) spelling {
	s.unseen = why
	return s
}

func clusterQueueBaseline() baseline {
	groups := items{entries{"covered_resources": items{"cpu"}, "flavors": items{entries{"name": "spot", "resources": items{entries{"name": "cpu", "nominal_quota": "4"}}}}}}
	a, b := entries{"key": "a", "operator": "In", "values": items{"x", "y"}}, entries{"key": "b", "operator": "Exists"}
	selector := entries{"namespace_selector": entries{"match_expressions": items{a}}}
	checks := entries{"admission_checks_strategy": entries{"admission_checks": items{entries{"name": "c", "on_flavors": items{"spot"}}}}}
	try := entries{"flavor_fungibility": entries{"when_can_borrow": "TryNextFlavor", "when_can_preempt": "TryNextFlavor"}}
	reclaim := entries{"preemption": entries{"reclaim_within_cohort": "Any", "borrow_within_cohort": entries{"policy": "LowerPriority"}}}
	return baseline{
		config: entries{"name": "team", "cohort_name": "all", "resource_groups": groups},
		spellings: together(labelled("2m", "120s"), groupSpellings(alike(items{nil, "4", "4000m"}).but("2")), map[string]spelling{
			"name":              one(aName, "other"),
			"cohort_name":       one(aName, "other"),
			"queueing_strategy": byDefault("BestEffortFIFO", "StrictFIFO"),
			"namespace_selector": alike(items{entries{}, entries{"match_labels": entries{}, "match_expressions": items{}}}, items{
				entries{"match_labels": entries{"a": "x"}}, entries{"match_expressions": items{entries{"key": "a", "operator": "In", "values": items{"x"}}}},
			}).but(entries{"match_labels": entries{"a": "x"}}),
			"namespace_selector.match_labels":                 alike(items{nil, entries{}}).but(entries{"a": "b"}).given(entries{"namespace_selector": entries{}}),
			"namespace_selector.match_expressions":            alike(items{items{a, b}, items{b, a}}).but(items{a}).given(selector),
			"namespace_selector.match_expressions[].key":      one(aName, "z").given(selector),
			"namespace_selector.match_expressions[].operator": one(aWord, "NotIn").given(selector),
			"namespace_selector.match_expressions[].values":   alike(items{items{"x", "y"}, items{"y", "x"}}).but(items{"x"}).given(selector),
			"preemption":                                              alike(items{nil, entries{}, entries{"within_cluster_queue": "Never", "borrow_within_cohort": entries{"policy": "Never"}}}).but(entries{"within_cluster_queue": "LowerPriority"}),
			"preemption.within_cluster_queue":                         byDefault("Never", "LowerPriority").given(entries{"preemption": entries{}}),
			"preemption.reclaim_within_cohort":                        byDefault("Never", "Any").given(entries{"preemption": entries{}}),
			"preemption.borrow_within_cohort":                         alike(items{nil, entries{}, entries{"policy": "Never"}}).but(entries{"policy": "LowerPriority"}).given(entries{"preemption": entries{"reclaim_within_cohort": "Any"}}),
			"preemption.borrow_within_cohort.policy":                  byDefault("Never", "LowerPriority").given(reclaim),
			"preemption.borrow_within_cohort.max_priority_threshold":  one(aNumber, 5).given(reclaim),
			"flavor_fungibility":                                      alike(items{nil, entries{}, entries{"when_can_borrow": "MayStopSearch", "when_can_preempt": "TryNextFlavor"}}).but(entries{"when_can_preempt": "MayStopSearch"}),
			"flavor_fungibility.when_can_borrow":                      byDefault("MayStopSearch", "TryNextFlavor").given(entries{"flavor_fungibility": entries{}}),
			"flavor_fungibility.when_can_preempt":                     byDefault("TryNextFlavor", "MayStopSearch").given(entries{"flavor_fungibility": entries{}}),
			"flavor_fungibility.preference":                           byDefault("BorrowingOverPreemption", "PreemptionOverBorrowing").given(try),
			"admission_checks_strategy":                               one("without it there are no checks", entries{"admission_checks": items{entries{"name": "c"}}}),
			"admission_checks_strategy.admission_checks":              alike(items{items{entries{"name": "c"}, entries{"name": "d"}}, items{entries{"name": "d"}, entries{"name": "c", "on_flavors": items{}}}}).but(items{entries{"name": "c"}}).given(checks),
			"admission_checks_strategy.admission_checks[].name":       one(aName, "d").given(checks),
			"admission_checks_strategy.admission_checks[].on_flavors": alike(items{nil, items{}}).but(items{"spot"}).given(checks),
			"stop_policy":                    byDefault("None", "Hold"),
			"admission_scope":                one("without it Kueue's configuration decides", entries{"admission_mode": "UsageBasedAdmissionFairSharing"}),
			"admission_scope.admission_mode": one(aWord, "NoAdmissionFairSharing").given(entries{"admission_scope": entries{"admission_mode": "UsageBasedAdmissionFairSharing"}}),
			"wait_for":                       byDefault("created", "active"),
		}),
	}
}

func localQueueBaseline() baseline {
	return baseline{
		config: entries{"name": "user-queue", "cluster_queue": "team"},
		spellings: together(labelled("2m", "120s"), map[string]spelling{
			"name": one(aName, "other"), "namespace": byDefault("default", "ml"), "cluster_queue": one(aName, "other"),
			"stop_policy":         byDefault("None", "Hold"),
			"fair_sharing":        alike(items{entries{}, entries{"weight": "1"}}).but(entries{"weight": "2"}),
			"fair_sharing.weight": alike(items{nil, "1", "1000m"}).but("2").given(entries{"fair_sharing": entries{}}),
			"wait_for":            byDefault("created", "active"),
		}),
	}
}

func cohortBaseline() baseline {
	groups := items{entries{"covered_resources": items{"cpu"}, "flavors": items{entries{"name": "spot", "resources": items{entries{"name": "cpu", "nominal_quota": "4"}}}}}}
	return baseline{
		config: entries{"name": "all", "parent_name": "root", "resource_groups": groups},
		spellings: together(labelled("2m", "120s"), groupSpellings(alike(items{"4", "4000m"}).but("2")), map[string]spelling{
			"name": one(aName, "other"), "parent_name": one(aName, "other"),
		}),
	}
}

func resourceFlavorBaseline() baseline {
	a, b := entries{"key": "a", "effect": "NoSchedule"}, entries{"key": "b", "value": "x", "effect": "NoExecute"}
	taints := entries{"node_taints": items{a}}
	return baseline{
		config: entries{"name": "spot"},
		spellings: together(labelled("2m", "120s"), tolerationSpellings(), map[string]spelling{
			"name":                 one(aName, "other"),
			"node_labels":          alike(items{nil, entries{}}).but(entries{"a": "b"}),
			"node_taints":          alike(items{nil, items{}}, items{items{a, b}, items{b, a}}).but(items{a}),
			"node_taints[].key":    one(aName, "z").given(taints),
			"node_taints[].value":  alike(items{nil, ""}).but("z").given(taints),
			"node_taints[].effect": one(aWord, "NoExecute").given(taints),
			"topology_name":        one(aName, "racks").given(entries{"node_labels": entries{"a": "b"}}),
		}),
	}
}

func topologyBaseline() baseline {
	return baseline{
		config: entries{"name": "racks", "levels": items{entries{"node_label": "rack"}, entries{"node_label": "host"}}},
		spellings: together(labelled("2m", "120s"), map[string]spelling{
			"name":                one(aName, "other"),
			"levels":              one("the widest is the first", items{entries{"node_label": "host"}, entries{"node_label": "rack"}}),
			"levels[].node_label": one(aName, "block"),
		}),
	}
}

func admissionCheckBaseline() baseline {
	parameters := entries{"parameters": entries{"api_group": "kueue.x-k8s.io", "kind": "A", "name": "a"}}
	return baseline{
		config: entries{"name": "check", "controller_name": "c"},
		spellings: together(labelled("2m", "120s"), map[string]spelling{
			"name": one(aName, "other"), "controller_name": one(aName, "d"),
			"parameters":           one("without it there are none", parameters["parameters"]),
			"parameters.api_group": one(aName, "b").given(parameters), "parameters.kind": one(aName, "B").given(parameters), "parameters.name": one(aName, "b").given(parameters),
			"wait_for": byDefault("created", "active"),
		}),
	}
}
