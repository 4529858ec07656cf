// Package glob determines which paths a pattern covers, and whether two patterns overlap, that is, whether any path
// matches both. It does not depend on claims, files or mail.
//
// A pattern is a path or a glob relative to the top of a code repository, in the doublestar syntax:
//
//	?        one character of a path element
//	*        any number of characters of a path element
//	[a-z]    one character in the class; [^a-z] and [!a-z] mean one character outside it
//	{a,b}    either pattern; may be nested; at most 100 alternatives in total
//	**       as a whole element: any number of elements, including none; otherwise the same as *
//	\x       the character x
//
// A literal path covers everything below it, because a file may become a folder. This also applies to a literal
// alternative in braces. A trailing slash after a wildcard means /**: src/*/ is the same as src/*/**.
//
// Overlaps is exact: it intersects the two patterns instead of comparing their text.
package glob
