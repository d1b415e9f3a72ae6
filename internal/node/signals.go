package node

import (
	"os"
	"os/signal"
	"syscall"
)

// Signals are those that ask a command to end in an orderly way: Ctrl-C, the
// end of the terminal, and what service managers send. One that this process
// was started to ignore, as by nohup, stays ignored.
func Signals() []os.Signal {
	var out []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			out = append(out, s)
		}
	}
	return out
}
