package format

// Problem is a file that is not valid: it hides nothing but itself.
type Problem struct {
	Project string `json:"project"` // slug
	Path    string `json:"path"`    // in the project's tree
	File    string `json:"file"`    // the same, absolute; "" where nobody asks for it
	Line    int    `json:"line"`    // 0 where a line makes no sense
	Reason  string `json:"text"`    // what is wrong, and how to mend it
}
