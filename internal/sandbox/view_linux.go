package sandbox

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// view is the file system that a command sees at LevelUser and above: a fresh
// root that holds what the points name and nothing else.
type view struct {
	points map[string]point
	// whole shows all of the machine, read-only, below the points.
	whole bool
}

// pointKind says what is found at a path.
type pointKind uint8

const (
	// bindPoint is a file or folder of the host, read-only unless write is set.
	bindPoint pointKind = iota
	// linkPoint is a symbolic link.
	linkPoint
	// storePoint is a folder of the run's own bounded memory file system.
	storePoint
	// emptyPoint is an empty folder that hides what is there.
	emptyPoint
	// treePoint is the staged tree.
	treePoint
	// lowerPoint is a part of the staged tree, read-only, above the staged tree.
	lowerPoint
	// pinPoint is a folder of the staged tree that cannot be moved away,
	// because something read-only lies in it.
	pinPoint
	procPoint
	ptsPoint
)

type point struct {
	kind pointKind
	// source is the path on the host, the link's text, or the folder in the
	// store or in the staged tree.
	source string
	write  bool
	dir    bool
	device bool
}

// storeFolders are the folders that are writable beside the staged tree. All
// of them share one bounded file system in memory.
var storeFolders = map[string]string{
	innerTemp: "tmp", "/var/tmp": "vartmp", innerShared: "shm",
}

// systemLinks are the names under /dev that programs expect.
var systemLinks = map[string]string{
	"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1",
	"/dev/stderr": "/proc/self/fd/2", "/dev/ptmx": "pts/ptmx", "/etc/mtab": "/proc/self/mounts",
}

// systemView is what every command sees of the machine. It is looked up once
// a process: forty names cost a third of a millisecond.
var systemView = sync.OnceValue(func() view {
	v := view{points: map[string]point{}}
	for _, p := range systemFolders {
		v.system(p)
	}
	for _, p := range systemFiles {
		v.bind(p, false)
	}
	for _, p := range deviceFiles {
		v.points[p] = point{kind: bindPoint, source: p, write: true, device: true}
	}
	for path, text := range systemLinks {
		v.points[path] = point{kind: linkPoint, source: text}
	}
	for path, folder := range storeFolders {
		v.points[path] = point{kind: storePoint, source: folder, write: true, dir: true}
	}
	v.points["/proc"] = point{kind: procPoint, dir: true}
	v.points["/dev/pts"] = point{kind: ptsPoint, dir: true}
	return v
})

// newView works out what the command of the spec sees.
func newView(s Spec) view {
	v := view{points: maps.Clone(systemView().points)}
	if v.whole = slices.Contains(s.ReadOnly, "/"); v.whole {
		maps.DeleteFunc(v.points, func(_ string, p point) bool { return p.kind == bindPoint || p.kind == linkPoint })
		delete(v.points, innerTemp)
		delete(v.points, "/var/tmp")
	}
	v.grant(s)
	for _, p := range s.Hidden {
		v.hide(p)
	}
	v.grant(s) // again, for what is granted inside the hidden
	v.points[s.MountAt] = point{kind: treePoint, source: s.Dir, write: true, dir: true}
	if s.bindTree {
		v.points[s.MountAt] = point{kind: bindPoint, source: s.Dir, write: true, dir: true}
	}
	for _, rel := range s.ReadOnlyOver {
		if fi, err := os.Lstat(filepath.Join(s.Dir, rel)); err == nil && (fi.IsDir() || fi.Mode().IsRegular()) {
			v.points[filepath.Join(s.MountAt, rel)] = point{kind: lowerPoint, source: rel, dir: fi.IsDir()}
			v.pin(s.MountAt, rel)
		}
	}
	return v
}

func (v view) grant(s Spec) {
	for _, p := range s.ReadOnly {
		v.bind(p, false)
	}
	for _, p := range s.Writable {
		v.bind(p, true)
	}
}

// pin holds the folders between the tree's root and a part of it in place: a
// folder that holds a mount may be renamed, one that is a mount may not.
func (v view) pin(mountAt, rel string) {
	for rel = filepath.Dir(rel); rel != "."; rel = filepath.Dir(rel) {
		path := filepath.Join(mountAt, rel)
		if _, taken := v.points[path]; taken {
			return
		}
		v.points[path] = point{kind: pinPoint, dir: true}
	}
}

