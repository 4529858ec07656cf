package format

// Problem is a file that is not valid: it hides nothing but itself.
type Problem struct {
	Project string // slug
	Path    string
	Reason  string
	Line    int // 0 where a line makes no sense
}
