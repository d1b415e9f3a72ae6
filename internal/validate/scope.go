package validate

import (
	"bytes"
	"path"
	"slices"
	"sort"
	"strings"

	"nexuscore.dev/nexus/internal/patch"
	"nexuscore.dev/nexus/internal/run"
)

// scope admits declared targets only, and without any every file that is not
// protected, is no rubbish, and is what it seems to be. From here on a path is
// that of the real file: an edit of a link is one of the file it leads to.
func (c *check) scope() *refusal {
	names := map[string]string{}
	c.tree = namesOf(c.in.Base.Paths())
	for i := range c.draft.Files {
		f := &c.draft.Files[i]
		for _, p := range []*string{&f.Path, &f.MoveTo} {
			if *p == "" {
				continue
			}
			actual, r := c.actual(*p, f.Op == patch.OpDelete || f.MoveTo != "")
			if r != nil {
				return r
			}
			if other := names[actual]; other != "" && other != *p {
				return refuse(GatePaths, "alias", "%s and %s are the same file; edit it under one name", other, *p)
			}
			names[actual] = *p
			if r := c.admit(actual); r != nil {
				return r
			}
			*p = actual
		}
	}
	return c.possible()
}

// possible refuses what no tree can hold: a file below another file. One that
// the answer deletes or moves away is in nobody's way.
func (c *check) possible() *refusal {
	files, gone := map[string]bool{}, map[string]bool{}
	for _, f := range c.draft.Files {
		gone[f.Path] = f.Op == patch.OpDelete || f.MoveTo != ""
		files[f.Path] = !gone[f.Path]
		if f.MoveTo != "" {
			files[f.MoveTo] = true
		}
	}
	for p, stays := range files {
		for dir := path.Dir(p); stays && dir != "."; dir = path.Dir(dir) {
			_, exists := c.in.Base.Read(dir)
			if files[dir] || exists && !gone[dir] {
				return refuse(GatePaths, "barred", "%s is a file, so that there can be no %s", dir, p)
			}
		}
	}
	return nil
}

// treeNames are the folders of a tree, and its files by their names without case.
type treeNames struct {
	folders map[string]bool
	folded  map[string]string
}

func namesOf(paths []string) treeNames {
	n := treeNames{map[string]bool{}, map[string]string{}}
	for _, p := range paths {
		if _, ok := n.folded[fold(p)]; !ok {
			n.folded[fold(p)] = p
		}
		for d := path.Dir(p); !n.folders[d]; d = path.Dir(d) {
			n.folders[d] = true
		}
	}
	return n
}

// fold is the same for names that differ in case alone.
func fold(p string) string { return strings.ToLower(strings.ToUpper(p)) }

// actual is the path that a change of p writes. A link itself is neither removed
// nor moved.
func (c *check) actual(p string, moves bool) (string, *refusal) {
	if err := patch.CheckPath(p); err != nil {
		return "", fromPatch(err)
	}
	actual, err := c.in.Base.Resolve(p)
	switch {
	case err != nil:
		return "", refuse(GatePaths, "barred", "%s may not be written: %v", p, err)
	case c.tree.folders[actual]:
		return "", refuse(GatePaths, "barred", "%s is a folder and may not be written", p)
	case actual == p:
		return p, nil
	case moves:
		return "", refuse(GatePaths, "barred", "%s is a link to %s and stays; change the file itself", p, actual)
	}
	c.tolerances = append(c.tolerances, p+" is a link: the change is one of "+actual)
	return actual, nil
}

func (c *check) admit(p string) *refusal {
	if err := patch.CheckPath(p); err != nil {
		return fromPatch(err)
	}
	if len(c.in.Targets) > 0 && !slices.Contains(c.targets, p) {
		if why, ok := c.protected(p); ok {
			return refuse(GateTamper, why.reason, why.feedback, p)
		}
		if !slices.ContainsFunc(c.in.Targets, func(t string) bool { return below(t, p) }) {
			return refuse(GatePaths, "undeclared", "%s is not one of the files to change (%s)", p, list(c.in.Targets))
		}
	}
	if slices.Contains(c.in.Targets, p) {
		return nil
	}
	if _, exists := c.in.Base.Read(p); !exists {
		if known, ok := c.tree.folded[fold(p)]; ok {
			return refuse(GatePaths, "wrong_case", "there is no %s; the file is %s", p, known)
		}
	}
	if why, ok := rubbish(p); ok {
		if _, exists := c.in.Base.Read(p); !exists {
			return refuse(GatePaths, "junk", "leave %s out: it is %s", p, why)
		}
	}
	return nil
}

