package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

const (
	renewEvery  = 500 * time.Millisecond
	renewalWait = 2 * time.Second // for the other holder to renew
)

// ErrOtherMaster is returned by Acquire while the Lease has a live holder.
var ErrOtherMaster = errors.New("already has a master")

// Fence holds the Lease NAME-master. The Lease makes pods, files and status exclusive to one master; two masters of one
// job would compute equal bits. It implements master.Fence.
type Fence struct {
	cluster *Cluster
	log     *slog.Logger
	lost    chan string
	cancel  context.CancelFunc
	done    sync.WaitGroup

	generation int64

	mu    sync.Mutex            // held during requests to the API server: must not be taken by code that must not wait
	lease *coordinationv1.Lease // as last written
}

// Acquire takes generation g+1 by compare-and-swap: at once when nobody holds the Lease, when this pod does (its
// process was restarted), or when the holder's pod is gone, terminating or failed; otherwise after the holder has
// not renewed in time. If the holder renews, the error is ErrOtherMaster.
func Acquire(ctx context.Context, c *Cluster, log *slog.Logger) (*Fence, error) {
	f := &Fence{cluster: c, log: log, lost: make(chan string, 1)}
	name := trainingjob.MasterName(c.Job.Name)
	for {
		lease := &coordinationv1.Lease{}
		if err := c.get(ctx, c.coordination, "leases", name, lease); err != nil {
			return nil, fmt.Errorf("read Lease %s/%s, by which one job has one master: %w", c.Namespace, name, err)
		}
		if err := f.holderGone(ctx, lease); err != nil {
			return nil, err
		}
		transitions := int32(1)
		if lease.Spec.LeaseTransitions != nil {
			transitions += *lease.Spec.LeaseTransitions
		}
		now := metav1.NowMicro()
		seconds := int32(renewalWait / time.Second)
		lease.Spec = coordinationv1.LeaseSpec{
			HolderIdentity: &c.Pod, LeaseTransitions: &transitions, AcquireTime: &now, RenewTime: &now,
			LeaseDurationSeconds: &seconds,
		}
		written, err := f.write(ctx, lease)
		if apierrors.IsConflict(err) {
			continue // another master was faster: read the holder again
		}
		if err != nil {
			return nil, fmt.Errorf("take Lease %s/%s: %w", c.Namespace, name, err)
		}
		f.lease, f.generation = written, int64(transitions)
		break
	}
	renewing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f.cancel = cancel
	f.done.Go(func() { f.renew(renewing) })
	return f, nil
}

// holderGone returns nil when the Lease may be taken.
func (f *Fence) holderGone(ctx context.Context, lease *coordinationv1.Lease) error {
	c := f.cluster
	holder := ""
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	if holder == "" || holder == c.Pod {
		return nil
	}
	pod := &corev1.Pod{}
	err := c.get(ctx, c.core, "pods", holder, pod)
	if apierrors.IsNotFound(err) || (err == nil && (pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded)) {
		return nil
	}
	select {
	case <-time.After(renewalWait):
	case <-ctx.Done():
		return ctx.Err()
	}
	now := &coordinationv1.Lease{}
	if err := c.get(ctx, c.coordination, "leases", lease.Name, now); err != nil {
		return err
	}
	if now.Spec.RenewTime != nil && !now.Spec.RenewTime.Equal(lease.Spec.RenewTime) {
		return fmt.Errorf("job %s %w: pod %s, which renewed its Lease %.1f s ago; this one ends", c.Job.Name, ErrOtherMaster, holder, time.Since(now.Spec.RenewTime.Time).Seconds())
	}
	*lease = *now
	return nil
}

func (f *Fence) write(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	written := &coordinationv1.Lease{}
	err := f.cluster.coordination.Put().Namespace(f.cluster.Namespace).Resource("leases").Name(lease.Name).Body(lease).Do(ctx).Into(written)
	return written, err
}

// renew keeps the Lease fresh. Without the API server training continues: the Lease is renewed when it answers again.
func (f *Fence) renew(ctx context.Context) {
	t := time.NewTicker(renewEvery)
	defer t.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		switch err := f.renewOnce(ctx); {
		case err == nil:
			failing = false
		case errors.Is(err, errTaken):
			f.lost <- err.Error()
			return
		case ctx.Err() == nil && !failing:
			failing = true
			f.log.Warn("the Lease cannot be renewed; training continues", "error", err)
		}
	}
}

var errTaken = errors.New("another master has taken over")

func (f *Fence) renewOnce(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := metav1.NowMicro()
	next := f.lease.DeepCopy()
	next.Spec.RenewTime = &now
	written, err := f.write(ctx, next)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return f.look(ctx)
	}
	if err == nil {
		f.lease = written
	}
	return err
}

// look reads the Lease again: a write whose response came too late was still ours.
func (f *Fence) look(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	if err := f.cluster.get(ctx, f.cluster.coordination, "leases", f.lease.Name, lease); err != nil {
		return err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != f.cluster.Pod || *lease.Spec.LeaseTransitions != *f.lease.Spec.LeaseTransitions {
		holder := "nobody"
		if lease.Spec.HolderIdentity != nil {
			holder = *lease.Spec.HolderIdentity
		}
		return fmt.Errorf("%w: the Lease is held by %s", errTaken, holder)
	}
	f.lease = lease
	return nil
}

// Generation implements master.Fence.
func (f *Fence) Generation() int64 { return f.generation }

// Lost implements master.Fence.
func (f *Fence) Lost() <-chan string { return f.lost }

// Check implements master.Fence: it asks the API server, and succeeds if the server does not answer.
func (f *Fence) Check(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.look(ctx); errors.Is(err, errTaken) {
		return err
	}
	return nil
}

// Close releases the Lease.
func (f *Fence) Close(ctx context.Context) error {
	f.cancel()
	f.done.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.look(ctx) != nil {
		return nil // no longer ours, or the API server is unreachable
	}
	next := f.lease.DeepCopy()
	next.Spec.HolderIdentity = nil
	_, err := f.write(ctx, next)
	return err
}
