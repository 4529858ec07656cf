// Package record says what was decided, closed and left open in projects since a time. It reads what the index has and
// writes nothing. One account covers one project or all projects of a store.
//
//   - A decision is a line that a summary of its thread lists as one (package summary).
//   - A question is a message that asks for an answer (package question). It is settled once anyone other than its author
//     has written in its thread since, or once all its recipients have acknowledged it.
//   - A thread is closed if its last open question was settled since that time.
package record
