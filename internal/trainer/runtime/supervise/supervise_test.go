package supervise

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain makes the supervisor's child a test master: `master DIR CODE…`, whose n-th run ends with the
// n-th code, 137 by SIGKILL. "wait" waits for SIGTERM, and ends with 143.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "master" {
		os.Exit(live(os.Args[2], os.Args[3:]))
	}
	goleak.VerifyTestMain(m)
}

func live(dir string, codes []string) int {
	lives, _ := filepath.Glob(filepath.Join(dir, "life-*"))
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("life-%d", len(lives))), nil, 0o600); err != nil {
		return 1
	}
	switch code := codes[min(len(lives), len(codes)-1)]; code {
	case "137":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "wait":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		fmt.Println("ready")
		<-ctx.Done()
		return 143
	default:
		n, _ := strconv.Atoi(code)
		return n
	}
}

func supervised(ctx context.Context, t *testing.T, out io.Writer, codes ...string) (code, lives int) {
	t.Helper()
	dir := t.TempDir()
	code, err := Run(ctx, Config{
		Args: append([]string{"master", dir}, codes...), Stdout: out, Stderr: os.Stderr, Final: []int{0, 64, 143}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "life-*"))
	if err != nil {
		t.Fatal(err)
	}
	return code, len(found)
}

func TestAMasterThatEndsOnPurposeIsNotStartedAgain(t *testing.T) {
	for _, want := range []int{0, 64, 143} {
		if code, lives := supervised(t.Context(), t, io.Discard, strconv.Itoa(want)); code != want || lives != 1 {
			t.Errorf("a master that ended with %d had %d lives, and its supervisor ended with %d", want, lives, code)
		}
	}
}

func TestAMasterThatIsKilledIsStartedAgain(t *testing.T) {
	if code, lives := supervised(t.Context(), t, io.Discard, "137", "2", "0"); code != 0 || lives != 3 {
		t.Errorf("killed, then failed, then done: %d lives, and its supervisor ended with %d", lives, code)
	}
}

// cancelOnWrite cancels a context when something is written to it.
type cancelOnWrite struct {
	mu   sync.Mutex
	text bytes.Buffer
	end  context.CancelFunc
}

func (w *cancelOnWrite) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.text.Write(b); strings.Contains(w.text.String(), "ready") {
		w.end()
	}
	return len(b), nil
}

func TestASupervisorForwardsSIGTERMToItsMasterAndWaitsForIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if code, lives := supervised(ctx, t, &cancelOnWrite{end: cancel}, "wait"); code != 143 || lives != 1 {
		t.Errorf("%d lives, and the supervisor ended with %d", lives, code)
	}
}

func TestTheFirstRestartIsAtOnceAndTheOthersWaitLongerEachTime(t *testing.T) {
	var pauses []time.Duration
	for restart := range 12 {
		pauses = append(pauses, pause(restart))
	}
	if pauses[0] != 0 || pauses[1] != time.Second || pauses[2] != 2*time.Second || pauses[11] != 10*time.Second {
		t.Errorf("pauses %v", pauses)
	}
}
