package maildir

// Types records that notices are typed into tmux windows, until done.
func (s *Store) Types() (done func()) { return s.windows.Types() }
