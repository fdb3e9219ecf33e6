package elastictrainer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	protocol "github.com/elastic-training/terraform-provider-elastic/internal/api/task/gang"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/kube"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/rank"
)

func newGang() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gang",
		Short: "Start, stop and restart the commands of a task's pods together",
		Long: `The pods of an elastic_task with several nodes run this command. An init container
copies this program into a shared directory; the task's container then runs the task's
command under it and coordinates with the other pods. Not for interactive use.`,
	}
	cmd.AddCommand(newGangInstall(), newGangRun())
	return cmd
}

func newGangInstall() *cobra.Command {
	return &cobra.Command{
		Use:   "install FILE",
		Short: "Copy this program into a directory shared with another container",
		Long: `Copy this program to FILE, and create missing parent directories. FILE is created
atomically: it never exists in an incomplete state.`,
		Example: "  elastic-trainer gang install /elastic/elastic-trainer",
		Args:    cli.NeedsArguments("FILE"),
		RunE:    func(_ *cobra.Command, args []string) error { return install(args[0]) },
	}
}

// install copies the running program. It appears under its name when it is complete.
func install(to string) (err error) {
	from, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("install the supervisor: %w", err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("install the supervisor: %w", err)
	}
	// The containers of the pod share the directory: an unpredictable name, made by O_EXCL, follows no link of theirs.
	out, err := os.CreateTemp(filepath.Dir(to), "."+filepath.Base(to)+".*")
	if err != nil {
		return fmt.Errorf("install the supervisor: %w", err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Chmod(0o755), out.Close()); err == nil {
		err = os.Rename(out.Name(), to)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("install the supervisor: %w", err), os.Remove(out.Name()))
	}
	return nil
}

// supervisorSeconds of the time that start.sh leaves the supervisor are kept for the supervisor's own end.
const supervisorSeconds = 2

func newGangRun() *cobra.Command {
	var c computeFlags
	var name string
	var rejoin bool
	cmd := &cobra.Command{
		Use:   "run --task NAME -- COMMAND...",
		Short: "Run a command in step with the commands of the task's other pods",
		Long: `Wait until all pods of the task are ready, and run the command with their addresses in
SKYPILOT_NODE_IPS. If one of the commands fails or a pod is lost, all commands are
stopped and restarted. When all commands have succeeded, this command exits with 0. If
this pod's command was the first to fail, this command exits with the same code.

With --rejoin, the commands of the other pods continue, and that of the new pod rejoins
them. All are restarted if the first pod is lost or its command fails, or if one of the
commands has already succeeded.`,
		Example: "  elastic-trainer gang run --task nccl-test -- python3 train.py",
		Args:    cli.NeedsArguments("COMMAND..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := c.logger(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			config := rank.Config{
				Pod: types.UID(os.Getenv("MY_POD_UID")), Address: os.Getenv("MY_POD_IP"), Command: args, Rejoin: rejoin, Env: os.Environ(),
				Stdout: os.Stdout, Stderr: os.Stderr, Log: log.With("task", name),
			}
			stop := 0
			for _, v := range []struct {
				name string
				into *int
			}{{"SKYPILOT_NODE_RANK", &config.Rank}, {"SKYPILOT_NUM_NODES", &config.Nodes}, {"ELASTIC_STOP_SECONDS", &stop}} {
				if *v.into, err = strconv.Atoi(os.Getenv(v.name)); err != nil {
					return cli.UsageError("%s=%q: not a number; this command runs only in pods created by elastic_task", v.name, os.Getenv(v.name))
				}
			}
			config.Patience = time.Duration(max(0, stop-supervisorSeconds)) * time.Second
			if config.Rank < 0 || config.Rank >= config.Nodes || config.Pod == "" || config.Address == "" {
				return cli.UsageError("invalid rank %d of %d, pod %q or address %q; this command runs only in pods created by elastic_task", config.Rank, config.Nodes, config.Pod, config.Address)
			}
			return superviseRank(cmd, config, name)
		},
	}
	cmd.Flags().StringVar(&name, "task", "", "the task's name (required)")
	cmd.Flags().BoolVar(&rejoin, "rejoin", false, "the command can rejoin those of the other pods, which continue while a pod is replaced")
	c.registerLevel(cmd)
	cli.Require(cmd, "task")
	cli.Exits(cmd, 0, "the commands of all pods succeeded")
	cli.Exits(cmd, rank.ExitStopped, "interrupted")
	return cmd
}

func superviseRank(cmd *cobra.Command, config rank.Config, name string) error {
	ctx := cmd.Context()
	cluster, err := kube.InPod(os.Getenv("ELASTIC_ROOT"))
	if err != nil {
		return err
	}
	if config.Gang, err = kube.WatchGang(ctx, cluster, protocol.PodLabel, os.Getenv("MY_JOB_UID"), protocol.BoardName(name)); err != nil {
		if ctx.Err() != nil {
			return &cli.ExitError{Code: rank.ExitStopped, Err: err}
		}
		return err
	}
	defer config.Gang.Close()
	code, err := rank.Run(ctx, config)
	switch {
	case err != nil:
		return err
	case code == rank.ExitStopped:
		return &cli.ExitError{Code: code, Err: errors.New("received a stop signal")}
	case code != 0:
		return &cli.ExitError{Code: code, Err: fmt.Errorf("the command of rank %d ended with exit code %d", config.Rank, code)}
	}
	return nil
}
