package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// dataSourceTimeout bounds a data source, which waits for nothing but answers.
const dataSourceTimeout = 2 * time.Minute

// dataSource is the part that all data sources share.
type dataSource struct {
	name       string // the type's, without the provider's: "workloads"
	connection *connection
}

func (d *dataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + d.name
}

func (d *dataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.connection = connectionOf(req.ProviderData, &resp.Diagnostics)
}

// begin reads the configuration into the model, and is the client to read the cluster with; nil after an error.
func (d *dataSource) begin(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse, model any) *cluster.Client {
	resp.Diagnostics.Append(req.Config.Get(ctx, model)...)
	client, diags := d.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return nil
	}
	return client
}

func readText(description string) schema.Attribute {
	return schema.StringAttribute{MarkdownDescription: description, Computed: true}
}

func readInteger(description string) schema.Attribute {
	return schema.Int64Attribute{MarkdownDescription: description, Computed: true}
}

func readBoolean(description string) schema.Attribute {
	return schema.BoolAttribute{MarkdownDescription: description, Computed: true}
}

func readTexts(description string) schema.Attribute {
	return schema.ListAttribute{MarkdownDescription: description, ElementType: types.StringType, Computed: true}
}

func readTextMap(description string) schema.Attribute {
	return schema.MapAttribute{MarkdownDescription: description, ElementType: types.StringType, Computed: true}
}

func readObject(description string, attributes map[string]schema.Attribute) schema.Attribute {
	return schema.SingleNestedAttribute{MarkdownDescription: description, Computed: true, Attributes: attributes}
}

func readObjects(description string, attributes map[string]schema.Attribute) schema.Attribute {
	return schema.ListNestedAttribute{MarkdownDescription: description, Computed: true, NestedObject: schema.NestedAttributeObject{Attributes: attributes}}
}
