// Command releasecheck builds every binary of .goreleaser.yml with plain `go build`, in the work tree and in a clone of
// its commit elsewhere, and compares the two; with PUBLISHED set, it also compares them with the archives of a release.
// `make release-check` runs it.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
)

func main() {
	var o options
	flag.StringVar(&o.root, "root", "..", "root of the repository")
	flag.StringVar(&o.version, "version", "0.0.0", "the version to build into the binaries")
	flag.StringVar(&o.published, "published", "", "directory with the archives of that version's release, to be compared too")
	flag.StringVar(&o.only, "only", "", "build only the targets whose name contains this, such as linux/amd64")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := o.run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release-check:", err)
		os.Exit(1)
	}
}

type options struct{ root, version, published, only string }

func (o options) run(ctx context.Context, out io.Writer) error {
	text, err := os.ReadFile(filepath.Join(o.root, ".goreleaser.yml"))
	if err != nil {
		return err
	}
	targets, err := parse(text, o.version)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "release-check")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	clone := filepath.Join(dir, "another", "place")
	if err := command(ctx, o.root, nil, "git", "clone", "--quiet", "--no-hardlinks", ".", clone); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	differ := 0
	for i, t := range targets {
		if !strings.Contains(t.name(), o.only) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%d of %d: %s\n", i+1, len(targets), t.name())
		here, err := o.build(ctx, t, o.root, filepath.Join(dir, "here"))
		if err != nil {
			return err
		}
		there, err := o.build(ctx, t, clone, filepath.Join(dir, "there"))
		if err != nil {
			return err
		}
		verdict := "identical"
		if here != there {
			verdict = "DIFFERENT"
			differ++
		}
		if o.published != "" {
			released, err := published(o.published, t, o.version)
			if err != nil {
				return err
			}
			if sum := sha256.Sum256(released); hex.EncodeToString(sum[:]) != here.sha256 {
				verdict = "NOT WHAT WAS PUBLISHED"
				differ++
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%.1f MB\n", t.name(), here.sha256[:16], verdict, float64(here.size)/1e6)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if differ > 0 && o.published != "" {
		return fmt.Errorf("%d binaries differ between the work tree, a clone of its commit and the archives in %s: check out the release's tag, and use the Go that go.mod names", differ, o.published)
	}
	if differ > 0 {
		return fmt.Errorf("%d binaries differ between the work tree and a clone of its commit: commit first; otherwise a path or a time is built in", differ)
	}
	return nil
}

// binary is what a build came to.
type binary struct {
	sha256 string
	size   int64
}

func (o options) build(ctx context.Context, t target, root, file string) (binary, error) {
	environment := slices.Concat(t.env, []string{"GOOS=" + t.system, "GOARCH=" + t.processor, "GOFLAGS="})
	arguments := slices.Concat([]string{"build", "-o", file, "-ldflags", t.ldflags}, t.flags, []string{t.main})
	if err := command(ctx, root, environment, "go", arguments...); err != nil {
		return binary{}, fmt.Errorf("%s: %w", t.name(), err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return binary{}, err
	}
	sum := sha256.Sum256(b)
	return binary{hex.EncodeToString(sum[:]), int64(len(b))}, nil
}

func command(ctx context.Context, dir string, environment []string, name string, arguments ...string) error {
	c := exec.CommandContext(ctx, name, arguments...)
	c.Dir, c.Env = dir, append(os.Environ(), environment...)
	if printed, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(arguments, " "), err, printed)
	}
	return nil
}
