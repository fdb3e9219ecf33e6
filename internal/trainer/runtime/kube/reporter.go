package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// Reporter writes the newest status to ConfigMap NAME-status and notices as Events of the Job. It implements
// master.Reporter: its methods never wait for the API server.
type Reporter struct {
	cluster *Cluster
	earlier trainingjob.Status
	log     *slog.Logger
	status  chan trainingjob.Status // the newest only
	notices chan coordinator.Notice
	closing chan struct{}
	done    sync.WaitGroup
	ctx     context.Context // ends some time after Close was called
	giveUp  context.CancelFunc
}

const (
	statusRetry  = 2 * time.Second
	lastStatus   = 10 * time.Second // bounds writing the final status and the last Events
	noticesQueue = 64
)

// atMostEvery is the minimum interval between Events of frequent reasons; the status reports each of them.
var atMostEvery = map[string]time.Duration{
	coordinator.ReasonEvaluated:    time.Minute,
	coordinator.ReasonCheckpointed: 10 * time.Minute,
}

// The burst and the rate per second of all Events together: a worker that joins and leaves as
// fast as it can must not keep the API server busy. Events that are left out are in the log.
const (
	eventsBurst     = 100
	eventsPerSecond = 2
)

// EarlierStatus is what the last master reported; zero without one. A patch that changes nothing is answered with the
// ConfigMap, so a master needs no permission to get it.
func (c *Cluster) EarlierStatus(ctx context.Context) (trainingjob.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	configMap := &corev1.ConfigMap{}
	patch := c.core.Patch(types.MergePatchType).Namespace(c.Namespace).Resource("configmaps").
		Name(trainingjob.StatusName(c.Job.Name)).Body([]byte("{}"))
	err := patch.Do(ctx).Into(configMap)
	if err != nil {
		return trainingjob.Status{}, err
	}
	return trainingjob.DecodeStatus(configMap)
}

// NewReporter starts a reporter; Close writes what is pending. earlier is the status of the masters before this one.
func NewReporter(c *Cluster, earlier trainingjob.Status, log *slog.Logger) *Reporter {
	r := &Reporter{
		cluster: c, earlier: earlier, log: log, status: make(chan trainingjob.Status, 1), notices: make(chan coordinator.Notice, noticesQueue), closing: make(chan struct{}),
	}
	r.ctx, r.giveUp = context.WithCancel(context.Background())
	r.done.Go(r.writeStatuses)
	r.done.Go(r.writeNotices)
	return r
}

// Status implements master.Reporter.
func (r *Reporter) Status(s trainingjob.Status) {
	for {
		select {
		case r.status <- s:
			return
		default:
		}
		select {
		case <-r.status: // an older one that is still pending
		default:
		}
	}
}

// Notice implements master.Reporter. Of many notices at once it drops the newest, which are in the log.
func (r *Reporter) Notice(n coordinator.Notice) {
	select {
	case r.notices <- n:
	default:
	}
}

// Close waits a while until the newest status and the Events are written.
func (r *Reporter) Close() {
	close(r.closing)
	timeout := time.AfterFunc(lastStatus, r.giveUp)
	defer timeout.Stop()
	defer r.giveUp()
	r.done.Wait()
}

func (r *Reporter) writeStatuses() {
	for {
		select {
		case s := <-r.status:
			r.writeUntilDone(s)
		case <-r.closing:
			select {
			case s := <-r.status:
				r.writeUntilDone(s)
			default:
			}
			return
		}
	}
}

// writeUntilDone retries until it has written a status, or the newer one that has come meanwhile.
func (r *Reporter) writeUntilDone(s trainingjob.Status) {
	closing := r.closing
	for {
		err := r.write(s)
		if err == nil {
			return
		}
		r.log.Warn("the status cannot be written; trying again", "error", err)
		retry := time.NewTimer(statusRetry)
		select {
		case s = <-r.status:
		case <-retry.C:
		case <-closing:
			closing = nil // at once, then at the usual interval
		case <-r.ctx.Done():
			retry.Stop()
			return
		}
		retry.Stop()
	}
}

func (r *Reporter) write(s trainingjob.Status) error {
	if s.GoodputSplit == nil { // a master that has not begun keeps what earlier ones reported
		s.GoodputSplit, s.Disruptions = r.earlier.GoodputSplit, r.earlier.Disruptions
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	data := map[string]any{"data": map[string]string{trainingjob.StatusKey: string(text)}}
	return r.cluster.patch(r.ctx, r.cluster.core, "configmaps", trainingjob.StatusName(r.cluster.Job.Name), data)
}

func (r *Reporter) writeNotices() {
	written, limit := map[string]time.Time{}, rate.NewLimiter(eventsPerSecond, eventsBurst)
	write := func(n coordinator.Notice) {
		if now := time.Now(); now.Sub(written[n.Reason]) >= atMostEvery[n.Reason] && limit.Allow() {
			written[n.Reason] = now
			r.writeNotice(n)
		}
	}
	for {
		select {
		case n := <-r.notices:
			write(n)
		case <-r.closing:
			for {
				select {
				case n := <-r.notices:
					write(n)
				default:
					return
				}
			}
		}
	}
}

func (r *Reporter) writeNotice(n coordinator.Notice) {
	c := r.cluster
	kind := corev1.EventTypeNormal
	if n.Warning {
		kind = corev1.EventTypeWarning
	}
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: c.Namespace, Name: fmt.Sprintf("%s.%x", c.Job.Name, now.UnixNano())},
		InvolvedObject: corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: c.Namespace, Name: c.Job.Name, UID: c.Job.UID},
		Reason:         n.Reason, Message: n.Message, Type: kind,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: "elastic-trainer"}, ReportingController: "elastic-trainer", ReportingInstance: c.Pod,
	}
	ctx, cancel := context.WithTimeout(r.ctx, requestTimeout)
	defer cancel()
	if err := c.core.Post().Namespace(c.Namespace).Resource("events").Body(event).Do(ctx).Error(); err != nil {
		r.log.Warn("an Event cannot be written", "event", n.Reason, "error", err)
	}
}
