package terraformplan

import (
	"encoding/json"
	"slices"
	"strings"
)

// decidesNothing are attributes and fields that no scheduler reads, and those with defaults of the API server or the
// provider. A forecast does not need their values. All are without underscores and in lower case.
var decidesNothing = words(`
	id uid generation resourceversion selflink creationtimestamp status object timeouts generatename managedfields
	image imagepullpolicy imagepullsecrets command args env envfrom value valuefrom workingdir lifecycle livenessprobe readinessprobe
	startupprobe stdin stdinonce tty terminationmessagepath terminationmessagepolicy volumemount volumemounts mountpath subpath
	data binarydata stringdata configmap configmapref secret secretref secretkeyref configmapkeyref defaultmode mode
	serviceaccountname automountserviceaccounttoken enableservicelinks hostname subdomain dnspolicy dnsconfig hostaliases
	schedulername nodename completionmode selector clusterip clusterips ipfamilies ipfamilypolicy healthchecknodeport
	sessionaffinityconfig internaltrafficpolicy externalname nodeport securitycontext podfailurepolicy revisionhistorylimit
	preemptionpolicy yamlincluster livemanifestincluster liveuid kind apiversion
	stepsdone stepstotal phase loss metrics workersrunning workerspending preemptions modelsha256 outputfiles
	conditions ready message reason`)

func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}

// deciding are the only attributes that affect pods, by resource.
var deciding = map[string]map[string]bool{
	"elastic_training_job": words("namespace name queue topology master workers"),
	"elastic_task": words(`namespace name yaml num_nodes accelerators accelerator_labels cpus memory queue
		priority_class_name node_selector tolerations runtime_class_name topology pod_overrides`),
	"helm_release": words("manifest"), "kubectl_manifest": words("yaml_body override_namespace"), "kubernetes_manifest": words("manifest"),
}

// unknownOf names the attributes of a change that affect pods and are not known until apply, "" for none.
func unknownOf(change resourceChange) string {
	var unknown map[string]any
	if json.Unmarshal(change.Change.AfterUnknown, &unknown) != nil {
		return ""
	}
	var found []string
	for name, value := range unknown {
		if only := deciding[change.Type]; only != nil && !only[name] {
			continue
		}
		if leaf := unknownIn(name, value); leaf != "" && !slices.Contains(found, leaf) {
			found = append(found, leaf)
		}
	}
	if len(found) == 0 {
		return ""
	}
	slices.Sort(found)
	verb := " is"
	if len(found) > 1 {
		verb = " are"
	}
	return "its " + strings.Join(found, ", ") + verb + " not known until apply"
}

// unknownIn is the name of an unknown attribute that affects pods.
func unknownIn(name string, value any) string {
	if decidesNothing[strings.ToLower(strings.ReplaceAll(name, "_", ""))] {
		return ""
	}
	switch v := value.(type) {
	case bool:
		if v {
			return name
		}
	case []any:
		for _, item := range v {
			if leaf := unknownIn(name, item); leaf != "" {
				return leaf
			}
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if leaf := unknownIn(key, v[key]); leaf != "" {
				return leaf
			}
		}
	}
	return ""
}

func sortedKeys(of map[string]any) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// changesPods reports whether an update changes fields that affect pods.
func changesPods(change resourceChange) bool {
	before, after := objectsOf(change.Type, change.Change.Before), objectsOf(change.Type, change.Change.After)
	if len(before) == 0 || len(before) != len(after) {
		return true
	}
	for i := range before {
		if string(comparableJSON(before[i].Object)) != string(comparableJSON(after[i].Object)) {
			return true
		}
	}
	return false
}

// comparableJSON is an object's JSON without the fields of decidesNothing.
func comparableJSON(value any) []byte {
	text, err := json.Marshal(pruned(value))
	if err != nil { // of JSON again
		panic(err)
	}
	return text
}

func pruned(value any) any {
	switch v := value.(type) {
	case map[string]any:
		fields := map[string]any{}
		for key, inner := range v {
			// A new image or command creates new pods, although the scheduler does not read it.
			if lower := strings.ToLower(key); lower == "status" || lower == "generation" || lower == "resourceversion" || lower == "uid" {
				continue
			}
			fields[key] = pruned(inner)
		}
		return fields
	case []any:
		items := make([]any, 0, len(v))
		for _, item := range v {
			items = append(items, pruned(item))
		}
		return items
	}
	return value
}
