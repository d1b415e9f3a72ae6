package archive

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"nexuscore.dev/nexus/internal/run"
)

// Refs lists the artifacts that a JSON document names, wherever in it, each
// once and sorted by name. What only looks like a name is left out.
func Refs(doc []byte) ([]run.Ref, error) {
	refs, _, err := named(doc)
	return refs, err
}

// named lists the artifacts and the trees that a JSON document names.
func named(doc []byte) ([]run.Ref, []run.Tree, error) {
	var root any
	if err := json.Unmarshal(doc, &root); err != nil {
		return nil, nil, err
	}
	refs := map[string]run.Ref{}
	var trees []run.Tree
	walk(root, func(node map[string]any) {
		if ref, ok := refOf(node); ok {
			refs[ref.SHA256] = ref
		}
		hash, _ := node["hash"].(string)
		manifest, _ := node["manifest"].(map[string]any)
		if ref, ok := refOf(manifest); ok && hash != "" {
			trees = append(trees, run.Tree{Hash: hash, Manifest: ref})
		}
	})
	sorted := slices.SortedFunc(maps.Values(refs), func(a, b run.Ref) int { return cmp.Compare(a.SHA256, b.SHA256) })
	return sorted, trees, nil
}

func refOf(node map[string]any) (run.Ref, bool) {
	sum, _ := node["sha256"].(string)
	size, _ := node["size"].(float64)
	return run.Ref{SHA256: sum, Size: int64(size)}, validName(sum)
}

// walk calls do with every object of a JSON document.
func walk(v any, do func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			walk(x, do)
		}
	case map[string]any:
		do(v)
		for _, x := range v {
			walk(x, do)
		}
	}
}

// validName reports whether s is the name of an artifact.
func validName(s string) bool {
	if len(s) != 64 {
		return false
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
