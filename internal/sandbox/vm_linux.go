package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// EnvRunsc names gVisor's runsc, which LevelVM needs: its path.
const EnvRunsc = "NEXUS_SANDBOX_RUNSC"

// kernelProcesses is how many threads the virtual kernel has of its own.
const kernelProcesses = 256

// runsc finds the configured program.
func runsc() (string, error) {
	path := os.Getenv(EnvRunsc)
	if path == "" {
		return "", fmt.Errorf("%w: level vm needs gVisor: set %s to the path of runsc", ErrUnavailable, EnvRunsc)
	}
	if err := executable(path); err != nil || !filepath.IsAbs(path) {
		return "", fmt.Errorf("%w: level vm: %s=%s is no program: %w", ErrUnavailable, EnvRunsc, path, err)
	}
	return path, nil
}

// machine is the folder of one run at LevelVM: what runsc needs to know.
type machine struct {
	root string
	spec Spec
	view view
}

func (m machine) at(name string) string { return filepath.Join(m.root, name) }

// runVM runs the command on a kernel of its own. The init of LevelThin looks
// after runsc as after any command, but keeps nothing from it.
func runVM(ctx context.Context, spec Spec) (res Result, err error) {
	path, err := runsc()
	if err != nil {
		return res, err
	}
	if len(spec.ExtraFiles) > 0 {
		return res, fmt.Errorf("%w: level vm hands no descriptors over", ErrUnavailable)
	}
	root, err := MakeTemp(spec.Temp)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, removeTree(root)) }()
	m := machine{root: root, spec: spec, view: newView(spec)}
	if err := m.write(); err != nil {
		return res, err
	}
	outer := spec
	outer.Argv = m.argv(path)
	outer.Limits.Processes += kernelProcesses
	outer.ReadOnly, outer.Writable = nil, nil
	// runsc makes its own root in TMPDIR, as a user who may not enter ours.
	o, err := newOrder(outer, private{root: root, home: root, tmp: "/tmp", cache: root})
	if err != nil {
		return res, err
	}
	o.Level, o.Dir = LevelVM, root
	res, err = o.run(ctx, outer, newCgroup(filepath.Base(root), outer.Limits))
	cgroup := res.Features.Cgroup
	res.Features = vmFeatures(spec.Network)
	res.Features.Cgroup = cgroup
	res.Features.Bounds = bounds(res.Features, 0)
	res.Features.Bounds[LimitTree], res.Features.Bounds[LimitInodes] = LimitMemory, LimitMemory
	return m.settle(res), errors.Join(err, m.started(res))
}

func vmFeatures(n Network) Features {
	f := Features{
		Seccomp: true, Namespaces: []string{"kernel"}, Masked: true, Signals: true, Network: "namespace",
		Tree: "overlay", ReadOnlyOver: true, User: "caller",
	}
	if n == NetFull {
		f.Network = "open"
	}
	return f
}

func (m machine) argv(runsc string) []string {
	argv := []string{
		runsc, "-root", m.at("state"), "-ignore-cgroups", "-overlay2=all:memory", "-log", m.at("log"),
		"-network", map[bool]string{true: "host", false: "none"}[m.spec.Network == NetFull],
	}
	if os.Getuid() != 0 {
		argv = append(argv, "-rootless")
	}
	return append(argv, "run", "-bundle", m.root, "-pid-file", m.at("pid"), filepath.Base(m.root))
}

// started tells a command that failed from a virtual kernel that did.
func (m machine) started(res Result) error {
	if _, err := os.Stat(m.at("pid")); err == nil || res.Timeout || res.Limit != "" {
		return nil
	}
	said := strings.TrimSpace(Printable(res.Output.Bytes()))
	return fmt.Errorf("%w: level vm: runsc did not start: %s", ErrUnavailable, said[:min(len(said), 300)])
}

