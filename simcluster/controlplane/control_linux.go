package controlplane

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

// Down stops the cluster in order and returns when no process of it is left; stopped is false where none ran. The
// state stays.
func Down(ctx context.Context, layout Layout) (stopped bool, err error) {
	status, err := ReadStatus(layout)
	if errors.Is(err, ErrNoCluster) || err == nil && status.Phase == PhaseStopped {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := signal(status.SupervisorPID, syscall.SIGTERM); err != nil {
		return false, fmt.Errorf("stopping the supervisor: %w", err)
	}
	return true, await.Until(ctx, "the supervisor has stopped everything", pollPause, func(context.Context) error {
		supervised, err := Supervised(layout)
		if err == nil && supervised {
			err = fmt.Errorf("process %d still runs", status.SupervisorPID)
		}
		return err
	})
}

// Kill ends a component as a crash would, by SIGKILL, and returns when the supervisor has started it again. It does
// not wait until the component can be used: see WaitReady.
func Kill(ctx context.Context, layout Layout, name string) error {
	status, err := ReadStatus(layout)
	if err != nil {
		return err
	}
	before, err := status.Component(name)
	if err != nil {
		return err
	}
	if before.PID == 0 {
		return fmt.Errorf("%s does not run at the moment (the cluster is %s)", name, status.Phase)
	}
	if err := signal(before.PID, syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing %s: %w", name, err)
	}
	return await.Until(ctx, name+" is started again", pollPause, func(context.Context) error {
		status, err := ReadStatus(layout)
		if err != nil {
			return err
		}
		after, err := status.Component(name)
		if err == nil && (after.PID == 0 || after.Restarts <= before.Restarts) {
			err = fmt.Errorf("%s was started %d times", name, after.Restarts+1)
		}
		return err
	})
}

// WaitReady waits until the cluster can be used: the API server, the scheduler and the queue controller, where there is
// one, say that they are ready, and the named nodes take pods.
func WaitReady(ctx context.Context, layout Layout, nodes []string) error {
	status, err := ReadStatus(layout)
	if err != nil {
		return err
	}
	config, _, err := LoadConfig(layout)
	if err != nil {
		return err
	}
	probe, err := probeClient(layout)
	if err != nil {
		return err
	}
	client, err := adminClient(layout)
	if err != nil {
		return err
	}
	conditions := append([]condition{answersReady(probe, APIServer, serverURL(status.Ports.APIServer))}, serversReady(probe, config, status.Ports)...)
	for _, c := range append(conditions, clusterConditions(client, config, nodes)...) {
		if err := c.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// signal sends a signal to a process that a status names. 0 and negative numbers mean groups of processes (kill(2)),
// which no status may make us signal.
func signal(pid int, s syscall.Signal) error {
	if pid <= 0 {
		return fmt.Errorf("process %d: no such process", pid)
	}
	if err := syscall.Kill(pid, s); err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	return nil
}