// system adds a folder of programs, or the link that stands in its place.
func (v view) system(p string) {
	switch fi, err := os.Lstat(p); {
	case err != nil || strings.HasPrefix(p, "/proc") || strings.HasPrefix(p, "/sys/fs"):
	case fi.Mode()&os.ModeSymlink != 0:
		if text, err := os.Readlink(p); err == nil {
			v.points[p] = point{kind: linkPoint, source: text}
		}
	case fi.IsDir():
		v.points[p] = point{kind: bindPoint, source: p, dir: true}
	}
}

// bind adds a granted path under its own name and, where that leads through
// links, under its real one. What does not exist is left out.
func (v view) bind(p string, write bool) {
	target, err := filepath.EvalSymlinks(p)
	if err != nil {
		return
	}
	fi, err := os.Stat(target)
	if err != nil || !fi.IsDir() && !fi.Mode().IsRegular() {
		return
	}
	for _, name := range []string{target, p} {
		cover, at := v.covering(name)
		shown := cover.kind == linkPoint || cover.kind == bindPoint && (at != "" || v.whole)
		if shown && (name != target || !write && cover.kind == bindPoint && at != name) {
			continue // the link, or the thing itself, is there already
		}
		v.points[name] = point{kind: bindPoint, source: target, write: write, dir: fi.IsDir()}
	}
}

// hide puts an empty folder over a path that a bound folder would show.
func (v view) hide(p string) {
	target, err := filepath.EvalSymlinks(p)
	if err != nil || !isDir(target) {
		return
	}
	if cover, at := v.covering(target); (at != "" || v.whole) && at != target && cover.kind == bindPoint {
		v.points[target] = point{kind: emptyPoint, dir: true}
	}
}

// covering returns the nearest point at or above a path.
func (v view) covering(path string) (p point, at string) {
	for at = path; at != "/" && at != "."; at = filepath.Dir(at) {
		if p, ok := v.points[at]; ok {
			return p, at
		}
	}
	return point{}, ""
}

// private is where the command finds its own folders.
func (v view) private() private {
	if v.whole {
		return privateInside(innerShared)
	}
	return privateInside(innerTemp)
}

