//go:build nexusfault

package fault

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

var (
	mu   sync.Mutex
	hits = map[string]int{}
)

// Point ends the process when the environment says so, and lists its name.
func Point(name string) {
	mu.Lock()
	defer mu.Unlock()
	hits[name]++
	if path := os.Getenv(EnvList); path != "" {
		list(path, name)
	}
	want, count, found := strings.Cut(os.Getenv(EnvKill), ":")
	n := 1
	if found {
		n, _ = strconv.Atoi(count)
	}
	if want == name && hits[name] == n {
		kill()
	}
}

func list(path, name string) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fault:", err)
		return
	}
	fmt.Fprintln(f, name)
	if err := f.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "fault:", err)
	}
}

// kill does not return: SIGKILL leaves no time for deferred calls.
func kill() {
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
	select {}
}
