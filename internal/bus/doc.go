// Package bus is the only part of the system that speaks NATS. It holds the
// streams and their consumers, the conductor that turns facts into decisions,
// the runtime of the workers, timers, dead letters and artifacts.
//
// One task goes this way: Submit publishes it on TASKS; the Conductor opens a
// run on RUNS and appends the first ask; a Worker takes the ask, publishes its
// outcome on OUTCOMES and acknowledges the ask; the Conductor folds the run,
// asks run.Decide and appends what follows with a compare-and-set, until the
// run is closed.
package bus
