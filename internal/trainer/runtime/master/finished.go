package master

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// dismissTimeout is how long the master waits for the workers of an earlier master.
const dismissTimeout = 10 * time.Second

// alreadyDone is the result of a run that finds the job finished.
func (m *Master) alreadyDone(ctx context.Context) (Result, error) {
	m.log.Info("the job has already finished", "sha256", m.finished.SHA256)
	m.info = m.finished
	m.evaluations.all = m.info.Evaluations
	m.reportMissing(m.cfg.Job.Schedule.Steps())
	m.cfg.Reporter.Status(m.cfg.History.OnStatus(m.finishedStatus()))
	return Result{Code: coordinator.ExitDone, Model: m.info}, m.dismissLeftOver(ctx)
}

// isEvaluated reports whether a finished model was measured on the validation data of this run, if it has any.
func (m *Master) isEvaluated(info *ModelInfo) bool {
	validation := m.cfg.Job.Identity.Validation
	return validation == "" || validation == info.Validation
}

// cannotEvaluateFinished is the reason why the final state of a finished job cannot be loaded; otherwise it has been
// loaded.
func (m *Master) cannotEvaluateFinished() string {
	if m.kept == m.cfg.Job.Schedule.Steps() {
		_, sum, err := m.encodeModel(m.keeper.current.floats)
		if err == nil && sum == m.finished.SHA256 {
			m.notice(coordinator.Notice{Reason: "EvaluatingFinishedModel", Message: "the job has already finished; its model is evaluated on the current validation data"})
			return ""
		}
	}
	return fmt.Sprintf("the job has already finished, and its model (%s) was not evaluated on the current validation data: the checkpoint of its last step no longer exists; "+
		"measure the model with elastic-trainer evaluate, or remove it to train again", strings.Join(m.finished.Files[:min(1, len(m.finished.Files))], ""))
}

// notEvaluated is the result of a run that cannot make the missing evaluation of a finished job.
func (m *Master) notEvaluated(ctx context.Context, reason string) (Result, error) {
	m.notice(coordinator.Notice{Warning: true, Reason: "NotEvaluated", Message: reason})
	m.info = m.finished
	status := m.finishedStatus()
	status.Phase, status.Message = trainingjob.PhaseFailed, reason
	m.cfg.Reporter.Status(m.cfg.History.OnStatus(status))
	return Result{Code: coordinator.ExitJobFailed, Reason: reason}, m.dismissLeftOver(ctx)
}

// dismissLeftOver ends the workers that a master left behind which died between saving the model and dismissing them:
// pending ones are deleted; running ones are sent "finished", so that they exit 0, and are deleted if they do not
// connect.
func (m *Master) dismissLeftOver(ctx context.Context) error {
	running := map[int]bool{}
	for _, e := range m.cfg.Existing {
		switch e.State {
		case coordinator.PodPending:
			m.cfg.Launcher.Delete(e.Worker)
		case coordinator.PodRunning:
			running[e.Worker] = true
		}
	}
	if len(running) == 0 {
		return m.cfg.Listener.Close()
	}
	server, err := wire.NewServer(m.cfg.Credentials, m.log, dismiss)
	if err != nil {
		return errors.Join(err, m.cfg.Listener.Close())
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(m.cfg.Listener) }()
	timeout := time.NewTimer(dismissTimeout)
	defer timeout.Stop()
	for waiting := true; waiting && len(running) > 0; {
		select {
		case e := <-m.cfg.Launcher.Events():
			if pod, ok := e.(coordinator.PodChanged); ok && pod.State == coordinator.PodEnded {
				delete(running, pod.Worker)
			}
		case <-timeout.C:
			waiting = false
		case <-ctx.Done():
			waiting = false
		}
	}
	for id := range running {
		m.cfg.Launcher.Delete(id)
	}
	server.Stop(closeTimeout)
	return <-served
}

// dismiss answers every worker with its dismissal.
func dismiss(stream grpc.ServerStream) error {
	if _, err := wire.First(stream); err != nil {
		return err
	}
	m := &wirepb.Message{Kind: &wirepb.Message_Dismissal{Dismissal: &wirepb.Dismissal{Reason: "finished"}}}
	if err := stream.SendMsg(&wire.Frame{Message: m}); err != nil {
		return fmt.Errorf("dismiss a worker: %w", err)
	}
	return nil
}
