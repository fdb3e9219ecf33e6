package master_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/eventually"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/worker"
)

// journal is a log that can be read while it is written.
type journal struct{ eventually.Text }

func (j *journal) contains(words ...string) bool {
	for line := range strings.Lines(j.String()) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			return true
		}
	}
	return false
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

func TestAWorkerOfAnotherJobOrWithoutTheTokenIsRefusedAndLogged(t *testing.T) {
	for name, c := range map[string]struct {
		visit          func(context.Context, *site) error
		reason, logged []string
	}{
		"one with a wrong token": {
			visit: func(ctx context.Context, s *site) error {
				made, err := trainingjob.NewCredentials(rand.Reader, time.Now(), "tally-master")
				if err != nil {
					return err
				}
				wrong := s.credentials // the certificate is no secret
				wrong.Token = made.Token
				return worker.Run(ctx, worker.Config{Master: s.address, ID: 9, Credentials: wrong, Job: s.options, MasterTimeout: patience.Medium, Log: slog.New(slog.DiscardHandler)})
			},
			reason: []string{"the token is not this job's"}, logged: []string{"rejected a worker with a wrong token", "127.0.0.1:"},
		},
		"one of another job": {
			visit: func(ctx context.Context, s *site) error {
				return s.saysHello(ctx, &wirepb.Hello{Lineage: s.job.Identity.Lineage, JobDigest: "0123456789abcdef"})
			},
			reason: []string{"its job digest is 0123456789ab"}, logged: []string{"rejected a worker", "worker=9", "node=elsewhere", "its job digest is 0123456789ab"},
		},
		"one that reads other data": {
			visit: func(ctx context.Context, s *site) error {
				return s.saysHello(ctx, &wirepb.Hello{Lineage: "0123456789abcdef", JobDigest: s.job.Identity.Job})
			},
			reason: []string{"another model, other data or other settings"}, logged: []string{"rejected a worker", "worker=9", "its lineage is 0123456789ab"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 100)
			s.launcher.work = s.worker(time.Millisecond)
			log := &journal{}
			s.config.Log = log.logger()
			visited := make(chan error, 1)
			go func() {
				visited <- c.visit(t.Context(), s)
				s.lost <- "that is all"
			}()
			s.run(t.Context())
			if err := <-visited; err == nil || !strings.Contains(err.Error(), c.reason[0]) {
				t.Errorf("got error: %v", err)
			}
			if !log.contains(c.logged...) {
				t.Errorf("the master's log does not say %q:\n%s", c.logged, log.String())
			}
		})
	}
}

func TestAStreamThatClaimsANewerGenerationOrAConnectedWorkersNumberHarmsNoOther(t *testing.T) {
	for name, c := range map[string]struct {
		join   *wirepb.Join
		logged string
	}{
		"a generation that no master has": {&wirepb.Join{Worker: 9, Generation: 1 << 60, Numerics: kernel.NumericsVersion}, "still holds the job"},
		"the number of a worker":          {&wirepb.Join{Worker: 0, Numerics: kernel.NumericsVersion}, "worker 0 is connected"},
	} {
		t.Run(name, func(t *testing.T) {
			s, over := newSite(t, 2), make(chan struct{})
			// The job does not end before the strangers' last visit.
			s.launcher.work = s.workerOn("node", func(n countingNetwork) job.Network { return stuck{n, 10, over} })
			log := &journal{}
			s.config.Log = log.logger()
			tried := make(chan error, 1)
			go func() {
				defer close(over)
				err := wait(t.Context(), "some steps", func() bool { return s.step.Load() > 5 })
				for range 3 {
					v, closeVisit, visiting := s.visit(t.Context(), c.join)
					if visiting != nil {
						err = errors.Join(err, visiting)
						break
					}
					if answer := v.RecvMsg(&wire.Frame{}); answer == nil || !strings.Contains(answer.Error(), c.logged) {
						err = errors.Join(err, fmt.Errorf("it was answered %w", answer))
					}
					closeVisit()
				}
				tried <- err
			}()
			result := s.run(t.Context())
			if err := <-tried; err != nil || result.Code != coordinator.ExitDone {
				t.Errorf("the master ended with %+v; %v", result, err)
			}
			if log.contains("was lost") || !log.contains("turned a worker's stream away", c.logged) {
				t.Errorf("the log:\n%s", log.String())
			}
		})
	}
}

// saysHello is a worker with the job's credentials and another job, or with other claims; it returns
// the master's answer.
func (s *site) saysHello(ctx context.Context, hello *wirepb.Hello, more ...*wirepb.Message) error {
	v, closeVisit, err := s.visit(ctx, &wirepb.Join{Worker: 9, Numerics: kernel.NumericsVersion, Node: "elsewhere"})
	if err != nil {
		return err
	}
	defer closeVisit()
	v.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Hello{Hello: hello}})
	for _, m := range more {
		v.queue.Send(m)
	}
	for {
		f := &wire.Frame{}
		if err := v.RecvMsg(f); err != nil {
			return err
		}
		f.Release()
		if r := f.Message.GetRefusal(); r != nil {
			return errors.New(r.Reason)
		}
	}
}

func TestAMasterOfAnOlderGenerationIsRefusedByItsWorkerAndThatIsLogged(t *testing.T) {
	s := newSite(t, 100)
	log := &journal{}
	s.launcher.work = func(ctx context.Context, id int) error {
		return worker.Run(ctx, worker.Config{Master: s.address, ID: id, Credentials: s.credentials, Job: s.options, MasterTimeout: patience.Medium, Pace: time.Millisecond, Log: log.logger()})
	}
	ended := make(chan error, 1)
	go func() {
		ended <- wait(t.Context(), "some steps", func() bool { return s.step.Load() > 5 })
		s.lost <- "it is gone"
	}()
	s.run(t.Context()) // it has generation 3
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	// The master at its address is one that had been paused for a while.
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan *wirepb.Message, 64)
	older, err := wire.NewServer(s.credentials, slog.New(slog.DiscardHandler), func(stream grpc.ServerStream) error {
		for queue := wire.NewQueue(1); ; {
			f := &wire.Frame{}
			if err := stream.RecvMsg(f); err != nil {
				return err
			}
			f.Release()
			if f.Message.GetHeartbeat() != nil {
				continue
			}
			select {
			case received <- f.Message:
			default:
			}
			if f.Message.GetJoin() != nil {
				queue.Send(&wirepb.Message{Kind: &wirepb.Message_Job{Job: &wirepb.Job{Generation: 2, JobJson: s.text, Model: s.model, ModelName: "model.py"}}})
				queue.Close()
				if err := queue.Run(stream.Context(), stream); err != nil {
					return err
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- older.Serve(listener) }()
	err = wait(t.Context(), "the refusal", func() bool {
		return log.contains("level=WARN", "a newer master has taken over: this one has generation 2, the newer 3")
	})
	older.Stop(0)
	if err := errors.Join(err, <-served); err != nil && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	for len(received) > 0 {
		if m := <-received; m.GetJoin() == nil {
			t.Errorf("the older master received %v", m)
		}
	}
	s.launcher.Delete(0)
	s.launcher.close()
	if err := s.launcher.ended[0]; !errors.Is(err, worker.ErrLeft) {
		t.Errorf("the worker ended with %v", err)
	}
}
