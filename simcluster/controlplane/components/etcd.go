//go:build linux

package components

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
)

// etcdStartTimeout bounds the start of a single member, which elects itself; it takes well under a second, and a few
// seconds where the disk is busy.
const etcdStartTimeout = 30 * time.Second

// runEtcd serves a single etcd member on Unix sockets until the process is signalled to stop.
func runEtcd(args []string) error {
	flags := pflag.NewFlagSet("etcd", pflag.ContinueOnError)
	dataDir := flags.String("data-dir", "", "directory of the data")
	clientSocket := flags.String("client-socket", "", "path of the Unix socket that serves clients")
	peerSocket := flags.String("peer-socket", "", "path of the Unix socket for other members, of which there are none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	server, err := embed.StartEtcd(etcdConfig(*dataDir, *clientSocket, *peerSocket))
	if err != nil {
		return fmt.Errorf("starting on data directory %q: %w", *dataDir, err)
	}
	defer server.Close()
	select {
	case <-server.Server.ReadyNotify():
	case <-server.Server.StopNotify():
		return errors.New("stopped before it was ready")
	case <-time.After(etcdStartTimeout):
		return fmt.Errorf("not ready after %s", etcdStartTimeout)
	case <-ctx.Done():
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return fmt.Errorf("serving: %w", err)
	}
}

func etcdConfig(dataDir, clientSocket, peerSocket string) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Dir = dataDir
	// Unix sockets in a directory of mode 0700: no port to collide on, and no TLS needed to keep others out.
	cfg.ListenClientUrls = []url.URL{{Scheme: "unix", Path: clientSocket}}
	cfg.ListenPeerUrls = []url.URL{{Scheme: "unix", Path: peerSocket}}
	// Validation wants host:port here; a single member never dials them.
	cfg.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:2379"}}
	cfg.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:2380"}}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.LogLevel = "warn"
	cfg.EnableGRPCGateway = false
	// A process that is killed loses nothing without fsync; a machine that loses power loses a test cluster.
	cfg.UnsafeNoFsync = true
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = embed.CompactorModePeriodic, "5m"
	cfg.QuotaBackendBytes = 2 << 30
	return cfg
}
