package sandbox

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The watchdog's pace, and the pace at which the end is driven.
const (
	watchEvery = 20 * time.Millisecond
	killEvery  = 2 * time.Millisecond
)

// supervisor is the life of the init process after the command was started.
type supervisor struct {
	order  order
	in     *json.Decoder
	out    *json.Encoder
	leader int

	mu       sync.Mutex
	limit    string
	ending   bool
	stopped  bool
	exited   bool
	status   unix.WaitStatus
	peak     int64
	procs    int
	outlived int
}

// supervise returns once no descendant is left.
func (s *supervisor) supervise(f Features) report {
	end := make(chan struct{})
	gone := make(chan struct{})
	var once sync.Once
	finish := func(limit string) { once.Do(func() { s.begin(limit); close(end) }) }

	go func() {
		var m stop
		// Any answer, and the parent's death, mean the same.
		_ = s.in.Decode(&m)
		finish("")
	}()
	go s.watch(end, finish)
	go func() {
		<-end
		s.killAll(gone)
	}()
	s.reap(finish)
	close(gone)
	return s.report(f)
}

// begin notes whether the command had ended by itself.
func (s *supervisor) begin(limit string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	if !s.exited {
		s.stopped, s.limit = true, limit
	}
}

// reap waits for every descendant: orphans come to this process.
func (s *supervisor) reap(finish func(string)) {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return
		case pid == s.leader:
			s.mu.Lock()
			s.exited, s.status = true, ws
			s.mu.Unlock()
			if _, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil); errors.Is(err, unix.ECHILD) {
				return
			}
			s.countOutlived()
			finish("")
		}
	}
}

func (s *supervisor) countOutlived() {
	n := 0
	for _, p := range quickDescendants(os.Getpid()) {
		if p.state != 'Z' {
			n++
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ending {
		s.outlived = n
	}
}

// killAll ends the tree again and again until the last child was reaped.
// Whole groups go first, each in one call that no fork can outrun; then the
// processes one by one, stopped before they are killed. It runs ahead of the
// tree where it may, since a fork bomb leaves no time for anybody else.
func (s *supervisor) killAll(gone <-chan struct{}) {
	runtime.LockOSThread()
	urgent()
	s.mu.Lock()
	if !s.exited {
		_ = unix.Kill(-s.leader, unix.SIGKILL)
	}
	s.mu.Unlock()
	if s.order.Level == LevelUser {
		// As process 1 of the namespace: everything else in it, at once.
		_ = unix.Kill(-1, unix.SIGKILL)
	}
	tick := time.NewTicker(killEvery)
	defer tick.Stop()
	for {
		if list, err := descendants(os.Getpid()); err == nil {
			killGroups(list)
			for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
				for _, p := range list {
					_ = unix.Kill(p.pid, sig)
				}
			}
		}
		select {
		case <-gone:
			return
		case <-tick.C:
		}
	}
}

func killGroups(list []procStat) {
	own := unix.Getpgrp()
	seen := map[int]bool{0: true, 1: true, own: true}
	for _, p := range list {
		if !seen[p.group] {
			seen[p.group] = true
			_ = unix.Kill(-p.group, unix.SIGKILL)
		}
	}
}

// urgent asks for the processor before everybody else; who may not, goes on.
func urgent() {
	attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	if unix.SchedSetAttr(0, attr, 0) != nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
	}
}

// watch bounds the memory and the number of processes of the tree.
func (s *supervisor) watch(end <-chan struct{}, finish func(string)) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-end:
			return
		case <-tick.C:
			if limit := s.look(); limit != "" {
				finish(limit)
				return
			}
		}
	}
}

func (s *supervisor) look() string {
	list := quickDescendants(os.Getpid())
	var rss int64
	threads := 0
	for _, p := range list {
		rss += p.rss
		threads += max(p.threads, 1)
	}
	if rss > s.order.Limits.MemoryBytes {
		rss = sharedOnce(list)
	}
	s.mu.Lock()
	s.peak, s.procs = max(s.peak, rss), max(s.procs, threads)
	s.mu.Unlock()
	switch {
	case rss > s.order.Limits.MemoryBytes:
		return LimitMemory
	case threads > s.order.Limits.Processes:
		return LimitProcesses
	default:
		return ""
	}
}

// sharedOnce adds the tree up with shared pages counted once.
func sharedOnce(list []procStat) int64 {
	var sum int64
	for _, p := range list {
		if n, ok := proportional(p.pid); ok {
			sum += n
		} else if now, err := readStat(p.pid); err == nil {
			// Not readable, or just gone: then it has nothing any more.
			sum += now.rss
		}
	}
	return sum
}

func (s *supervisor) report(f Features) report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := report{
		Done: true, Features: f, Stopped: s.stopped, Limit: s.limit,
		Outlived: s.outlived, Peak: s.peak, Procs: s.procs, Exit: -1,
	}
	if s.status.Exited() {
		// It came to its own end in the very moment of being stopped.
		r.Exit, r.Stopped = s.status.ExitStatus(), false
	} else if s.status.Signaled() {
		r.Signal = int(s.status.Signal())
	}
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &u); err == nil {
		r.User = time.Duration(u.Utime.Nano())
		r.System = time.Duration(u.Stime.Nano())
		r.Peak = max(r.Peak, u.Maxrss<<10)
	}
	return r
}

// abandon ends the tree when nobody is left to report to.
func (s *supervisor) abandon(err error) error {
	gone := make(chan struct{})
	go s.killAll(gone)
	s.reap(func(string) {})
	close(gone)
	return err
}
