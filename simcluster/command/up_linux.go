package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/addon"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// upFlags are the declaration as flags. What was not given comes from the last start, or is the default.
type upFlags struct {
	nodes          int
	cpu            string
	memory         string
	allocatableCPU string
	groups         []string
	port           int
	images         []string
	mounts         string
	kueue          bool
	kueueConfig    string
	kueueGates     []string
	controllers    []string
	schedulerOnly  bool
	auditPolicy    string
	podSecurity    string
	foreground     bool
}

func upCommand(layout layoutFunc) *cobra.Command {
	var flags upFlags
	command := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster, or resume a stopped one",
		Long: `Start the cluster and return when it is ready: the API server answers, the scheduler is
ready and all nodes accept pods. The cluster runs in the background until "simcluster
down". With --foreground the command runs until ^C, which stops the cluster. When the
command ends for any reason, all processes of the cluster end too.

The state directory must be new, empty, or the state directory of an earlier cluster.

Progress is printed to stderr and the line KUBECONFIG=… to stdout, so that "export
$(simcluster up)" works. Flags that are not given keep their values from the last start
in this directory.

The value of --node-group has the form name=…,count=…,cpu=…,memory=…,allocatable-cpu=…,
followed by any number of resource:NAME=…, label:NAME=… and taint:KEY=VALUE:EFFECT.
A label may have several values, for equal parts of the group's nodes in order: with
label:rack=r1+r2, the first half of the nodes gets r1 and the second half r2.

--kueue runs Kueue beside the control plane, and --controllers JobSet, Kubeflow Trainer,
LeaderWorkerSet and KubeRay, each the project's own program with its own CRDs and
webhooks. They are built by "make controllers". Kueue's configuration is in the
ConfigMap kueue-manager-config in kueue-system; --kueue-config starts it with another.`,
		Example: `  export $(simcluster up)
  simcluster up --nodes 5 --cpu 8 --allocatable-cpu 7.91 --memory 30Gi
  simcluster up --node-group name=cpu,count=2,cpu=4 \
      --node-group name=t4,cpu=8,memory=30Gi,resource:nvidia.com/gpu=4,label:gpu=t4
  simcluster up --node-group name=gpu,count=8,cpu=8,label:rack=r1+r2+r3+r4
  simcluster up --kueue
  simcluster up --kueue --kueue-config fair-sharing.yaml --controllers jobset,trainer`,
		Args: cli.NeedsArguments(),
		RunE: func(command *cobra.Command, _ []string) error {
			l, err := layout()
			if err != nil {
				return err
			}
			return up(command, l, flags)
		},
	}
	defaults := controlplane.DefaultNodes()
	set := command.Flags()
	set.IntVar(&flags.nodes, "nodes", defaults.Count, "number of nodes")
	set.StringVar(&flags.cpu, "cpu", defaults.CPU, "declared CPUs per node; the host may have fewer")
	set.StringVar(&flags.memory, "memory", defaults.Memory, "declared memory per node")
	set.StringVar(&flags.allocatableCPU, "allocatable-cpu", defaults.AllocatableCPU, "CPUs per node that are available to pods; if only --cpu is given, all of them")
	set.StringArrayVar(&flags.groups, "node-group", nil, "group of identical nodes, instead of --nodes, --cpu, --memory and --allocatable-cpu; may be repeated")
	set.IntVar(&flags.port, "port", 0, "port of the API server on 127.0.0.1; 0 chooses a free port, which later starts reuse")
	set.StringArrayVar(&flags.images, "image", nil, "executable to run for an image, for example elastic-trainer=bin/elastic-trainer; '*'=host runs the commands of all other images on the host; may be repeated")
	set.StringVar(&flags.mounts, "mounts", controlplane.MountsAuto, "how containers see their volumes: namespace (mount namespaces), rewrite (paths in command, args and env are replaced), or auto (namespace if the kernel permits it, otherwise rewrite)")
	set.BoolVar(&flags.kueue, "kueue", false, "run Kueue, with its CRDs and webhooks")
	set.StringVar(&flags.kueueConfig, "kueue-config", "", "with --kueue: file with Kueue's configuration (config.kueue.x-k8s.io, kind Configuration); default: that of its release")
	set.StringSliceVar(&flags.kueueGates, "kueue-feature-gates", nil, "with --kueue: feature gates, for example PriorityBoost=true")
	set.StringSliceVar(&flags.controllers, "controllers", nil, "controllers of other projects to run besides Kueue: "+strings.Join(otherControllers(), ", "))
	set.BoolVar(&flags.kueue, "queueing", false, "the same as --kueue")
	set.BoolVar(&flags.schedulerOnly, "scheduler-only", false, "run the scheduler only, without controllers and nodes")
	set.StringVar(&flags.auditPolicy, "audit-policy", "", "file with an audit policy for the API server, which then writes logs/audit.log")
	set.StringVar(&flags.podSecurity, "pod-security", "", "Pod Security Standard to enforce in namespaces without the label pod-security.kubernetes.io/enforce: privileged, baseline or restricted (default privileged)")
	set.BoolVar(&flags.foreground, "foreground", false, "run in the foreground; ^C stops the cluster")
	cli.CompleteFrom(command, "mounts", controlplane.MountsAuto, controlplane.MountsNamespace, controlplane.MountsRewrite)
	cli.CompleteFrom(command, "pod-security", controlplane.PodSecurityLevels()...)
	cli.CompleteFrom(command, "controllers", otherControllers()...)
	cli.CompleteFiles(command, "image")
	cli.CompleteFiles(command, "kueue-config", "yaml")
	cli.CompleteFiles(command, "audit-policy", "yaml", "json")
	return command
}

