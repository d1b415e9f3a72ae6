package rollback

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func registryIn(t *testing.T) Claims {
	t.Helper()
	return Claims{Path: filepath.Join(t.TempDir(), "deep", "nexus-claims.json")}
}

func mkdir(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	return dir
}

func requireBusy(t *testing.T, err error, run string, dead bool) {
	t.Helper()
	var busy *BusyError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, run, busy.Run)
	require.Equal(t, dead, busy.Dead)
	require.ErrorContains(t, err, run)
}

func TestClaims(t *testing.T) {
	t.Parallel()
	c, top := registryIn(t), t.TempDir()
	dir, sub, other := mkdir(t, top, "p"), mkdir(t, top, "p/sub/deep"), mkdir(t, top, "p2")
	require.NoError(t, os.Symlink("p", filepath.Join(top, "alias")))
	require.NoError(t, os.Symlink("p/sub", filepath.Join(top, "aliassub")))

	prev, err := c.Acquire(dir, Claim{Run: "r1", State: "s"})
	require.NoError(t, err)
	require.Nil(t, prev)
	for _, d := range []string{dir, sub, top, filepath.Join(top, "alias"), filepath.Join(top, "aliassub/deep"), dir + "/."} {
		_, err := c.Acquire(d, Claim{Run: "r2", State: "s"})
		requireBusy(t, err, "r1", false)
	}
	_, err = c.Acquire(other, Claim{Run: "r3", State: "s"})
	require.NoError(t, err)
	_, err = c.Acquire(dir, Claim{Run: "r1", State: "s"})
	require.NoError(t, err, "the same run of the same process again")
	got, err := c.Lookup(filepath.Join(top, "alias"))
	require.NoError(t, err)
	require.Equal(t, "r1", got.Run)
	require.True(t, got.Alive())
	require.Equal(t, os.Getpid(), got.PID)
	all, err := c.List()
	require.NoError(t, err)
	require.Len(t, all, 2)

	require.NoError(t, c.Release("r1"))
	require.NoError(t, c.Release("r1"))
	got, err = c.Lookup(dir)
	require.NoError(t, err)
	require.Nil(t, got)
	_, err = c.Acquire(top, Claim{Run: "r4", State: "s"})
	requireBusy(t, err, "r3", false)
	_, err = c.Acquire(filepath.Join(top, "none"), Claim{Run: "r4", State: "s"})
	requireKind(t, err, KindMissing)
}

// TestClaimOfADeadProcess lets a real process claim a folder and be killed.
func TestClaimOfADeadProcess(t *testing.T) {
	t.Parallel()
	c := registryIn(t)
	b := setup(t, files{"sub/a.py": "1\n"})
	b.Run, b.Journal, b.Saved = "r1", c.Path, "state1"
	cmd := b.command(job{Op: "claim"})
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(stdout, make([]byte, len("claimed\n")))
	require.NoError(t, err)
	_, err = c.Acquire(b.Dir, Claim{Run: "r2", State: "state1"})
	requireBusy(t, err, "r1", false)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	_ = stdin.Close()

	_, err = c.Acquire(filepath.Join(b.Dir, "sub"), Claim{Run: "r2", State: "state1"})
	requireBusy(t, err, "r1", true)
	_, err = c.Acquire(filepath.Dir(b.Dir), Claim{Run: "r2", State: "state1"})
	requireBusy(t, err, "r1", true)
	_, err = c.Acquire(b.Dir, Claim{Run: "r2", State: "state2"})
	requireBusy(t, err, "r1", true)
	require.ErrorContains(t, err, "state1")

	prev, err := c.Acquire(b.Dir, Claim{Run: "r2", State: "state1"})
	require.NoError(t, err)
	require.Equal(t, "r1", prev.Run)
	require.Equal(t, cmd.Process.Pid, prev.PID)
	require.False(t, prev.Alive())
	now, err := c.Lookup(b.Dir)
	require.NoError(t, err)
	require.Equal(t, "r1", now.Run, "the old run is driven by this process now")
	require.Equal(t, os.Getpid(), now.PID)
}

// TestReusedPID is a live process that is not the one that claimed.
func TestReusedPID(t *testing.T) {
	t.Parallel()
	start, err := ProcessStart(os.Getpid())
	require.NoError(t, err)
	require.True(t, ProcessAlive(os.Getpid(), start))
	if start == 0 {
		t.Skip("this system does not tell when a process began")
	}
	require.False(t, ProcessAlive(os.Getpid(), start+1))
	cmd := exec.CommandContext(t.Context(), "true")
	require.NoError(t, cmd.Start())
	require.NoError(t, cmd.Wait())
	require.False(t, ProcessAlive(cmd.Process.Pid, start))
}

func TestClaimsOfOtherHostsAndBoots(t *testing.T) {
	t.Parallel()
	c, dir := registryIn(t), t.TempDir()
	_, err := c.Acquire(dir, Claim{Run: "r1", State: "s"})
	require.NoError(t, err)
	rewrite := func(change func(*Claim)) {
		all, err := c.List()
		require.NoError(t, err)
		change(&all[0])
		data, err := json.Marshal(registry{registryVersion, all})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(c.Path, data, 0o600))
	}
	rewrite(func(x *Claim) { x.Boot, x.Inode, x.Ancestors = "earlier", Inode{Dev: 1, Ino: 2}, nil })
	prev, err := c.Acquire(dir, Claim{Run: "r2", State: "s"})
	require.NoError(t, err)
	require.Equal(t, "r1", prev.Run, "nothing survives a restart of the machine")
	rewrite(func(x *Claim) { x.Host, x.Inode = "elsewhere", Inode{Dev: 1, Ino: 2} })
	_, err = c.Acquire(dir, Claim{Run: "r2", State: "s"})
	requireBusy(t, err, "r1", false)
}

