package testrun

import (
	"crypto/sha256"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
)

// maxMounts bounds how many protected files become mounts of their own; what
// is beyond is only compared afterwards.
const maxMounts = 1000

// protect makes the protected code and configuration read-only for the
// command. A level without mounts cannot. Data beside the tests stays
// writable, because some tests write it.
func (o Options) protect(s *sandbox.Spec) {
	files := slices.DeleteFunc(slices.Clone(o.Protected), isData)
	s.ReadOnlyOver = append(s.ReadOnlyOver, files[:min(len(files), maxMounts)]...)
}

// isData reports whether a protected file is neither code nor configuration.
func isData(p string) bool {
	code := []string{
		".py", ".pyi", ".go", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".ini", ".cfg", ".toml", ".mod", ".sum", ".work",
	}
	return !slices.Contains(code, path.Ext(p)) && path.Base(p) != "package.json"
}

// sums are the contents of the protected files; what cannot be read has a sum
// of its own.
func (o Options) sums(root string) map[string][sha256.Size]byte {
	out := make(map[string][sha256.Size]byte, len(o.Protected))
	dir, err := os.OpenRoot(root)
	if err != nil {
		return out
	}
	defer func() { _ = dir.Close() }()
	for _, p := range o.Protected {
		out[p] = sumOf(dir, filepath.FromSlash(p))
	}
	return out
}

func sumOf(dir *os.Root, p string) (sum [sha256.Size]byte) {
	info, err := dir.Lstat(p)
	if err != nil || !info.Mode().IsRegular() {
		return sum
	}
	f, err := dir.OpenFile(p, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return sum
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// compare says which protected files are not what they were: code and
// configuration that changed is tampering, data is a sign.
func (o Options) compare(root string, before map[string][sha256.Size]byte, e *run.Evidence) {
	after := o.sums(root)
	for _, p := range o.Protected {
		switch {
		case before[p] == after[p]:
		case isData(p):
			e.Signs = append(e.Signs, p+" was changed while the tests ran")
		default:
			e.Tampered = append(e.Tampered, p+" was changed while the tests ran")
		}
	}
}
