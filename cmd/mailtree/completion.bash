# If the bash-completion package is not loaded, this replaces the one function of the package that is needed.
# The function returns the words up to the cursor, split only at spaces.
if ! declare -F _get_comp_words_by_ref >/dev/null; then
	_get_comp_words_by_ref() {
		local line=${COMP_LINE:0:COMP_POINT}
		read -ra words <<<"$line"
		[[ $line == *[[:space:]] ]] && words+=('')
		cword=$((${#words[@]} - 1))
		cur=${words[cword]} prev=${words[cword - 1]}
	}
fi
