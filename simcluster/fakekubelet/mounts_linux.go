package fakekubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/nodeagent"
)

// A mountMethod is a way to give a process a file system view of its own.
type mountMethod int

const (
	// mountNever replaces paths instead (see rewrite.go).
	mountNever mountMethod = iota
	// mountByThread makes the mounts on the thread that starts the command: for root.
	mountByThread
	// mountByShim makes them in a child that has a user namespace too, which a program
	// of several threads cannot enter: for everybody else.
	mountByShim
)

func (m mountMethod) String() string {
	return [...]string{"path rewriting", "mount namespace", "user and mount namespace"}[m]
}

// enter gives the calling thread, which must be in a mount namespace of its own,
// the root directory that v describes.
func (v *fileView) enter() error {
	// Nothing that is mounted from here on is seen outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := mountTmpfs(v.Scratch); err != nil {
		return err
	}
	// So that the view of the host does not hold the view again.
	if err := unix.Mount("", v.Scratch, "", unix.MS_UNBINDABLE, ""); err != nil {
		return fmt.Errorf("make %s unbindable: %w", v.Scratch, err)
	}
	steps, err := planView(*v, osTree{})
	if err != nil {
		return err
	}
	for _, step := range steps {
		if err := step.apply(v.Scratch); err != nil {
			return err
		}
	}
	// pivot_root(".", ".") puts the old root below the new one, where it is let go:
	// pivot_root(2), "NOTES".
	if err := unix.Chdir(v.Scratch); err != nil {
		return fmt.Errorf("enter the container's root %s: %w", v.Scratch, err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root to %s: %w", v.Scratch, err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the host's root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("enter the container's root: %w", err)
	}
	return nil
}

func mountTmpfs(at string) error {
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mount tmpfs on %s: %w", at, err)
	}
	return nil
}

func (s viewStep) apply(root string) error {
	at := filepath.Join(root, s.path)
	switch s.kind {
	case stepTmpfs:
		return mountTmpfs(at)
	case stepMkdir:
		if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make mount point: %w", err)
		}
	case stepTouch:
		file, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return fmt.Errorf("make mount point: %w", err)
		}
		return file.Close()
	case stepSymlink:
		return os.Symlink(s.source, at)
	case stepBind:
		err := unix.Mount(s.source, at, "", unix.MS_BIND|unix.MS_REC, "")
		if errors.Is(err, unix.ENOENT) && s.source == s.path {
			return nil // an entry of the host's that vanished meanwhile
		}
		if err != nil {
			return fmt.Errorf("bind %s on %s: %w", s.source, s.path, err)
		}
		if s.readOnly {
			return makeReadOnly(at, s.path)
		}
	}
	return nil
}

func makeReadOnly(at, name string) error {
	attributes := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	err := unix.MountSetattr(unix.AT_FDCWD, at, unix.AT_RECURSIVE, &attributes)
	if errors.Is(err, unix.ENOSYS) {
		// Linux before 5.12. The flags that a user namespace may not drop are kept.
		var stat unix.Statfs_t
		if err = unix.Statfs(at, &stat); err == nil {
			keep := uintptr(stat.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME | unix.MS_RELATIME)
			err = unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|keep, "")
		}
	}
	if err != nil {
		return fmt.Errorf("make %s read-only: %w", name, err)
	}
	return nil
}

// osTree is the running system's files.
type osTree struct{}

func (osTree) Lstat(path string) (fs.FileMode, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, false
	}
	return info.Mode(), true
}

func (osTree) Readlink(path string) (string, error) { return os.Readlink(path) }

func (osTree) ReadDir(path string) ([]fs.DirEntry, error) { return os.ReadDir(path) }

// A shimRequest contains the program that the shim executes.
type shimRequest struct {
	View fileView `json:"view"`
	// OwnProcesses means that the shim is the first process of a PID namespace.
	OwnProcesses bool     `json:"own_processes"`
	Argv         []string `json:"argv"`
	Env          []string `json:"env"`
}

// The shim's file descriptors: its request, and where it reports failure.
const (
	shimRequestFD = 3
	shimFailureFD = 4
)

// ShimCommand is the hidden subcommand whose body is ShimMain.
const ShimCommand = "container-shim"

