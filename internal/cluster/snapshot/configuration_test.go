package snapshot_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/snapshot"
)

func TestKueuesConfigurationIsReadOrTheReasonIsReported(t *testing.T) {
	const configMap, deployment = "kueue-manager-config", "kueue-controller-manager"
	of := func(text string) corev1.ConfigMap {
		return corev1.ConfigMap{Data: map[string]string{"controller_manager_config.yaml": text}}
	}
	manager := appsv1.Deployment{}
	manager.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Args: []string{"--config=/x.yaml", "--feature-gates=PriorityBoost=true"}}}
	for behaviour, c := range map[string]struct {
		objects map[string]any
		denied  []string
		unread  string
		boosts  bool
	}{
		"the ConfigMap may not be read": {nil, []string{configMap}, "getting ConfigMap kueue-system/kueue-manager-config is not allowed", false},
		"there is no ConfigMap":         {map[string]any{}, nil, "there is no ConfigMap kueue-system/kueue-manager-config", false},
		"it has another key": {
			map[string]any{configMap: corev1.ConfigMap{}}, nil, "ConfigMap kueue-system/kueue-manager-config has no key controller_manager_config.yaml", false,
		},
		"gates are in the configuration":    {map[string]any{configMap: of("featureGates: {PriorityBoost: true}")}, nil, "", true},
		"gates are arguments":               {map[string]any{configMap: of("kind: Configuration"), deployment: manager}, nil, "", true},
		"the configuration is all there is": {map[string]any{configMap: of("kind: Configuration")}, nil, "", false},
		"the arguments may not be read": {
			map[string]any{configMap: of("featureGates: {PriorityBoost: true}")},
			[]string{deployment},
			"feature gates may be arguments of Deployment kueue-system/kueue-controller-manager, and getting it is not allowed", true,
		},
	} {
		t.Run(behaviour, func(t *testing.T) {
			q, err := snapshot.ReadQueues(t.Context(), clientOf(t, &server{objects: c.objects, denied: c.denied}))
			if err != nil {
				t.Fatal(err)
			}
			boosts := q.Configuration != nil && q.Configuration.Gate("PriorityBoost")
			if q.ConfigurationUnread != c.unread || boosts != c.boosts {
				t.Errorf("unread %q, boosts %t", q.ConfigurationUnread, boosts)
			}
		})
	}
}
