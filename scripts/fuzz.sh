#!/bin/sh
# fuzz.sh TIME runs every fuzz target for TIME, such as 10s. What it finds is
# kept by go in testdata/fuzz of the package and is worth a commit.
set -u
cd "$(dirname "$0")/.." || exit 1
time=${1:-10s}

failed=0
for file in $(find . -name '*_test.go' -not -path './.*' -exec grep -l '^func Fuzz' {} + | sort); do
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "== $(dirname "$file") $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$(dirname "$file")" || failed=1
	done
done
exit "$failed"
