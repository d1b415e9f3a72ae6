package sandbox

import (
	"fmt"
	"runtime"
	"sync"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// deniedCalls reach into other processes, the kernel or the mount table, or
// open a way round the other restrictions. Names that an architecture lacks
// are left out. mknod is not among them, because it makes FIFOs too; devices
// need a capability, which nobody inside has.
var deniedCalls = []string{
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd",
	"mount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick", "open_tree",
	"move_mount", "mount_setattr", "swapon", "swapoff", "quotactl", "quotactl_fd",
	"setns", "unshare",
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register",
	"keyctl", "add_key", "request_key",
	"open_by_handle_at", "name_to_handle_at", "lookup_dcookie", "fanotify_init",
	"kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
	"acct", "reboot", "sethostname", "setdomainname", "syslog", "vhangup",
	"settimeofday", "clock_settime", "clock_adjtime", "adjtimex",
	"iopl", "ioperm", "modify_ldt", "personality", "nfsservctl", "uselib", "ustat", "sysfs", "_sysctl",
	"memfd_secret", "migrate_pages", "move_pages", "mbind", "set_mempolicy",
}

const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// tiocsti and tioclinux push input into a terminal.
const (
	tiocsti   = 0x5412
	tioclinux = 0x541c
)

// filter assembles the deny list. Programs of another architecture than the
// binary's own are refused whole: their call numbers mean other calls.
func filter(o order, initPid int) ([]unix.SockFilter, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("seccomp: %w", err)
	}
	known := func(name string) bool { _, ok := info.SyscallNames[name]; return ok }
	deny := seccomp.SyscallGroup{Action: seccomp.ActionErrno}
	for _, name := range denied(o) {
		if known(name) {
			deny.Names = append(deny.Names, name)
		}
	}
	deny.NamesWithCondtions = []seccomp.NameWithConditions{{Name: "clone", Conditions: seccomp.ArgumentConditions{
		{Argument: 0, Operation: seccomp.BitsSet, Value: newNamespaces},
	}}}
	noSuch := seccomp.SyscallGroup{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)}
	if known("clone3") {
		// clone3 hides its flags from a filter; libraries fall back to clone.
		noSuch.Names = []string{"clone3"}
	}
	policy := seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{noSuch, deny}}
	program, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("seccomp: %w", err)
	}
	head := ownArchOnly(info)
	for _, r := range wordRules(o, initPid) {
		if nr, ok := info.SyscallNames[r.name]; ok {
			head = append(head, r.instructions(uint32(nr))...) //nolint:gosec // call numbers are small
		}
	}
	return assemble(append(head, program...))
}

// spaceFilter is the deny list for a command with namespaces of its own. It
// is the same for every run of one kind.
func spaceFilter(grouped bool) ([]unix.SockFilter, error) {
	if grouped {
		return filterFull()
	}
	return filterUser()
}

var (
	filterFull = sync.OnceValues(func() ([]unix.SockFilter, error) { return filter(order{Level: LevelFull, Doors: 1}, 1) })
	filterUser = sync.OnceValues(func() ([]unix.SockFilter, error) { return filter(order{Level: LevelUser}, 1) })
)

func denied(o order) []string {
	names := append([]string{}, deniedCalls...)
	if o.Level == LevelThin || o.Doors == 0 {
		// Shared memory that no process maps escapes a watchdog. At LevelThin
		// it is the machine's own, like all that follows, and would stay.
		names = append(names, "shmget")
	}
	if o.Level != LevelThin {
		return names
	}
	names = append(names, "msgget", "semget", "mq_open")
	if o.Network == NetNone {
		// Landlock knows no UNIX sockets by path before its ninth ABI, and
		// nothing hides those of the host here.
		names = append(names, "connect")
	}
	if !signalsScoped() {
		names = append(names, "pidfd_send_signal")
	}
	return names
}

// wordRule refuses a call when the low 32 bits of one argument are (or, with
// except, are not) one of some values. The kernel ignores the high bits of an
// int argument, so a filter must too.
type wordRule struct {
	name   string
	arg    uint32
	values []uint32
	except bool
}

func wordRules(o order, initPid int) []wordRule {
	rules := []wordRule{{name: "ioctl", arg: 1, values: []uint32{tiocsti, tioclinux}}}
	if o.Level != LevelThin {
		return rules
	}
	if o.Network == NetNone {
		rules = append(rules, wordRule{name: "socket", values: []uint32{unix.AF_UNIX}, except: true})
	}
	if signalsScoped() {
		return rules
	}
	foreign := []uint32{word(initPid), word(o.Parent)}
	groups := append([]uint32{word(-initPid), word(-o.Parent), word(-o.Group), word(-1)}, foreign...)
	rules = append(rules, wordRule{name: "kill", values: groups})
	for _, name := range []string{"tkill", "tgkill", "pidfd_open", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "prlimit64"} {
		rules = append(rules, wordRule{name: name, values: foreign})
	}
	return rules
}

func word(pid int) uint32 { return uint32(int32(pid)) } //nolint:gosec // the wrap-around is meant

const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

func (r wordRule) instructions(nr uint32) []bpf.Instruction {
	refuse := bpf.RetConstant{Val: uint32(seccomp.ActionErrno) | uint32(unix.EPERM)}
	var body []bpf.Instruction
	if r.except {
		for i, v := range r.values {
			body = append(body, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(r.values) - i)}) //nolint:gosec // a handful of values
		}
		body = append(body, refuse)
	} else {
		for _, v := range r.values {
			body = append(body, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipFalse: 1}, refuse)
		}
	}
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: nr, SkipTrue: uint8(len(body) + 1)}, //nolint:gosec // a handful of values
		bpf.LoadAbsolute{Off: offsetArgs + 8*r.arg, Size: 4},
	}, body...)
}

// ownArchOnly ends programs of every other architecture.
func ownArchOnly(info *arch.Info) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(seccomp.ActionKillProcess)},
	}
}

func assemble(program []bpf.Instruction) ([]unix.SockFilter, error) {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("seccomp on %s: %w", runtime.GOARCH, err)
	}
	out := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		out[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return out, nil
}