// declare reads the targets: clean paths, and in the place of a folder the
// files below it that are not protected.
func (c *check) declare() {
	clean := make([]string, 0, len(c.in.Targets))
	for _, t := range c.in.Targets {
		t = path.Clean(t)
		if actual, err := c.in.Base.Resolve(t); err == nil {
			t = actual
		}
		clean = append(clean, t)
		n := len(c.targets)
		for _, p := range c.in.Base.Paths() {
			if _, barred := c.protected(p); below(t, p) && !barred {
				c.targets = append(c.targets, p)
			}
		}
		if len(c.targets) == n {
			c.targets = append(c.targets, t)
		}
	}
	c.in.Targets = clean
}

// below reports whether p lies in the folder dir.
func below(dir, p string) bool {
	return dir == "." || strings.HasPrefix(p, dir+"/")
}

// explainMissing adds the names of real files to a refusal about one that does
// not exist.
func (c *check) explainMissing(r *refusal) *refusal {
	if r.reason == patch.ReasonMissing {
		names := c.targets
		if len(names) == 0 {
			names = c.sources()
		}
		r.feedback += ". The files are: " + list(names)
	}
	return r
}

// list writes at most twenty names, sorted.
func list(names []string) string {
	const most = 20
	names = slices.Clone(names)
	sort.Strings(names)
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return strings.Join(names, ", ")
}

// textLines cuts content into lines without their line ends and without a BOM.
func textLines(b []byte) [][]byte {
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	if len(b) == 0 {
		return nil
	}
	lines := bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
	for i, l := range lines {
		lines[i] = bytes.TrimSuffix(l, []byte("\r"))
	}
	return lines
}

// notEmpty refuses candidates without effect and files that lose everything.
func (c *check) notEmpty() *refusal {
	if len(c.files) == 0 {
		return refuse(GateEmpty, run.ReasonNoOp, "the answer leaves every file as it is; change the code")
	}
	effect := false
	for _, f := range c.files {
		if f.Op == patch.OpModify && blank(f.New) && !blank(f.Old) {
			return refuse(GateEmpty, "emptied", "%s would be empty", f.Path)
		}
		effect = effect || !f.onlyComments()
	}
	if !effect {
		return refuse(GateEmpty, "comments_only", "the answer changes comments only; change the code")
	}
	return nil
}

// onlyComments says whether nothing but Python comments and blank lines
// differs. A line that tools read (a coding line, "# type:") is no comment.
func (f *file) onlyComments() bool {
	if extOf(f.Path) != ".py" || f.Op != patch.OpModify || len(f.spans) == 0 {
		return false
	}
	for _, s := range f.spans {
		for _, l := range slices.Concat(f.olds[s.OldFrom:s.OldTo], f.lines[s.NewFrom:s.NewTo]) {
			t := bytes.TrimSpace(l)
			if len(t) > 0 && (t[0] != '#' || bytes.Contains(t, []byte("coding")) || bytes.Contains(t, []byte("type:"))) {
				return false
			}
		}
		if insideString(f.olds, s.OldFrom) || insideString(f.lines, s.NewFrom) {
			return false
		}
	}
	return true
}

// insideString guesses whether line i of a Python file is part of a long
// string: an odd number of triple quotes stands before it.
func insideString(lines [][]byte, i int) bool {
	n := 0
	for _, l := range lines[:i] {
		n += bytes.Count(l, []byte(`"""`)) + bytes.Count(l, []byte(`'''`))
	}
	return n%2 == 1
}

func blank(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }

func (c *check) notRepeated() *refusal {
	if slices.Contains(c.in.Tried, c.candidate.Hash) {
		return refuse(GateRepeat, "tried", "this very change was tried before and did not help; try another one")
	}
	return nil
}
