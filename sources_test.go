package nexus_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// source is one Go file of this module.
type source struct {
	// name and dir are slash-separated and relative to the module's root.
	name, dir string
	// test is set for _test.go files and for test helper packages.
	test bool
	set  *token.FileSet
	file *ast.File
}

// unread are folders that are not part of the repository's text.
var unread = []string{".git", ".tools", ".venv", ".pytest_cache", "__pycache__", "bin", "node_modules"}

// walk calls visit for every regular file of the repository.
func walk(t *testing.T, visit func(name string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err):
			return nil // removed meanwhile by somebody who works here
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(unread, d.Name()):
			return fs.SkipDir
		case d.Type().IsRegular():
			visit(filepath.ToSlash(name))
		}
		return nil
	})
	require.NoError(t, err)
}

// sources reads the Go files of this module, whatever their build tags. What
// lies in testdata is input, not code.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	walk(t, func(name string) {
		if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") {
			return
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		all = append(all, parse(t, name, string(text)))
	})
	require.NotEmpty(t, all)
	return all
}

func parse(t *testing.T, name, text string) source {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	dir := path.Dir(name)
	test := strings.HasSuffix(name, "_test.go") || helper(dir)
	return source{name: name, dir: dir, test: test, set: set, file: file}
}

// imports returns the paths that the file imports.
func (s source) imports() []string {
	var paths []string
	for _, spec := range s.file.Imports {
		paths = append(paths, importPath(spec))
	}
	return paths
}

// version is the last element of a path such as math/rand/v2.
var version = regexp.MustCompile(`^v\d+$`)

// names maps the name by which the file calls each import to its path.
func (s source) names() map[string]string {
	names := map[string]string{}
	for _, spec := range s.file.Imports {
		target := importPath(spec)
		name := path.Base(target)
		if version.MatchString(name) {
			name = path.Base(path.Dir(target))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = target
	}
	return names
}

// line returns the line on which node begins.
func (s source) line(node ast.Node) int { return s.set.Position(node.Pos()).Line }

func importPath(spec *ast.ImportSpec) string {
	target, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value // the parser accepts no such file
	}
	return target
}

// violations collects what rule says about all files, with their names.
func violations(all []source, rule func(source) []string) []string {
	var found []string
	for _, s := range all {
		for _, sentence := range rule(s) {
			found = append(found, s.name+": "+sentence)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// requireNone fails with one line for each violation.
func requireNone(t *testing.T, found []string) {
	t.Helper()
	if len(found) > 0 {
		t.Fatalf("%d found:\n%s", len(found), strings.Join(found, "\n"))
	}
}
