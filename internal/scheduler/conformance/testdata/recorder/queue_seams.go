package queue

// HasHeads reports whether a cycle would find something to try. Heads blocks otherwise.
func (m *Manager) HasHeads() bool {
	m.Lock()
	defer m.Unlock()
	m.secondPassQueue.RLock()
	defer m.secondPassQueue.RUnlock()
	if len(m.secondPassQueue.queued) > 0 {
		return true
	}
	for name, cq := range m.hm.ClusterQueues() {
		if m.statusChecker.ClusterQueueActive(name) && cq.heap.Len() > 0 {
			return true
		}
	}
	return false
}
