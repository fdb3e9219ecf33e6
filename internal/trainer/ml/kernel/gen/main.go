// Command gen writes the vector kernels, kernels_amd64.s and kernels_arm64.s, and the declarations and tables of its
// functions.
package main

import (
	"flag"
	"log"
	"os"
	"path/filepath"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel/assembly"
)

func main() {
	dir := flag.String("dir", ".", "folder to write to")
	flag.Parse()
	files, err := assembly.Files()
	if err != nil {
		log.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(*dir, name), text, 0o644); err != nil {
			log.Fatalf("writing the kernels: %v", err)
		}
	}
}
