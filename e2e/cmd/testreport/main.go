// Command testreport reads the events of test runs (go test -json, as gotestsum --jsonfile writes them), prints which
// packages took longest and which tests passed only when they were repeated, and writes both to a folder as JSON.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// longest is how many packages are printed; packages.json has all of them.
const longest = 10

func main() {
	out := flag.String("out", ".", "the `folder` for packages.json and flakes.json")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "Usage: testreport [-out FOLDER] FILE...\n\nPrints what took longest in test runs, and which tests passed only when they were repeated.\nFILE has the events of go test -json.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(os.Stdout, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, out string, files []string) error {
	runs := newRuns()
	for _, path := range files {
		if err := runs.readFile(path); err != nil {
			return err
		}
	}
	packages, flakes := runs.packages(), runs.flakes()
	for name, content := range map[string]any{"packages.json": packages, "flakes.json": flakes} {
		text, err := json.MarshalIndent(content, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, name), append(text, '\n'), 0o600); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, "The packages that took longest:")
	for _, p := range packages[:min(longest, len(packages))] {
		fmt.Fprintf(w, "  %6.1f s  %s\n", p.Seconds, p.Package)
	}
	if len(flakes) > 0 {
		fmt.Fprintln(w, "\nThese tests failed, and passed when they were repeated. Each is a bug of the test or of the code:")
		for _, f := range flakes {
			fmt.Fprintf(w, "  %s %s: failed %d of %d times\n", f.Package, f.Test, f.Failures, f.Runs)
		}
	}
	return nil
}
