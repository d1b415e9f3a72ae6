package validate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"

	"nexuscore.dev/nexus/internal/patch"
)

// syntaxResult is the judgement of one file. err and old are nil for a side
// that parses; failure says why no judgement was possible.
type syntaxResult struct {
	checked  bool
	err, old *syntaxError
	failure  string
	gate     string
	reason   string
}

// parseFunc judges one text; nil means that it parses.
type parseFunc func(src []byte) *syntaxError

// parsers maps extensions to the parsers that run in this process.
var parsers = map[string]parseFunc{
	".go":   parseGo,
	".js":   parseScript(api.LoaderJSX),
	".jsx":  parseScript(api.LoaderJSX),
	".mjs":  parseScript(api.LoaderJS),
	".cjs":  parseScript(api.LoaderJS),
	".ts":   parseScript(api.LoaderTS),
	".mts":  parseScript(api.LoaderTS),
	".cts":  parseScript(api.LoaderTS),
	".tsx":  parseScript(api.LoaderTSX),
	".json": parseJSON,
	".yaml": parseYAML,
	".yml":  parseYAML,
	".toml": parseTOML,
}

func extOf(p string) string { return strings.ToLower(path.Ext(p)) }

func isPython(p string) bool { e := extOf(p); return e == ".py" || e == ".pyi" || e == ".pyw" }

// analyse parses every changed file once; the gates read the results.
func (c *check) analyse(ctx context.Context) {
	for _, f := range c.files {
		switch {
		case f.Op == patch.OpDelete:
		case isPython(f.Path):
			c.analysePython(ctx, f)
		default:
			f.analyseText(ctx, c.cfg.Timeout)
		}
	}
}

func (c *check) analysePython(ctx context.Context, f *file) {
	old := f.Old
	if f.Op == patch.OpCreate {
		old = nil
	}
	f.syntax.checked = true
	r, err := c.worker.Analyse(ctx, old, f.New)
	switch {
	case errors.Is(err, errPathological), err == nil && r.Pathological:
		f.syntax.pathological(f.Path + " is nested too deeply or too large for the interpreter")
	case err != nil:
		f.syntax.gate, f.syntax.reason = GateInterpreter, "no_interpreter"
		f.syntax.failure = fmt.Sprintf("%s can't be checked: %v", f.Path, err)
	default:
		f.python = r
		f.syntax.err, f.syntax.old = r.Error, r.OldError
		c.hardCoded(ctx, f)
	}
}

// commented matches the configuration files that are JSON by name and have
// comments and trailing commas by custom.
var commented = regexp.MustCompile(`(?i)(?:^|/)(?:[tj]sconfig(?:\.[^/]*)?\.json|\.?devcontainer\.json|\.babelrc|\.eslintrc(?:\.json)?|\.jshintrc|\.swcrc|api-extractor\.json|deno\.json)$|(?:^|/)\.vscode/[^/]+\.json$|\.(?:jsonc|code-workspace)$`)

// parserOf is the parser of a file's language, nil when none is known.
func parserOf(p string) parseFunc {
	if commented.MatchString(p) {
		return parseCommentedJSON
	}
	return parsers[extOf(p)]
}

// maxSlow bounds in bytes what is parsed of TOML, whose parser takes quadratic
// time: measured one second for 128 KiB. maxScript and maxYAML do so for what
// people write less of; a node of YAML takes a hundred times its text.
const (
	maxSlow   = 128 << 10
	maxScript = 1 << 20
	maxYAML   = 2 << 20
)

// maxText is the most bytes that can be judged of a file's language.
func maxText(p string) int {
	switch ext := extOf(p); {
	case ext == ".toml":
		return maxSlow
	case ext == ".yaml", ext == ".yml":
		return maxYAML
	case slices.Contains(scriptExts, ext):
		return maxScript
	}
	return math.MaxInt
}

// parsing bounds the parsers that run at once in this process. One that takes
// too long can't be stopped; it keeps its place until it ends, so that files
// made for that cost a few processors' work at the most, and no more memory.
var parsing = make(chan struct{}, 8)

// analyseText parses a file in this process. A parser can't be killed, so what
// would take one too deep or too long is refused unread, and the rest has a
// limit; one that panics has met what it can't cope with.
func (f *file) analyseText(ctx context.Context, limit time.Duration) {
	parse := parserOf(f.Path)
	if parse == nil {
		return
	}
	f.syntax.checked = true
	switch {
	case tooDeep(f.Path, f.New):
		f.syntax.pathological(f.Path + " is nested too deeply")
		return
	case len(f.New) > maxText(f.Path):
		f.syntax.pathological(fmt.Sprintf("%s has %d bytes; at most %d of that language can be judged", f.Path, len(f.New), maxText(f.Path)))
		return
	}
	after, before := f.New, []byte(nil)
	if f.Op == patch.OpModify && !tooDeep(f.Path, f.Old) && len(f.Old) <= maxText(f.Path) {
		before = f.Old
	}
	var ok bool
	f.syntax, ok = within(ctx, limit, parsing, func() syntaxResult { return judge(parse, f.Path, before, after) })
	if !ok {
		f.syntax.checked = true
		f.syntax.pathological(f.Path + " takes too long to parse")
	}
}

// within waits for a place among the parsers and for do, for a while.
func within(ctx context.Context, limit time.Duration, places chan struct{}, do func() syntaxResult) (s syntaxResult, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		return s, false
	}
	done := make(chan syntaxResult, 1)
	go func() {
		defer func() { <-places }()
		done <- do()
	}()
	select {
	case s = <-done:
		return s, true
	case <-ctx.Done():
		return s, false
	}
}

