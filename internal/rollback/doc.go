// Package rollback is the only package that reads or writes a project tree.
//
// A Manifest lists a project as it is: Scan reads it, Take also stores every
// content in Blobs, Materialise writes it out again as a staged tree. Nothing
// here needs git, and .git is never read, stored or touched.
//
// Project.Apply writes a candidate into the project itself, all files or none;
// Project.Restore takes everything back that Apply ever wrote. Both keep what
// they are about to do in a journal outside the project, so either may be
// killed at any moment and called again. Both replace a file by exchanging two
// names and then look at what was swapped out, so that an edit the user made
// in between is never lost.
//
// A file system has no fence of its own. Whoever calls Apply or Restore holds
// Lock on the folder and has read the run again under it; Claims keeps two
// runs out of one folder, whatever their state folders are.
package rollback
