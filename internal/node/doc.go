// Package node is one process's part in a bus: it owns the state folder and
// runs server, conductor and workers, or attaches to the process that does, or
// joins an external NATS server. The commands in cmd/ are flags round it.
package node
