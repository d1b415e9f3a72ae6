package validate

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"

	"nexuscore.dev/nexus/internal/patch"
)

// definition finds what a text defines at its top level, in any language that
// writes the keyword first.
var definition = regexp.MustCompile(`(?m)^(?:export +)?(?:async +)?(?:def|class|func|function|fn|type|struct|interface) +(\w+)`)

// implied is the file that an answer without any path must mean: the one
// source that defines most of what the answer defines, else the only source
// that is not empty. "" when there is no such file.
func (c *check) implied() string {
	names := map[string]bool{}
	for _, m := range definition.FindAllSubmatch(c.in.Answer, -1) {
		names[string(m[1])] = true
	}
	best, most, tie := "", 0, false
	only, count := "", 0
	for _, p := range c.sources() {
		data, ok := c.in.Base.Read(p)
		if !ok || !source(p) || len(c.targets) > 0 && !slices.Contains(c.targets, p) || len(strings.TrimSpace(string(data))) == 0 {
			continue
		}
		only = p
		count++
		shared := 0
		for _, m := range definition.FindAllSubmatch(data, -1) {
			if names[string(m[1])] {
				shared++
			}
		}
		switch {
		case shared > most:
			best, most, tie = p, shared, false
		case shared == most && shared > 0:
			tie = true
		}
	}
	switch {
	case best != "" && !tie:
		return best
	case best == "" && count == 1:
		return only
	}
	return ""
}

// source reports whether the file is code that the definitions can be read of.
func source(p string) bool {
	switch path.Ext(p) {
	case ".py", ".pyi", ".go", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".rs":
		return true
	}
	return false
}

// decodeAs decodes an answer that names no file as one about path p.
func (c *check) decodeAs(p string) (patch.Draft, error) {
	return patch.Decode(c.in.Answer, patch.Options{
		Format: c.in.Format, Finish: c.in.Finish, Targets: []string{p}, Paths: c.sources(),
		Read: c.in.Base.Read,
	})
}

// noPath reports whether decoding failed only because no file was named.
func noPath(err error) bool {
	var e *patch.Error
	return errors.As(err, &e) && e.Reason == patch.ReasonNoPath
}
