package maildir

// Types records that this process types notices into tmux windows, until the caller calls done.
func (s *Store) Types() (done func()) { return s.windows.Types() }
