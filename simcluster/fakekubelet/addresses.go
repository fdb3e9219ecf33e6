package fakekubelet

import (
	"fmt"
	"net/netip"
	"sync"
)

// hostIP is every node's address.
const hostIP = "127.0.0.1"

// Pods have addresses of 127.32.0.0/11, which the loopback interface answers for
// on Linux: no pod's ports collide with another's, or with those of programs on
// 127.0.0.1 or of the services in 127.96.0.0/16.
const (
	firstPodAddress = 127<<24 | 32<<16
	podAddressCount = 1 << 21
)

// An addressPool hands out pod addresses. It goes round all two million, so that an
// address is not used again soon after its pod: a client that still has the old
// one is refused rather than served by somebody else.
type addressPool struct {
	mu   sync.Mutex
	next uint32
	used map[string]bool
}

// newAddressPool starts after the first offset addresses. A random offset keeps two
// clusters of one machine apart.
func newAddressPool(offset uint32) *addressPool {
	return &addressPool{next: offset % podAddressCount, used: map[string]bool{}}
}

func (p *addressPool) take() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range podAddressCount {
		n := p.next
		p.next = (p.next + 1) % podAddressCount
		if last := n & 0xff; last == 0 || last == 0xff {
			continue // they look like a network's and a broadcast address
		}
		n += firstPodAddress
		address := netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).String()
		if !p.used[address] {
			p.used[address] = true
			return address, nil
		}
	}
	return "", fmt.Errorf("all %d pod addresses are in use", len(p.used))
}

func (p *addressPool) release(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, address)
}
