// Command providerschema prints the provider's schemas in the form of `terraform providers schema -json`. The
// documentation is generated from it, because older releases of terraform omit identities, list resources and actions.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider"
)

// name is what the generator of the documentation looks for.
const name = "elastic"

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "providerschema:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer) error {
	nothing := provider.Environment{Variable: func(string) string { return "" }}
	server, err := providerserver.NewProtocol6WithError(provider.New("docs", nothing)())()
	if err != nil {
		return err
	}
	schema, err := schemaOf(ctx, server)
	if err != nil {
		return err
	}
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	return out.Encode(tfjson.ProviderSchemas{FormatVersion: "1.0", Schemas: map[string]*tfjson.ProviderSchema{name: schema}})
}

func schemaOf(ctx context.Context, server tfprotov6.ProviderServer) (*tfjson.ProviderSchema, error) {
	response, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}
	identities, err := server.GetResourceIdentitySchemas(ctx, &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		return nil, err
	}
	if err := problems(append(response.Diagnostics, identities.Diagnostics...)); err != nil {
		return nil, err
	}
	schema := &tfjson.ProviderSchema{ConfigSchema: schemaJSON(response.Provider)}
	schema.ResourceSchemas = each(response.ResourceSchemas, schemaJSON)
	schema.DataSourceSchemas = each(response.DataSourceSchemas, schemaJSON)
	schema.EphemeralResourceSchemas = each(response.EphemeralResourceSchemas, schemaJSON)
	schema.ListResourceSchemas = each(response.ListResourceSchemas, schemaJSON)
	schema.ActionSchemas = each(response.ActionSchemas, func(a *tfprotov6.ActionSchema) *tfjson.ActionSchema {
		return &tfjson.ActionSchema{Block: block(a.Schema.Block)}
	})
	schema.Functions = each(response.Functions, signature)
	schema.ResourceIdentitySchemas = each(identities.IdentitySchemas, identity)
	return schema, nil
}

func problems(diagnostics []*tfprotov6.Diagnostic) error {
	var errs []error
	for _, d := range diagnostics {
		errs = append(errs, fmt.Errorf("%s: %s", d.Summary, d.Detail))
	}
	return errors.Join(errs...)
}

func each[From, To any](all map[string]From, one func(From) To) map[string]To {
	if len(all) == 0 {
		return nil
	}
	out := make(map[string]To, len(all))
	for name, from := range all {
		out[name] = one(from)
	}
	return out
}
