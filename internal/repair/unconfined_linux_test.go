package repair

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Unconfined starts the harness as a plain process of the caller's user, in a
// session of its own. It is no sandbox: a candidate can do whatever the user
// can, the network included. It is for tests and for trees whose code the user
// runs anyway.
type Unconfined struct{}

// killRounds bounds how often Kill looks for processes that were forked while
// it was killing.
const killRounds = 50

// Start begins the process; the end of ctx kills its whole session.
func (Unconfined) Start(ctx context.Context, c Command) (Process, error) {
	if len(c.Argv) == 0 || !filepath.IsAbs(c.Argv[0]) {
		return nil, errors.New("repair: the interpreter's path is not absolute")
	}
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	temp, err := os.MkdirTemp("", "nexus-repair-")
	if err != nil {
		return nil, fmt.Errorf("repair: %w", err)
	}
	cmd.Dir, cmd.Env = c.Dir, append(slices.Clip(c.Env), "TMPDIR="+temp)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = time.Second
	p := &session{cmd: cmd, temp: temp}
	cmd.Cancel = p.Kill
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("repair: start the interpreter: %w", err), os.RemoveAll(temp))
	}
	return p, nil
}

// session is a process that leads a session and owns a temporary folder.
type session struct {
	cmd  *exec.Cmd
	temp string
}

func (p *session) Wait() error { return p.cmd.Wait() }

// Kill signals every process of the session until none is left that runs, and
// removes the temporary folder.
func (p *session) Kill() error {
	for range killRounds {
		pids, err := members(p.cmd.Process.Pid)
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			return os.RemoveAll(p.temp)
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("repair: kill %d: %w", pid, err)
			}
		}
	}
	return fmt.Errorf("repair: session %d still has processes", p.cmd.Process.Pid)
}

// members lists the running processes of a session, without its zombies.
func members(sid int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("repair: list processes: %w", err)
	}
	var pids []int
	for _, name := range stats {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // the process has ended meanwhile
		}
		pid, session, state := parseStat(string(data))
		if session == sid && state != "Z" && state != "X" {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// parseStat reads the process id, the session and the state out of the text
// of /proc/PID/stat. The command's name may hold spaces and parentheses.
func parseStat(text string) (pid, session int, state string) {
	head, rest, _ := strings.Cut(text, " (")
	end := strings.LastIndex(rest, ")")
	if end < 0 {
		return 0, 0, ""
	}
	fields := strings.Fields(rest[end+1:])
	if len(fields) < 4 {
		return 0, 0, ""
	}
	pid, errPid := strconv.Atoi(head)
	session, errSession := strconv.Atoi(fields[3])
	if errPid != nil || errSession != nil {
		return 0, 0, ""
	}
	return pid, session, fields[0]
}
