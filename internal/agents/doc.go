// Package agents holds the workers of a run: one file for each consumer, its
// small interfaces beside it. A worker gets an ask, fetches what it needs from
// the artifacts, and answers; what follows is run.Decide's to say.
//
// None of the workers here needs a model but the debugger, whose source
// "model" asks one and whose source "engine" does not.
package agents
