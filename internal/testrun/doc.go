// Package testrun finds out how a project is tested, runs its tests in the
// sandbox, and turns what happened into run.Evidence. It draws no conclusion:
// run.Judge does.
//
// The runner is our own module (runner.py), started before any path of the
// project can be imported. It reports collected ids and outcomes, with a
// nonce, on a descriptor of its own, and plants one test that must fail. The
// installed pytest plugins are not loaded by themselves: only those that the
// project's own configuration, requirements or tests name (see SIGNS in
// runner.py). The tree's bytecode is removed before every run, so that an edit
// of the same length within the same second is never answered by old code.
package testrun
