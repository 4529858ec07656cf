// Package summary condenses a thread: who took part, what was decided, what is to do and by whom, and which
// questions are unanswered. It reads marks at the beginning of lines ("- [ ]", "TODO:", "Decision:") and
// question marks. It calls no model, and the same messages always give the same summary.
//
// Across the messages of a thread it decides
//
//   - whether an action is done: the latest message with the same words decides;
//   - whether a question is answered: a later message by another sender that replies to the question's
//     message, or to no message, answers it.
//
// fixtures/summaries holds whole threads with their summaries.
package summary
