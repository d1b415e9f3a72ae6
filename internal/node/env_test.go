package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// bare is an environment in which nothing of ours is set.
func bare(t *testing.T) (state string) {
	t.Helper()
	for _, name := range []string{
		envDebugMax, envASTFails, envReviewMax, envScale, envRoots, envHome,
		"NEXUS_MODEL_BASE_URL", "NEXUS_MODEL", "NEXUS_MODEL_API_KEY",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("NEXUS_CLAIMS", filepath.Join(t.TempDir(), "claims.json"))
	return t.TempDir()
}

func TestFromEnv(t *testing.T) {
	state := bare(t)
	cfg, err := FromEnv(state, zerolog.Nop())
	require.NoError(t, err)
	require.Equal(t, run.DefaultLimits(), cfg.Rules.Limits)
	require.Equal(t, []run.Source{run.SourceEngine}, cfg.Rules.Sources)
	require.Nil(t, cfg.Model)
	require.Equal(t, os.Getenv("NEXUS_CLAIMS"), cfg.Claims.Path)

	t.Setenv(envDebugMax, "7")
	t.Setenv(envASTFails, "1")
	t.Setenv(envReviewMax, "0")
	t.Setenv(envScale, "0.5")
	t.Setenv(envRoots, "/a:/b")
	t.Setenv(envHome, "my-host")
	t.Setenv("NEXUS_MODEL_BASE_URL", "http://127.0.0.1:1/v1")
	t.Setenv("NEXUS_MODEL", "m")
	t.Setenv("NEXUS_MODEL_API_KEY", "sk-test-0123456789")
	cfg, err = FromEnv(state, zerolog.Nop())
	require.NoError(t, err)
	require.Equal(t, []int{7, 1, 0}, []int{cfg.Rules.Limits.DebugAttempts, cfg.Rules.Limits.ASTFails, cfg.Rules.Limits.ReviewRounds})
	require.InDelta(t, 0.5, cfg.Rules.Limits.DelayScale, 0)
	require.Equal(t, []string{"/a", "/b"}, cfg.Rules.Roots)
	require.Equal(t, "my-host", cfg.Rules.Home)
	require.Equal(t, []run.Source{run.SourceModel, run.SourceEngine}, cfg.Rules.Sources)
	require.Equal(t, []string{"sk-test-0123456789"}, cfg.Model.Secrets)
}

// TestBadEnvironment: an error names the variable and what it should be.
func TestBadEnvironment(t *testing.T) {
	for _, c := range [][2]string{
		{envDebugMax, "many"},
		{envDebugMax, "1.5"},
		{envASTFails, "x"},
		{envReviewMax, " 1"},
		{envScale, "fast"},
		{envHome, "my host"},
		{"NEXUS_MODEL_BASE_URL", "ftp://x"},
		{"NEXUS_CLAIMS", "relative.json"},
	} {
		t.Run(c[0]+"="+c[1], func(t *testing.T) {
			state := bare(t)
			t.Setenv(c[0], c[1])
			_, err := FromEnv(state, zerolog.Nop())
			require.ErrorContains(t, err, c[0])
		})
	}
	for _, c := range [][2]string{{envDebugMax, "0"}, {envDebugMax, "51"}, {envASTFails, "-1"}, {envScale, "NaN"}} {
		t.Run("limit "+c[0]+"="+c[1], func(t *testing.T) {
			state := bare(t)
			t.Setenv(c[0], c[1])
			_, err := FromEnv(state, zerolog.Nop())
			require.ErrorContains(t, err, "limits in the environment")
		})
	}
}

func TestStatePaths(t *testing.T) {
	bare(t)
	t.Setenv("XDG_STATE_HOME", "/x")
	t.Setenv("HOME", "/h")
	for flag, want := range map[string]string{"": "/x/nexus", "/s/../t": "/t"} {
		got, err := StatePath(flag)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	got, err := StatePath("")
	require.NoError(t, err)
	require.Equal(t, "/h/.local/state/nexus", got)
	t.Setenv("HOME", "")
	_, err = StatePath("")
	require.ErrorContains(t, err, "--state")

	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(top, "real"), 0o700))
	require.NoError(t, os.Symlink("real", filepath.Join(top, "link")))
	got, err = StateDir(filepath.Join(top, "link", "s"))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(top, "real", "s"), got, "two spellings are one folder")
	require.NoError(t, os.WriteFile(filepath.Join(top, "file"), nil, 0o600))
	_, err = StateDir(filepath.Join(top, "file", "s"))
	require.ErrorContains(t, err, "state folder")
}

// TestHomeNameStays: the name of a home belongs to the state folder, whatever
// becomes of the host's name; two state folders are two homes.
func TestHomeNameStays(t *testing.T) {
	a, b := bare(t), t.TempDir()
	first, err := homeName(a)
	require.NoError(t, err)
	require.Regexp(t, `^[a-zA-Z0-9_-]+$`, first)
	other, err := homeName(b)
	require.NoError(t, err)
	require.NotEqual(t, first, other)
	require.NoError(t, os.WriteFile(filepath.Join(a, "home"), []byte("before-renaming"), 0o600))
	again, err := homeName(a)
	require.NoError(t, err)
	require.Equal(t, "before-renaming", again)
}
