package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// Report says what this machine grants, for doctor.
type Report struct {
	Level    Level    `json:"level"`
	Features Features `json:"features"`
	// Missing says, one sentence each, why the level is not a better one and
	// what is lost without it.
	Missing []string `json:"missing,omitempty"`
}

// Detect tries the levels, best first, and reports the first that can be
// had. It consults EnvLevel like Run when want is empty.
func Detect(ctx context.Context, want Level) Report {
	levels, err := candidates(want)
	if err != nil {
		return Report{Level: LevelNone, Missing: []string{err.Error()}}
	}
	var r Report
	for _, level := range levels {
		f, err := probe(ctx, level)
		if err != nil {
			r.Missing = append(r.Missing, err.Error())
			continue
		}
		r.Level, r.Features = level, f
		r.Missing = append(r.Missing, f.missing(level)...)
		return r
	}
	r.Level = LevelNone
	return r
}

// missing says what the level lacks.
func (f Features) missing(level Level) []string {
	var out []string
	if level == LevelThin {
		out = append(out, "without namespaces the host's processes and folder names stay visible, and the command can "+
			"change modes, owners and times of its user's files outside the tree",
			"nothing bounds the size of the tree and the number of files, and parts of the tree cannot be made read-only")
		if os.Getuid() == 0 && f.Cgroup == "" {
			out = append(out, "root is exempt from RLIMIT_NPROC: only the watchdog stops a fork bomb")
		}
	}
	if f.Tree == "bind" {
		out = append(out, "no overlay: what the command writes reaches the staged tree, and nothing bounds its size")
	}
	switch {
	case f.Landlock == 0:
		out = append(out, "the kernel offers no Landlock: "+map[bool]string{
			true:  "files outside the tree are protected by permissions alone",
			false: "the mounts alone keep the command from other files",
		}[level == LevelThin])
	case f.Landlock < 6 && level == LevelThin:
		out = append(out, "Landlock before ABI 6 keeps no signals inside: only the parent and the init are protected from them")
	}
	if f.Cgroup == "" && level != LevelVM {
		out = append(out, "no cgroup: a watchdog bounds memory and processes, looking every 20 ms")
	}
	return out
}

// bounds says who holds each limit.
func bounds(f Features, uid int) map[string]string {
	b := map[string]string{
		"wall": "timer", "output": "reader", LimitFileSize: "rlimit", LimitMemory: "watchdog", LimitProcesses: "watchdog",
		LimitCPU: "watchdog", LimitTree: "nobody", LimitInodes: "nobody",
	}
	space := len(f.Namespaces) > 0
	if f.Tree == "overlay" {
		b[LimitTree], b[LimitInodes] = "tmpfs", "tmpfs"
	}
	switch {
	case f.Cgroup != "":
		b[LimitMemory], b[LimitProcesses] = "cgroup "+f.Cgroup, "cgroup "+f.Cgroup
	case space && uid != 0:
		b[LimitProcesses] = "rlimit, watchdog"
	}
	if !space {
		b[LimitCPU] = "rlimit for each process"
	}
	return b
}

// probe sets the level up and runs nothing.
func probe(ctx context.Context, level Level) (f Features, err error) {
	if isInit() {
		return Features{}, errors.New("MaybeInit is not the first call of main")
	}
	dir, err := MakeTemp("")
	if err != nil {
		return Features{}, err
	}
	defer func() { err = errors.Join(err, removeTree(dir)) }()
	spec, err := Spec{Dir: dir, Argv: []string{"probe"}}.normalize()
	if err != nil {
		return Features{}, err
	}
	switch level {
	case LevelThin:
		return probeThin(ctx, spec)
	case LevelVM:
		return probeVM(ctx, spec)
	default:
	}
	group, err := groupFor(level, spec.Limits)
	if err != nil {
		return Features{}, err
	}
	defer func() { err = errors.Join(err, group.close(ctx)) }()
	f, err = probeSpace(spec, level, group)
	if errors.Is(err, errTree) {
		spec.bindTree = true
		f, err = probeSpace(spec, level, group)
	}
	return f, err
}

func probeThin(ctx context.Context, spec Spec) (f Features, err error) {
	o := order{Probe: true, Dir: spec.Dir, Level: LevelThin, Parent: os.Getpid(), Network: NetNone}
	box, err := startInit(ctx, spec, &o, nil)
	if err != nil {
		return Features{}, err
	}
	defer box.close()
	r, err := box.begin(o)
	if group := newCgroup(filepath.Base(spec.Dir), spec.Limits); group != nil {
		r.Features.Cgroup = group.version
		err = errors.Join(err, group.close(ctx))
	}
	r.Features.Bounds = bounds(r.Features, os.Getuid())
	return r.Features, err
}
