package audit

// An Act is what an administrator does, or a reload of the configuration.
type Act struct {
	Event         string
	Administrator string // the name, or what has caused a reload
	Client        string // the address of the administrator, or what else the demand came by
	About         []any  // keys and values
}

// Write writes the line of an act. A nil log has none.
func (l *Log) Write(a *Act, err error) {
	if l == nil {
		return
	}
	about := []any{"client", a.Client, "administrator", a.Administrator, "outcome", outcomeOK}
	if err != nil {
		about[len(about)-1] = outcomeFailed
	}
	about = append(about, a.About...)
	if err != nil {
		about = append(about, "error", err.Error())
	}
	l.out.Info(a.Event, about...)
}
