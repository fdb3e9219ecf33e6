package cluster

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/client-go/tools/clientcmd"
)

// KubectlConfigs are the kubeconfig files that kubectl would read, for Config.Kubeconfigs of a program with its
// --kubeconfig flag: the file that is named, or those of $KUBECONFIG, or ~/.kube/config.
func KubectlConfigs(named string) ([]string, error) {
	if named != "" {
		return []string{named}, nil
	}
	if list := filepath.SplitList(os.Getenv("KUBECONFIG")); len(list) > 0 {
		return list, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("no --kubeconfig, no $KUBECONFIG, and %w", err)
	}
	return []string{filepath.Join(home, ".kube", "config")}, nil
}

// ContextNames are the contexts in the files of KubectlConfigs, sorted.
func ContextNames(named string) ([]string, error) {
	files, err := KubectlConfigs(named)
	if err != nil {
		return nil, err
	}
	config, err := (&clientcmd.ClientConfigLoadingRules{Precedence: files}).Load()
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(config.Contexts)), nil
}