// TestOtherPathToTheSameFolder is what a bind mount makes: no path says that
// one folder lies in the other, but the inodes do.
func TestOtherPathToTheSameFolder(t *testing.T) {
	t.Parallel()
	above, top := Inode{Dev: 1, Ino: 2}, Inode{Dev: 1, Ino: 1}
	x := Claim{Dir: "/a/p", Inode: Inode{Dev: 1, Ino: 3}, Ancestors: []Inode{above, top}}
	for name, y := range map[string]Claim{
		"same":      {Dir: "/mnt/p", Inode: x.Inode},
		"enclosing": {Dir: "/mnt", Inode: above},
		"nested":    {Dir: "/mnt/p/sub", Inode: Inode{Dev: 1, Ino: 9}, Ancestors: []Inode{{Dev: 1, Ino: 8}, x.Inode}},
	} {
		require.True(t, x.touches(y), name)
		require.True(t, y.touches(x), name)
		y.Boot = "earlier"
		require.False(t, x.touches(y), "inodes of another boot say nothing")
	}
	require.False(t, x.touches(Claim{Dir: "/a/p2", Inode: Inode{Dev: 1, Ino: 4}, Ancestors: []Inode{above, top}}), "a neighbour")
}

func TestDamagedRegistryIsNeverEmpty(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "[]", `{"v":2}`, `{"claims":[]}`, "\x00\x00"} {
		c, dir := registryIn(t), t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Dir(c.Path), 0o700))
		require.NoError(t, os.WriteFile(c.Path, []byte(text), 0o600))
		_, err := c.Acquire(dir, Claim{Run: "r1"})
		requireKind(t, err, KindRegistry)
		require.ErrorContains(t, err, "delete it")
		requireKind(t, c.Release("r1"), KindRegistry)
		_, err = c.List()
		requireKind(t, err, KindRegistry)
		data, err := os.ReadFile(c.Path)
		require.NoError(t, err)
		require.Equal(t, text, string(data))
	}
}

func TestOneOfManyGetsTheFolder(t *testing.T) {
	t.Parallel()
	c, dir := registryIn(t), t.TempDir()
	won := make(chan string, 16)
	var all sync.WaitGroup
	for _, run := range "abcdefghijklmnop" {
		all.Go(func() {
			if _, err := c.Acquire(dir, Claim{Run: string(run), State: "s"}); err == nil {
				won <- string(run)
			}
		})
	}
	all.Wait()
	require.Len(t, won, 1)
	got, err := c.Lookup(dir)
	require.NoError(t, err)
	require.Equal(t, <-won, got.Run)
}

func TestLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unlock, err := Lock(dir)
	require.NoError(t, err)
	_, err = Lock(dir)
	requireKind(t, err, KindBusy)
	require.NoError(t, unlock())
	unlock, err = Lock(dir)
	require.NoError(t, err)
	require.NoError(t, unlock())
	found, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, found)
	_, err = Lock(filepath.Join(dir, "none"))
	requireKind(t, err, KindMissing)
}

// TestClaimOfARemovedFolder: the claim of a dead process on a folder that is
// gone is in nobody's way, neither above it nor in a folder that got its number.
func TestClaimOfARemovedFolder(t *testing.T) {
	t.Parallel()
	c := Claims{Path: filepath.Join(t.TempDir(), "claims.json")}
	top := t.TempDir()
	gone := filepath.Join(top, "app")
	require.NoError(t, os.Mkdir(gone, 0o755))
	_, err := c.Acquire(gone, Claim{Run: "old", State: "/s"})
	require.NoError(t, err)
	require.NoError(t, c.update(func(all []Claim) ([]Claim, error) {
		all[0].StartTime++ // its process has ended
		return all, nil
	}))
	var busy *BusyError
	_, err = c.Acquire(top, Claim{Run: "above", State: "/s"})
	require.ErrorAs(t, err, &busy, "it is still there")
	moved := filepath.Join(top, "moved")
	require.NoError(t, os.Rename(gone, moved))
	prev, err := c.Acquire(moved, Claim{Run: "new", State: "/s"})
	require.NoError(t, err)
	require.NotNil(t, prev, "the folder was moved, and its run with it")
	require.Equal(t, "old", prev.Run)
	require.NoError(t, c.update(func(all []Claim) ([]Claim, error) {
		all[0].StartTime++
		return all, nil
	}))
	require.NoError(t, os.Remove(moved))
	_, err = c.Acquire(top, Claim{Run: "above", State: "/s"})
	require.NoError(t, err)

	first := Claim{Dir: "/a", Inode: Inode{Dev: 1, Ino: 2, Born: 3}}
	require.False(t, first.sameFolder(Claim{Dir: "/b", Inode: Inode{Dev: 1, Ino: 2, Born: 4}}))
	require.True(t, first.sameFolder(Claim{Dir: "/b", Inode: Inode{Dev: 1, Ino: 2, Born: 3}}))
}