func up(command *cobra.Command, layout controlplane.Layout, flags upFlags) error {
	config, err := declaration(command, layout, flags)
	if err != nil {
		return err
	}
	switch running, err := alreadyRunning(command, layout, config); {
	case err != nil:
		return err
	case running:
		return nil
	case flags.foreground:
		return superviseHere(command, layout, config)
	default:
		return superviseDetached(command, layout)
	}
}

// declaration merges the flags that were given into what was declared at the last start, or into the default.
func declaration(command *cobra.Command, layout controlplane.Layout, flags upFlags) (controlplane.Config, error) {
	config, kept, err := controlplane.LoadConfig(layout)
	if err != nil {
		return config, err
	}
	if !kept {
		config = controlplane.DefaultConfig()
	}
	given := command.Flags().Changed
	if given("port") {
		config.Port = flags.port
	}
	if given("mounts") {
		config.Mounts = flags.mounts
	}
	if given("kueue") || given("queueing") || given("controllers") {
		if config.Addons, err = declaredAddons(given, flags, config.Addons); err != nil {
			return config, cli.UsageError("%w", err)
		}
	}
	if given("kueue-config") {
		if config.KueueConfig, err = filepath.Abs(flags.kueueConfig); err != nil {
			return config, err
		}
	}
	if given("kueue-feature-gates") {
		config.KueueFeatureGates = flags.kueueGates
	}
	if given("scheduler-only") {
		config.SchedulerOnly = flags.schedulerOnly
	}
	if given("audit-policy") {
		if config.AuditPolicy, err = filepath.Abs(flags.auditPolicy); err != nil {
			return config, err
		}
	}
	if given("pod-security") {
		config.PodSecurity = flags.podSecurity
	}
	if given("image") {
		config.Images = map[string]string{}
		for _, text := range flags.images {
			name, path, err := controlplane.ParseImage(text)
			if err != nil {
				return config, cli.UsageError("%w", err)
			}
			config.Images[name] = path
		}
	}
	if config.Nodes, err = declaredNodes(given, flags, config.Nodes); err != nil {
		return config, cli.UsageError("%w", err)
	}
	if err := config.Validate(); err != nil {
		return config, cli.UsageError("%w", err)
	}
	return config, nil
}

// otherControllers are the add-ons that --controllers names.
func otherControllers() []string {
	return slices.DeleteFunc(addon.Names(), func(name string) bool { return name == addon.Kueue })
}

// declaredAddons returns the add-ons in the order in which they are started.
func declaredAddons(given func(flag string) bool, flags upFlags, last []string) ([]string, error) {
	wanted := map[string]bool{}
	for _, name := range last {
		wanted[name] = true
	}
	if given("kueue") || given("queueing") {
		wanted[addon.Kueue] = flags.kueue
	}
	if given("controllers") {
		for _, name := range otherControllers() {
			wanted[name] = slices.Contains(flags.controllers, name)
		}
		for _, name := range flags.controllers {
			if !slices.Contains(otherControllers(), name) {
				return nil, fmt.Errorf("--controllers %s: there are %s, and --kueue", name, strings.Join(otherControllers(), ", "))
			}
		}
	}
	var addons []string
	for _, name := range addon.Names() {
		if wanted[name] {
			addons = append(addons, name)
		}
	}
	return addons, nil
}

