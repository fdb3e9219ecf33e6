package upstream

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/child"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

// Options say what to start, and where.
type Options struct {
	// Kubeconfig is an administrator's, of the cluster.
	Kubeconfig string
	// Programs is the folder in which tools/upstream.sh has built the programs.
	Programs string
	// Work is the folder for the controllers' files and logs, in a folder for each.
	Work string
	// Projects are the controllers.
	Projects []Project
	// KueueGates are feature gates of Kueue besides the release's, such as "PriorityBoost=true".
	KueueGates []string
}

// Start installs projects on a cluster and starts their controllers. It returns when their webhooks answer. stop ends the
// processes and waits for them; they also end with this process.
func Start(ctx context.Context, o Options) (stop func(), err error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.WarningHandlerWithContext = rest.NoWarnings{} // releases contain deprecated fields
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	var running []*process
	stop = func() {
		for _, p := range running {
			p.stop()
		}
	}
	for _, project := range Projects() {
		if !slices.Contains(o.Projects, project) {
			continue
		}
		p, err := start(ctx, client, lists, project, o)
		if err != nil {
			stop()
			return nil, fmt.Errorf("starting %s: %w", project, err)
		}
		running = append(running, p)
	}
	return stop, nil
}

// start installs one project and starts its controller.
func start(ctx context.Context, client dynamic.Interface, lists discovery.ServerResourcesInterface, project Project, o Options) (*process, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience.Medium, fmt.Errorf("not within %s", patience.Medium))
	defer cancel()
	s := site{program: filepath.Join(o.Programs, string(project)), dir: filepath.Join(o.Work, string(project)), kubeconfig: o.Kubeconfig, gates: o.KueueGates}
	r, err := readRelease(s.program + ".yaml")
	if err != nil {
		return nil, err
	}
	if err := createNamespace(ctx, client, project.namespace()); err != nil {
		return nil, err
	}
	if err := installDefinitions(ctx, client, lists, r); err != nil {
		return nil, err
	}
	authority, err := s.prepare()
	if err != nil {
		return nil, err
	}
	p, err := s.run(project)
	if err != nil {
		return nil, err
	}
	if err := p.awaitReady(ctx, s.health); err != nil {
		p.stop()
		return nil, err
	}
	if err := errors.Join(installWebhooks(ctx, client, project, r, s.webhook, authority), s.publish(ctx, client, project)); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// prepare makes the folder of a controller with its certificate, which is returned, and chooses its ports.
func (s *site) prepare() (certificate []byte, err error) {
	// Controllers that know no option for it look here, below the folder for temporary files.
	s.certificates = filepath.Join(s.dir, "k8s-webhook-server", "serving-certs")
	if err := os.MkdirAll(s.certificates, 0o700); err != nil {
		return nil, err
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return nil, err
	}
	if s.certificates, err = filepath.Abs(s.certificates); err != nil {
		return nil, err
	}
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(s.certificates, "tls.crt"), certificate, 0o600),
		os.WriteFile(filepath.Join(s.certificates, "tls.key"), key, 0o600),
	)
	if err != nil {
		return nil, err
	}
	for _, port := range []*int{&s.health, &s.webhook} {
		if *port, err = freePort(); err != nil {
			return nil, err
		}
	}
	return certificate, nil
}

// publish puts the configuration of Kueue where others read it.
func (s *site) publish(ctx context.Context, client dynamic.Interface, project Project) error {
	if project != Kueue {
		return nil
	}
	text, err := os.ReadFile(s.program + "-configuration.yaml")
	if err != nil {
		return err
	}
	return publishConfiguration(ctx, client, string(text))
}

// A process is a running controller.
type process struct {
	log    string
	cancel context.CancelFunc
	ended  chan struct{} // closed when it has ended
	err    error         // how it ended, once ended is closed
}

// run starts the program of a controller.
func (s *site) run(project Project) (*process, error) {
	args, env, err := project.command(*s)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, s.program, args...)
	command.Env, command.Stdout, command.Stderr = append(os.Environ(), env...), log, log
	command.SysProcAttr = child.Attributes()
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = patience.Short
	p := &process{log: log.Name(), cancel: cancel, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		defer close(p.ended)
		defer log.Close()      //nolint:errcheck // the controller has written it, not we
		runtime.LockOSThread() // the process ends with the thread that started it
		err := command.Start()
		started <- err
		if err == nil {
			p.err = command.Wait()
		}
	}()
	if err := <-started; err != nil {
		cancel()
		return nil, err
	}
	return p, nil
}

// awaitReady waits until the controller and its webhooks are ready.
func (p *process) awaitReady(ctx context.Context, port int) error {
	return await.Until(ctx, "the controller is ready (log: "+p.log+")", pause, func(ctx context.Context) error {
		select {
		case <-p.ended:
			return fmt.Errorf("it has ended: %w", p.err)
		default:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", port), http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close() //nolint:errcheck // only the status is read
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	})
}

// stop ends the process and waits for it.
func (p *process) stop() {
	p.cancel()
	<-p.ended
}

// freePort is a port on 127.0.0.1 that nothing listens on.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is local and immediate
	if err != nil {
		return 0, err
	}
	defer listener.Close() //nolint:errcheck // nothing was accepted
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func encode(text []byte) string { return base64.StdEncoding.EncodeToString(text) }