// settle reads the exit status as runsc passes it on.
func (m machine) settle(res Result) Result {
	if res.Exit > 128 && res.Exit < 128+65 {
		if name := unix.SignalName(unix.Signal(res.Exit - 128)); name != "" {
			res.Exit, res.Signal = -1, name
		}
	}
	return res
}

// ociMount is a mount in the runtime's configuration.
type ociMount struct {
	Destination string   `json:"destination"`
	Type        string   `json:"type"`
	Source      string   `json:"source"`
	Options     []string `json:"options,omitempty"`
}

// write makes the root with its mount points and the configuration.
func (m machine) write() error {
	rootfs := m.at("rootfs")
	var mounts []ociMount
	for _, path := range m.view.paths() {
		p, target := m.view.points[path], filepath.Join(rootfs, path)
		if err := p.place(target); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrSetup, path, err)
		}
		mount := ociMount{Destination: path, Type: "bind", Source: p.source, Options: []string{"rbind", "ro"}}
		switch p.kind {
		case linkPoint, pinPoint, ptsPoint:
			continue
		case procPoint:
			mount = ociMount{Destination: path, Type: "proc", Source: "proc"}
		case storePoint, emptyPoint:
			size := fmt.Sprintf("size=%d", m.spec.Limits.TreeBytes)
			mount = ociMount{Destination: path, Type: "tmpfs", Source: "tmpfs", Options: []string{size, "nosuid", "nodev"}}
		case lowerPoint:
			mount.Source = filepath.Join(m.spec.Dir, p.source)
		default:
			if p.device {
				continue // the virtual kernel has its own
			}
			if p.write {
				mount.Options[1] = "rw"
			}
		}
		mounts = append(mounts, mount)
	}
	b, err := json.Marshal(m.config(mounts))
	if err == nil {
		err = os.WriteFile(m.at("config.json"), b, 0o600)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSetup, err)
	}
	return nil
}

// place makes the mount point, or the link, in the root's folder.
func (p point) place(target string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // a root folder for others to read
		return err
	}
	switch {
	case p.device:
		return nil
	case p.kind == linkPoint:
		return os.Symlink(p.source, target)
	case p.dir:
		return os.MkdirAll(target, 0o755) //nolint:gosec // as above
	default:
		return os.WriteFile(target, nil, 0o644) //nolint:gosec // as above
	}
}

// config is the runtime's configuration of the container.
func (m machine) config(mounts []ociMount) map[string]any {
	own := m.view.private()
	env := environment(private{home: own.tmp, tmp: innerTemp, cache: innerTemp}, append(m.spec.Env, "HOME="+innerTemp))
	limit := func(name string, n int64) map[string]any { return map[string]any{"type": name, "soft": n, "hard": n} }
	limits := []any{limit("RLIMIT_FSIZE", m.spec.Limits.FileSize), limit("RLIMIT_CORE", 0), limit("RLIMIT_NOFILE", 1024)}
	if s := int64(m.spec.Limits.CPU.Seconds()); s > 0 {
		limits = append(limits, limit("RLIMIT_CPU", s))
	}
	return map[string]any{
		"ociVersion": "1.0.2",
		"process": map[string]any{
			"user": map[string]int{"uid": os.Getuid(), "gid": os.Getgid()}, "args": m.spec.Argv, "env": env, "cwd": m.spec.MountAt,
			"noNewPrivileges": true, "capabilities": map[string]any{}, "rlimits": limits,
		},
		"root":   map[string]any{"path": "rootfs", "readonly": true},
		"mounts": mounts,
		"linux": map[string]any{"namespaces": []map[string]string{
			{"type": "pid"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"},
		}},
	}
}

// probeVM runs nothing but /bin/true.
func probeVM(ctx context.Context, spec Spec) (Features, error) {
	spec.Argv = []string{"/bin/true"}
	res, err := runVM(ctx, spec)
	if err == nil && res.Exit != 0 {
		err = fmt.Errorf("%w: level vm: /bin/true ended with %d: %s", ErrUnavailable, res.Exit, Printable(res.Output.Bytes()))
	}
	return res.Features, err
}