// shimCommand makes the command that runs spec in a mount namespace, and a user namespace where mounting needs one, and
// a PID namespace where spec wants one.
// The file is the end from which the shim's report of failure is read.
func shimCommand(spec processSpec) (*exec.Cmd, *os.File, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find the shim: %w", err)
	}
	text, err := json.Marshal(shimRequest{View: *spec.view, OwnProcesses: spec.ownProcesses, Argv: spec.argv, Env: spec.env})
	if err != nil {
		return nil, nil, fmt.Errorf("describe the container to its shim: %w", err)
	}
	request, err := requestFile(text)
	if err != nil {
		return nil, nil, err
	}
	failure, failureWriter, err := os.Pipe()
	if err != nil {
		_ = request.Close()
		return nil, nil, fmt.Errorf("pipe for the shim: %w", err)
	}
	attributes := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if spec.method == mountByShim {
		attributes.Cloneflags |= unix.CLONE_NEWUSER
		attributes.UidMappings, attributes.GidMappings = identity(os.Getuid()), identity(os.Getgid())
	}
	if spec.ownProcesses {
		attributes.Cloneflags |= unix.CLONE_NEWPID
	}
	return &exec.Cmd{
		Path:        self,
		Args:        []string{self, ShimCommand},
		Env:         []string{},
		ExtraFiles:  []*os.File{request, failureWriter},
		SysProcAttr: attributes,
	}, failure, nil
}

// identity lets the user be root in the namespace: that is who may mount, and who
// containers usually run as.
func identity(id int) []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
}

// requestFile holds text in memory, at its beginning.
func requestFile(text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("container", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory for the shim's request: %w", err)
	}
	file := os.NewFile(uintptr(fd), "container")
	if _, err := file.WriteAt(text, 0); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("write the shim's request: %w", err)
	}
	return file, nil
}

// ShimMain is the body of the hidden subcommand "container-shim" of the binary
// that calls Run: in the namespaces it was started in, it takes on a container's view
// of the file system and becomes the container's command. It returns only if it
// could not, and its result is then the exit code.
func ShimMain(args []string) int {
	failure := os.NewFile(shimFailureFD, "failure")
	if len(args) != 0 || failure == nil {
		fmt.Fprintf(os.Stderr, "%s is started by the node agent only\n", ShimCommand)
		return exitCodeNotStarted
	}
	unix.CloseOnExec(shimFailureFD)
	fmt.Fprint(failure, becomeCommand())
	return exitCodeNotStarted
}

func becomeCommand() error {
	file := os.NewFile(shimRequestFD, "request")
	var request shimRequest
	if err := json.NewDecoder(file).Decode(&request); err != nil {
		return fmt.Errorf("%s: read the request: %w", ShimCommand, err)
	}
	_ = file.Close()
	if err := request.View.enter(); err != nil {
		return err
	}
	if request.OwnProcesses {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("mount /proc of the container: %w", err)
		}
	}
	path, err := lookPath(request.Argv[0], request.Env, request.View.Dir)
	if err != nil {
		return err
	}
	if err := os.Chdir(request.View.Dir); err != nil {
		return fmt.Errorf("enter the working directory: %w", err)
	}
	return fmt.Errorf("exec %q: %w", path, unix.Exec(path, request.Argv, request.Env))
}

// chooseMountMethod finds out what the kernel permits. The error says why wanted
// cannot be had.
func chooseMountMethod(ctx context.Context, wanted, dir string) (mountMethod, error) {
	if wanted == nodeagent.MountsRewrite {
		return mountNever, nil
	}
	var problems []error
	for _, method := range []mountMethod{mountByThread, mountByShim} {
		err := probe(ctx, method, filepath.Join(dir, "probe-"+strconv.Itoa(int(method))))
		if err == nil {
			return method, nil
		}
		problems = append(problems, fmt.Errorf("%s: %w", method, err))
	}
	return mountNever, errors.Join(problems...)
}

// probeTimeout is ample for a process to start on a busy machine.
const probeTimeout = 30 * time.Second

// probe runs a command that must see a directory at a path that the host lacks.
func probe(ctx context.Context, method mountMethod, dir string) error {
	scratch, volume := filepath.Join(dir, "root"), filepath.Join(dir, "volume")
	for _, d := range []string{scratch, volume} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(volume, "seen"), nil, 0o600); err != nil {
		return err
	}
	log, err := createContainerLog(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	const target = "/etc/elastic-mount-probe"
	exited := make(chan processExit, 1)
	p, err := startProcess(processSpec{
		id:     "probe",
		argv:   []string{"sh", "-c", "test -e " + target + "/seen"},
		env:    []string{"PATH=" + hostPATH()},
		dir:    "/",
		view:   &fileView{Scratch: scratch, Dir: "/", Binds: []bind{{Target: target, Source: volume, Directory: true, ReadOnly: true}}},
		method: method,
		log:    log,
		limit:  math.MaxInt64,
		exited: func(e processExit) { exited <- e },
	}, newOOMWatch())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	select {
	case e := <-exited:
		if e.code != 0 {
			return fmt.Errorf("a probe did not see its volume (exit code %d)", e.code)
		}
		return nil
	case <-ctx.Done():
		p.killGroup()
		<-exited
		return fmt.Errorf("a probe did not end: %w", context.Cause(ctx))
	}
}

// hostPATH is where a host's program is looked for.
func hostPATH() string {
	if path := os.Getenv("PATH"); path != "" {
		return path
	}
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}
