package controlplane

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// pkiIn makes a PKI in a directory of the test's and returns its layout.
func pkiIn(t *testing.T, now time.Time) Layout {
	t.Helper()
	layout := Layout{Dir: t.TempDir()}
	if err := os.Mkdir(layout.PKI(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writePKI(layout, now); err != nil {
		t.Fatal(err)
	}
	return layout
}

func certificate(t *testing.T, layout Layout, name string) *x509.Certificate {
	t.Helper()
	pair, err := readKeyPair(layout, name)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

// contents returns the files of a directory by name.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(content)
	}
	return files
}

func TestPKI(t *testing.T) {
	now := time.Now()
	layout := pkiIn(t, now)

	t.Run("every certificate is accepted for its purpose by whoever trusts its authority", func(t *testing.T) {
		for _, l := range leaves() {
			roots := x509.NewCertPool()
			roots.AddCert(certificate(t, layout, l.authority))
			options := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, CurrentTime: now}
			if l.serving {
				options.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
			}
			if _, err := certificate(t, layout, l.file).Verify(options); err != nil {
				t.Errorf("%s: %v", l.file, err)
			}
		}
	})
	t.Run("the API server may be addressed by every name that pods and people use", func(t *testing.T) {
		for _, name := range []string{"127.0.0.1", "127.96.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"} {
			if err := certificate(t, layout, "apiserver").VerifyHostname(name); err != nil {
				t.Error(err)
			}
		}
		if certificate(t, layout, "apiserver").VerifyHostname("example.com") == nil {
			t.Error("the certificate is good for any name")
		}
	})
	t.Run("the unprivileged user is in no group", func(t *testing.T) {
		subject := certificate(t, layout, "user").Subject
		if subject.CommonName != "elastic-user" || len(subject.Organization) != 0 {
			t.Errorf("subject %s", subject)
		}
	})
	t.Run("the authority of request headers cannot sign users' certificates", func(t *testing.T) {
		if certificate(t, layout, "front-proxy-client").CheckSignatureFrom(certificate(t, layout, clusterCA)) == nil {
			t.Error("both authorities are one")
		}
	})
	t.Run("no file can be read by others", func(t *testing.T) {
		err := filepath.WalkDir(layout.PKI(), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %s", path, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestPKIAtTheNextStart(t *testing.T) {
	now := time.Now()
	t.Run("what is good is left alone", func(t *testing.T) {
		layout := pkiIn(t, now)
		before := contents(t, layout.PKI())
		if err := writePKI(layout, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		for name, content := range contents(t, layout.PKI()) {
			if before[name] != content {
				t.Errorf("%s was made anew", name)
			}
		}
	})
	t.Run("certificates that end soon are made anew, authorities and the service accounts' key are kept", func(t *testing.T) {
		layout := pkiIn(t, now)
		before := contents(t, layout.PKI())
		later := now.Add(certificateLifetime - renewBefore + time.Minute)
		if err := writePKI(layout, later); err != nil {
			t.Fatal(err)
		}
		after := contents(t, layout.PKI())
		for _, kept := range []string{"ca.crt", "ca.key", "front-proxy-ca.crt", "sa.key", "sa.pub"} {
			if before[kept] != after[kept] {
				t.Errorf("%s was made anew", kept)
			}
		}
		for _, l := range leaves() {
			if end := certificate(t, layout, l.file).NotAfter; end.Before(later.Add(renewBefore)) {
				t.Errorf("%s ends at %s", l.file, end)
			}
		}
	})
	t.Run("a damaged certificate, a lost key and a key of another certificate are replaced", func(t *testing.T) {
		layout := pkiIn(t, now)
		if err := os.WriteFile(layout.pki("admin.crt"), []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(layout.pki("user.key")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(layout.pki("scheduler.key"), layout.pki("kubelet.key")); err != nil {
			t.Fatal(err)
		}
		if err := writePKI(layout, now); err != nil {
			t.Fatal(err)
		}
		authority := certificate(t, layout, clusterCA)
		for _, l := range leaves() {
			if l.authority == clusterCA && certificate(t, layout, l.file).CheckSignatureFrom(authority) != nil {
				t.Errorf("%s is not the authority's", l.file)
			}
		}
	})
	t.Run("a certificate that somebody else signed is replaced", func(t *testing.T) {
		layout, other := pkiIn(t, now), pkiIn(t, now)
		for _, suffix := range []string{".crt", ".key"} {
			if err := os.Rename(other.pki("admin"+suffix), layout.pki("admin"+suffix)); err != nil {
				t.Fatal(err)
			}
		}
		if err := writePKI(layout, now); err != nil {
			t.Fatal(err)
		}
		if err := certificate(t, layout, "admin").CheckSignatureFrom(certificate(t, layout, clusterCA)); err != nil {
			t.Error(err)
		}
	})
}

func TestKubeconfigs(t *testing.T) {
	layout := pkiIn(t, time.Now())
	if err := writeKubeconfigs(layout, 6443); err != nil {
		t.Fatal(err)
	}
	t.Run("a kubeconfig holds everything that it needs, for its user alone", func(t *testing.T) {
		config, err := clientcmd.BuildConfigFromFlags("", layout.UserKubeconfig())
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(config.CertData)
		if block == nil || !bytes.Equal(block.Bytes, certificate(t, layout, "user").Raw) || config.Host != "https://127.0.0.1:6443" {
			t.Errorf("host %s, certificate %q", config.Host, config.CertData)
		}
		info, err := os.Stat(layout.UserKubeconfig())
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %s, %v", info.Mode(), err)
		}
	})
	t.Run("kubeconfigs are rewritten when the port changes, and only then", func(t *testing.T) {
		before := contents(t, layout.Dir)
		if err := writeKubeconfigs(layout, 6443); err != nil {
			t.Fatal(err)
		}
		if same := contents(t, layout.Dir); same["admin.kubeconfig"] != before["admin.kubeconfig"] {
			t.Error("the kubeconfig was rewritten for the same port")
		}
		if err := writeKubeconfigs(layout, 6444); err != nil {
			t.Fatal(err)
		}
		for _, client := range clients() {
			config, err := clientcmd.BuildConfigFromFlags("", layout.Kubeconfig(client.file))
			if err != nil || config.Host != "https://127.0.0.1:6444" {
				t.Errorf("%s: host %v, %v", client.file, config, err)
			}
		}
	})
}
