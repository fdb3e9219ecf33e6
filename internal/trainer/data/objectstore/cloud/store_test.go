package cloud_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/objectstore"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/objectstore/cloud"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/objectstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, path string) (objectstore.Bucket, objectstore.Location) {
	t.Helper()
	at, err := objectstore.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := cloud.Open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, at
}

func TestReading(t *testing.T) {
	server := storetest.StartS3(t)
	content := bytes.Repeat([]byte("0123456789"), 1000)
	for _, key := range []string{"train/a", "train/b", "train/c/d e+%", "train/e", "trainee", "z"} {
		server.Put(key, content)
	}
	s, _ := open(t, "s3://bucket/train")
	object, there, err := s.Stat(t.Context(), "train/a")
	if err != nil || !there || object.Size != 10000 {
		t.Fatalf("%+v, %t, %v", object, there, err)
	}
	t.Run("every object below a prefix is listed, over several pages", func(t *testing.T) {
		all, err := s.List(t.Context(), "train/")
		if err != nil || len(all) != 4 || all[2].Key != "train/c/d e+%" || all[2].Size != 10000 || all[2].ETag != object.ETag {
			t.Errorf("%+v, %v", all, err)
		}
	})
	t.Run("an object that is not there is no error", func(t *testing.T) {
		if _, there, err := s.Stat(t.Context(), "train"); there || err != nil {
			t.Errorf("%t, %v", there, err)
		}
	})
	t.Run("a range is one request for its bytes and no others", func(t *testing.T) {
		server.Requests()
		b := make([]byte, 5)
		if n, err := s.Reader(t.Context(), object).ReadAt(b, 13); n != 5 || err != nil || string(b) != "34567" {
			t.Errorf("%q, %v", b[:n], err)
		}
		if got := server.Requests(); len(got) != 1 || got[0] != "GET /bucket/train/a bytes=13-17" {
			t.Errorf("%q", got)
		}
	})
	t.Run("reading ends at the object's end", func(t *testing.T) {
		r := s.Reader(t.Context(), object)
		b := make([]byte, 5)
		if n, err := r.ReadAt(b, 9998); n != 2 || !errors.Is(err, io.EOF) {
			t.Errorf("%d, %v", n, err)
		}
		if n, err := r.ReadAt(b, 10000); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%d, %v", n, err)
		}
	})
	t.Run("a busy store is asked again, and a body that breaks off is gone on with", func(t *testing.T) {
		server.Fail(2, 1)
		b := make([]byte, 10000)
		if n, err := s.Reader(t.Context(), object).ReadAt(b, 0); n != 10000 || err != nil || !bytes.Equal(b, content) {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	t.Run("an object that was replaced, with one of its size too, is an error", func(t *testing.T) {
		server.Put("train/a", bytes.Repeat([]byte("abcdefghij"), 1000))
		_, err := s.Reader(t.Context(), object).ReadAt(make([]byte, 5), 0)
		if !errors.Is(err, objectstore.ErrChanged) || !strings.Contains(err.Error(), `"s3://bucket/train/a"`) {
			t.Error(err)
		}
		server.Delete("train/a")
		if _, err := s.Reader(t.Context(), object).ReadAt(make([]byte, 5), 0); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("a bucket that is not there is an error with the URL", func(t *testing.T) {
		other, at := open(t, "s3://elsewhere/x")
		if _, err := other.List(t.Context(), at.Key); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "s3://elsewhere/x") {
			t.Error(err)
		}
	})
	t.Run("wrong credentials are an error that says where they are looked for, without them", func(t *testing.T) {
		t.Setenv("AWS_ACCESS_KEY_ID", "somebody")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "hush-hush")
		other, _ := open(t, "s3://bucket/train")
		_, err := other.List(t.Context(), "train/")
		if err == nil || !strings.Contains(err.Error(), "credentials") || strings.Contains(err.Error(), "hush") {
			t.Error(err)
		}
	})
	t.Run("a reader ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Reader(ctx, object).ReadAt(make([]byte, 5), 0); err == nil {
			t.Error("read on")
		}
	})
}

func TestCredentialsFromAFile(t *testing.T) {
	server := storetest.StartS3(t)
	server.Put("a", []byte("abc"))
	path := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(path, []byte("[trainer]\naws_access_key_id = reader\naws_secret_access_key = s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", path)
	t.Setenv("AWS_PROFILE", "trainer")
	s, _ := open(t, "s3://bucket/a")
	if _, there, err := s.Stat(t.Context(), "a"); !there || err != nil {
		t.Errorf("%t, %v", there, err)
	}
}

func TestGoogle(t *testing.T) {
	t.Run("a service account's key is changed for a token, which comes with every request", func(t *testing.T) {
		server := storetest.Start(t, "Bearer gold")
		server.Put("train/a", []byte("abc"))
		tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"access_token": "gold", "token_type": "Bearer", "expires_in": 3600}`)
		}))
		t.Cleanup(tokens.Close)
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", serviceAccount(t, tokens.URL))
		t.Setenv("STORAGE_EMULATOR_HOST", server.URL)
		s, _ := open(t, "gs://bucket/train")
		all, err := s.List(t.Context(), "train/")
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		b := make([]byte, 3)
		if _, err := s.Reader(t.Context(), all[0]).ReadAt(b, 0); err != nil || string(b) != "abc" {
			t.Errorf("%q, %v", b, err)
		}
	})
	t.Run("an emulator is asked without credentials", func(t *testing.T) {
		server := storetest.Start(t, "")
		server.Put("a", []byte("abc"))
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
		t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(server.URL, "http://"))
		s, _ := open(t, "gs://bucket/a")
		if _, there, err := s.Stat(t.Context(), "a"); !there || err != nil {
			t.Errorf("%t, %v", there, err)
		}
	})
	for name, value := range map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere/key.json", "STORAGE_EMULATOR_HOST": "ftp://x"} {
		t.Run("what cannot be used is refused by name: "+name, func(t *testing.T) {
			t.Setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
			t.Setenv(name, value)
			if _, err := cloud.Open(t.Context(), objectstore.Location{Scheme: "gs", Bucket: "b"}); err == nil || !strings.Contains(err.Error(), name) {
				t.Error(err)
			}
		})
	}
}

// serviceAccount writes a key file whose tokens come from a URL.
func serviceAccount(t *testing.T, url string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "trainer@project.iam.gserviceaccount.com", "private_key_id": "1", "token_uri": url,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
