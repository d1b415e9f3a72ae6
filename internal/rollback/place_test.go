package rollback

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// here are the places of this user with a home and a shared folder of a test.
func here(t *testing.T) places {
	t.Helper()
	p := places{uid: uint32(os.Geteuid()), home: filepath.Join(t.TempDir(), "home"), shared: []string{t.TempDir()}}
	require.NoError(t, os.Mkdir(p.home, 0o755))
	require.NoError(t, os.Chmod(p.shared[0], 0o777))
	return p
}

func (p places) sharedFile() string {
	return filepath.Join(p.shared[0], "nexus-"+strconv.FormatUint(uint64(p.uid), 10), claimsFile)
}

// TestClaimsPathHeedsNoStateHome: two processes of one user agree, whatever
// their environments say.
func TestClaimsPathHeedsNoStateHome(t *testing.T) {
	t.Setenv(EnvClaims, "")
	var seen []string
	for _, v := range []string{"/x/state", "/y/state", "relative", ""} {
		t.Setenv("XDG_STATE_HOME", v)
		t.Setenv("XDG_RUNTIME_DIR", v)
		t.Setenv("HOME", v)
		p := places{uid: uint32(os.Geteuid()), home: t.TempDir()}
		got, err := p.claims()
		require.NoError(t, err)
		require.Equal(t, filepath.Join(p.home, ".local", "state", claimsFile), got)
		if actual, err := ClaimsPath(); err == nil {
			seen = append(seen, actual)
		}
	}
	for _, s := range seen {
		require.Equal(t, seen[0], s)
	}
}

func TestClaimsPathFromTheEnvironment(t *testing.T) {
	t.Setenv(EnvClaims, "/shared/claims.json")
	p, err := ClaimsPath()
	require.NoError(t, err)
	require.Equal(t, "/shared/claims.json", p)
	t.Setenv(EnvClaims, "claims.json")
	_, err = ClaimsPath()
	requireKind(t, err, KindRegistry)
}

// TestNoUsableHome: users without a home of their own get a folder that
// nobody else can enter.
func TestNoUsableHome(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*places){
		"none":               func(p *places) { p.home = "" },
		"missing":            func(p *places) { p.home = "/nonexistent" },
		"the root":           func(p *places) { p.home = "/" },
		"relative":           func(p *places) { p.home = "home" },
		"a file":             func(p *places) { p.home += "/f"; _ = os.WriteFile(p.home, nil, 0o600) },
		"everybody's":        func(p *places) { _ = os.Chmod(p.home, 0o777) },
		"somebody else's":    func(p *places) { p.home = "/proc/1" },
		"no file system for": func(p *places) { p.home = "/sys" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := here(t)
			want := p.sharedFile()
			change(&p)
			if name == "somebody else's" && p.uid == 0 {
				t.Skip("root owns that folder too")
			}
			got, err := p.claims()
			require.NoError(t, err)
			if name == "no file system for" && got != want {
				t.Skip("this user may write there")
			}
			require.Equal(t, want, got)
			info, err := os.Stat(filepath.Dir(got))
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
			again, err := p.claims()
			require.NoError(t, err)
			require.Equal(t, got, again)
		})
	}
}

// TestHomeBehindALink: some homes are links.
func TestHomeBehindALink(t *testing.T) {
	t.Parallel()
	p := here(t)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(p.home, link))
	p.home = link
	got, err := p.claims()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(link, ".local", "state", claimsFile), got)
}

// TestPlaceTakenByOthers: what somebody else has put in our place, or left
// open, is refused, never used.
func TestPlaceTakenByOthers(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(dir string) error{
		"a link":          func(dir string) error { return os.Symlink(filepath.Dir(dir), dir) },
		"a dangling link": func(dir string) error { return os.Symlink(dir+"-elsewhere", dir) },
		"a file":          func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"open to others": func(dir string) error {
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			return os.Chmod(dir, 0o770)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := here(t)
			p.home = ""
			require.NoError(t, take(filepath.Dir(p.sharedFile())))
			_, err := p.claims()
			requireKind(t, err, KindRegistry)
			require.ErrorContains(t, err, EnvClaims)
		})
	}
	p := here(t)
	p.home = ""
	require.NoError(t, os.Mkdir(filepath.Dir(p.sharedFile()), 0o700))
	p.uid++
	require.NoError(t, os.Rename(filepath.Dir(places{uid: p.uid - 1, shared: p.shared}.sharedFile()), filepath.Dir(p.sharedFile())))
	_, err := p.claims()
	requireKind(t, err, KindRegistry)
	require.ErrorContains(t, err, "not a folder of this user alone")
	p.shared = nil
	_, err = p.claims()
	requireKind(t, err, KindRegistry)
}
