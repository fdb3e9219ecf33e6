package kube

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// signedConfig is ConfigMap digits-job, with so many workers of an image, signed with a key.
func signedConfig(t *testing.T, most int, image string, c trainingjob.Credentials) *corev1.ConfigMap {
	t.Helper()
	of := template()
	of.Spec.Containers[0].Image = image
	workers, err := json.Marshal(map[string]any{"min": 1, "max": most, "template": of})
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]string{trainingjob.WorkersKey: string(workers)}
	data[trainingjob.SignatureKey] = trainingjob.Sign(data, c)
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "digits-job"}, Data: data}
}

func TestWhoMayChangeAConfigMapMakesNoPodByIt(t *testing.T) {
	maker, somebody := trainingjob.Credentials{PrivateKey: []byte("the job's")}, trainingjob.Credentials{}
	s := newServer(t)
	s.put("configmaps", signedConfig(t, 2, "image", maker))
	s.cluster.Signed = &maker
	notices := make(chan coordinator.Notice, 8)
	s.cluster.Notice = func(n coordinator.Notice) { notices <- n }
	l, _, _, err := Start(t.Context(), s.cluster, "10.0.0.1:50001", quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	resized := func() (to coordinator.Resize) {
		t.Helper()
		for {
			select {
			case e := <-l.Events():
				if r, is := e.(coordinator.Resize); is {
					return r
				}
			case <-time.After(patience.Medium):
				t.Fatal("no word of the ConfigMap")
			}
		}
	}
	resized() // unchanged
	change := func(configMap *corev1.ConfigMap) {
		s.put("configmaps", configMap)
		s.forget() // watchers list again
	}
	change(signedConfig(t, 50, "evil", somebody))
	if n := <-notices; n.Reason != "WorkersIgnored" || !strings.Contains(n.Message, "its signature does not match") || !strings.Contains(n.Message, "terraform apply") {
		t.Errorf("the notice is %+v", n)
	}
	if _, most := l.Size(); most != 2 {
		t.Errorf("%d workers are to be made", most)
	}
	l.mu.Lock()
	if image := l.workers.Template.Spec.Containers[0].Image; image != "image" {
		t.Errorf("the workers' image is %s", image)
	}
	l.mu.Unlock()
	change(signedConfig(t, 3, "image", maker))
	if r := resized(); r.Max != 3 {
		t.Errorf("the maker's own change is %+v", r)
	}
}

func TestAMasterDoesNotBeginWithAConfigMapThatSomebodyHasChanged(t *testing.T) {
	maker := trainingjob.Credentials{PrivateKey: []byte("the job's")}
	s := newServer(t)
	s.cluster.Signed = &maker
	for _, configMap := range []*corev1.ConfigMap{nil, signedConfig(t, 2, "evil", trainingjob.Credentials{})} { // nil: that of newServer, without a signature
		if configMap != nil {
			s.put("configmaps", configMap)
		}
		if _, _, _, err := Start(t.Context(), s.cluster, "10.0.0.1:50001", quiet()); !errors.As(err, new(*trainingjob.ForgedError)) {
			t.Errorf("%v", err)
		}
	}
}
