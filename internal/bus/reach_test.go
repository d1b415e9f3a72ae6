package bus

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// listener answers every connection with a text and then does nothing.
func listener(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // bounded by the test
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-done
	})
	return l.Addr().String()
}

// What stands between a command and its server is said in one sentence that
// names the server, what to change, and no password.
func TestNoConnection(t *testing.T) {
	t.Parallel()
	locked := foreign(t, server.Options{JetStream: true, Username: "me", Password: "hush"})
	for name, c := range map[string]struct{ url, want string }{
		"nobody":     {"nats://me:hush@127.0.0.1:1", "no NATS server answers at 127.0.0.1:1 "},
		"several":    {"nats://me:hush@127.0.0.1:1,nats://me:hush@127.0.0.1:2", "answers at 127.0.0.1:1, 127.0.0.1:2 "},
		"silent":     {"nats://me:hush@" + listener(t, ""), "no NATS server answers at"},
		"a stranger": {"nats://me:hush@" + listener(t, "HTTP/1.1 400 Bad Request\r\n\r\n"), "is no NATS server"},
		"no user":    {locked, "refuses this user"},
		"no address": {"nats://me:hush@no host", `"no host" is no address`},
		"no host":    {"nats://me:hush@host.invalid:4222", "no NATS server answers at host.invalid:4222"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Connect(t.Context(), c.url, "t", zerolog.Nop(), nats.Timeout(time.Second))
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "hush")
		})
	}
}

// A user who may not do what is needed hears at once what that is, not that
// time went by; what the sentence asks for is enough.
func TestDeniedUser(t *testing.T) {
	t.Parallel()
	user := func(name string, publish, subscribe []string) *server.User {
		return &server.User{Username: name, Password: "x", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe},
		}}
	}
	inbox := []string{"_INBOX.>"}
	enough := []string{"$JS.>", "$KV.>", "$O.>", "nexus.>", "_INBOX.>"}
	url := foreign(t, server.Options{JetStream: true, Users: []*server.User{
		user("tasks", []string{"nexus.task.>"}, inbox),
		user("reader", []string{"$JS.API.INFO", "$JS.API.STREAM.INFO.*"}, inbox),
		user("deaf", []string{">"}, []string{"nexus.>"}),
		user("enough", enough, enough),
	}})
	for _, c := range []struct{ user, want string }{
		{"tasks", `does not let this user publish to "$JS.API.INFO"`},
		{"reader", `does not let this user publish to "$JS.API.STREAM.CREATE.RUNS"`},
		{"deaf", `does not let this user subscribe to "_INBOX.`},
		{"enough", ""},
	} {
		began := time.Now()
		b, err := Connect(t.Context(), url, "t", zerolog.Nop(), nats.UserInfo(c.user, "x"))
		if err == nil {
			defer b.Close()
			err = b.Provision(t.Context(), 1)
		}
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.want)
		require.Less(t, time.Since(began), connectTimeout, c.user)
	}
}

// What is shown of an address holds no secret, a token in the place of a user
// included.
func TestHosts(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"nats://me:hush@a:4222":                     "a:4222",
		"nats://hush@a:4222, tls://me:hu@sh@b:4222": "a:4222, tls://b:4222",
		"a:4222":       "a:4222",
		"me:hush@a":    "a",
		"wss://a/hush": "wss://a/hush",
	} {
		require.Equal(t, want, Hosts(address), address)
	}
}
