package format

// Problem describes an invalid file in the tree. An invalid file does not affect other files.
type Problem struct {
	Project string `json:"project"` // the project's slug
	Path    string `json:"path"`    // relative to the project's tree
	File    string `json:"file"`    // the absolute path; empty if not requested
	Line    int    `json:"line"`    // 0 if the problem is not on a particular line
	Reason  string `json:"text"`    // what is wrong, and how to fix it
}
