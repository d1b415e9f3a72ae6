#!/bin/sh
# Finds or installs a Python that can run pytest, and prints the absolute path
# of its interpreter, or nothing where there is no Python at all. What it did
# is said on stderr. It always succeeds: without pytest the unittest runner
# does, and missing Python is for those to report who need it.
#
# Order: $NEXUS_PYTHON, where somebody chose; the last answer in .tools; every
# interpreter that this machine has; pytest by pip into .tools/venv.*; the
# system's packages (root only). An installation that failed is tried again
# after a day, or when .tools is gone, so that a machine without a network is
# not held up every time.
set -u
cd "$(dirname "$0")/.." || exit 0

answer=.tools/python
failed=.tools/python-install-failed

say() { echo "python: $*" >&2; }

# limit runs a command without input and, where timeout(1) can leave Ctrl-C
# alone, for 5 minutes only.
limit() {
	if timeout --foreground 1 true 2>/dev/null; then
		timeout --foreground 300 "$@" </dev/null
	else
		"$@" </dev/null
	fi
}

# resolve prints the real interpreter behind $1 (a pyenv shim is none) when it
# is 3.8 or newer and can import the modules $2... Isolated mode, because the
# tests run in it too: pytest in the user's own site-packages does not count.
resolve() {
	python=$1
	shift
	[ -x "$python" ] || return 1
	"$python" -I -c '
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
if sys.version_info < (3, 8):
    sys.exit(1)
print(sys.executable)' "$@" </dev/null 2>/dev/null
}

# candidates lists every interpreter there is, the likeliest first. Folders
# with blanks in their names are fine on PATH, which is split at colons only.
candidates() {
	ls -d "$PWD"/.tools/venv.*/bin/python3 2>/dev/null
	(
		IFS=:
		set -f
		for dir in $PATH /usr/local/bin /usr/bin; do
			echo "$dir/python3"
			echo "$dir/python"
		done
	)
	ls -rd "${PYENV_ROOT:-${HOME:-}/.pyenv}"/versions/3*/bin/python3 2>/dev/null
}

# find_with prints the first candidate that can import the modules $@.
find_with() {
	candidates | while read -r candidate; do
		if resolve "$candidate" "$@"; then
			break
		fi
	done
}

# venv makes a virtual environment for base interpreter $1 and puts pytest into
# it. One that stays incomplete, by a kill for example, is never chosen.
venv() {
	dir=$(mktemp -d "$PWD/.tools/venv.XXXXXX") || return 1
	chmod 755 "$dir" # tests may run under another user id
	say "no pytest here, installing it into .tools by pip"
	if { limit "$1" -m venv "$dir" &&
		limit "$dir/bin/python3" -m pip install -q --no-input \
			--disable-pip-version-check --retries 1 --timeout 15 pytest; } >"$dir/log" 2>&1 &&
		resolve "$dir/bin/python3" pytest; then
		return 0
	fi
	say "pip could not: $(grep -v '^ *$' "$dir/log" | tail -n 1)"
	rm -rf "$dir"
	return 1
}

# system installs Python and pytest from the distribution's packages.
system() {
	[ "$(id -u)" = 0 ] || return 1
	for manager in apt-get dnf apk none; do
		if command -v "$manager" >/dev/null; then
			break
		fi
	done
	[ "$manager" != none ] || return 1
	say "installing python3 and pytest with $manager"
	log=$(mktemp) || return 1
	case $manager in
	apt-get)
		export DEBIAN_FRONTEND=noninteractive
		set -- -q -y -o DPkg::Lock::Timeout=60 -o Acquire::Retries=1 -o Acquire::http::Timeout=15
		limit apt-get "$@" update && limit apt-get "$@" install --no-install-recommends python3 python3-pytest
		;;
	dnf) limit dnf -q -y install python3 python3-pytest ;;
	apk) limit apk add -q --no-cache python3 py3-pytest ;;
	esac >"$log" 2>&1
	status=$?
	[ "$status" = 0 ] || say "$manager could not: $(tail -n 1 "$log")"
	rm -f "$log"
	return "$status"
}

# install prints the interpreter that has pytest after an installation.
install() {
	base=$(find_with venv ensurepip)
	if [ -n "$base" ] && venv "$base"; then
		return 0
	fi
	system && find_with pytest
}

if [ -n "${NEXUS_PYTHON:-}" ]; then
	if found=$(resolve "$NEXUS_PYTHON" unittest); then
		resolve "$NEXUS_PYTHON" pytest >/dev/null || say "$found (NEXUS_PYTHON) has no pytest, so tests run with unittest"
		echo "$found"
		exit 0
	fi
	say "NEXUS_PYTHON=$NEXUS_PYTHON is no Python 3.8 or newer, looking for another one"
elif [ -r "$answer" ] && resolve "$(cat "$answer")" pytest; then
	exit 0
fi

# A checkout that can't be written to keeps no answer and gets no venv.
writable=1
mkdir -p .tools 2>/dev/null && [ -w .tools ] || writable=0

found=$(find_with pytest)
if [ -z "$found" ] && [ "$writable" = 1 ] && [ -z "$(find "$failed" -mtime -1 2>/dev/null)" ]; then
	found=$(install)
	[ -n "$found" ] || : >"$failed"
fi
if [ -n "$found" ]; then
	if [ "$writable" = 1 ]; then
		echo "$found" >"$answer.$$" && mv -f "$answer.$$" "$answer"
	fi
	echo "$found"
	exit 0
fi

if found=$(find_with unittest) && [ -n "$found" ]; then
	say "there is no pytest here and it can't be installed, so tests run with unittest ($found)"
	echo "$found"
else
	say "there is no Python 3.8 or newer here; what needs one can't run"
fi
exit 0
