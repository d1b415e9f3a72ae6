package agents

import (
	"bufio"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/repair"
)

// started runs a program confined, with pipes to talk to it.
func started(t *testing.T, c confined, argv ...string) (p repair.Process, say, hear *os.File) {
	t.Helper()
	stdin, say, err := os.Pipe()
	require.NoError(t, err)
	hear, stdout, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = say.Close(); _ = hear.Close() })
	p, err = c.Start(t.Context(), repair.Command{Argv: argv, Dir: t.TempDir(), Stdin: stdin, Stdout: stdout})
	require.NoError(t, err)
	require.NoError(t, stdin.Close()) // its owner closes its ends
	require.NoError(t, stdout.Close())
	return p, say, hear
}

// TestConfinedTalks: the harness reads and writes over the pipes that it was
// given, and sees nothing that is hidden.
func TestConfinedTalks(t *testing.T) {
	t.Parallel()
	secret := t.TempDir()
	require.NoError(t, os.WriteFile(secret+"/owner.json", []byte("token"), 0o644))
	c := confined{temp: t.TempDir(), hidden: []string{secret}, timeout: time.Minute}
	p, say, hear := started(t, c, "/bin/sh", "-c", `read line; echo "heard $line"; cat "$1/owner.json" 2>/dev/null || echo nothing`, "sh", secret)
	_, err := say.WriteString("hello\n")
	require.NoError(t, err)
	lines := bufio.NewScanner(hear)
	require.True(t, lines.Scan())
	require.Equal(t, "heard hello", lines.Text())
	require.True(t, lines.Scan())
	require.NotContains(t, lines.Text(), "token")
	require.False(t, lines.Scan())
	require.NoError(t, p.Wait())
	require.NoError(t, p.Kill(), "what has ended may be killed")
	left, err := os.ReadDir(c.temp)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestConfinedEnds: a failure is told, a kill ends it, and so does the time.
func TestConfinedEnds(t *testing.T) {
	t.Parallel()
	c := confined{temp: t.TempDir(), timeout: time.Minute}
	p, _, _ := started(t, c, "/bin/sh", "-c", "exit 7")
	require.ErrorContains(t, p.Wait(), "status 7")
	p, _, hear := started(t, c, "/bin/sh", "-c", "echo on; sleep 600")
	text, err := bufio.NewReader(hear).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "on\n", text)
	require.NoError(t, p.Kill())
	require.Error(t, p.Wait())
	c.timeout = 100 * time.Millisecond
	p, _, _ = started(t, c, "/bin/sh", "-c", "sleep 600")
	require.Error(t, p.Wait())
	p, _, _ = started(t, c, "/no/such/program")
	require.Error(t, p.Wait())
}

// TestConfinedNeedsPipes: it hands descriptors over, nothing else.
func TestConfinedNeedsPipes(t *testing.T) {
	t.Parallel()
	_, err := confined{}.Start(t.Context(), repair.Command{Stdin: strings.NewReader("x"), Stdout: os.Stdout})
	require.ErrorContains(t, err, "pipes")
	in, out, err := os.Pipe()
	require.NoError(t, err)
	_, err = confined{}.Start(t.Context(), repair.Command{Stdin: in, Stdout: &strings.Builder{}})
	require.ErrorContains(t, err, "pipes")
	require.NoError(t, in.Close())
	require.NoError(t, out.Close())
}
