#!/bin/sh
# demo.sh heals a copy of examples/broken with bin/nexus and shows what
# happened. The copy and all state live in a temporary folder that is removed
# at the end. Exit status: that of nexus heal (0 APPROVED, 1 ERROR, 2
# NEEDS_HUMAN_REVIEW). A model is not asked, so the demo costs nothing.
set -u
cd "$(dirname "$0")/.." || exit 1

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

title() { printf '\n== %s\n' "$*"; }

# tests runs the copy's tests outside of nexus, as a person would.
tests() {
	[ -n "${NEXUS_PYTHON:-}" ] || return 0
	(cd "$tmp/broken" && PYTHONDONTWRITEBYTECODE=1 "$NEXUS_PYTHON" -m unittest 2>&1) |
		grep -E '^(FAIL|ERROR|Ran|OK|FAILED)'
}

cp -R examples/broken "$tmp/broken" || exit 1

title "A project whose tests fail: examples/broken"
tests

title "nexus heal"
bin/nexus heal "$tmp/broken" --source engine --state "$tmp/state"
status=$?

title "What changed"
if diff -r -u -x __pycache__ -x .pytest_cache examples/broken "$tmp/broken" >"$tmp/diff"; then
	echo "nothing"
else
	sed -E -e "/^diff /d" -e "s,$tmp/broken,healed," -e "/^(---|[+]{3}) /s/\t.*//" "$tmp/diff"
fi

title "The tests now"
tests

case $status in
0) state=APPROVED ;;
2) state=NEEDS_HUMAN_REVIEW ;;
*) state=ERROR ;;
esac
title "Final state: $state"
exit "$status"
