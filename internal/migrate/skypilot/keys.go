package skypilot

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
)

// top takes over the keys of the file.
func (p *parser) top(root *yaml.Node) {
	// First, because volumes may refer to them.
	for _, e := range p.entries(topPath, root) {
		if e.key.Value == "envs" {
			envs(p, "envs", e)
		}
	}
	p.walk(topPath, root, topKeys())
}

// topKeys are the keys of a file.
func topKeys() map[string]handler {
	return map[string]handler{
		"name":      func(p *parser, path string, e entry) { p.task.Name, _ = p.text(path, e.value) },
		"setup":     func(p *parser, path string, e entry) { p.task.Setup, _ = p.text(path, e.value) },
		"run":       func(p *parser, path string, e entry) { p.task.Run, _ = p.text(path, e.value) },
		"num_nodes": nodes,
		"resources": resources,
		"workdir":   workdir,
		"envs":      func(*parser, string, entry) {},
		"secrets":   secrets,
		"volumes":   volumes,
		"config":    config,
		"file_mounts": refused("copies files or mounts buckets from where sky runs; give small files by the attribute workdir, mount data by volumes, " +
			"or fetch it in setup"),
		"storage_mounts":      refused("mounts buckets; mount data by volumes, or fetch it in setup"),
		"volume_mounts":       refused("is SkyPilot's own record of volumes; write volumes"),
		"file_mounts_mapping": refused("is SkyPilot's own record of file_mounts; give small files by the attribute workdir"),
		"managed_secrets":     refused("names secrets that SkyPilot's server keeps; refer to Secrets of the namespace by the attribute secrets"),
		"api_server_access":   unlessFalse("lets the task call SkyPilot's server, of which there is none"),
		"service":             refused("describes a service of SkyServe, which runs until it is stopped; a task ends"),
		"pool":                refused("describes workers that SkyPilot keeps for other jobs; in a cluster the queue does that"),
		"event_callback":      refused("is run by SkyPilot's controller, of which there is none; watch the Job instead"),
		"experimental":        refused("changes SkyPilot's own configuration"),
		"inputs":              ignored("it only estimates what moving data costs"),
		"outputs":             ignored("it only estimates what moving data costs"),
	}
}

// refused is a key that SkyPilot knows and a task cannot honour. Empty, it says nothing.
func refused(why string) handler {
	return func(p *parser, path string, e entry) {
		if !null(e.value) && (e.value.Kind == yaml.ScalarNode || len(e.value.Content) > 0) {
			p.refuse(e.key, "%s %s", path, why)
		}
	}
}

// unlessFalse is refused where it is said to be so.
func unlessFalse(why string) handler {
	return func(p *parser, path string, e entry) {
		if yes, is := boolean(e.value.Value); !is || yes {
			refused(why)(p, path, e)
		}
	}
}

// ignored is a key without which the task does the same.
func ignored(why string) handler {
	return func(p *parser, path string, e entry) {
		if !null(e.value) {
			p.warn(e.key, "%s has no effect: %s", path, why)
		}
	}
}

func nodes(p *parser, path string, e entry) {
	if n, ok := p.whole(path, e.value); ok {
		if n < 1 {
			p.refuse(e.value, "%s is %d; a task has at least one node", path, n)
			return
		}
		p.task.NumNodes = n
	}
}

func workdir(p *parser, path string, e entry) {
	if null(e.value) || p.given.Workdir {
		return
	}
	what := "a git repository"
	if e.value.Kind == yaml.ScalarNode {
		what = fmt.Sprintf("%q, a directory of the machine on which sky runs", e.value.Value)
	}
	p.refuse(e.key, "%s is %s; say what is in it by the attribute workdir = { \"train.py\" = file(\"train.py\") }, or fetch it in setup", path, what)
}

func envs(p *parser, path string, e entry) {
	p.envs = map[string]string{}
	for _, v := range p.entries(path, e.value) {
		name := v.key.Value
		if null(v.value) {
			if !p.given.Envs[name] && !p.given.AnyEnv {
				p.refuse(v.key, "%s has no value; sky would take it from --env: give it here or by the attribute env", join(path, name))
			}
			continue
		}
		if value, ok := p.words(join(path, name), v.value); ok {
			p.envs[name] = value
		}
	}
	p.task.Envs = p.envs
}

// secrets may only be named: without a value, or with an empty one, as SkyPilot recommends. Where there is a value, a
// secret is in a file that is read into Terraform's state.
func secrets(p *parser, path string, e entry) {
	for _, v := range p.entries(path, e.value) {
		name := v.key.Value
		if empty := v.value.Kind == yaml.ScalarNode && v.value.Value == ""; !empty && !null(v.value) {
			p.refuse(v.key, "%s has its value in the file, and with the file it would be in Terraform's state; leave the value out and refer to a Secret by "+
				"secrets = { %s = { secret_name = \"…\", key = \"…\" } }, or give it by secrets_wo", join(path, name), name)
			continue
		}
		if !p.given.Secrets[name] && !p.given.AnySecret {
			p.refuse(v.key, "%s has no value; refer to a Secret by secrets = { %s = { secret_name = \"…\", key = \"…\" } }, or give it by secrets_wo", join(path, name), name)
		}
	}
}

