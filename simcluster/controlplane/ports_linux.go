package controlplane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	lowestPort  = 20000 // below are the ports that well-known servers use
	highestPort = 65000
	// A cluster that was killed a moment ago may hold its ports for an instant longer.
	portPatience   = 2 * time.Second
	portRetryPause = 100 * time.Millisecond
)

// A reservation keeps this machine's other clusters from choosing a port.
type reservation struct{ claims []net.Listener }

// claim reserves a port among clusters, by a name in the kernel's table of abstract Unix sockets: like the port it is
// per network namespace, and it is gone with the process. The port itself cannot be held, because a component is going
// to listen on it. It also checks that nobody else listens on it.
func (r *reservation) claim(port int) error {
	name := "@simcluster/port/" + strconv.Itoa(port)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return fmt.Errorf("port %d is another cluster's: %w", port, err)
	}
	probe, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err == nil {
		err = probe.Close()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("port %d: %w", port, err), listener.Close())
	}
	r.claims = append(r.claims, listener)
	return nil
}

func (r *reservation) release() {
	for _, claim := range r.claims {
		// Nothing was ever sent on it, so there is nothing to lose.
		_ = claim.Close()
	}
	r.claims = nil
}

// choosePorts settles on the ports of a start: those of the last start if they are free, so that kubeconfigs stay
// valid, else others. The API server's port is not negotiable where wanted is not 0.
func choosePorts(ctx context.Context, config Config, last Ports) (Ports, *reservation, error) {
	wanted := config.Port
	ctx, cancel := context.WithTimeout(ctx, portPatience)
	defer cancel()
	reserved := &reservation{}
	ports := Ports{Addons: map[string]AddonPorts{}}
	var err error
	if wanted != 0 {
		ports.APIServer = wanted
		err = reserved.claimSoon(ctx, wanted)
		if err != nil {
			err = portRefused(wanted, err)
		}
	} else {
		ports.APIServer, err = reserved.preferably(ctx, last.APIServer)
	}
	if err == nil {
		ports.Scheduler, err = reserved.preferably(ctx, last.Scheduler)
	}
	if err == nil {
		ports.Kubelet, err = reserved.preferably(ctx, last.Kubelet)
	}
	for _, name := range config.Addons {
		var addon AddonPorts
		if err == nil {
			addon.Webhook, err = reserved.preferably(ctx, last.Addons[name].Webhook)
		}
		if err == nil {
			addon.Health, err = reserved.preferably(ctx, last.Addons[name].Health)
		}
		ports.Addons[name] = addon
	}
	if err != nil {
		reserved.release()
		return Ports{}, nil, err
	}
	return ports, reserved, nil
}

func portRefused(port int, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d on 127.0.0.1 is in use by another process; choose another with --port, or leave the choice to simcluster with --port 0: %w", port, err)
	}
	return fmt.Errorf("cannot listen on port %d on 127.0.0.1; choose another with --port, or leave the choice to simcluster with --port 0: %w", port, err)
}

// claimSoon claims a port and waits, as long as ctx lasts, for one that is just being given up.
func (r *reservation) claimSoon(ctx context.Context, port int) error {
	for {
		err := r.claim(port)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(portRetryPause):
		}
	}
}

// preferably claims the given port or, where that is 0 or taken, any.
func (r *reservation) preferably(ctx context.Context, port int) (int, error) {
	if port != 0 && r.claimSoon(ctx, port) == nil {
		return port, nil
	}
	low, high := ephemeralPorts()
	for range 1000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		// Never one that the kernel gives to outgoing connections: while a component that died is away, such a
		// connection could take its port for good.
		if port >= low && port <= high {
			continue
		}
		if r.claim(port) == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("found no free port between %d and %d on 127.0.0.1, outside %d–%d which the kernel gives to outgoing connections", lowestPort, highestPort, low, high)
}

// ephemeralPorts returns the first and last port that the kernel gives to outgoing connections (ip(7)).
func ephemeralPorts() (low, high int) {
	content, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		fields := strings.Fields(string(content))
		if len(fields) == 2 {
			low, errLow := strconv.Atoi(fields[0])
			high, errHigh := strconv.Atoi(fields[1])
			// A range that leaves nothing to choose from is treated as the kernel's default.
			if errLow == nil && errHigh == nil && (low > lowestPort || high < highestPort) {
				return low, high
			}
		}
	}
	return 32768, 60999
}
