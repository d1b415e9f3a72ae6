package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Level is how well a command is isolated.
type Level string

// The levels, best first. LevelNone never runs anything.
const (
	// LevelVM is a virtual kernel (gVisor's runsc, named by EnvRunsc).
	LevelVM Level = "vm"
	// LevelFull is LevelUser with the kernel's own account of memory,
	// processes and processor time: a writable cgroup, version 1 or 2.
	LevelFull Level = "full"
	// LevelUser is user, mount, process, network, IPC, UTS and cgroup
	// namespaces with a file system of the command's own, Landlock, seccomp
	// and resource limits; a watchdog bounds memory and processes.
	LevelUser Level = "user"
	// LevelThin is Landlock, seccomp, resource limits and a watchdog: for a
	// folder of the caller's own, on a machine that grants no namespaces.
	LevelThin Level = "thin"
	LevelNone Level = "none"
)

// EnvLevel is the environment variable that Run and Detect consult when the
// level they were asked for is empty.
const EnvLevel = "NEXUS_SANDBOX_LEVEL"

// Limit names, as Result.Limit reports them.
const (
	LimitMemory    = "memory"
	LimitProcesses = "processes"
	LimitCPU       = "cpu"
	LimitOutput    = "output"
	LimitFileSize  = "filesize"
	LimitTree      = "tree"
	LimitInodes    = "inodes"
)

// Network says what the command may reach.
type Network string

// The networks. NetNone is the default. NetLoopback needs LevelUser: the
// command gets a loopback interface that nobody else shares.
const (
	NetNone     Network = "none"
	NetLoopback Network = "loopback"
	NetFull     Network = "full"
)

// Errors that a caller branches on. All of them mean that the command was
// not run.
var (
	// ErrUnavailable says that the level asked for cannot be had here.
	ErrUnavailable = errors.New("sandbox level unavailable")
	// ErrCommandNotFound says that Argv[0] names no executable file.
	ErrCommandNotFound = errors.New("command not found")
	// ErrSpec says that the Spec itself is wrong.
	ErrSpec = errors.New("invalid sandbox spec")
	// ErrSetup says that the isolation could not be set up.
	ErrSetup = errors.New("sandbox could not be set up")
)

// Limits bounds what a command may use. Zero fields mean the default.
type Limits struct {
	// MemoryBytes bounds the whole process tree, default 2 GiB.
	MemoryBytes int64
	// Processes bounds how many processes and threads live at once, default 256.
	Processes int
	// CPU bounds the processor time of the whole process tree (LevelThin: of
	// each process), default none: the wall clock bounds the run.
	CPU time.Duration
	// FileSize bounds each file that is written, default 1 GiB.
	FileSize int64
	// TreeBytes and Inodes bound what the command may add: to the staged tree,
	// its home and its temporary folders together, default 1 GiB and 262144.
	// It then gets ENOSPC. They hold from LevelUser on, where all of it lies
	// in memory and counts as such too.
	TreeBytes int64
	Inodes    int64
	// OutputBytes ends the run once stdout and stderr together exceed it,
	// default 100 MiB.
	OutputBytes int64
	// KeepHead and KeepTail bound how much of the output stays in memory,
	// default 256 KiB and 768 KiB.
	KeepHead, KeepTail int
}

// ExtraFile hands an open file to the command under a descriptor number.
type ExtraFile struct {
	File *os.File
	// FD is the number inside, from 3 to MaxFD.
	FD int
}

// MaxFD is the highest descriptor number an ExtraFile may ask for.
const MaxFD = 250

// Spec describes one run of one command.
type Spec struct {
	// Dir is the staged tree. From LevelUser on the command sees it at MountAt,
	// and what it changes there lies in memory and ends with the run; Dir is
	// never written (but see Features.Tree). At LevelThin it works in Dir
	// itself, which must then be a copy.
	Dir string
	// MountAt is the absolute path at which the command finds the tree, and
	// its working directory: the project's own path, so that editable installs
	// and absolute paths keep working. Default Dir. At LevelThin there is
	// nothing to mount with, and a path other than Dir is ignored.
	MountAt string
	// ReadOnlyOver lists files and folders of the tree, relative to it, that
	// the command may only read: tests, the runner, its configuration. Missing
	// ones are ignored. LevelThin cannot hold them (Features.ReadOnlyOver).
	ReadOnlyOver []string
	// Argv is the command. A first word without a slash is looked up on the
	// PATH of the command's own environment; one with a slash is relative to
	// the tree.
	Argv []string
	// Env is added to the allow-listed environment, as KEY=value; it wins.
	Env []string
	// Stdin is what the command reads; empty is an empty file.
	Stdin []byte
	// Timeout bounds the wall clock, default 10 minutes.
	Timeout time.Duration
	Limits  Limits
	// Level demands a level. Empty means: what EnvLevel says, else the best
	// that this machine grants.
	Level Level
	// Network defaults to NetNone.
	Network Network
	// ReadOnly lists further files and folders the command may read and
	// execute, such as a language toolchain. Missing ones are ignored. "/" is
	// the whole machine: for a program of the caller's own that is not known
	// well enough yet. Paths in Dir belong to ReadOnlyOver.
	ReadOnly []string
	// Writable lists further folders the command may change; what it writes
	// there is real. Folders in Dir are writable already.
	Writable []string
	// Hidden lists folders to hide even where a granted folder would show
	// them. Granted paths inside them stay visible.
	Hidden     []string
	ExtraFiles []ExtraFile
	// Log, when set, receives the whole output up to Limits.OutputBytes,
	// before anything is dropped.
	Log io.Writer
	// Temp is where LevelThin makes the private folder of the run, default
	// os.TempDir.
	Temp string

	// bindTree mounts Dir itself, where no overlay can be had.
	bindTree bool
}

