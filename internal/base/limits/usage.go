package limits

import "github.com/babelftp/babelftp/internal/base/bytesize"

// Usage limits concurrent use and rates. 0 means no limit. A rate allows a burst of one second. Usage is a section of
// the configuration, and its comments are the text of the reference.
type Usage struct {
	// Maximum number of concurrent sessions. Further ones are refused with 421. For a tenant or a user, they are
	// refused after the password is verified.
	Sessions int `yaml:"sessions" default:"no limit"`
	// Maximum number of concurrent transfers and listings. Further ones are refused with 450.
	Transfers int `yaml:"transfers" default:"no limit"`
	// Bytes per second of all uploads together.
	UploadRate bytesize.Size `yaml:"upload_rate" default:"no limit"`
	// Bytes per second of all downloads and listings together.
	DownloadRate bytesize.Size `yaml:"download_rate" default:"no limit"`
}

// Work limits the load on the server. These limits exist for the server and for addresses only.
type Work struct {
	// Login attempts per second. Further ones are refused with 421.
	LoginRate int `yaml:"login_rate" default:"no limit"`
	// Commands per second. Further ones wait, and the session ends with 421 after ten seconds.
	CommandRate int `yaml:"command_rate" default:"no limit"`
	// Maximum number of concurrent renames, copies and removals of directories. Further ones are refused with 450.
	Operations int `yaml:"operations" default:"no limit"`
}

// Bounds are all limits of a scope. To add a limit, add a field to Usage or Work and a row to newScope.
type Bounds struct {
	Usage
	Work
}
