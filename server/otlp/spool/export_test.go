package spool

// CloseFile closes the newest file, so that it takes nothing more.
func CloseFile(s *Spool) error { return s.segments[len(s.segments)-1].file.Close() }
