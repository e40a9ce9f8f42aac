package limits

import "cmp"

// Usage bounds what clients may use in a second, or at the same time. With 0 there is no limit. A rate allows so many
// at once after a second without any.
type Usage struct {
	Sessions                 int // at the same time
	Logins, Commands         int // a second
	Transfers, Operations    int // at the same time
	UploadRate, DownloadRate int // bytes a second
}

// Or is what u says, and where it says nothing what another says.
func (u Usage) Or(other Usage) Usage {
	return Usage{
		Sessions: cmp.Or(u.Sessions, other.Sessions),
		Logins:   cmp.Or(u.Logins, other.Logins), Commands: cmp.Or(u.Commands, other.Commands),
		Transfers: cmp.Or(u.Transfers, other.Transfers), Operations: cmp.Or(u.Operations, other.Operations),
		UploadRate: cmp.Or(u.UploadRate, other.UploadRate), DownloadRate: cmp.Or(u.DownloadRate, other.DownloadRate),
	}
}
