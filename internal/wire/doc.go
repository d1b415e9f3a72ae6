// Package wire is the language of the bus: subjects, envelopes and bodies.
// Subjects are built and parsed here and nowhere else, so that the filter of
// a compare-and-set always belongs to the subject that is written.
package wire
