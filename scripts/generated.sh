#!/bin/sh
# generated.sh fails when go generate changes a file, that is when somebody
# changed a source and left what is made of it behind.
set -eu
cd "$(dirname "$0")/.."

if [ -z "$(find . -name '*.go' -not -path './.*' -exec grep -l '^//go:generate' {} +)" ]; then
	echo "generated: nothing is generated here"
	exit 0
fi
if ! git rev-parse --git-dir >/dev/null 2>&1; then
	echo "generated: this is no git repository, so there is nothing to compare with"
	exit 0
fi

tree() {
	git diff
	git status --porcelain
	git ls-files -z --others --exclude-standard | xargs -0 cat
}

before=$(tree | cksum)
go generate ./...
if [ "$(tree | cksum)" != "$before" ]; then
	git status --short
	echo "generated: go generate changed files, see above; commit what it made"
	exit 1
fi
