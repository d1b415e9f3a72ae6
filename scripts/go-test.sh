#!/bin/sh
# go-test.sh [go test arguments] runs go test, prints its lines as they come
# and a summary at the end. RACE=1 asks for the race detector, RACE=0 does
# without; by default it is on where a C compiler can link what it needs.
set -u
cd "$(dirname "$0")/.." || exit 1

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

race_works() {
	cc=$(go env CC)
	printf '#include <stdlib.h>\nint main(void) { return 0; }\n' >"$tmp/probe.c"
	# $cc is unquoted on purpose: CC may hold arguments.
	$cc -pthread -o "$tmp/probe" "$tmp/probe.c" >/dev/null 2>&1 &&
		go build -race runtime/cgo >/dev/null 2>&1
}

case ${RACE:-auto} in
1) race=-race ;;
0) race= ;;
*)
	race=
	if race_works; then
		race=-race
	else
		echo "test: no working C compiler here, so the race detector stays off" >&2
	fi
	;;
esac

{
	# $race is unquoted on purpose: it may be no argument at all.
	go test $race -timeout 30m "$@" 2>&1
	echo $? >"$tmp/status"
} | tee "$tmp/log"

status=$(cat "$tmp/status")
count() { grep -cE "$1" "$tmp/log"; }
echo
echo "go test summary${race:+ (with the race detector)}:"
# Indented, so that whoever counts go's own lines meets each of them once.
sed -nE '/^(ok  |FAIL|--- FAIL:|panic:)[[:space:]]/s/^/  /p; /^[[:space:]]+--- FAIL:/s/^/  /p' "$tmp/log"
echo "$(count '^ok  ') packages passed, $(count '^FAIL[[:space:]]') failed," \
	"$(count '\[no test files\]') without tests"
exit "$status"
