// Package summary condenses a thread: who took part, what was decided, what is to do and by whom,
// and what nobody has answered. It reads marks at the beginning of lines ("- [ ]", "TODO:",
// "Decision:") and question marks; it calls no model, and it says the same of the same messages.
//
// Across the messages of a thread it decides
//
//   - what became of an action: the latest message with the same words tells whether it is done;
//   - whether a question is answered: a later message by somebody else that replies to the
//     question's message, or to none, answers it.
//
// fixtures/summaries holds whole threads with their summaries.
package summary
