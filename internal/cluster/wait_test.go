package cluster

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// restarting is a server that answers from the start, goes away, and comes back. Its one pod is Running in the end.
type restarting struct {
	began         time.Time
	goes, returns time.Duration // after began
	away          error         // what it answers meanwhile
	runs          time.Duration // when the pod does
}

func (r restarting) answer() error {
	if since := time.Since(r.began); since >= r.goes && since < r.returns {
		return r.away
	}
	return nil
}

func (r restarting) List(context.Context, metav1.ListOptions) (*corev1.PodList, error) {
	if err := r.answer(); err != nil {
		return nil, err
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	if time.Since(r.began) >= r.runs {
		pod.Status.Phase = corev1.PodRunning
	}
	return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Pod{pod}}, nil
}

// Watch ends when the server goes away, and after a minute, as servers end watches.
func (r restarting) Watch(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	if err := r.answer(); err != nil {
		return nil, err
	}
	w := watch.NewFake()
	ends := time.Minute
	if until := r.goes - time.Since(r.began); until > 0 {
		ends = min(ends, until)
	}
	time.AfterFunc(ends, w.Stop)
	return w, nil
}

func TestAWaitOutlastsAServerThatIsStartedAgain(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New(`User "ada" cannot list resource "pods"`))
	for name, test := range map[string]struct {
		server  restarting
		fails   error
		atMost  time.Duration
		atLeast time.Duration
	}{
		"it refuses connections for a while": {
			server:  restarting{goes: 10 * time.Second, returns: 40 * time.Second, away: refused, runs: 30 * time.Second},
			atLeast: 40 * time.Second, atMost: 42 * time.Second,
		},
		"it forbids everything until it has read its roles": {
			server:  restarting{goes: 10 * time.Second, returns: 15 * time.Second, away: forbidden, runs: 30 * time.Second},
			atLeast: 30 * time.Second, atMost: 2 * time.Minute, // the next list
		},
		"it does not come back": {
			server: restarting{goes: 10 * time.Second, returns: time.Hour, away: refused, runs: time.Hour},
			fails:  refused, atLeast: outageLimit, atMost: outageLimit + 20*time.Second,
		},
		"a server that never answered is not waited for": {
			server: restarting{returns: time.Minute, away: forbidden},
			fails:  forbidden, atMost: time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.server.began = time.Now()
				err := WaitFor(t.Context(), &Client{}, test.server, metav1.ListOptions{}, func(pods []*corev1.Pod) (bool, error) {
					return pods[0].Status.Phase == corev1.PodRunning, nil
				})
				if took := time.Since(test.server.began); took < test.atLeast || took > test.atMost {
					t.Errorf("it took %s", took)
				}
				if !errors.Is(err, test.fails) {
					t.Errorf("error %v, want %v", err, test.fails)
				}
			})
		})
	}
}

func TestAWaitEndsWithItsContextAlsoWhileTheServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := restarting{began: time.Now(), goes: time.Second, returns: time.Hour, away: errors.New("connection refused"), runs: time.Hour}
		cause := errors.New("the user had enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, cause)
		defer cancel()
		err := WaitFor(ctx, &Client{}, server, metav1.ListOptions{}, func([]*corev1.Pod) (bool, error) { return false, nil })
		if !errors.Is(err, cause) {
			t.Errorf("error %v", err)
		}
	})
}
