// Package record reports what was decided, closed and left open in projects since a given time. It reads only the
// index and writes nothing. One account covers one project or all projects of a store.
//
//   - A decision is a line that a summary of its thread lists as a decision (package summary).
//   - A question is a message that asks for an answer (package question). It is settled once an agent
//     that received it, or that replies to it, has written in its thread afterwards, or once all its recipients have
//     acknowledged it.
//   - A thread is closed if its last open question was settled since the given time.
package record
