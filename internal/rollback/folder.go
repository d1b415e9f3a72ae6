package rollback

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// tree is a project folder open for writing. Every path it takes is walked one
// folder at a time without following a link, which is stricter than os.Root:
// a folder that became a link is refused, wherever it points.
type tree struct {
	root    *os.Root
	folders map[string]*os.File
	// plain makes swap do without RENAME_EXCHANGE, as on file systems that
	// lack it.
	plain bool
}

func openTree(dir string) (*tree, error) {
	root, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	top, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(&Error{Kind: KindUnreadable, Detail: dir, Err: err}, root.Close())
	}
	return &tree{root: root, folders: map[string]*os.File{".": top}}, nil
}

func (t *tree) close() error {
	err := t.root.Close()
	for _, f := range t.folders {
		err = errors.Join(err, f.Close())
	}
	return err
}

// forget closes the folders at and below dir, before it is removed.
func (t *tree) forget(dir string) error {
	var err error
	for p, f := range t.folders {
		if p == dir || strings.HasPrefix(p, dir+"/") {
			err = errors.Join(err, f.Close())
			delete(t.folders, p)
		}
	}
	return err
}

// folder opens the folder of a path and returns it with the last name.
func (t *tree) folder(p string) (*os.File, string, error) {
	dir, base := path.Dir(p), path.Base(p)
	f, err := t.open(dir)
	return f, base, err
}

func (t *tree) open(dir string) (*os.File, error) {
	if f, ok := t.folders[dir]; ok {
		return f, nil
	}
	parent, base, err := t.folder(dir)
	if err != nil {
		return nil, err
	}
	f, err := openAt(parent, base, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	t.folders[dir] = f
	return f, nil
}

// openAt opens one name of a folder and follows no link.
func openAt(dir *os.File, base string, flags int, mode uint32) (*os.File, error) {
	for {
		fd, err := unix.Openat(int(dir.Fd()), base, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, mode)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: base, Err: err}
		}
		return os.NewFile(uintptr(fd), base), nil
	}
}

// found is what stands at a path.
type found struct {
	content
	// other names what it is when it is no regular file, else empty.
	other    string
	links    uint64
	uid, gid int
}

// at looks at a path. A folder above it that is missing makes it absent, one
// that is no folder makes it other.
func (t *tree) at(p string) (found, error) {
	dir, base, err := t.folder(p)
	if errors.Is(err, fs.ErrNotExist) {
		return found{}, nil
	}
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return found{other: "not in a folder"}, nil
	}
	if err != nil {
		return found{}, err
	}
	return look(dir, base)
}

func look(dir *os.File, base string) (found, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return found{}, nil
		}
		return found{}, &fs.PathError{Op: "stat", Path: base, Err: err}
	}
	if other := typeName(uint32(st.Mode)); other != "" {
		return found{other: other}, nil
	}
	f, err := openAt(dir, base, unix.O_RDONLY, 0)
	if err != nil {
		return found{}, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return found{}, err
	}
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return found{}, &fs.PathError{Op: "stat", Path: base, Err: err}
	}
	return found{
		content: content{SHA: hex.EncodeToString(sum.Sum(nil)), Mode: uint32(st.Mode) & 0o7777},
		links:   uint64(st.Nlink), uid: int(st.Uid), gid: int(st.Gid),
	}, nil
}

const (
	fifo  = unix.S_IFIFO
	setID = unix.S_ISUID | unix.S_ISGID
	// folderType is what found.other says of a folder.
	folderType = "a folder"
)

// typeName is empty for a regular file.
func typeName(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return ""
	case unix.S_IFDIR:
		return folderType
	case unix.S_IFLNK:
		return "a link"
	default:
		return "a FIFO, socket or device"
	}
}

// readlink serves resolve on the disk.
func (t *tree) readlink(p string) (string, bool, error) {
	dir, base, err := t.folder(p)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(dir.Fd()), base, buf)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return "", false, nil
	}
	if err != nil {
		return "", false, &fs.PathError{Op: "readlink", Path: p, Err: err}
	}
	return string(buf[:n]), true, nil
}

// remove unlinks a name; a missing one is fine.
func remove(dir *os.File, base string) error {
	if err := unix.Unlinkat(int(dir.Fd()), base, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "unlink", Path: base, Err: err}
	}
	return nil
}

func rename(dir *os.File, from, to string) error {
	if err := unix.Renameat(int(dir.Fd()), from, int(dir.Fd()), to); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
