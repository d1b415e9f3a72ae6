package sandbox

import (
	"context"
	"errors"
	"os"
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

func (f Features) missing(level Level) []string {
	var out []string
	if level != LevelUser {
		out = append(out, "without namespaces the host's processes and folder names stay visible, and the command can "+
			"change modes, owners and times of its user's files outside the tree")
	}
	switch {
	case f.Landlock == 0:
		out = append(out, "the kernel offers no Landlock: files outside the tree are protected by permissions alone")
	case f.Landlock < 6 && level != LevelUser:
		out = append(out, "Landlock before ABI 6 keeps no signals inside: only the parent and the init are protected from them")
	}
	if f.Cgroup == "" {
		out = append(out, "no cgroup: a watchdog bounds memory and processes, looking every 20 ms")
	}
	return out
}

// probe sets the level up and runs nothing.
func probe(ctx context.Context, level Level) (f Features, err error) {
	if isInit() {
		return Features{}, errors.New("MaybeInit is not the first call of main")
	}
	priv, err := newPrivate(os.TempDir())
	if err != nil {
		return Features{}, err
	}
	defer func() { err = errors.Join(err, removeTree(priv.root)) }()
	spec, err := Spec{Dir: priv.tmp, Argv: []string{"probe"}}.normalize()
	if err != nil {
		return Features{}, err
	}
	o := order{Probe: true, Dir: priv.tmp, Parent: os.Getpid(), Network: NetNone}.at(level)
	box, err := startInit(ctx, spec, &o, nil)
	if err != nil {
		return Features{}, err
	}
	defer box.close()
	r, err := box.begin(o)
	if group := newCgroup(cgroupName(priv), spec.Limits); group != nil {
		r.Features.Cgroup = group.version
		err = errors.Join(err, group.close(ctx))
	}
	return r.Features, err
}
