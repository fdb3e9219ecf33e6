package fakekueue

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

// A store of pods whose source the test plays.
func newTestStore(t *testing.T) (*store[*corev1.Pod], *cachetesting.FakeControllerSource) {
	t.Helper()
	source := cachetesting.NewFakeControllerSource()
	informer := cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, cache.Indexers{})
	s, err := newStore(informer, podIndexers(), func(*corev1.Pod) {})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(t.Context()) }()
	t.Cleanup(func() { <-done; goleak.VerifyNone(t, goleak.IgnoreCurrent()) })
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("not synced")
	}
	return s, source
}

func version(uid types.UID, version, group string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "a", UID: uid, ResourceVersion: version, Labels: map[string]string{"kueue.x-k8s.io/pod-group-name": group},
	}}
}

func TestAStoreKnowsWhatWasWrittenBeforeTheInformerDoes(t *testing.T) {
	name := types.NamespacedName{Namespace: "team", Name: "a"}
	// The source numbers its versions from 1.
	for title, c := range map[string]struct {
		play   func(s *store[*corev1.Pod], source *cachetesting.FakeControllerSource)
		labels []string // of what is known in the end
		count  int
	}{
		"nothing is there": {play: func(*store[*corev1.Pod], *cachetesting.FakeControllerSource) {}},
		"the informer's is found": {play: func(_ *store[*corev1.Pod], source *cachetesting.FakeControllerSource) {
			source.Add(version("1", "", "seen"))
		}, labels: []string{"seen"}},
		"what was created and is not seen yet is found": {play: func(s *store[*corev1.Pod], _ *cachetesting.FakeControllerSource) {
			s.wrote(version("1", "7", "written"))
		}, labels: []string{"written"}},
		"a later write hides what the informer has": {play: func(s *store[*corev1.Pod], source *cachetesting.FakeControllerSource) {
			source.Add(version("1", "", "seen"))
			s.wrote(version("1", "7", "written"))
		}, labels: []string{"written"}},
		"and is hidden by what comes later": {play: func(s *store[*corev1.Pod], source *cachetesting.FakeControllerSource) {
			s.wrote(version("1", "0", "written"))
			source.Add(version("1", "", "seen"))
		}, labels: []string{"seen"}},
		"what is deleted is forgotten, written or not": {play: func(s *store[*corev1.Pod], source *cachetesting.FakeControllerSource) {
			source.Add(version("1", "", "seen"))
			s.wrote(version("1", "7", "written"))
			source.Delete(version("1", "", "seen"))
		}},
		"but not a successor of the same name": {play: func(s *store[*corev1.Pod], source *cachetesting.FakeControllerSource) {
			source.Add(version("1", "", "seen"))
			s.wrote(version("2", "7", "successor"))
			source.Delete(version("1", "", "seen"))
		}, labels: []string{"successor"}},
		"nor is it kept when the API server does not know it": {play: func(s *store[*corev1.Pod], _ *cachetesting.FakeControllerSource) {
			s.wrote(version("1", "7", "written"))
			s.forget(name)
		}},
	} {
		t.Run(title, func(t *testing.T) {
			s, source := newTestStore(t)
			c.play(s, source)
			ctx, cancel := context.WithTimeout(t.Context(), patience.Medium)
			defer cancel()
			err := await.Until(ctx, "the store is up to date", time.Millisecond, func(context.Context) error {
				return knows(s, name, c.labels)
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// knows compares every way of asking a store.
func knows(s *store[*corev1.Pod], name types.NamespacedName, groups []string) error {
	label := func(pods []*corev1.Pod) []string {
		var all []string
		for _, pod := range pods {
			all = append(all, pod.Labels["kueue.x-k8s.io/pod-group-name"])
		}
		return all
	}
	var one []string
	if pod, ok := s.get(name); ok {
		one = label([]*corev1.Pod{pod})
	}
	if all := label(s.all()); !slices.Equal(one, groups) || !slices.Equal(all, groups) {
		return fmt.Errorf("get gives %q, all %q; want %q", one, all, groups)
	}
	for _, group := range []string{"seen", "written", "successor"} {
		if found, want := len(s.by(byGroup, join("team", group))) > 0, slices.Contains(groups, group); found != want {
			return fmt.Errorf("by group %s: %v; want %v", group, found, want)
		}
	}
	return nil
}