func declaredNodes(given func(flag string) bool, flags upFlags, last []controlplane.NodeGroup) ([]controlplane.NodeGroup, error) {
	simple := given("nodes") || given("cpu") || given("memory") || given("allocatable-cpu")
	switch {
	case simple && given("node-group"):
		return nil, errors.New("--node-group replaces --nodes, --cpu, --memory and --allocatable-cpu; use one or the other")
	case given("node-group"):
		var groups []controlplane.NodeGroup
		for _, text := range flags.groups {
			group, err := controlplane.ParseNodeGroup(text)
			if err != nil {
				return nil, err
			}
			groups = append(groups, group)
		}
		return groups, nil
	case !simple:
		return last, nil
	}
	group := controlplane.DefaultNodes()
	if len(last) == 1 && last[0].Name == group.Name {
		group = last[0]
	}
	if given("nodes") {
		group.Count = flags.nodes
	}
	if given("memory") {
		group.Memory = flags.memory
	}
	if given("cpu") {
		group.CPU, group.AllocatableCPU = flags.cpu, ""
	}
	if given("allocatable-cpu") {
		group.AllocatableCPU = flags.allocatableCPU
	}
	return []controlplane.NodeGroup{group}, nil
}

// alreadyRunning reports that the cluster runs already, and refuses to pretend that a different declaration took
// effect.
func alreadyRunning(command *cobra.Command, layout controlplane.Layout, config controlplane.Config) (bool, error) {
	supervised, err := controlplane.Supervised(layout)
	if err != nil || !supervised {
		return false, err
	}
	current, _, err := controlplane.LoadConfig(layout)
	if err != nil {
		return true, err
	}
	if !reflect.DeepEqual(current, config) {
		return true, fmt.Errorf("the cluster in %s is running with a different configuration; run %s first", layout.Dir, next(layout, "down"))
	}
	command.PrintErrf("the cluster in %s is already running; %s shows it, %s stops it\n", layout.Dir, next(layout, "status"), next(layout, "down"))
	printKubeconfig(layout)
	return true, nil
}

func printKubeconfig(layout controlplane.Layout) {
	fmt.Println("KUBECONFIG=" + layout.AdminKubeconfig())
}

// superviseHere runs the cluster in this process until it is signalled to stop.
func superviseHere(command *cobra.Command, layout controlplane.Layout, config controlplane.Config) error {
	// The reader of the progress may go away before the cluster does. (Notify rather than Ignore: children inherit
	// what is ignored.)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the simcluster executable: %w", err)
	}
	return controlplane.Supervise(command.Context(), controlplane.Options{
		Layout:     layout,
		Config:     config,
		Executable: executable,
		Addons:     addon.Find(executable),
		Progress:   os.Stderr,
	}, func() { printKubeconfig(layout) })
}

// superviseDetached starts this command line again with --foreground in a session of its own, shows what it says until
// the cluster is ready, and leaves it alone.
func superviseDetached(command *cobra.Command, layout controlplane.Layout) error {
	if err := layout.Create(); err != nil {
		return err
	}
	supervisor, err := startSupervisor(layout)
	if err != nil {
		return err
	}
	log, err := os.Open(layout.Log(supervisorLog))
	if err != nil {
		return fmt.Errorf("reading the supervisor's log: %w", err)
	}
	defer log.Close() //nolint:errcheck // It is only read.
	ended := make(chan error, 1)
	go func() { ended <- supervisor.Wait() }()
	ready, err := follow(command.Context(), log, ended, os.Stdout, os.Stderr)
	switch {
	case err != nil:
		return err
	case ready:
		command.PrintErrf("use it:  export KUBECONFIG=%s\n         kubectl get nodes, or %s\nstop it: %s\n", layout.AdminKubeconfig(), next(layout, "status"), next(layout, "down"))
		return nil
	case command.Context().Err() != nil:
		// ^C while it starts: the supervisor has a session of its own and did not hear it.
		if err := supervisor.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stopping the supervisor: %w", err)
		}
		<-ended
		return context.Cause(command.Context())
	}
	return nil
}
