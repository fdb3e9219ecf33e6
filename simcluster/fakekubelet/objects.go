package fakekubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// apiObjects reads the API server itself, not a cache: a container must see what was
// written before its pod.
type apiObjects struct{ client kubernetes.Interface }

var _ podObjects = apiObjects{}

func (a apiObjects) configMap(ctx context.Context, namespace, name string) (map[string][]byte, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	object, err := a.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	data := map[string][]byte{}
	for key, value := range object.Data {
		data[key] = []byte(value)
	}
	maps.Copy(data, object.BinaryData)
	return data, true, nil
}

func (a apiObjects) secret(ctx context.Context, namespace, name string) (map[string][]byte, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	object, err := a.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return object.Data, true, nil
}

func (a apiObjects) token(ctx context.Context, pod *corev1.Pod, request authenticationv1.TokenRequestSpec) (authenticationv1.TokenRequestStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := a.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{Spec: request}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.TokenRequestStatus{}, err
	}
	return answer.Status, nil
}

func (a apiObjects) claimedPath(ctx context.Context, namespace, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	claim, err := a.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("claim %q: %w", name, err)
	}
	if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return "", fmt.Errorf("claim %q is not bound to a volume", name)
	}
	volume, err := a.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("volume %q of claim %q: %w", claim.Spec.VolumeName, name, err)
	}
	switch {
	case volume.Spec.HostPath != nil:
		return volume.Spec.HostPath.Path, checkHostPath(volume.Spec.HostPath)
	case volume.Spec.Local != nil:
		return volume.Spec.Local.Path, nil
	}
	return "", errors.New("simulated nodes mount persistent volumes of the kinds hostPath and local; " + volume.Name + " is neither")
}
