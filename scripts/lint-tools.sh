#!/bin/sh
# Prints the path of a golangci-lint of the pinned version, installing it into
# .tools/bin where this machine has none. Status 3: it could not be had, most
# likely for want of a network; two attempts were made.
set -u
cd "$(dirname "$0")/.." || exit 1

# The version that .golangci.yaml is written for. It stays out of go.mod, so
# that its dependencies never become ours.
version=2.15.0

for tool in "$PWD/.tools/bin/golangci-lint" "$(command -v golangci-lint)" "$(go env GOPATH)/bin/golangci-lint"; do
	if [ -x "$tool" ] && [ "$("$tool" version --short 2>/dev/null)" = "$version" ]; then
		echo "$tool"
		exit 0
	fi
done

echo "lint: installing golangci-lint v$version into .tools/bin, which takes a few minutes once" >&2
for attempt in 1 2; do
	if GOBIN="$PWD/.tools/bin" GOFLAGS=-mod=mod go install \
		"github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$version" </dev/null >&2; then
		echo "$PWD/.tools/bin/golangci-lint"
		exit 0
	fi
	echo "lint: attempt $attempt failed" >&2
done
exit 3