const (
	defaultTimeout = 10 * time.Minute
	defaultMemory  = 2 << 30
	defaultProcs   = 256
	defaultFile    = 1 << 30
	defaultTree    = 1 << 30
	defaultInodes  = 1 << 18
	defaultOutput  = 100 << 20
	defaultHead    = 256 << 10
	defaultTail    = 768 << 10
)

func (l Limits) withDefaults() Limits {
	l.MemoryBytes = orDefault(l.MemoryBytes, defaultMemory)
	l.Processes = orDefault(l.Processes, defaultProcs)
	l.FileSize = orDefault(l.FileSize, defaultFile)
	l.TreeBytes = orDefault(l.TreeBytes, defaultTree)
	l.Inodes = orDefault(l.Inodes, defaultInodes)
	l.OutputBytes = orDefault(l.OutputBytes, defaultOutput)
	l.KeepHead = orDefault(l.KeepHead, defaultHead)
	l.KeepTail = orDefault(l.KeepTail, defaultTail)
	return l
}

func orDefault[T int | int64 | time.Duration](v, d T) T {
	if v <= 0 {
		return d
	}
	return v
}

// normalize fills defaults and refuses what cannot be meant.
func (s Spec) normalize() (Spec, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return s, fmt.Errorf("%w: no command", ErrSpec)
	}
	if err := s.normalizePaths(); err != nil {
		return s, err
	}
	seen := map[int]bool{}
	for _, x := range s.ExtraFiles {
		if x.File == nil || x.FD < 3 || x.FD > MaxFD || seen[x.FD] {
			return s, fmt.Errorf("%w: extra file on descriptor %d", ErrSpec, x.FD)
		}
		seen[x.FD] = true
	}
	switch s.Network {
	case "":
		s.Network = NetNone
	case NetNone, NetLoopback, NetFull:
	default:
		return s, fmt.Errorf("%w: unknown network %q", ErrSpec, s.Network)
	}
	s.Timeout = orDefault(s.Timeout, defaultTimeout)
	s.Limits = s.Limits.withDefaults()
	if s.Temp == "" {
		s.Temp = os.TempDir()
	}
	return s, nil
}

// normalizePaths makes every path absolute and free of symlinks, because the
// grants hold for real files, not for names.
func (s *Spec) normalizePaths() error {
	dir, err := filepath.Abs(s.Dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil || s.Dir == "" {
		return fmt.Errorf("%w: dir %q: %w", ErrSpec, s.Dir, err)
	}
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return fmt.Errorf("%w: %s is not a folder", ErrSpec, dir)
	}
	s.Dir = dir
	if err := s.normalizeMount(); err != nil {
		return err
	}
	if s.ReadOnly, err = absolute(s.ReadOnly); err != nil {
		return err
	}
	if s.Hidden, err = absolute(s.Hidden); err != nil {
		return err
	}
	if s.Writable, err = absolute(s.Writable); err != nil {
		return err
	}
	if slices.Contains(s.Writable, "/") || slices.Contains(s.Hidden, "/") {
		return fmt.Errorf("%w: / can be neither writable nor hidden", ErrSpec)
	}
	s.sortOut()
	return nil
}

// sortOut moves grants inside the staged tree to where they belong.
func (s *Spec) sortOut() {
	s.ReadOnly = slices.DeleteFunc(s.ReadOnly, func(p string) bool {
		inside := within(s.Dir, p) && p != s.Dir
		if inside {
			s.ReadOnlyOver = append(s.ReadOnlyOver, p[len(s.Dir)+1:])
		}
		return inside
	})
	s.Writable = slices.DeleteFunc(s.Writable, func(p string) bool { return within(s.Dir, p) })
}

// reserved are folders that the sandbox makes itself.
var reserved = []string{"/proc", "/dev", "/sys", "/usr", "/etc", "/tmp", "/bin", "/sbin", "/lib", "/lib64"}

// Mountable reports whether a tree can be mounted at the path.
func Mountable(path string) bool {
	system := slices.ContainsFunc([]string{"/proc", "/dev", "/sys"}, func(d string) bool { return within(d, path) })
	return filepath.IsAbs(path) && filepath.Clean(path) != "/" && !system && !slices.Contains(reserved, filepath.Clean(path))
}

func (s *Spec) normalizeMount() error {
	if s.MountAt == "" {
		s.MountAt = s.Dir
	}
	if s.MountAt = filepath.Clean(s.MountAt); !Mountable(s.MountAt) {
		return fmt.Errorf("%w: nothing can be mounted at %q", ErrSpec, s.MountAt)
	}
	s.ReadOnlyOver = slices.Clone(s.ReadOnlyOver)
	for i, p := range s.ReadOnlyOver {
		p = filepath.Clean(p)
		if !filepath.IsLocal(p) || p == "." {
			return fmt.Errorf("%w: %q is not below the tree", ErrSpec, p)
		}
		s.ReadOnlyOver[i] = p
	}
	return nil
}

// within reports whether path is dir or below it, by whole elements.
func within(dir, path string) bool {
	return dir == path || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// inside is the name that a path of the staged tree has for the command.
func (s Spec) inside(path string) string {
	if within(s.Dir, path) {
		return s.MountAt + path[len(s.Dir):]
	}
	return path
}

func absolute(paths []string) ([]string, error) {
	out := make([]string, 0, len(paths))
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrSpec, p, err)
		}
		out = append(out, filepath.Clean(abs))
	}
	return out, nil
}
