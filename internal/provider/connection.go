package provider

import (
	"fmt"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// connection is the provider's data for its resources: the cluster, connected on first use, so that a plan that needs
// no cluster works before there is one. All resources share one client.
type connection struct {
	config  cluster.Config
	unknown []string // attributes of the provider's configuration that are not known yet

	once   sync.Once
	client *cluster.Client
	err    error

	planned   *planned   // what the resources of this plan want to know of one another
	forecasts *forecasts // forecasts for the jobs of this plan
	names     plannedNames
}

func newConnection(config cluster.Config, unknown []string, f forecastConfig) *connection {
	return &connection{config: config, unknown: unknown, planned: newPlanned(), forecasts: &forecasts{forecastConfig: f}}
}

// cluster is the client, or the reason why there is none.
func (c *connection) cluster() (*cluster.Client, diag.Diagnostics) {
	var diags diag.Diagnostics
	if len(c.unknown) > 0 {
		diags.AddError("Unknown cluster", fmt.Sprintf(
			"The provider's %s not known until apply, and this step needs the cluster. "+
				"First create the resource that the value comes from (terraform apply -target=ADDRESS), or use a value that is known during the plan.",
			isOrAre(c.unknown)))
		return nil, diags
	}
	c.once.Do(func() { c.client, c.err = cluster.New(c.config) })
	if c.err != nil {
		explain(&diags, c.err)
		return nil, diags
	}
	return c.client, diags
}

// isOrAre is `host is` or `host and token are`, for a sentence.
func isOrAre(names []string) string {
	if len(names) == 1 {
		return "attribute " + names[0] + " is"
	}
	return "attributes " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1] + " are"
}

// connectionOf reads what Configure received; it is nil while Terraform only validates.
func connectionOf(providerData any, diags *diag.Diagnostics) *connection {
	if providerData == nil {
		return nil
	}
	c, ok := providerData.(*connection)
	if !ok {
		diags.AddError("Internal provider error", fmt.Sprintf("A resource was configured with a %T; please report this.", providerData))
	}
	return c
}
