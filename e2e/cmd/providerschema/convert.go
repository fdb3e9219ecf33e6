package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
)

func schemaJSON(s *tfprotov6.Schema) *tfjson.Schema {
	return &tfjson.Schema{Version: uint64(s.Version), Block: block(s.Block)}
}

func block(b *tfprotov6.SchemaBlock) *tfjson.SchemaBlock {
	out := &tfjson.SchemaBlock{
		Attributes: attributes(b.Attributes), NestedBlocks: map[string]*tfjson.SchemaBlockType{},
		Description: b.Description, DescriptionKind: kind(b.DescriptionKind), Deprecated: b.Deprecated,
	}
	for _, nested := range b.BlockTypes {
		out.NestedBlocks[nested.TypeName] = &tfjson.SchemaBlockType{
			NestingMode: mode(nested.Nesting.String()), Block: block(nested.Block),
			MinItems: uint64(nested.MinItems), MaxItems: uint64(nested.MaxItems),
		}
	}
	return out
}

func attributes(all []*tfprotov6.SchemaAttribute) map[string]*tfjson.SchemaAttribute {
	out := map[string]*tfjson.SchemaAttribute{}
	for _, a := range all {
		j := &tfjson.SchemaAttribute{
			Description: a.Description, DescriptionKind: kind(a.DescriptionKind), Deprecated: a.Deprecated,
			Required: a.Required, Optional: a.Optional, Computed: a.Computed, Sensitive: a.Sensitive, WriteOnly: a.WriteOnly,
		}
		if a.NestedType != nil {
			j.AttributeNestedType = &tfjson.SchemaNestedAttributeType{
				Attributes: attributes(a.NestedType.Attributes), NestingMode: mode(a.NestedType.Nesting.String()),
			}
		} else {
			j.AttributeType = typeOf(a.Type)
		}
		out[a.Name] = j
	}
	return out
}

func mode(protocols string) tfjson.SchemaNestingMode {
	return tfjson.SchemaNestingMode(strings.ToLower(protocols))
}

func kind(k tfprotov6.StringKind) tfjson.SchemaDescriptionKind {
	if k == tfprotov6.StringKindMarkdown {
		return tfjson.SchemaDescriptionKindMarkdown
	}
	return tfjson.SchemaDescriptionKindPlain
}

func identity(s *tfprotov6.ResourceIdentitySchema) *tfjson.IdentitySchema {
	out := &tfjson.IdentitySchema{Version: uint64(s.Version), Attributes: map[string]*tfjson.IdentityAttribute{}}
	for _, a := range s.IdentityAttributes {
		out.Attributes[a.Name] = &tfjson.IdentityAttribute{
			IdentityType: typeOf(a.Type), Description: a.Description, RequiredForImport: a.RequiredForImport, OptionalForImport: a.OptionalForImport,
		}
	}
	return out
}

func signature(f *tfprotov6.Function) *tfjson.FunctionSignature {
	out := &tfjson.FunctionSignature{Description: f.Description, Summary: f.Summary, DeprecationMessage: f.DeprecationMessage, ReturnType: typeOf(f.Return.Type)}
	for _, p := range f.Parameters {
		out.Parameters = append(out.Parameters, parameter(p))
	}
	if f.VariadicParameter != nil {
		out.VariadicParameter = parameter(f.VariadicParameter)
	}
	return out
}

func parameter(p *tfprotov6.FunctionParameter) *tfjson.FunctionParameter {
	return &tfjson.FunctionParameter{Name: p.Name, Description: p.Description, IsNullable: p.AllowNullValue, Type: typeOf(p.Type)}
}

// typeOf converts the type to Terraform's language, of which the protocol's are a part, and which has the same JSON.
func typeOf(t tftypes.Type) (of cty.Type) {
	text, err := json.Marshal(t)
	if err := errors.Join(err, json.Unmarshal(text, &of)); err != nil {
		panic(fmt.Sprintf("the type %s: %v", t, err)) // no provider can serve such a one
	}
	return of
}
