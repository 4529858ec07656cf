package format

// Problem is an invalid file of the tree. It affects no other file.
type Problem struct {
	Project string `json:"project"` // slug
	Path    string `json:"path"`    // in the project's tree
	File    string `json:"file"`    // the same, absolute; "" where nobody asks for it
	Line    int    `json:"line"`    // 0 where a line makes no sense
	Reason  string `json:"text"`    // what is wrong, and how to mend it
}
