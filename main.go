// Command terraform-provider-elastic is the provider that terraform starts.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider"
)

// address is where terraform finds the provider.
const address = "registry.terraform.io/elastic-training/elastic"

// version is set by the release's build: -ldflags "-X main.version=1.2.3".
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "run under a debugger: print TF_REATTACH_PROVIDERS and wait")
	flag.Parse()
	environment, err := provider.ProcessEnvironment()
	if err != nil {
		log.Fatalf("terraform-provider-elastic: %v", err)
	}
	err = providerserver.Serve(context.Background(), provider.New(version, environment), providerserver.ServeOpts{
		Address:         address,
		Debug:           *debug,
		ProtocolVersion: 6,
	})
	if err != nil {
		log.Fatalf("terraform-provider-elastic: %v", err)
	}
}
