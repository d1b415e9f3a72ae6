// Command drill is the process that the crash drills kill: it applies or
// restores one project as described by a JSON file.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/rollback/rollbacktest"
	"nexuscore.dev/nexus/internal/run"
)

type job struct {
	Op       string
	Project  rollback.Project
	Blobs    string
	Changes  []run.Change
	Base     []byte
	FileSize uint64
	UID      int
	Umask    int
}

func main() {
	if err := perform(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func perform(ctx context.Context, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	if err := confine(j); err != nil {
		return err
	}
	blobs := rollbacktest.Blobs{Dir: j.Blobs}
	switch j.Op {
	case "scan":
		_, err = rollback.Scan(ctx, j.Project.Dir, j.Project.Limits)
	case "apply":
		err = j.Project.Apply(ctx, j.Changes, blobs)
	case "claim":
		_, err = rollback.Claims{Path: j.Project.Journal}.Acquire(j.Project.Dir, rollback.Claim{Run: j.Project.Run, State: j.Project.Saved})
		if err == nil {
			fmt.Println("claimed")
			_, err = os.Stdin.Read(make([]byte, 1))
		}
	case "restore":
		var base rollback.Manifest
		if base, err = rollback.Decode(j.Base); err == nil {
			_, err = j.Project.Restore(ctx, base, blobs)
		}
	}
	return err
}

// confine makes large writes fail with EFBIG, and the process an ordinary user.
func confine(j job) error {
	if j.FileSize > 0 {
		signal.Ignore(syscall.SIGXFSZ)
		limit := syscall.Rlimit{Cur: j.FileSize, Max: j.FileSize}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
	}
	if j.Umask > 0 {
		syscall.Umask(j.Umask)
	}
	if j.UID > 0 {
		return syscall.Setuid(j.UID)
	}
	return nil
}
