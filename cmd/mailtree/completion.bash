# Where the package bash-completion is not loaded, this stands in for the one function of it that is
# needed: the words up to the cursor, split at blanks alone.
if ! declare -F _get_comp_words_by_ref >/dev/null; then
	_get_comp_words_by_ref() {
		local line=${COMP_LINE:0:COMP_POINT}
		read -ra words <<<"$line"
		[[ $line == *[[:space:]] ]] && words+=('')
		cword=$((${#words[@]} - 1))
		cur=${words[cword]} prev=${words[cword - 1]}
	}
fi
