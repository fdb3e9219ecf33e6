package controlplane

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// HostImage stands for the host itself as an image: the container's command is run as it is.
const HostImage = "host"

// AnyImage stands for every image name that Images does not list.
const AnyImage = "*"

// A Config is a cluster as it was declared. It is kept in the state directory, so that the next start needs no flags.
type Config struct {
	// Port is the API server's port on 127.0.0.1; 0 leaves the choice to the first start, and later starts keep it as
	// long as it is free.
	Port  int         `json:"port"`
	Nodes []NodeGroup `json:"nodes"`
	// Images maps an image's name (without tag, or without registry and tag, if so wished) to the path of an executable,
	// or to HostImage. Any other image cannot be pulled.
	Images map[string]string `json:"images,omitempty"`
	// Mounts defines how containers see their volumes: MountsAuto, MountsNamespace or MountsRewrite.
	Mounts string `json:"mounts"`
	// Addons are the controllers of other projects that run (package addon), in the order in which they are started.
	Addons []string `json:"addons,omitempty"`
	// KueueConfig is the path of Kueue's configuration; empty: that of its release.
	KueueConfig string `json:"kueueConfig,omitempty"`
	// KueueFeatureGates are feature gates of Kueue, such as "PriorityBoost=true", besides those of its configuration.
	KueueFeatureGates []string `json:"kueueFeatureGates,omitempty"`
	// SchedulerOnly leaves out everything that changes objects by itself, but for the scheduler: no controllers and no
	// nodes. Nodes, pods and disruption budgets are then what a client says, their status too. Preemption is
	// synchronous: what a pod's status says of it has happened.
	SchedulerOnly bool `json:"schedulerOnly,omitempty"`
	// AuditPolicy is the path of an audit policy (audit.k8s.io/v1) of the API server; without one it keeps no audit log.
	AuditPolicy string `json:"auditPolicy,omitempty"`
	// PodSecurity is the Pod Security Standard that is enforced in namespaces without the label
	// pod-security.kubernetes.io/enforce: one of PodSecurityLevels. Empty: privileged, as Kubernetes' default.
	PodSecurity string `json:"podSecurity,omitempty"`
}

// PodSecurityLevels are Kubernetes' Pod Security Standards.
func PodSecurityLevels() []string { return []string{"privileged", "baseline", "restricted"} }

// The ways in which containers see their volumes.
const (
	// MountsNamespace binds them in a mount namespace of the container's.
	MountsNamespace = "namespace"
	// MountsRewrite replaces mount paths in commands, arguments and environment.
	MountsRewrite = "rewrite"
	// MountsAuto is MountsNamespace where the kernel permits it, else MountsRewrite.
	MountsAuto = "auto"
)

// A NodeGroup is Count nodes of the same kind.
type NodeGroup struct {
	// Name is the prefix of the nodes' names: "node" gives node-1, node-2, ….
	Name  string `json:"name"`
	Count int    `json:"count"`
	// CPU and Memory are declared capacity, in Kubernetes' notation ("4", "15Gi"); the host need not have it.
	CPU    string `json:"cpu"`
	Memory string `json:"memory"`
	// AllocatableCPU is what is left for pods; empty: all of CPU. Managed clusters keep some for themselves: 3.92 of 4
	// on GKE (the tutorial's machines).
	AllocatableCPU string `json:"allocatableCPU,omitempty"`
	// Resources are further resources, such as nvidia.com/gpu: "4".
	Resources map[string]string `json:"resources,omitempty"`
	// Labels of the nodes. Values that are joined with "+" belong to equal parts of the nodes, in order: of four nodes
	// with rack: a+b the first two are in rack a.
	Labels map[string]string `json:"labels,omitempty"`
	// Taints are in kubectl's notation, such as "nvidia.com/gpu=present:NoSchedule".
	Taints []string `json:"taints,omitempty"`
}

// DefaultConfig is the tutorial's cluster: three nodes of 4 CPU and 15 GiB, 3.92 CPU of them allocatable.
func DefaultConfig() Config {
	return Config{Nodes: []NodeGroup{DefaultNodes()}, Mounts: MountsAuto}
}

