// Package schemas embeds the JSON Schema of every message that crosses the
// border of the system.
package schemas

import (
	"embed"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed *.json *.yaml
var files embed.FS

// The names of the schemas.
const (
	Heal    = "heal.json"
	Outcome = "outcome.json"
	Policy  = "policy.json"
)

// OpenAPI names the description of the gateway; it is for Text alone.
const OpenAPI = "openapi.yaml"

// AsyncAPI describes the subjects of the bus and what travels on them.
const AsyncAPI = "asyncapi.yaml"

// Compile returns the named schema, ready to validate.
func Compile(name string) (*jsonschema.Schema, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, fmt.Errorf("schemas: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		return nil, fmt.Errorf("schemas: %s: %w", name, err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, doc); err != nil {
		return nil, fmt.Errorf("schemas: %s: %w", name, err)
	}
	return c.Compile(name)
}

// Text returns the schema as it is published.
func Text(name string) ([]byte, error) { return files.ReadFile(name) }
