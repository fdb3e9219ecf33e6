package providertest

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Server is a configured provider, for what newer releases of Terraform ask of it than the one that may be installed.
type Server struct {
	tfprotov6.ProviderServer
	tfprotov6.ListResourceServer
	tfprotov6.ActionServer
	Schemas *tfprotov6.GetProviderSchemaResponse
}

// NewServer configures a provider with the given attributes, and nothing of this process's environment.
func NewServer(t *testing.T, attributes map[string]string) *Server {
	t.Helper()
	server, err := Factories(t, nil)["elastic"]()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{ProviderServer: server}
	var lists, acts bool
	s.ListResourceServer, lists = server.(tfprotov6.ListResourceServer)
	s.ActionServer, acts = server.(tfprotov6.ActionServer)
	if !lists || !acts {
		t.Fatalf("%T is asked for list resources (%t) and actions (%t)", server, lists, acts)
	}
	s.Schemas, err = server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	NoErrors(t, err, s.Schemas.Diagnostics)
	config := Encoded(t, s.Schemas.Provider.ValueType(), attributes)
	configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: config})
	NoErrors(t, err, configured.Diagnostics)
	return s
}

// Invoke carries an action out, and gives what it said on the way and what was wrong in the end.
func (s *Server) Invoke(t *testing.T, action string, attributes map[string]string) (progress []string, wrong []*tfprotov6.Diagnostic) {
	t.Helper()
	stream, err := s.InvokeAction(t.Context(), &tfprotov6.InvokeActionRequest{
		ActionType: action, Config: Encoded(t, s.Schemas.ActionSchemas[action].Schema.ValueType(), attributes),
	})
	if err != nil {
		t.Fatal(err)
	}
	for event := range stream.Events {
		switch e := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			progress = append(progress, e.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			wrong = append(wrong, e.Diagnostics...)
		}
	}
	return progress, wrong
}

// Encoded is an object with the given texts, or booleans where the attribute is one, and null otherwise.
func Encoded(t *testing.T, kind tftypes.Type, texts map[string]string) *tfprotov6.DynamicValue {
	t.Helper()
	object, ok := kind.(tftypes.Object)
	if !ok {
		t.Fatalf("no object but %s", kind)
	}
	values := map[string]tftypes.Value{}
	for name, attribute := range object.AttributeTypes {
		values[name] = tftypes.NewValue(attribute, nil)
	}
	for name, text := range texts {
		values[name] = tftypes.NewValue(tftypes.String, text)
		if object.AttributeTypes[name].Is(tftypes.Bool) {
			values[name] = tftypes.NewValue(tftypes.Bool, text == "true")
		}
	}
	value, err := tfprotov6.NewDynamicValue(kind, tftypes.NewValue(kind, values))
	if err != nil {
		t.Fatal(err)
	}
	return &value
}

// NoErrors ends the test at an error of the call or of what it answered.
func NoErrors(t *testing.T, err error, diagnostics []*tfprotov6.Diagnostic) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			t.Fatalf("%s: %s", d.Summary, d.Detail)
		}
	}
}
