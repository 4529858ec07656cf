package format

// Problem is an invalid file of the tree. It affects no other file.
type Problem struct {
	Project string `json:"project"` // slug
	Path    string `json:"path"`    // in the project's tree
	File    string `json:"file"`    // the same, absolute; "" if not requested
	Line    int    `json:"line"`    // 0 if the problem has no line
	Reason  string `json:"text"`    // what is wrong, and how to fix it
}
