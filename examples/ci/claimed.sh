#!/bin/sh
# Usage: claimed.sh PATTERN COMMAND...
# Runs the command while $MAILTREE_ME has claimed the files. If another agent has claimed some of them, the command does
# not run. If $MAIL is set, the project's mail is shared through that repository.
set -eu
pattern=$1
shift

[ -z "${MAIL:-}" ] || mailtree path >/dev/null 2>&1 || mailtree sync join "$MAIL"
mailtree claim "$pattern" --for 30m --reason "${REASON:-CI}"
trap 'mailtree release "$pattern"; [ -z "${MAIL:-}" ] || mailtree sync now' EXIT # sync pushes the release at once
"$@"