// volumes are SkyPilot's volumes by mount path; on Kubernetes each is a claim.
func volumes(p *parser, at string, e entry) {
	for i, v := range p.entries(at, e.value) {
		where := join(at, v.key.Value)
		if v.value.Kind != yaml.ScalarNode {
			p.refuse(v.key, "%s describes a volume; make the claim, and name it here or by the attribute volumes", where)
			continue
		}
		claim, ok := p.text(where, v.value)
		if !ok {
			continue
		}
		claim = p.substitute(claim)
		p.warn(v.key, "%s is taken for the claim %q; SkyPilot may have named the claim of that volume otherwise", where, claim)
		p.task.Volumes = append(p.task.Volumes, task.Volume{
			Name: fmt.Sprintf("volume-%d", i), MountPath: path.Clean(p.substitute(v.key.Value)), PVC: claim,
		})
	}
}

var reference = regexp.MustCompile(`\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?`)

// substitute puts the values of envs in place of $NAME and ${NAME}, as SkyPilot does in paths, and never in scripts.
func (p *parser) substitute(text string) string {
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		if value, known := p.envs[reference.FindStringSubmatch(ref)[1]]; known {
			return value
		}
		return ref
	})
}

// config is SkyPilot's configuration for this task.
func config(p *parser, path string, e entry) { p.walk(path, e.value, configKeys()) }

func configKeys() map[string]handler {
	return map[string]handler{
		"kubernetes":       func(p *parser, path string, e entry) { p.walk(path, e.value, kubernetesKeys()) },
		"hooks":            refused("are run by SkyPilot's agent, of which there is none; a script may trap SIGTERM instead"),
		"docker":           ignored("it is about virtual machines"),
		"nvidia_gpus":      ignored("it is about virtual machines"),
		"gcp":              ignored("it is about virtual machines"),
		"aws":              ignored("it is about virtual machines"),
		"azure":            ignored("it is about virtual machines"),
		"vast":             ignored("it is about virtual machines"),
		"ssh":              ignored("it is about machines that are no cluster's"),
		"slurm":            ignored("it is about clusters that are not Kubernetes'"),
		"jobs":             ignored("there is no controller of SkyPilot's"),
		"active_workspace": ignored("there is no server of SkyPilot's"),
	}
}

func kubernetesKeys() map[string]handler {
	known := map[string]handler{
		"pod_config":        podConfig,
		"kueue":             func(p *parser, path string, e entry) { p.walk(path, e.value, kueueKeys()) },
		"quota":             func(p *parser, path string, e entry) { p.walk(path, e.value, quotaKeys()) },
		"provision_timeout": ignored("a queued task waits until there is capacity"),
		"namespace":         ignored("the attribute namespace says where the task runs"),
		"remote_identity":   ignored("the attribute service_account_name names the pods' account"),
		"custom_metadata":   ignored("the attributes labels and annotations are those of every object"),
		"enable_docker":     unlessFalse("gives the pod a container engine of its own; build images elsewhere"),
	}
	for _, key := range []string{
		"allowed_contexts", "context_configs", "networking", "ports", "autoscaler", "high_availability", "fuse", "dws", "post_provision_runcmd", "set_pod_resource_limits",
	} {
		known[key] = ignored("it says how SkyPilot uses a cluster")
	}
	return known
}

func kueueKeys() map[string]handler {
	return map[string]handler{
		"local_queue_name":  func(p *parser, path string, e entry) { p.queue(path, e.value, &p.task.Queue) },
		"admission_timeout": ignored("a queued task waits until there is capacity"),
	}
}

// quotaKeys are those of config.kubernetes.quota, a later name of kueue.
func quotaKeys() map[string]handler {
	return map[string]handler{"queue": func(p *parser, path string, e entry) { p.queue(path, e.value, &p.task.Queue) }}
}

// podConfig is a patch of the pod, as pod_overrides are. SkyPilot's own pod has one container, without a name in the
// patch.
func podConfig(p *parser, path string, e entry) {
	if null(e.value) {
		return
	}
	patch, err := p.podPatch(e.value)
	if p.left < 0 {
		return // reported already
	}
	if err != nil {
		p.refuse(e.key, "%s cannot be made a patch of the pod: %s", path, err)
		return
	}
	p.task.PodOverrides = patch
}

