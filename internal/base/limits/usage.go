package limits

import "github.com/babelftp/babelftp/internal/base/bytesize"

// Usage limits what is in use at the same time, or in a second. With 0 there is no limit. After a second of rest, a
// rate allows as many at once. It is a section of the configuration, and these comments are its reference.
type Usage struct {
	// Most sessions at the same time. More get 421; those of a tenant or user after the right password.
	Sessions int `yaml:"sessions" default:"no limit"`
	// Most transfers and listings at the same time. More get 450.
	Transfers int `yaml:"transfers" default:"no limit"`
	// Bytes a second of all uploads together.
	UploadRate bytesize.Size `yaml:"upload_rate" default:"no limit"`
	// Bytes a second of all downloads and listings together.
	DownloadRate bytesize.Size `yaml:"download_rate" default:"no limit"`
}

// Work limits what keeps the server busy. Only the server and addresses have such limits.
type Work struct {
	// Logins a second, counted before the password. More get 421.
	LoginRate int `yaml:"login_rate" default:"no limit"`
	// Commands a second. More wait, and get 421 after ten seconds.
	CommandRate int `yaml:"command_rate" default:"no limit"`
	// Most renames, copies and removals of directories at the same time. More get 450.
	Operations int `yaml:"operations" default:"no limit"`
}

// Bounds are all limits of a scope. To add a limit, add a field to Usage or Work, and a row to newScope.
type Bounds struct {
	Usage
	Work
}