// DefaultNodes are the nodes of DefaultConfig.
func DefaultNodes() NodeGroup {
	return NodeGroup{Name: "node", Count: 3, CPU: "4", Memory: "15Gi", AllocatableCPU: "3.92"}
}

// NodeNames returns the names of the nodes that c declares, in order.
func (c Config) NodeNames() []string {
	var names []string
	for _, group := range c.Nodes {
		for i := range group.Count {
			names = append(names, group.Name+"-"+strconv.Itoa(i+1))
		}
	}
	return names
}

// Validate checks c, reads no files, and names everything that is wrong with it.
func (c Config) Validate() error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if c.Port < 0 || c.Port > 65535 {
		problem("port %d: not between 0 and 65535", c.Port)
	}
	if !slices.Contains([]string{MountsAuto, MountsNamespace, MountsRewrite}, c.Mounts) {
		problem("mounts %q: must be %s, %s or %s", c.Mounts, MountsAuto, MountsNamespace, MountsRewrite)
	}
	if c.PodSecurity != "" && !slices.Contains(PodSecurityLevels(), c.PodSecurity) {
		problem("pod security %q: must be %s", c.PodSecurity, strings.Join(PodSecurityLevels(), ", "))
	}
	seen := map[string]bool{}
	for _, group := range c.Nodes {
		if seen[group.Name] {
			problem("nodes %q: there is more than one group of this name", group.Name)
		}
		seen[group.Name] = true
		if err := group.validate(); err != nil {
			problem("nodes %q: %w", group.Name, err)
		}
	}
	for image, path := range c.Images {
		if image == "" || path == "" {
			problem("image %q=%q: neither name nor path may be empty", image, path)
		}
	}
	return errors.Join(problems...)
}

func (g NodeGroup) validate() error {
	var problems []error
	for _, message := range validation.IsDNS1123Label(g.Name) {
		problems = append(problems, fmt.Errorf("name: %s", message))
	}
	if g.Count < 0 {
		problems = append(problems, fmt.Errorf("count %d is negative", g.Count))
	}
	quantities := map[string]string{"cpu": g.CPU, "memory": g.Memory, "allocatable cpu": g.allocatableCPU()}
	maps.Copy(quantities, g.Resources)
	parsed := map[string]resource.Quantity{}
	for name, text := range quantities {
		quantity, err := resource.ParseQuantity(text)
		if err != nil || quantity.Sign() < 0 {
			problems = append(problems, fmt.Errorf("%s %q is not a quantity such as 4, 500m or 15Gi", name, text))
			continue
		}
		parsed[name] = quantity
	}
	for _, text := range g.Taints {
		if _, err := parseTaint(text); err != nil {
			problems = append(problems, err)
		}
	}
	for _, key := range sortedKeys(g.Labels) {
		values := strings.Split(g.Labels[key], labelValues)
		for _, value := range values {
			for _, message := range slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)) {
				problems = append(problems, fmt.Errorf("label %s=%s: %s", key, value, message))
			}
		}
		if len(values) > 1 && g.Count%len(values) != 0 {
			problems = append(problems, fmt.Errorf("label %s has %d values, which cannot be given to equal parts of %d nodes", key, len(values), g.Count))
		}
	}
	if allocatable, capacity := parsed["allocatable cpu"], parsed["cpu"]; len(problems) == 0 && allocatable.Cmp(capacity) > 0 {
		problems = append(problems, fmt.Errorf("allocatable cpu %s is more than the node's %s", g.AllocatableCPU, g.CPU))
	}
	return errors.Join(problems...)
}

// labelValues separates the values of a label of which each belongs to a part of a group. No value contains it.
const labelValues = "+"

// labelsOf are the labels of a node of the group, by its index.
func (g NodeGroup) labelsOf(index int) map[string]string {
	labels := maps.Clone(g.Labels)
	for key, text := range labels {
		if values := strings.Split(text, labelValues); len(values) > 1 {
			labels[key] = values[index*len(values)/g.Count]
		}
	}
	return labels
}

func (g NodeGroup) allocatableCPU() string {
	return cmp.Or(g.AllocatableCPU, g.CPU)
}