// queue takes over the name of a queue or a class, which must be the same wherever it is set.
func (p *parser) queue(path string, n *yaml.Node, into *string) {
	name, ok := p.text(path, n)
	if !ok {
		return
	}
	if *into != "" && *into != name {
		p.refuse(n, "%s is %q, but another key of the file says %q", path, name, *into)
		return
	}
	*into = name
}

// labels are the pods'. Kueue's two say where the task queues.
func labels(p *parser, path string, e entry) {
	for _, l := range p.entries(path, e.value) {
		where := join(path, l.key.Value)
		switch l.key.Value {
		case task.LabelQueue:
			p.queue(where, l.value, &p.task.Queue)
			continue
		case task.LabelPriorityClass:
			p.queue(where, l.value, &p.task.PriorityClass)
			continue
		case "maxRunDurationSeconds", "max-run-duration-seconds": // Konduktor's, Trainy's own way to submit such files
			p.warn(l.key, "%s is a label as any other, and no limit: end pods that take too long by pod_overrides = jsonencode({ spec = { activeDeadlineSeconds = … } })", where)
		}
		if task.ReservedLabel(l.key.Value) {
			p.refuse(l.key, "%s is set by the task, by Kueue or by Kubernetes; leave it out", where)
			continue
		}
		if value, ok := p.words(where, l.value); ok {
			if p.task.Labels == nil {
				p.task.Labels = map[string]string{}
			}
			p.task.Labels[l.key.Value] = value
		}
	}
}

func recovery(p *parser, path string, e entry) {
	if e.value.Kind == yaml.ScalarNode && !null(e.value) {
		strategy(p, path, e)
		return
	}
	p.walk(path, e.value, recoveryKeys())
}

func recoveryKeys() map[string]handler {
	return map[string]handler{
		"strategy": strategy,
		"max_restarts_on_errors": func(p *parser, path string, e entry) {
			if n, ok := p.whole(path, e.value); ok {
				if n < 0 {
					p.refuse(e.value, "%s is %d; it cannot be negative", path, n)
				}
				p.task.Recovery.MaxRestartsOnErrors = n
			}
		},
		"recover_on_exit_codes": func(p *parser, path string, e entry) {
			for _, n := range p.list(e.value) {
				code, ok := p.whole(path, n)
				if !ok {
					continue
				}
				if problem := task.ExitCodeProblem(code); problem != "" {
					p.refuse(n, "%s %s", path, problem)
				} else if slices.Contains(p.task.Recovery.RecoverOnExitCodes, code) {
					p.refuse(n, "%s has %d twice", path, code)
				} else {
					p.task.Recovery.RecoverOnExitCodes = append(p.task.Recovery.RecoverOnExitCodes, code)
				}
			}
		},
	}
}

// strategy is where SkyPilot looks for another place; a queue is one place. Without any it gives a preempted task up,
// which a queue never does.
func strategy(p *parser, path string, e entry) {
	name, ok := p.text(path, e.value)
	switch {
	case !ok:
	case strings.EqualFold(name, "none"):
		p.refuse(e.value, "%s is %q, but Kueue queues every preempted task again; leave it out", path, name)
	default:
		p.warn(e.value, "%s has no effect: a preempted task goes back into its queue", path)
	}
}

// virtualMachines are keys of resources that choose a machine of a cloud.
func virtualMachines() map[string]handler {
	return map[string]handler{
		"instance_type":     refused("names a machine of a cloud; choose nodes by node_selector = { \"node.kubernetes.io/instance-type\" = \"…\" }"),
		"region":            refused("names a region of a cloud; the provider's configuration says which cluster, and node_selector which of its nodes"),
		"zone":              refused("names a zone of a cloud; choose nodes by node_selector = { \"topology.kubernetes.io/zone\" = \"…\" }"),
		"volumes":           refused("attaches disks to a virtual machine; mount claims by the attribute volumes"),
		"disk_size":         ignored("a pod uses its node's disk"),
		"disk_tier":         ignored("a pod uses its node's disk"),
		"local_disk":        ignored("a pod uses its node's disk"),
		"ephemeral_storage": ignored("a pod uses its node's disk"),
		"network_tier":      ignored("a pod uses its node's network"),
		"max_hourly_cost":   ignored("a cluster's nodes are there already"),
		"ports":             ignored("nothing outside of the cluster reaches a task; make a Service of its pods' label " + task.LabelTask),
		"autostop":          ignored("a task ends when its run ends"),
		"hooks":             refused("are run by SkyPilot's agent, of which there is none; a script may trap SIGTERM instead"),
		"priority":          ignored("it orders the queue of SkyPilot's controller; Kueue's is ordered by the label " + task.LabelPriorityClass),
		"priority_class":    ignored("it orders the queue of SkyPilot's controller; Kueue's is ordered by the label " + task.LabelPriorityClass),
	}
}
