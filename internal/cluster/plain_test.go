package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestACredentialIsNotSentInPlainTextBeyondTheLoopback(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "http://kube.example:8080"}}],
		"users": [{"name": "u", "user": {"token": "t"}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config  Config
		refused bool
	}{
		"a token over https":                                    {Config{Host: "https://kube.example", Token: "t"}, false},
		"a token over http":                                     {Config{Host: "http://kube.example", Token: "t"}, true},
		"a token for a bare name, which is http":                {Config{Host: "kube.example:6443", Token: "t"}, true},
		"a bare name with an authority":                         {Config{Host: "kube.example:6443", Token: "t", Insecure: true}, false},
		"a command's token over http":                           {Config{Host: "http://kube.example", Exec: &Exec{APIVersion: "client.authentication.k8s.io/v1", Command: "c"}}, true},
		"a kubeconfig's token over http, left out by client-go": {Config{Kubeconfigs: []string{kubeconfig}}, false},
		"nothing secret over http":                              {Config{Host: "http://kube.example"}, false},
		"kubectl proxy":                                         {Config{Host: "http://127.0.0.1:8001", Token: "t"}, false},
		"localhost":                                             {Config{Host: "http://localhost:8001", Token: "t"}, false},
		"the loopback of IPv6":                                  {Config{Host: "http://[::1]:8001", Token: "t"}, false},
		"the loopback of a proxy":                               {Config{Host: "http://127.0.0.1:8001", Token: "t", ProxyURL: "http://proxy.example:3128"}, true},
		"a name that only begins like the loopback":             {Config{Host: "http://127.0.0.1.evil.example", Token: "t"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(c.config)
			if (err != nil) != c.refused {
				t.Fatalf("%v", err)
			}
			if !c.refused {
				return
			}
			if summary, detail := Explain(err); summary != "Cannot connect as configured" || !strings.Contains(detail, "write https://") {
				t.Errorf("%s: %s", summary, detail)
			}
		})
	}
}