// ParseNodeGroup parses the notation of the command line, such as
// "name=t4,count=1,cpu=8,memory=30Gi,allocatable-cpu=7.9,resource:nvidia.com/gpu=4,label:accelerator=t4,taint:nvidia.com/gpu=present:NoSchedule".
// What is not given is as in DefaultNodes, except that all of a given cpu is allocatable. The values of label:rack=a+b
// belong to one half of the nodes each.
func ParseNodeGroup(text string) (NodeGroup, error) {
	group := DefaultNodes()
	group.Count = 1
	for field := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(field, "=")
		if !ok {
			return NodeGroup{}, fmt.Errorf("node group %q: %q is not key=value", text, field)
		}
		switch kind, name, _ := strings.Cut(key, ":"); {
		case key == "name":
			group.Name = value
		case key == "count":
			count, err := strconv.Atoi(value)
			if err != nil {
				return NodeGroup{}, fmt.Errorf("node group %q: count %q is not a number", text, value)
			}
			group.Count = count
		case key == "cpu":
			group.CPU, group.AllocatableCPU = value, ""
		case key == "memory":
			group.Memory = value
		case key == "allocatable-cpu":
			group.AllocatableCPU = value
		case kind == "resource" && name != "":
			group.Resources = with(group.Resources, name, value)
		case kind == "label" && name != "":
			group.Labels = with(group.Labels, name, value)
		case kind == "taint" && name != "":
			group.Taints = append(group.Taints, name+"="+value)
		default:
			return NodeGroup{}, fmt.Errorf("node group %q: unknown key %q; known are name, count, cpu, memory, allocatable-cpu, resource:NAME, label:NAME and taint:KEY", text, key)
		}
	}
	return group, group.validate()
}

// String is the notation that ParseNodeGroup reads.
func (g NodeGroup) String() string {
	fields := []string{"name=" + g.Name, "count=" + strconv.Itoa(g.Count), "cpu=" + g.CPU, "memory=" + g.Memory, "allocatable-cpu=" + g.allocatableCPU()}
	for _, name := range sortedKeys(g.Resources) {
		fields = append(fields, "resource:"+name+"="+g.Resources[name])
	}
	for _, name := range sortedKeys(g.Labels) {
		fields = append(fields, "label:"+name+"="+g.Labels[name])
	}
	for _, taint := range g.Taints {
		fields = append(fields, "taint:"+taint)
	}
	return strings.Join(fields, ",")
}

// parseTaint parses KEY=VALUE:EFFECT; the value may be empty.
func parseTaint(text string) (corev1.Taint, error) {
	key, rest, _ := strings.Cut(text, "=")
	value, effect, _ := strings.Cut(rest, ":")
	taint := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 || !slices.Contains(effects, taint.Effect) {
		return taint, fmt.Errorf("taint %q is not KEY=VALUE:EFFECT, such as nvidia.com/gpu=present:NoSchedule; effects are %q", text, effects)
	}
	return taint, nil
}

func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// ParseImage parses name=path. The path is made absolute and must be an executable file, unless it is HostImage.
func ParseImage(text string) (name, path string, err error) {
	name, path, ok := strings.Cut(text, "=")
	if !ok || name == "" || path == "" {
		return "", "", fmt.Errorf("image %q: must be name=path, such as elastic-trainer=bin/elastic-trainer, or '%s'=%s", text, AnyImage, HostImage)
	}
	if path == HostImage {
		return name, path, nil
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", "", fmt.Errorf("image %q: %w", text, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", "", fmt.Errorf("image %q: %w; build the program first", text, err)
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return "", "", fmt.Errorf("image %q: %q is not an executable file", text, path)
	}
	return name, path, nil
}

// LoadConfig returns the declaration that was kept in the state directory; ok is false where there is none.
func LoadConfig(layout Layout) (config Config, ok bool, err error) {
	content, err := os.ReadFile(layout.configFile())
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, false, nil
	}
	if err != nil {
		return Config{}, false, fmt.Errorf("reading the cluster's declaration: %w", err)
	}
	if err := json.Unmarshal(content, &config); err != nil {
		return Config{}, false, fmt.Errorf("the cluster's declaration %q is damaged: %w; remove the state directory to start afresh", layout.configFile(), err)
	}
	return config, true, nil
}

func saveJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return writePrivate(path, append(content, '\n'))
}
