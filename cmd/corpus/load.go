package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"nexuscore.dev/nexus/internal/validate"
)

// answer is one folder of the corpus.
type answer struct {
	id      string
	text    []byte
	base    *tree
	label   string
	finish  string
	task    string
	targets []string
	// want holds the files that must be exactly so afterwards.
	want map[string][]byte
}

// find lists the folders that hold an answer, sorted.
func find(root string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "base" || d.Name() == "want"):
			return fs.SkipDir
		case d.Name() == "answer.txt":
			out = append(out, filepath.Dir(name))
		}
		return nil
	})
	return out, err
}

// load reads one answer; last is the tree of the answer before, which is used
// again when it is this one's too.
func load(root, dir string, last *tree) (*answer, error) {
	a := &answer{id: id(root, dir), finish: "stop", want: map[string][]byte{}}
	var err error
	if a.text, err = os.ReadFile(filepath.Join(dir, "answer.txt")); err != nil {
		return nil, err
	}
	for name, set := range map[string]func(string){
		"label.txt":   func(s string) { a.label, _, _ = strings.Cut(s, " ") },
		"finish.txt":  func(s string) { a.finish = s },
		"task.txt":    func(s string) { a.task = s },
		"targets.txt": func(s string) { a.targets = strings.Fields(s) },
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if s := strings.TrimSpace(string(b)); s != "" {
			set(s)
		}
	}
	if err := a.checkLabel(); err != nil {
		return nil, err
	}
	if a.base, err = baseOf(root, dir, last); err != nil {
		return nil, err
	}
	want, err := open(filepath.Join(dir, "want"))
	if err != nil {
		return nil, err
	}
	for _, p := range want.paths {
		a.want[p], _ = want.Read(p)
	}
	return a, nil
}

func id(root, dir string) string {
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return dir
	}
	return filepath.ToSlash(rel)
}

func (a *answer) checkLabel() error {
	switch a.label {
	case "", labelAccepted, labelRejected, labelApplicable, labelInapplicable:
		return nil
	}
	return fmt.Errorf("%s: the label %q is none of %s, %s, %s, %s", a.id, a.label,
		labelAccepted, labelRejected, labelApplicable, labelInapplicable)
}

// unlike lists the wanted files that a candidate leaves otherwise.
func (a *answer) unlike(v validate.Verdict) []string {
	after := map[string][]byte{}
	for _, c := range v.Candidate.Changes {
		after[c.Path] = v.Contents[c.New]
	}
	var out []string
	for p, want := range a.want {
		got, changed := after[p]
		if !changed {
			got, _ = a.base.Read(p)
		}
		switch {
		case bytes.Equal(got, want):
		case bytes.Equal(spaceless(got), spaceless(want)):
			out = append(out, p+" (white space only)")
		default:
			out = append(out, p)
		}
	}
	sort.Strings(out)
	return out
}

func spaceless(b []byte) []byte { return bytes.Join(bytes.Fields(b), nil) }

// tree is a folder read as the base of a candidate.
type tree struct {
	dir   string
	paths []string
	modes map[string]uint32
	read  map[string][]byte
}

// baseOf opens the folder base beside an answer or in the nearest folder above.
func baseOf(root, dir string, last *tree) (*tree, error) {
	for d := dir; ; d = filepath.Dir(d) {
		name := filepath.Join(d, "base")
		if last != nil && last.dir == name {
			return last, nil
		}
		if _, err := os.Stat(name); err == nil {
			return open(name)
		}
		if d == root || d == filepath.Dir(d) {
			return open(filepath.Join(dir, "base"))
		}
	}
}

// open lists the regular files of a folder; one that is missing is empty.
func open(dir string) (*tree, error) {
	t := &tree{dir: dir, modes: map[string]uint32{}, read: map[string][]byte{}}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		p := id(dir, name)
		t.paths, t.modes[p] = append(t.paths, p), uint32(info.Mode().Perm())
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return t, err
}

// Read implements validate.Base.
func (t *tree) Read(p string) ([]byte, bool) {
	if _, known := t.modes[p]; !known {
		return nil, false
	}
	if b, ok := t.read[p]; ok {
		return b, true
	}
	b, err := os.ReadFile(filepath.Join(t.dir, filepath.FromSlash(p)))
	if err != nil {
		return nil, false
	}
	t.read[p] = b
	return b, true
}

// Paths implements validate.Base.
func (t *tree) Paths() []string { return t.paths }

// Mode implements validate.Base.
func (t *tree) Mode(p string) uint32 { return t.modes[p] }

// Resolve implements validate.Base: only regular files may be written.
func (t *tree) Resolve(p string) (string, error) {
	info, err := os.Lstat(filepath.Join(t.dir, filepath.FromSlash(p)))
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return "", errors.New("it is no regular file")
	}
	return p, nil
}
