package limits

// Usage bounds what clients may use in a second, or at the same time. With 0 there is no limit. A rate allows so many
// at once after a second without any.
type Usage struct {
	Sessions                 int // at the same time
	Logins, Commands         int // a second
	Transfers, Operations    int // at the same time
	UploadRate, DownloadRate int // bytes a second
}