// paths lists the points, parents before children.
func (v view) paths() []string {
	var out []string
	for p := range v.points {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// writable lists the paths below which the command may change something.
func (v view) writable() []string {
	return slices.DeleteFunc(v.paths(), func(p string) bool { return !v.points[p].write || v.points[p].device })
}

func isDir(p string) bool {
	fi, err := os.Stat(p)
	return err == nil && fi.IsDir()
}

// treeCall names the one call that may fail where there is no overlay.
const treeCall = "overlay of the staged tree"

// Where things lie while the root is being made.
const (
	buildAt = "/tmp"
	oldRoot = "/old"
	newRoot = "/new"
	store   = "/store"
	lower   = "/lower"
)

// trees holds the mounts that the parent opened itself, by the path where they
// go, because only it may give their files to another user.
type trees map[string]int

// mounts writes the calls that make the view the root of the process.
func (v view) mounts(w *writer, s Spec, t trees) {
	const private = unix.MS_NOSUID | unix.MS_NODEV
	w.call("private mounts", unix.SYS_MOUNT, "none", "/", 0, unix.MS_REC|unix.MS_PRIVATE, 0)
	w.call("build folder", unix.SYS_MOUNT, "tmpfs", buildAt, "tmpfs", private, "size=1m,nr_inodes=64,mode=755")
	w.call("build folder", unix.SYS_CHDIR, buildAt)
	for _, d := range []string{oldRoot, newRoot, store, lower} {
		w.mkdir(d[1:], 0o755)
	}
	w.call("old root", unix.SYS_PIVOT_ROOT, ".", oldRoot[1:])
	if v.whole {
		w.attach("new root", oldRoot, newRoot, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID)
	} else {
		w.call("new root", unix.SYS_MOUNT, "tmpfs", newRoot, "tmpfs", private, "size=4m,nr_inodes=16384,mode=755")
	}
	w.call("store", unix.SYS_MOUNT, "tmpfs", store, "tmpfs", private,
		fmt.Sprintf("size=%d,nr_inodes=%d,mode=755", s.Limits.TreeBytes, s.Limits.Inodes))
	for _, d := range []string{"upper", "work"} {
		w.mkdir(store+"/"+d, 0o755)
	}
	w.bind(s.Dir, lower, lower, point{dir: true}, t)
	made := map[string]bool{"/": true}
	for _, p := range v.paths() {
		v.mount(w, p, t, made)
	}
	own := v.private()
	for _, d := range []string{own.root, own.tmp, own.home, own.cache} {
		w.mkdir(newRoot+d, 0o755)
	}
	w.call("root", unix.SYS_CHDIR, newRoot)
	w.call("root", unix.SYS_PIVOT_ROOT, ".", ".")
	w.call("root", unix.SYS_UMOUNT2, ".", unix.MNT_DETACH)
	w.call("root", unix.SYS_CHDIR, "/")
	ro := pin(w, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	w.call("read-only root", unix.SYS_MOUNT_SETATTR, unix.AT_FDCWD, "/", 0, ro, sizeofMountAttr)
}

// mkdir makes a folder that may exist, or that cannot be made because what
// lies there is read-only: then the mount upon it tells whether it does.
func (w *writer) mkdir(path string, mode int) {
	w.call("folder "+path, unix.SYS_MKDIRAT, unix.AT_FDCWD, path, mode).but(unix.EEXIST, unix.EROFS, unix.EACCES)
}

func (w *writer) parents(path string, made map[string]bool) {
	dir := filepath.Dir(path)
	if made[dir] {
		return
	}
	w.parents(dir, made)
	made[dir] = true
	w.mkdir(newRoot+dir, 0o755)
}

// mount writes the calls for one point.
func (v view) mount(w *writer, path string, t trees, made map[string]bool) {
	p, target := v.points[path], newRoot+path
	w.parents(path, made)
	switch {
	case p.kind == linkPoint:
		w.call("link "+path, unix.SYS_SYMLINKAT, p.source, unix.AT_FDCWD, target).but(unix.EEXIST, unix.EROFS, unix.EACCES)
		return
	case p.dir:
		made[path] = true
		w.mkdir(target, 0o755)
	default:
		w.call("file "+path, unix.SYS_MKNODAT, unix.AT_FDCWD, target, unix.S_IFREG|0o644, 0).but(unix.EEXIST, unix.EROFS, unix.EACCES)
	}
	const private = unix.MS_NOSUID | unix.MS_NODEV
	switch p.kind {
	case bindPoint:
		w.bind(p.source, path, target, p, t)
	case storePoint:
		w.mkdir(store+"/"+p.source, 0o777)
		w.call("mode of "+path, unix.SYS_FCHMODAT, unix.AT_FDCWD, store+"/"+p.source, 0o1777)
		w.attach(path, store+"/"+p.source, target, 0)
	case emptyPoint:
		w.call("hide "+path, unix.SYS_MOUNT, "tmpfs", target, "tmpfs", private, "size=1m,nr_inodes=4096,mode=755")
	case treePoint:
		w.call(treeCall, unix.SYS_MOUNT, "overlay", target, "overlay", private,
			"lowerdir="+lower+",upperdir="+store+"/upper,workdir="+store+"/work,userxattr")
	case pinPoint:
		w.attach(path, target, target, 0)
	case lowerPoint:
		w.attach(path, lower+"/"+p.source, target, unix.MOUNT_ATTR_RDONLY)
	case procPoint:
		w.call("proc", unix.SYS_MOUNT, "proc", target, "proc", private|unix.MS_NOEXEC|unix.MS_RDONLY, 0)
	case ptsPoint:
		w.call("terminals", unix.SYS_MOUNT, "devpts", target, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
	default:
	}
}

// bind mounts a file or folder of the host at target, which is path inside.
func (w *writer) bind(source, path, target string, p point, t trees) {
	flags := uintptr(unix.MOUNT_ATTR_NOSUID)
	if !p.write {
		flags |= unix.MOUNT_ATTR_RDONLY
	}
	if !p.device {
		flags |= unix.MOUNT_ATTR_NODEV
	}
	if fd, ok := t[path]; ok {
		w.move(source, fd, target, flags)
		return
	}
	w.attach(source, oldRoot+source, target, flags)
}

// attach copies the mount at source, with everything below, to target.
func (w *writer) attach(what, source, target string, flags uintptr) {
	w.call("open "+what, unix.SYS_OPEN_TREE, unix.AT_FDCWD, source,
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE).into(regTree)
	w.move(what, regTree, target, flags)
	w.call("close "+what, unix.SYS_CLOSE, regTree)
}

func (w *writer) move(what string, tree any, target string, flags uintptr) {
	if flags != 0 {
		attr := pin(w, &unix.MountAttr{Attr_set: uint64(flags)})
		w.call("flags of "+what, unix.SYS_MOUNT_SETATTR, tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr, sizeofMountAttr)
	}
	w.call("mount "+what, unix.SYS_MOVE_MOUNT, tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}
