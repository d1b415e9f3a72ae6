package wire

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/santhosh-tekuri/jsonschema/v6"
	fault "github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// inTask says what to write in the place of an option of the command line that
// a task spells in another way.
var inTask = map[string]string{
	"dry_run":   `a task says "deliver": "none"`,
	"target":    `a task says "targets": […]`,
	"source":    `a task says "sources": […]`,
	"timeout":   `a task says "limits": {"seconds": …}`,
	"max_calls": `a task says "limits": {"model_calls": …}`,
}

// unknownFields lists the fields of a document that its schema does not know,
// each with the known one that was likely meant.
func unknownFields(s *jsonschema.Schema, v *jsonschema.ValidationError) []string {
	var all []string
	if k, ok := v.ErrorKind.(*fault.AdditionalProperties); ok {
		inside := at(s, v.InstanceLocation)
		for _, name := range slices.Sorted(slices.Values(k.Properties)) {
			where := strings.Join(append(slices.Clone(v.InstanceLocation), name), "/")
			all = append(all, fmt.Sprintf("unknown field %q: %s", where, meant(name, s, inside)))
		}
	}
	for _, c := range v.Causes {
		all = append(all, unknownFields(s, c)...)
	}
	return all
}

// at is the schema of the object at a place of the document.
func at(s *jsonschema.Schema, place []string) *jsonschema.Schema {
	for _, name := range place {
		if s = s.Properties[name]; s == nil {
			return &jsonschema.Schema{}
		}
	}
	return s
}

// meant names the field that is nearest to name, inside the same object or
// elsewhere in the document.
func meant(name string, top, inside *jsonschema.Schema) string {
	spelt := strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	if known := inTask[spelt]; known != "" && inside == top {
		return known
	}
	near, text := len(spelt)/2+1, ""
	take := func(candidate, said string) {
		if d := levenshtein.ComputeDistance(spelt, candidate); d < near {
			near, text = d, fmt.Sprintf("did you mean %q?", said)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(inside.Properties)) {
		take(f, f)
	}
	walk(top, "", take)
	if text == "" {
		return "the known ones are " + strings.Join(slices.Sorted(maps.Keys(inside.Properties)), ", ")
	}
	return text
}

// walk calls take with the name and the path of every field below s.
func walk(s *jsonschema.Schema, path string, take func(name, path string)) {
	for _, f := range slices.Sorted(maps.Keys(s.Properties)) {
		take(f, path+f)
		walk(s.Properties[f], path+f+"/", take)
	}
}
