package fakekubelet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	corev1 "k8s.io/api/core/v1"
)

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
