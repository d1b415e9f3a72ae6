package sandbox

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// program is a list of system calls that the parent writes and a forked child
// executes. The child is a copy of one thread of a Go process: it may neither
// allocate nor take a lock, so every word and every string is made ready here.
// In return it starts at once, whatever the binary's packages do in their
// initialisation.
type program struct {
	ops  []op
	what []string
	regs [8]uintptr
}

// op is one system call.
type op struct {
	nr  uintptr
	arg [6]uintptr
	// from has a bit for each argument that is the number of a register.
	from uint8
	// to is one more than the register that keeps the result; 0 keeps none.
	to uint8
	// ignore names the errors that do not count.
	ignore [3]syscall.Errno
	// optional ignores every error; answered wants a result above zero.
	optional, answered bool
}

// reg is an argument that is taken from a register.
type reg uint8

// The registers that outlive the setup.
const (
	regSignals reg = iota + 1
	regStore
	regTree
	regRules
)

// writer appends calls to a program and remembers the first mistake. Pinned
// memory is kept alive by keep, because the program holds it as numbers.
type writer struct {
	program
	keep []any
	err  error
}

// call appends a system call. Arguments are int, uintptr, string, reg or a
// pointer made by pin. The returned op may be changed until the next call.
func (w *writer) call(what string, nr uintptr, args ...any) *op {
	o := op{nr: nr}
	for i, a := range args {
		switch a := a.(type) {
		case int:
			o.arg[i] = uintptr(a)
		case uintptr:
			o.arg[i] = a
		case reg:
			o.arg[i], o.from = uintptr(a), o.from|1<<i
		case string:
			p, err := unix.BytePtrFromString(a)
			if err != nil {
				w.err = errors.Join(w.err, fmt.Errorf("%s: %w", what, err))
			}
			w.keep = append(w.keep, p)
			o.arg[i] = uintptr(unsafe.Pointer(p))
		default:
			w.err = errors.Join(w.err, fmt.Errorf("%s: argument %d is a %T", what, i, a))
		}
	}
	w.ops = append(w.ops, o)
	w.what = append(w.what, what)
	return &w.ops[len(w.ops)-1]
}

// pin keeps p alive and returns its address.
func pin[T any](w *writer, p *T) uintptr {
	w.keep = append(w.keep, p)
	return uintptr(unsafe.Pointer(p))
}

// into keeps the result in a register.
func (o *op) into(r reg) *op { o.to = uint8(r) + 1; return o }

// but ignores up to three errors.
func (o *op) but(errs ...syscall.Errno) *op { copy(o.ignore[:], errs); return o }

// maybe ignores every error.
func (o *op) maybe() *op { o.optional = true; return o }

// run executes the program in the child and returns where it stopped: the
// number of calls when it reached its end.
//
//go:norace
//go:nosplit
func (p *program) run() (int, syscall.Errno) {
	for i := range p.ops {
		o := &p.ops[i]
		r, errno := p.do(o)
		if errno != 0 && !o.optional && errno != o.ignore[0] && errno != o.ignore[1] && errno != o.ignore[2] {
			return i, errno
		}
		if errno == 0 && o.to != 0 {
			p.regs[(o.to-1)&7] = r
		}
	}
	return len(p.ops), 0
}

//go:norace
//go:nosplit
func (p *program) do(o *op) (uintptr, syscall.Errno) {
	a := &o.arg
	if o.from != 0 {
		// Each call is executed once, so its own memory may take the values.
		for i := range a {
			if o.from&(1<<uint(i)) != 0 {
				a[i] = p.regs[a[i]&7]
			}
		}
	}
	r, _, errno := syscall.RawSyscall6(o.nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno == 0 && r == 0 && o.answered {
		errno = unix.ESRCH
	}
	return r, errno
}

// name says what the call was for.
func (p *program) name(i int) string {
	if i >= 0 && i < len(p.what) {
		return p.what[i]
	}
	return "start"
}
