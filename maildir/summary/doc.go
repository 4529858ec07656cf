// Package summary condenses a thread: what was decided, what is to do and by whom, what nobody has
// answered, which code it is about. It reads the outline of each body (package markdown), calls no
// model, and says the same of the same messages.
//
// Across the messages of a thread it decides
//
//   - what became of an action: the latest message that names it tells whether it is done;
//   - whose an action is: who is mentioned in it, named before or behind it ("Ann: …", "… (Ann)",
//     "assigned to Ann"), or speaks ("I'll …");
//   - whether a question is answered: a reply to its message by somebody else, or a later message
//     that replies to nothing, that says more than a question. One that quotes questions answers
//     those that it quotes. A question back, and the asker's answer to it, go on with the first.
//
// fixtures/summaries holds whole threads with their summaries.
package summary
