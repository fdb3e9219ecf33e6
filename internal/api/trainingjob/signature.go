package trainingjob

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// SignatureKey of ConfigMap NAME-job has the signature of the other keys. The master makes pods of what it finds there,
// and runs it. Without a signature, who may change a ConfigMap of the namespace could make any pod and run any program.
const SignatureKey = "signature"

// SignedFlag of the master means that its ConfigMap has a signature. It is in the template of the Job, which nobody can
// change.
const SignedFlag = "--signed"

// Sign returns the signature (HMAC) of the ConfigMap's data. Only the creator of the job and its master can make it, as
// they may read Secret NAME-credentials. The key is the master's private one, which workers do not have.
func Sign(data map[string]string, c Credentials) string {
	mac := hmac.New(sha256.New, c.PrivateKey)
	for _, key := range []string{JobKey, WorkersKey, ModelKey, DefinitionKey} {
		text := data[key]
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		mac.Write([]byte(text))
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// ForgedError is a ConfigMap NAME-job that somebody has changed who is not the job's maker.
type ForgedError struct{ Namespace, Name string }

func (e *ForgedError) Error() string {
	return fmt.Sprintf("ConfigMap %s/%s is not as the job's maker wrote it: its signature does not match. Somebody has changed it otherwise than by Terraform; "+
		"terraform apply sets back what differs, and `kubectl get configmap -n %[1]s %[2]s -o yaml --show-managed-fields` says who it was", e.Namespace, e.Name)
}

// Verify is a ForgedError where the ConfigMap was not signed with these credentials.
func Verify(configMap *corev1.ConfigMap, c Credentials) error {
	if !hmac.Equal([]byte(configMap.Data[SignatureKey]), []byte(Sign(configMap.Data, c))) {
		return &ForgedError{configMap.Namespace, configMap.Name}
	}
	return nil
}
