package testrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"nexuscore.dev/nexus/internal/sandbox"
)

// shadowSource asks an interpreter which names it can import by itself.
const shadowSource = `
import sys
sys.path[:] = [p for p in sys.path if p]
import importlib.util, json
question = json.loads(sys.stdin.buffer.read().decode("utf-8"))
out = []
for name in question["names"]:
    try:
        spec = importlib.util.find_spec(name)
    except Exception:
        continue
    if spec is not None and not str(spec.origin or "").startswith(question["root"] + "/"):
        out.append(name)
print("\n" + json.dumps(out))
`

// Shadowed lists which of the paths that are new in a project's tree would be
// imported in the place of a module that the interpreter has by itself: the
// standard library's, the runner's, an installed package's. Paths are relative
// and slash-separated. Plans without Python have none.
func (p Plan) Shadowed(ctx context.Context, added []string) (out []string, err error) {
	names := map[string]string{}
	for _, a := range added {
		rest := strings.TrimPrefix(a, "src/")
		first, _, folder := strings.Cut(rest, "/")
		if stem, ok := strings.CutSuffix(first, ".py"); ok || folder && path.Ext(rest) == ".py" {
			names[stem] = a
		}
	}
	if p.Python == nil || len(names) == 0 {
		return nil, nil
	}
	dir, err := sandbox.MakeTemp("")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sandbox.RemoveTemp(dir)) }()
	question, err := json.Marshal(map[string]any{"root": p.Root, "names": sortedKeys(names)})
	if err != nil {
		return nil, err
	}
	res, err := sandbox.Run(ctx, sandbox.Spec{
		Dir: dir, Argv: []string{p.Python.Path, "-s", "-c", shadowSource}, Stdin: question, ReadOnly: p.Python.ReadOnly,
		Env: []string{"PYTHONSAFEPATH=1", "PYTHONPYCACHEPREFIX="}, Timeout: probeTimeout,
	})
	if err != nil {
		return nil, err
	}
	text := bytes.TrimSpace(res.Output.Bytes())
	var hit []string
	if err := json.Unmarshal(text[bytes.LastIndexByte(text, '\n')+1:], &hit); err != nil || res.Exit != 0 {
		return nil, fmt.Errorf("%s did not say what it can import (exit %d)", p.Python.Path, res.Exit)
	}
	for _, name := range hit {
		out = append(out, names[name]+" takes the place of the module "+name)
	}
	slices.Sort(out)
	return out, nil
}
