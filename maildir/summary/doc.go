// Package summary condenses a thread: who took part, what was decided, which actions are open and who must take them,
// and which questions are unanswered. It recognizes marks at the beginning of lines ("- [ ]", "TODO:", "Decision:") and
// question marks. It does not call a model, and the same messages always produce the same summary.
//
// Across the messages in a thread, it determines
//
//   - whether an action is done, according to the latest message with the same words;
//   - whether a question is answered, which is the case if a later message by another sender replies to the question's
//     message, or replies to no message and is by a recipient of the question.
//
// fixtures/summaries contains complete threads and their summaries.
package summary
