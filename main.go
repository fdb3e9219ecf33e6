// Command terraform-provider-elastic is the provider that terraform starts.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"runtime/debug"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider"
)

// address is where terraform finds the provider.
const address = "registry.terraform.io/elastic-training/elastic"

// version is set by the release's build: -ldflags "-X main.version=1.2.3".
var version = "dev"

// sdkLevel is the environment variable of the least level at which the SDK writes.
const sdkLevel = "TF_LOG_SDK"

// collectorPercent is by how much the heap may grow between two collections, in percent. A provider lives for one
// command and keeps little; at Go's default of 100 a fifth of its time goes into collecting a heap of some megabytes.
const collectorPercent = 400

// spare leaves undone what nobody would notice: collecting garbage often, and writing the SDK's trace of every request
// and attribute, which Terraform throws away unless one of its own variables asks for logs. The trace alone took a
// quarter of the provider's processor time.
func spare() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectorPercent)
	}
	for _, entry := range os.Environ() {
		if strings.HasPrefix(entry, "TF_LOG") {
			return
		}
	}
	if err := os.Setenv(sdkLevel, "error"); err != nil {
		log.Printf("terraform-provider-elastic: %v", err) // it is then slower, and nothing else
	}
}

func main() {
	spare()
	debugged := flag.Bool("debug", false, "run under a debugger: print TF_REATTACH_PROVIDERS and wait")
	flag.Parse()
	environment, err := provider.ProcessEnvironment()
	if err != nil {
		log.Fatalf("terraform-provider-elastic: %v", err)
	}
	err = providerserver.Serve(context.Background(), provider.New(version, environment), providerserver.ServeOpts{
		Address:         address,
		Debug:           *debugged,
		ProtocolVersion: 6,
	})
	if err != nil {
		log.Fatalf("terraform-provider-elastic: %v", err)
	}
}
