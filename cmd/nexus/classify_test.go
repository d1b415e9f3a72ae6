package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"rate_limit\n", []string{"--type", "APIStatusError", "--message", "slow down", "--status", "429"}},
		{"connection\n", []string{"--message", "read tcp: connection reset by peer"}},
		{"sandbox\n", []string{"--message", "assertion failed: request timed out", "--origin", "test"}},
		{"unexpected\n", []string{"--message", "the timeout parameter is odd", "--status", "400"}},
		{`{"category":"timeout","reason":"HTTP status 504","matches":["timeout"],"unknown":false}` + "\n", []string{"--status", "504", "--json"}},
		{`{"category":"unexpected","reason":"nothing matched","matches":["unexpected"],"unknown":true}` + "\n", []string{"--message", "odd", "--json"}},
	} {
		r := w.nexus(append([]string{"classify"}, c.args...)...)
		require.Zero(t, r.exit, r.err)
		require.Equal(t, c.want, r.out, c.args)
	}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"say what is to be classified", nil},
		{"no HTTP status", []string{"--status", "many"}},
		{"no HTTP status", []string{"--status", "42"}},
		{"unknown origin", []string{"--message", "x", "--origin", "moon"}},
		{"no such file", []string{"--tsv", "missing.tsv"}},
		{"leave --type", []string{"--tsv", "missing.tsv", "--message", "x"}},
	} {
		r := w.nexus(append([]string{"classify"}, c.args...)...)
		require.Equal(t, 1, r.exit, r.out)
		require.Contains(t, r.err, c.says)
		require.Empty(t, r.out)
	}
}

// Every line of a table but its heading gets one answer, whatever is in it.
func TestClassifyTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(w.dir, "errors.tsv")
	long := strings.Repeat("x", 100_000)
	for _, heading := range []string{"type\tmessage\thttp_status\torigin\twant\tnote\n", ""} {
		text := heading + "RateLimitError\ttry later\t\t\trate_limit\tnote\r\n" +
			"\tfirst line\\nconnection refused\t\tmodel\n" +
			"\n" +
			"E\t" + long + "\tmany\tmoon\n" +
			"\trequest timed out"
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		r := w.nexus("classify", "--tsv", file)
		require.Zero(t, r.exit, r.err)
		require.Equal(t, "rate_limit\nconnection\nunexpected\nunexpected\ntimeout\n", r.out)
	}
}