func (s *syntaxResult) pathological(why string) {
	s.gate, s.reason, s.failure = GateSyntax, "pathological", why
}

// judge parses the new side, and the old one to tell whose error it is.
func judge(parse parseFunc, p string, before, after []byte) (s syntaxResult) {
	s.checked = true
	defer func() {
		if r := recover(); r != nil {
			s.pathological(p + " is more than its parser can cope with")
		}
	}()
	if s.err = parse(after); s.err != nil && before != nil {
		s.old = parse(before)
	}
	return s
}

// syntax refuses errors that the base did not have. A file that was broken
// before and still is in the same place is reported, not blamed.
func (c *check) syntax() *refusal {
	for _, f := range c.files {
		s := f.syntax
		if s.failure != "" {
			return refuse(s.gate, s.reason, "%s", s.failure)
		}
		if s.err == nil {
			continue
		}
		if s.old != nil && s.old.Msg == s.err.Msg && strings.TrimSpace(s.old.Text) == strings.TrimSpace(s.err.Text) {
			c.tolerances = append(c.tolerances, fmt.Sprintf("%s:%d: was broken before and still is: %s", f.Path, s.err.Line, s.err.Msg))
			continue
		}
		return refuse(GateSyntax, "syntax_error", "%s:%d: %s: %s\n%s", f.Path, s.err.Line, s.err.Type, s.err.Msg, s.err.Text)
	}
	return nil
}

func textOf(src []byte, line int) string {
	lines := bytes.Split(src, []byte("\n"))
	if line < 1 || line > len(lines) {
		return ""
	}
	return strings.ToValidUTF8(string(bytes.TrimRight(lines[line-1], "\r")), "\ufffd")
}

func parseGo(src []byte) *syntaxError {
	_, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	var list scanner.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		return &syntaxError{"syntax error", list[0].Msg, list[0].Pos.Line, textOf(src, list[0].Pos.Line)}
	}
	if err != nil {
		return &syntaxError{Type: "syntax error", Msg: err.Error()}
	}
	return nil
}

func parseScript(loader api.Loader) parseFunc {
	return func(src []byte) *syntaxError {
		r := api.Transform(string(src), api.TransformOptions{Loader: loader, LogLevel: api.LogLevelSilent, LogLimit: 1})
		if len(r.Errors) == 0 {
			return nil
		}
		e := &syntaxError{Type: "syntax error", Msg: r.Errors[0].Text}
		if l := r.Errors[0].Location; l != nil {
			e.Line, e.Text = l.Line, l.LineText
		}
		return e
	}
}

// parseCommentedJSON allows comments and trailing commas, and nothing else
// that JSON does not.
func parseCommentedJSON(src []byte) *syntaxError {
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	plain, err := hujson.Standardize(slices.Clone(src))
	if err != nil {
		e := &syntaxError{Type: "syntax error", Msg: strings.TrimPrefix(err.Error(), "hujson: ")}
		if m := hujsonPosition.FindStringSubmatch(e.Msg); m != nil {
			e.Line, _ = strconv.Atoi(m[1])
			e.Text, e.Msg = textOf(src, e.Line), e.Msg[len(m[0]):]
		}
		return e
	}
	return parseJSON(plain)
}

var hujsonPosition = regexp.MustCompile(`^line (\d+), column \d+: `)

func parseJSON(src []byte) *syntaxError {
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	if !utf8.Valid(src) {
		return &syntaxError{Type: "syntax error", Msg: "JSON must be UTF-8"}
	}
	var v json.RawMessage // checked, not built
	err := json.Unmarshal(src, &v)
	if err == nil {
		return nil
	}
	line := 0
	var at *json.SyntaxError
	if errors.As(err, &at) {
		line = 1 + bytes.Count(src[:min(int(at.Offset), len(src))], []byte("\n"))
	}
	return &syntaxError{"syntax error", err.Error(), line, textOf(src, line)}
}

var yamlPosition = regexp.MustCompile(`^line (\d+): `)

// parseYAML reads every document without following aliases: a few lines of
// them can stand for more than there is memory.
func parseYAML(src []byte) *syntaxError {
	documents := yaml.NewDecoder(bytes.NewReader(src))
	for {
		var n yaml.Node
		err := documents.Decode(&n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = keysOnce(&n)
		}
		if err == nil {
			continue
		}
		msg, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), "\n")
		e := &syntaxError{Type: "syntax error", Msg: msg}
		if m := yamlPosition.FindStringSubmatch(msg); m != nil {
			e.Line, _ = strconv.Atoi(m[1])
			e.Text, e.Msg = textOf(src, e.Line), msg[len(m[0]):]
		}
		return e
	}
}

// keysOnce refuses a mapping that has a key twice, as the specification does.
func keysOnce(n *yaml.Node) error {
	seen := map[string]bool{}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Kind == yaml.ScalarNode && c.Value != "<<" {
			if seen[c.Tag+c.Value] {
				return fmt.Errorf("line %d: the key %q is there twice", c.Line, c.Value)
			}
			seen[c.Tag+c.Value] = true
		}
		if err := keysOnce(c); err != nil {
			return err
		}
	}
	return nil
}

func parseTOML(src []byte) *syntaxError {
	var v map[string]any
	err := toml.Unmarshal(src, &v)
	if err == nil {
		return nil
	}
	e := &syntaxError{Type: "syntax error", Msg: err.Error()}
	var at *toml.DecodeError
	if errors.As(err, &at) {
		e.Line, _ = at.Position()
		e.Text = textOf(src, e.Line)
	}
	return e
}
