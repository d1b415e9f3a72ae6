package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/run"
)

// TestFullDisk: the disk of the state folder is full from some moment of a heal
// on. It ends and says so; with room again the next heal gets the folder right.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for i, left := range []int{1, 150, 250, 280, 310, 340} {
		for _, mode := range modes[i%2 : i%2+1] {
			t.Run(strconv.Itoa(left)+"_KiB/"+mode.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				state := filepath.Join(w.dir, "small")
				require.NoError(t, os.Mkdir(state, 0o700))
				if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=8m"); err != nil {
					t.Skip("cannot mount a small file system: ", err)
				}
				t.Cleanup(func() { require.NoError(t, unix.Unmount(state, unix.MNT_DETACH)) })
				filler := filepath.Join(state, "filler")
				require.NoError(t, os.WriteFile(filler, make([]byte, 8<<20-left<<10), 0o600))
				dir := w.project("calc")
				before := w.tree(dir)
				w.script(healed.script...)
				args := append([]string{"--state", filepath.Join(state, "nexus")}, mode.args...)
				r := w.nexus(append([]string{"heal", dir}, args...)...)
				if left <= 150 || r.exit != 0 { // the streams alone need more
					require.Equal(t, 1, r.exit, "%s\n%s", r.out, r.err)
					require.Contains(t, r.err, "the disk that holds the state folder "+state)
					require.Contains(t, r.err, "make room")
					require.NotContains(t, r.err, "goroutine")
				}
				if mode.name == "isolated" && r.exit != 0 {
					require.Equal(t, before, w.tree(dir))
				}
				require.NoError(t, os.Remove(filler))
				sum, r := w.heal(dir, args...)
				if sum.State == run.Failed { // a worker's word about the disk may have found room just before
					require.Contains(t, sum.Reason, "no space left on device")
					require.Equal(t, before, w.tree(dir))
					sum, r = w.heal(dir, args...)
				}
				require.Equal(t, run.Approved, sum.State, "%s\n%s", r.out, r.err)
				require.Equal(t, sum.FinalTree, w.tree(dir))
				w.clean(dir)
			})
		}
	}
}
