package fakekubelet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cri-client/pkg/logs"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// container works out how to run c: command, environment and files. On error, reason
// is what the container's status says.
func (o *owner) container(ctx context.Context, c *corev1.Container, program executable, id string) (spec processSpec, reason string, err error) {
	pod := o.life.pod
	if err := verifyRunAsNonRoot(pod, c, os.Geteuid()); err != nil {
		return processSpec{}, reasonConfigError, err
	}
	services, err := o.agent.services.List(labels.Everything())
	if err != nil {
		return processSpec{}, reasonConfigError, fmt.Errorf("list services: %w", err)
	}
	links := pod.Spec.EnableServiceLinks == nil || *pod.Spec.EnableServiceLinks
	announced := serviceEnvironment(services, pod.Namespace, links, o.agent.config.APIServerPort)
	variables, err := containerEnvironment(o.view(), c, announced,
		func(name string) (map[string][]byte, bool, error) {
			return o.agent.objects.configMap(ctx, pod.Namespace, name)
		},
		func(name string) (map[string][]byte, bool, error) {
			return o.agent.objects.secret(ctx, pod.Namespace, name)
		})
	if err != nil {
		return processSpec{}, reasonConfigError, err
	}
	references := expansion.MappingFuncFor(variables)
	argv, err := commandLine(c.Image, program, expandAll(c.Command, references), expandAll(c.Args, references))
	if err != nil {
		return processSpec{}, reasonCreateError, err
	}
	binds, err := o.binds(c, references)
	if err != nil {
		return processSpec{}, reasonConfigError, err
	}

	own := o.containerDir(c.Name)
	root := filepath.Join(own, "root")
	home := filepath.Join(own, "home")
	for _, dir := range []string{root, home} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return processSpec{}, reasonCreateError, fmt.Errorf("directory of the container: %w", err)
		}
	}
	setDefault(variables, "PATH", hostPATH())
	setDefault(variables, "HOSTNAME", hostname(pod))
	setDefault(variables, "HOME", home)
	variables[containerVariable] = id

	spec = processSpec{id: id, argv: argv, limit: memoryLimit(c), method: o.agent.method, dir: c.WorkingDir}
	if o.agent.method == mountNever {
		if err := o.rewrite(&spec, root, home, binds, variables); err != nil {
			return processSpec{}, reasonCreateError, err
		}
	} else {
		spec.dir = cmp.Or(spec.dir, "/")
		spec.view = &fileView{Scratch: root, Binds: binds, Dir: spec.dir}
		// Only a sidecar has somebody beside it; others have no need of another process to enter namespaces.
		spec.ownProcesses = c.RestartPolicy != nil && (pod.Spec.ShareProcessNamespace == nil || !*pod.Spec.ShareProcessNamespace)
	}
	spec.env = environmentList(variables)
	return spec, "", nil
}

// expandAll expands the references in each of texts.
func expandAll(texts []string, references func(string) string) []string {
	expanded := make([]string, len(texts))
	for i, text := range texts {
		expanded[i] = expansion.Expand(text, references)
	}
	return expanded
}

// rewrite makes spec do without mounts.
func (o *owner) rewrite(spec *processSpec, root, home string, binds []bind, variables map[string]string) error {
	if err := linkBinds(root, binds); err != nil {
		return err
	}
	var mountPaths []string
	for _, b := range binds {
		mountPaths = append(mountPaths, b.Target)
	}
	for i, word := range spec.argv {
		spec.argv[i] = rewritePaths(word, root, mountPaths)
	}
	for name, value := range variables {
		if name != "PATH" && name != "HOME" {
			variables[name] = rewritePaths(value, root, mountPaths)
		}
	}
	variables[rootVariable] = root
	spec.dir = cmp.Or(spec.dir, home)
	spec.dir = rewritePaths(spec.dir, root, mountPaths)
	if _, err := os.Stat(spec.dir); err != nil {
		// A working directory that only the image would have.
		spec.dir = filepath.Join(root, spec.dir)
		return os.MkdirAll(spec.dir, 0o755)
	}
	return nil
}

func setDefault(variables map[string]string, name, value string) {
	if _, ok := variables[name]; !ok {
		variables[name] = value
	}
}

func hostname(pod *corev1.Pod) string {
	return cmp.Or(pod.Spec.Hostname, pod.Name)
}

func (o *owner) containerDir(container string) string {
	return filepath.Join(o.dir, "containers", container)
}

// binds lists what container c has mounted: its volumes and the file for its last words.
func (o *owner) binds(c *corev1.Container, references func(string) string) ([]bind, error) {
	var binds []bind
	for _, mount := range c.VolumeMounts {
		volume, ok := o.volumes.paths[mount.Name]
		if !ok {
			return nil, fmt.Errorf("volume %q, mounted at %s, is not set up", mount.Name, mount.MountPath)
		}
		subPath := mount.SubPath
		if mount.SubPathExpr != "" {
			subPath = expansion.Expand(mount.SubPathExpr, references)
		}
		source, err := subPathOf(volume, subPath)
		if err != nil {
			return nil, fmt.Errorf("subPath %q of volume %q: %w", subPath, mount.Name, err)
		}
		info, err := os.Stat(source)
		if err != nil {
			return nil, fmt.Errorf("volume %q: %w", mount.Name, err)
		}
		binds = append(binds, bind{Target: path.Clean("/" + mount.MountPath), Source: source, Directory: info.IsDir(), ReadOnly: mount.ReadOnly})
	}
	if c.TerminationMessagePath != "" {
		file := o.terminationFile(c.Name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, nil, 0o666); err != nil {
			return nil, err
		}
		binds = append(binds, bind{Target: path.Clean("/" + c.TerminationMessagePath), Source: file})
	}
	return binds, nil
}

// subPathOf is a path in a volume. One that does not exist becomes a directory, as a
// kubelet has it.
func subPathOf(volume, subPath string) (string, error) {
	if subPath == "" {
		return volume, nil
	}
	if !filepath.IsLocal(subPath) {
		return "", errors.New("it must not leave the volume")
	}
	source := filepath.Join(volume, subPath)
	if _, err := os.Stat(source); err == nil {
		return filepath.EvalSymlinks(source)
	}
	return source, os.MkdirAll(source, 0o755)
}

func (o *owner) terminationFile(container string) string {
	return filepath.Join(o.containerDir(container), "termination-log")
}

// terminationMessage is what the container left in its termination message file or,
// if that is its policy and it failed, at the end of its log.
func (o *owner) terminationMessage(c *corev1.Container, failed bool) string {
	file, err := os.Open(o.terminationFile(c.Name))
	if err == nil {
		defer file.Close()
		text, err := io.ReadAll(io.LimitReader(file, kubecontainer.MaxContainerTerminationMessageLength))
		if err == nil && len(text) > 0 {
			return strings.ToValidUTF8(string(text), "\uFFFD")
		}
	}
	run, ok := o.currentRun(c.Name)
	if !ok || !failed || c.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		return ""
	}
	var text bytes.Buffer
	options := &logs.LogOptions{TailLines: new(int64(kubecontainer.MaxContainerTerminationMessageLogLines))}
	if err := readLog(context.Background(), run.log.path, nil, options, &text, &text); err != nil {
		return ""
	}
	tail := text.Bytes()
	tail = tail[max(0, len(tail)-kubecontainer.MaxContainerTerminationMessageLogLength):]
	return strings.ToValidUTF8(string(tail), "\uFFFD")
}
