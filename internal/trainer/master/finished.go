package master

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/wire/wirepb"
)

// dismissTimeout is how long the workers of an earlier master are awaited.
const dismissTimeout = 10 * time.Second

// dismissLeftOver ends the workers that a master left behind which died between saving the model and dismissing them:
// pending ones are deleted, running ones told "finished", so that they exit 0, and deleted if they do not hear it.
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
	stopWithin(server, lastWords)
	return <-served
}

// dismiss answers any worker with its dismissal.
func dismiss(stream grpc.ServerStream) error {
	if _, err := begins(stream); err != nil {
		return err
	}
	m := &wirepb.Message{Kind: &wirepb.Message_Dismissal{Dismissal: &wirepb.Dismissal{Reason: "finished"}}}
	if err := stream.SendMsg(&wire.Frame{Message: m}); err != nil {
		return fmt.Errorf("dismiss a worker: %w", err)
	}
	return nil
}
