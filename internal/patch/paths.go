package patch

import (
	"path"
	"strings"
)

// maxPath is the longest path in bytes that a candidate may name.
const maxPath = 4096

// CheckPath refuses every path that a candidate may not name: absolute, not
// clean, leaving the project, inside .git, or with bytes that some tool reads
// as something else. It looks at the bytes only, never at a disk.
func CheckPath(p string) error {
	switch {
	case p == "" || p == ".":
		return refuse(GatePaths, ReasonBadPath, p, "a path is missing")
	case len(p) > maxPath:
		return refuse(GatePaths, ReasonBadPath, "", "a path is longer than %d bytes", maxPath)
	case hasControl(p):
		return refuse(GatePaths, ReasonBadPath, "", "the path %q holds a control character", p)
	case strings.Contains(p, `\`):
		return refuse(GatePaths, ReasonBadPath, p, "use forward slashes in %q", p)
	case path.IsAbs(p) || hasDrive(p) || p[0] == '~':
		return refuse(GatePaths, ReasonEscape, p, "%q is not relative to the project", p)
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			return refuse(GatePaths, ReasonEscape, p, "%q leaves the project", p)
		}
		if isGitDir(part) {
			return refuse(GatePaths, ReasonProtected, p, "%q is inside .git", p)
		}
	}
	if path.Clean(p) != p {
		return refuse(GatePaths, ReasonBadPath, p, "%q is not in its shortest form", p)
	}
	return nil
}

func hasControl(p string) bool {
	for i := range len(p) {
		if p[i] < 0x20 || p[i] == 0x7f {
			return true
		}
	}
	return false
}

func hasDrive(p string) bool {
	return len(p) >= 2 && p[1] == ':' && (p[0]|0x20) >= 'a' && (p[0]|0x20) <= 'z'
}

// isGitDir covers what file systems take for .git: any case, trailing dots and
// spaces, the short name, an alternate stream, and ignorable code points.
func isGitDir(part string) bool {
	if i := strings.IndexByte(part, ':'); i >= 0 {
		part = part[:i]
	}
	part = strings.ToLower(strings.Map(dropIgnorable, part))
	part = strings.TrimRight(part, ". ")
	return part == ".git" || part == "git~1"
}

// dropIgnorable removes the code points that HFS+ ignores in names.
func dropIgnorable(r rune) rune {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e,
		r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return -1
	}
	return r
}

// checkMode turns a git file mode into permission bits. Only regular files
// pass: a symbolic link, a submodule or a device is refused.
func checkMode(mode, name string) (uint32, error) {
	switch mode {
	case "100644", "100664", "644", "0644":
		return 0o644, nil
	case "100755", "755", "0755":
		return 0o755, nil
	}
	return 0, refuse(GatePaths, ReasonMode, name, "the file mode %q is not a regular file's", mode)
}
