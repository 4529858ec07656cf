#!/bin/sh
# mailtree guard: refuses what touches files that another agent has claimed.
# Written by `mailtree guard install`. `mailtree guard uninstall` takes it away and puts back what was here before,
# which lies beside it as @HOOK@.before-mailtree and runs first.
# state: @STATE@
# sum: @SUM@
hook=@HOOK@
program=@PROGRAM@
store=@STORE@
project=@PROJECT@
before=${0%/*}/$hook.before-mailtree
again() { printf %s "$lines"; }
if [ "$hook" = pre-push ]; then
	lines=$(cat; echo .)
	lines=${lines%.}
fi

# What was here before.
chain() {
	if [ "$hook" = pre-push ]; then again | "$@"; else "$@"; fi
}
if [ -x "$before" ]; then
	chain @CHAIN@ "$@" || exit
fi

for mailtree in "$program" mailtree; do
	command -v "$mailtree" >/dev/null 2>&1 || continue
	chain "$mailtree" guard check --hook "$hook" --store "$store" --project "$project"
	status=$?
	[ "$status" -eq 126 ] || [ "$status" -eq 127 ] || exit "$status"
done

# The program is gone. That is no reason to stop all work, and none to be silent.
case ${GUARD_MODE-}:${GUARD_BYPASS-} in off:*|*:1) exit 0 ;; esac
{
	printf 'mailtree guard: NOT CHECKED: mailtree is neither at %s nor on the PATH.\n' "$program"
	printf 'Claims of other agents were not looked at. Put the program back and run `mailtree guard install` here,\n'
	printf 'or remove this hook: '
	if [ -e "$before" ]; then printf "mv -f '%s' '%s'\n" "$before" "$0"; else printf "rm '%s'\n" "$0"; fi
} >&2
if [ "${GUARD_MODE-}" = block ]; then
	printf 'GUARD_MODE is block, so this stops here. GUARD_BYPASS=1 lets it pass.\n' >&2
	exit 2
fi
exit 0
