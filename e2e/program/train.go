package program

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Train trains on this machine, without a cluster, into the empty folder output. It returns the SHA-256 of the model.
func Train(ctx context.Context, trainer, output string, flags ...string) (string, error) {
	command := exec.CommandContext(ctx, trainer, append([]string{"train", "--output", output}, flags...)...)
	if printed, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("train on this machine: %w\n%s", err, printed)
	}
	found, err := filepath.Glob(filepath.Join(output, "*", "model.json"))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("the run on this machine has written %d models: %v", len(found), found)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		return "", err
	}
	var info struct {
		SHA256 string `json:"sha256"`
	}
	if err := json.Unmarshal(text, &info); err != nil {
		return "", fmt.Errorf("%s: %w", found[0], err)
	}
	if info.SHA256 == "" {
		return "", fmt.Errorf("%s has no sha256: %s", found[0], text)
	}
	return info.SHA256, nil
}
