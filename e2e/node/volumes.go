package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A file is one entry of a volume that is made from API objects.
type file struct {
	data []byte
	mode fs.FileMode
}

// podObjects is how volumes and environments read the API on a pod's behalf.
type podObjects interface {
	configMap(ctx context.Context, namespace, name string) (data map[string][]byte, found bool, err error)
	secret(ctx context.Context, namespace, name string) (data map[string][]byte, found bool, err error)
	// token asks for a service account's token, bound to the pod.
	token(ctx context.Context, pod *corev1.Pod, request authenticationv1.TokenRequestSpec) (authenticationv1.TokenRequestStatus, error)
	// claimedPath is the host's directory behind a persistent volume claim.
	claimedPath(ctx context.Context, namespace, claim string) (string, error)
}

// podVolumes are a pod's volumes as directories on this machine.
type podVolumes struct {
	dir     string // of the pod's own volumes
	objects podObjects
	now     func() time.Time

	paths  map[string]string
	tokens map[string]heldToken // by volume and path in it
}

type heldToken struct {
	token   string
	refresh time.Time
}

// prepare makes every volume of the pod. It may be called again after an error, and
// to bring volumes up to date with the objects they show. next is when a token
// is due; zero for never. Errors say which volume cannot be set up, and why.
func (v *podVolumes) prepare(ctx context.Context, view podView) (next time.Time, err error) {
	if v.paths == nil {
		v.paths, v.tokens = map[string]string{}, map[string]heldToken{}
	}
	var problems []error
	for i := range view.pod.Spec.Volumes {
		volume := &view.pod.Spec.Volumes[i]
		path, err := v.prepareOne(ctx, view, volume)
		if err != nil {
			problems = append(problems, fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", volume.Name, err))
			continue
		}
		v.paths[volume.Name] = path
	}
	for _, held := range v.tokens {
		if next.IsZero() || held.refresh.Before(next) {
			next = held.refresh
		}
	}
	return next, errors.Join(problems...)
}

func (v *podVolumes) prepareOne(ctx context.Context, view podView, volume *corev1.Volume) (string, error) {
	own := filepath.Join(v.dir, volume.Name)
	switch {
	case volume.HostPath != nil:
		return volume.HostPath.Path, checkHostPath(volume.HostPath)
	case volume.PersistentVolumeClaim != nil:
		return v.objects.claimedPath(ctx, view.pod.Namespace, volume.PersistentVolumeClaim.ClaimName)
	case volume.EmptyDir != nil:
		if err := os.MkdirAll(own, 0o777); err != nil {
			return "", err
		}
		return own, os.Chmod(own, 0o777) // whatever the umask
	}
	files, err := v.files(ctx, view, volume)
	if err != nil {
		return "", err
	}
	return own, writeFiles(own, files)
}

// files computes the content of a volume that shows API objects.
func (v *podVolumes) files(ctx context.Context, view podView, volume *corev1.Volume) (map[string]file, error) {
	files := map[string]file{}
	namespace := view.pod.Namespace
	switch {
	case volume.ConfigMap != nil:
		source := volume.ConfigMap
		data, found, err := v.objects.configMap(ctx, namespace, source.Name)
		return files, addObject(files, objectFiles{"configmap", namespace, source.Name, source.Items, source.Optional, fileMode(source.DefaultMode)}, data, found, err)
	case volume.Secret != nil:
		source := volume.Secret
		data, found, err := v.objects.secret(ctx, namespace, source.SecretName)
		return files, addObject(files, objectFiles{"secret", namespace, source.SecretName, source.Items, source.Optional, fileMode(source.DefaultMode)}, data, found, err)
	case volume.DownwardAPI != nil:
		return files, addDownward(files, view, volume.DownwardAPI.Items, fileMode(volume.DownwardAPI.DefaultMode))
	case volume.Projected != nil:
		return files, v.addProjected(ctx, files, view, volume)
	}
	return nil, errors.New("simulated nodes have emptyDir, hostPath, configMap, secret, projected and downwardAPI volumes, and claims of hostPath or local volumes; this is none of them")
}

func (v *podVolumes) addProjected(ctx context.Context, files map[string]file, view podView, volume *corev1.Volume) error {
	namespace, mode := view.pod.Namespace, fileMode(volume.Projected.DefaultMode)
	for i := range volume.Projected.Sources {
		source := &volume.Projected.Sources[i]
		var err error
		switch {
		case source.ConfigMap != nil:
			data, found, lookupErr := v.objects.configMap(ctx, namespace, source.ConfigMap.Name)
			err = addObject(files, objectFiles{"configmap", namespace, source.ConfigMap.Name, source.ConfigMap.Items, source.ConfigMap.Optional, mode}, data, found, lookupErr)
		case source.Secret != nil:
			data, found, lookupErr := v.objects.secret(ctx, namespace, source.Secret.Name)
			err = addObject(files, objectFiles{"secret", namespace, source.Secret.Name, source.Secret.Items, source.Secret.Optional, mode}, data, found, lookupErr)
		case source.DownwardAPI != nil:
			err = addDownward(files, view, source.DownwardAPI.Items, mode)
		case source.ServiceAccountToken != nil:
			var token string
			token, err = v.token(ctx, view.pod, volume.Name, source.ServiceAccountToken)
			// The kubelet gives tokens 0600 unless the pod runs as another user; here
			// all containers run as the agent's.
			files[source.ServiceAccountToken.Path] = file{[]byte(token), 0o600}
		default:
			err = errors.New("simulated nodes project configMap, secret, downwardAPI and serviceAccountToken; this source is none of them")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// token returns the held token, or a new one when 80 % of its life is over, as the
// kubelet's token manager has it.
func (v *podVolumes) token(ctx context.Context, pod *corev1.Pod, volume string, source *corev1.ServiceAccountTokenProjection) (string, error) {
	key := volume + "/" + source.Path
	now := v.now()
	if held, ok := v.tokens[key]; ok && now.Before(held.refresh) {
		return held.token, nil
	}
	request := authenticationv1.TokenRequestSpec{
		ExpirationSeconds: source.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}
	if source.Audience != "" {
		request.Audiences = []string{source.Audience}
	}
	status, err := v.objects.token(ctx, pod, request)
	if err != nil {
		if held, ok := v.tokens[key]; ok {
			// The old one is good for another fifth of its life.
			held.refresh = now.Add(configRetry)
			v.tokens[key] = held
			return held.token, nil
		}
		return "", fmt.Errorf("token of service account %s/%s: %w", pod.Namespace, pod.Spec.ServiceAccountName, err)
	}
	life := status.ExpirationTimestamp.Sub(now)
	v.tokens[key] = heldToken{token: status.Token, refresh: now.Add(life * 4 / 5)}
	return status.Token, nil
}

// objectFiles says which keys of a config map or secret become which files.
type objectFiles struct {
	kind, namespace, name string
	items                 []corev1.KeyToPath
	optional              *bool
	mode                  fs.FileMode
}

func addObject(files map[string]file, o objectFiles, data map[string][]byte, found bool, err error) error {
	if err != nil {
		return fmt.Errorf("%s %q: %w", o.kind, o.name, err)
	}
	if !found {
		if isTrue(o.optional) {
			return nil
		}
		return fmt.Errorf("%s %q not found in namespace %s", o.kind, o.name, o.namespace)
	}
	if len(o.items) == 0 {
		for key, content := range data {
			files[key] = file{content, o.mode}
		}
		return nil
	}
	for _, item := range o.items {
		content, ok := data[item.Key]
		switch {
		case ok:
			mode := o.mode
			if item.Mode != nil {
				mode = fs.FileMode(*item.Mode)
			}
			files[item.Path] = file{content, mode}
		case !isTrue(o.optional):
			return fmt.Errorf("%s %q has no key %q, which the volume refers to", o.kind, o.name, item.Key)
		}
	}
	return nil
}

func addDownward(files map[string]file, view podView, items []corev1.DownwardAPIVolumeFile, mode fs.FileMode) error {
	for _, item := range items {
		var (
			value string
			err   error
		)
		switch {
		case item.FieldRef != nil:
			value, err = podField(view, item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			value, err = resourceField(view, nil, item.ResourceFieldRef)
		}
		if err != nil {
			return fmt.Errorf("downward API file %q: %w", item.Path, err)
		}
		itemMode := mode
		if item.Mode != nil {
			itemMode = fs.FileMode(*item.Mode)
		}
		files[item.Path] = file{[]byte(value), itemMode}
	}
	return nil
}

// fileMode is a volume's defaultMode, which the API server has filled in.
func fileMode(mode *int32) fs.FileMode {
	if mode == nil {
		return 0o644
	}
	return fs.FileMode(*mode)
}

// checkHostPath checks a hostPath volume's type, and makes what it asks to be made.
func checkHostPath(source *corev1.HostPathVolumeSource) error {
	kind := corev1.HostPathUnset
	if source.Type != nil {
		kind = *source.Type
	}
	info, err := os.Stat(source.Path)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing && (kind == corev1.HostPathUnset || kind == corev1.HostPathDirectoryOrCreate):
		// For an unset type the container runtime makes a missing directory.
		return os.MkdirAll(source.Path, 0o755)
	case missing && kind == corev1.HostPathFileOrCreate:
		created, err := os.OpenFile(source.Path, os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		return created.Close()
	case err != nil:
		return fmt.Errorf("hostPath type check failed: %w", err)
	}
	wrong := false
	mode := info.Mode()
	switch kind {
	case corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate:
		wrong = !mode.IsDir()
	case corev1.HostPathFile, corev1.HostPathFileOrCreate:
		wrong = !mode.IsRegular()
	case corev1.HostPathSocket:
		wrong = mode&fs.ModeSocket == 0
	case corev1.HostPathCharDev:
		wrong = mode&fs.ModeCharDevice == 0
	case corev1.HostPathBlockDev:
		wrong = mode&fs.ModeDevice == 0 || mode&fs.ModeCharDevice != 0
	}
	if wrong {
		return fmt.Errorf("hostPath type check failed: %s is not a %s", source.Path, kind)
	}
	return nil
}

// The links that make a volume change as a whole: FILE → ..data/FILE, ..data →
// ..STAMP. Programs that watch volumes know these names from the kubelet.
const dataLink = "..data"

// writeFiles makes dir show exactly files, all of them changing at the same moment.
// It leaves a directory alone that shows them already.
func writeFiles(dir string, files map[string]file) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name := range files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("file %q would lie outside of its volume", name)
		}
	}
	old, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && shows(filepath.Join(dir, old), files) {
		return nil
	}
	stamp, err := os.MkdirTemp(dir, time.Now().UTC().Format("..2006_01_02_15_04_05."))
	if err != nil {
		return err
	}
	if err := os.Chmod(stamp, 0o755); err != nil {
		return err
	}
	for name, f := range files {
		path := filepath.Join(stamp, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.data, 0o600); err != nil {
			return err
		}
		if err := os.Chmod(path, f.mode); err != nil {
			return err
		}
	}
	link := filepath.Join(dir, "..data_tmp")
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(filepath.Base(stamp), link); err != nil {
		return err
	}
	if err := os.Rename(link, filepath.Join(dir, dataLink)); err != nil {
		return err
	}
	if err := linkEntries(dir, files); err != nil {
		return err
	}
	if old != "" {
		return os.RemoveAll(filepath.Join(dir, old))
	}
	return nil
}

// linkEntries makes the links that users see, one for each first path element.
func linkEntries(dir string, files map[string]file) error {
	wanted := map[string]bool{dataLink: true}
	for name := range files {
		top := name
		for parent := filepath.Dir(top); parent != "."; parent = filepath.Dir(top) {
			top = parent
		}
		wanted[top] = true
	}
	for _, top := range slices.Sorted(maps.Keys(wanted)) {
		err := os.Symlink(filepath.Join(dataLink, top), filepath.Join(dir, top))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink != 0 && !wanted[entry.Name()] {
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// shows reports whether dir holds exactly files.
func shows(dir string, files map[string]file) bool {
	found := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f, ok := files[name]
		if !ok {
			return fs.ErrExist
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if string(data) != string(f.data) {
			return fs.ErrExist
		}
		found++
		return nil
	})
	return err == nil && found == len(files)
}

// references names the config maps and secrets that a pod depends on.
type references struct{ configMaps, secrets map[string]bool }

func podReferences(pod *corev1.Pod) references {
	r := references{map[string]bool{}, map[string]bool{}}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.ConfigMap != nil {
			r.configMaps[v.ConfigMap.Name] = true
		}
		if v.Secret != nil {
			r.secrets[v.Secret.SecretName] = true
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.ConfigMap != nil {
				r.configMaps[source.ConfigMap.Name] = true
			}
			if source.Secret != nil {
				r.secrets[source.Secret.Name] = true
			}
		}
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			r.addEnvironment(&list[i])
		}
	}
	return r
}

func (r references) addEnvironment(c *corev1.Container) {
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			r.configMaps[from.ConfigMapRef.Name] = true
		}
		if from.SecretRef != nil {
			r.secrets[from.SecretRef.Name] = true
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil {
			r.configMaps[ref.Name] = true
		}
		if ref := e.ValueFrom.SecretKeyRef; ref != nil {
			r.secrets[ref.Name] = true
		}
	}
}

// podDir is where a pod's volumes and containers' own directories are.
func podDir(podsDir string, uid types.UID) string { return filepath.Join(podsDir, string(uid)) }
