// Package summary condenses a thread: who took part, what was decided, which actions are open and who must do them,
// and which questions are unanswered. It reads marks at the beginning of lines ("- [ ]", "TODO:", "Decision:") and
// question marks. It does not call a model, and the same messages always give the same summary.
//
// Across the messages of a thread it decides
//
//   - whether an action is done: the latest message with the same words decides;
//   - whether a question is answered: a later message by another sender that replies to the question's
//     message, or to no message, answers it.
//
// fixtures/summaries has complete threads with their summaries.
package summary
