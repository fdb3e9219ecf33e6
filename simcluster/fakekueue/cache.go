package fakekueue

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

type object interface {
	metav1.Object
	runtime.Object
}

// A store is what is known of the objects of one kind: what an informer saw, and what we wrote ourselves and the
// informer has not seen yet. Without the second, a workload that was just admitted would look as if it still waited.
//
// Objects in it are not to be changed.
type store[T object] struct {
	informer cache.SharedIndexInformer
	indexers cache.Indexers

	mu      sync.Mutex
	written map[types.NamespacedName]T
}

// newStore makes a store of an informer that does not run yet. changed is called, on the informer's goroutine, for
// every object that came, changed or went.
func newStore[T object](informer cache.SharedIndexInformer, indexers cache.Indexers, changed func(T)) (*store[T], error) {
	s := &store[T]{informer: informer, indexers: indexers, written: map[types.NamespacedName]T{}}
	if err := informer.AddIndexers(indexers); err != nil {
		return nil, err
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.seen(o.(T)); changed(o.(T)) },
		UpdateFunc: func(_, o any) { s.seen(o.(T)); changed(o.(T)) },
		DeleteFunc: func(o any) {
			if tombstone, missed := o.(cache.DeletedFinalStateUnknown); missed {
				o = tombstone.Obj
			}
			s.gone(o.(T))
			changed(o.(T))
		},
	})
	return s, err
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// newer reports whether a is a later version than b.
func newer(a, b metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	// Versions of an API server are numbers; if one were not, what the server sends would be right.
	return err == nil && order > 0
}

// seen forgets what we wrote once the informer has it, or something later.
func (s *store[T]) seen(o T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mine, ok := s.written[nameOf(o)]; ok && !newer(mine, o) {
		delete(s.written, nameOf(o))
	}
}

func (s *store[T]) gone(o T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mine, ok := s.written[nameOf(o)]; ok && mine.GetUID() == o.GetUID() {
		delete(s.written, nameOf(o))
	}
}

// wrote notes an object as the API server answered to a write of ours.
func (s *store[T]) wrote(o T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
		delete(s.written, nameOf(o)) // with its last finalizer it is gone
		return
	}
	s.written[nameOf(o)] = o
}

// forget drops what we wrote of an object of which the API server says that it is gone.
func (s *store[T]) forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.written, name)
}

// get returns the latest known version of an object; ok is false where there is none.
func (s *store[T]) get(name types.NamespacedName) (found T, ok bool) {
	// An informer's indexer never fails to look a key up.
	item, exists, _ := s.informer.GetIndexer().GetByKey(cache.NamespacedNameAsObjectName(name).String())
	if exists {
		found = item.(T)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if mine, wrote := s.written[name]; wrote && (!exists || newer(mine, found)) {
		return mine, true
	}
	return found, exists
}

// all returns the latest known version of every object, in no order.
func (s *store[T]) all() []T {
	return s.latest(s.informer.GetIndexer().List(), func(T) bool { return true })
}

// by returns the objects that an index has under a value, in no order.
func (s *store[T]) by(index, value string) []T {
	// The index is one of ours, so that it exists.
	items, _ := s.informer.GetIndexer().ByIndex(index, value)
	return s.latest(items, func(o T) bool {
		values, err := s.indexers[index](o)
		if err != nil {
			return false
		}
		for _, v := range values {
			if v == value {
				return true
			}
		}
		return false
	})
}

// latest replaces the informer's objects by what we wrote since, and adds those that it does not have yet.
func (s *store[T]) latest(items []any, matches func(T) bool) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := make([]T, 0, len(items))
	seen := map[types.NamespacedName]bool{}
	for _, item := range items {
		o := item.(T)
		seen[nameOf(o)] = true
		if mine, ok := s.written[nameOf(o)]; ok && newer(mine, o) {
			o = mine
		}
		if matches(o) {
			found = append(found, o)
		}
	}
	for name, mine := range s.written {
		if !seen[name] && matches(mine) {
			found = append(found, mine)
		}
	}
	return found
}
