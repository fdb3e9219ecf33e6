package fakekubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/volume/util"
	"k8s.io/utils/ptr"
)

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
	if err := os.MkdirAll(own, 0o755); err != nil {
		return "", err
	}
	writer, err := util.NewAtomicWriter(own, "volume "+volume.Name)
	if err != nil {
		return "", err
	}
	return own, writer.Write(files, nil)
}

// files computes the content of a volume that shows API objects.
func (v *podVolumes) files(ctx context.Context, view podView, volume *corev1.Volume) (map[string]util.FileProjection, error) {
	files := map[string]util.FileProjection{}
	namespace := view.pod.Namespace
	switch {
	case volume.ConfigMap != nil:
		source := volume.ConfigMap
		data, found, err := v.objects.configMap(ctx, namespace, source.Name)
		return files, addObject(files, objectFiles{"configmap", namespace, source.Name, source.Items, source.Optional, ptr.Deref(source.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)}, data, found, err)
	case volume.Secret != nil:
		source := volume.Secret
		data, found, err := v.objects.secret(ctx, namespace, source.SecretName)
		return files, addObject(files, objectFiles{"secret", namespace, source.SecretName, source.Items, source.Optional, ptr.Deref(source.DefaultMode, corev1.SecretVolumeSourceDefaultMode)}, data, found, err)
	case volume.DownwardAPI != nil:
		return files, addDownward(files, view, volume.DownwardAPI.Items, ptr.Deref(volume.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode))
	case volume.Projected != nil:
		return files, v.addProjected(ctx, files, view, volume)
	}
	return nil, errors.New("simulated nodes have emptyDir, hostPath, configMap, secret, projected and downwardAPI volumes, and claims of hostPath or local volumes; this is none of them")
}

func (v *podVolumes) addProjected(ctx context.Context, files map[string]util.FileProjection, view podView, volume *corev1.Volume) error {
	namespace, mode := view.pod.Namespace, ptr.Deref(volume.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
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
			files[source.ServiceAccountToken.Path] = util.FileProjection{Data: []byte(token), Mode: 0o600}
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

// objectFiles defines which keys of a config map or secret become which files.
type objectFiles struct {
	kind, namespace, name string
	items                 []corev1.KeyToPath
	optional              *bool
	mode                  int32
}

func addObject(files map[string]util.FileProjection, o objectFiles, data map[string][]byte, found bool, err error) error {
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
			files[key] = util.FileProjection{Data: content, Mode: o.mode}
		}
		return nil
	}
	for _, item := range o.items {
		content, ok := data[item.Key]
		switch {
		case ok:
			files[item.Path] = util.FileProjection{Data: content, Mode: ptr.Deref(item.Mode, o.mode)}
		case !isTrue(o.optional):
			return fmt.Errorf("%s %q has no key %q, which the volume refers to", o.kind, o.name, item.Key)
		}
	}
	return nil
}

func addDownward(files map[string]util.FileProjection, view podView, items []corev1.DownwardAPIVolumeFile, mode int32) error {
	for _, item := range items {
		var (
			value string
			err   error
		)
		switch {
		case item.FieldRef != nil:
			value, err = podField(view, item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			value, err = resourceField(view, "", item.ResourceFieldRef)
		}
		if err != nil {
			return fmt.Errorf("downward API file %q: %w", item.Path, err)
		}
		files[item.Path] = util.FileProjection{Data: []byte(value), Mode: ptr.Deref(item.Mode, mode)}
	}
	return nil
}
