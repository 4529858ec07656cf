// Package glob decides which paths a pattern covers, and whether two patterns overlap: whether some
// path matches both. It knows nothing of claims, files or the mail.
//
// A pattern is a path or a glob relative to the top of a code repository, in the doublestar
// dialect:
//
//	?        one character of one path element
//	*        any characters of one path element
//	[a-z]    one character of a class; [^a-z] and [!a-z] one that is not
//	{a,b}    either pattern; may be nested, at most 100 alternatives in all
//	**       as a whole element: any number of elements, also none; elsewhere as *
//	\x       the character x
//
// A literal path, also as an alternative of braces, covers what lies below it: what is no folder
// yet may become one.
//
// Overlaps is exact: it intersects the two patterns and never compares their texts.
package glob
