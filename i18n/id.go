package i18n

// An ID identifies a message in every catalog. It is a stable key, not a text.
type ID string

// The messages of replies, in the order of the English catalog, which documents their reply codes. Comments
// list the arguments for [Localizer.Text].
const (
	// The session.

	ServiceReady           ID = "service-ready"
	Goodbye                ID = "goodbye"
	IdleTimeout            ID = "idle-timeout" // seconds
	ShuttingDown           ID = "shutting-down"
	Disconnected           ID = "disconnected"
	TooManyLogins          ID = "too-many-logins"
	TooManySessions        ID = "too-many-sessions"
	TooManySessionsAddress ID = "too-many-sessions-address"
	TooManySessionsUser    ID = "too-many-sessions-user"
	LoginTimeout           ID = "login-timeout"
	TooManyOperations      ID = "too-many-operations"
	TooManyCommands        ID = "too-many-commands"
	InternalError          ID = "internal-error"
	CommandFailed          ID = "command-failed"
	SessionEnded           ID = "session-ended"
	SessionReset           ID = "session-reset"

	// Login.

	PasswordRequired ID = "password-required" // user
	LoggedIn         ID = "logged-in"         // user
	LoginFailed      ID = "login-failed"
	LoginUnavailable ID = "login-unavailable"
	AddressRefused   ID = "address-refused"
	UserDisabled     ID = "user-disabled"
	UserExpired      ID = "user-expired"
	NotLoggedIn      ID = "not-logged-in"
	UserFirst        ID = "user-first"
	AlreadyLoggedIn  ID = "already-logged-in"
	TLSRequired      ID = "tls-required"
	AccountNotNeeded ID = "account-not-needed"

	// The password.

	PasswordChanged    ID = "password-changed"
	PasswordMustChange ID = "password-must-change"
	PasswordTooShort   ID = "password-too-short" // minimum length
	PasswordTooWeak    ID = "password-too-weak"
	PasswordElsewhere  ID = "password-elsewhere"
	PasswordFixed      ID = "password-fixed"

	// Malformed or unknown commands.

	UnknownCommand          ID = "unknown-command"
	LineTooLong             ID = "line-too-long"
	Syntax                  ID = "syntax"                    // syntax
	NotImplemented          ID = "not-implemented"           // command
	ParameterNotImplemented ID = "parameter-not-implemented" // command
	RenameFromFirst         ID = "rename-from-first"
	CopyFromFirst           ID = "copy-from-first"
	OptionUnknown           ID = "option-unknown" // command

	// Simple replies.

	OK                  ID = "ok"
	TypeBinary          ID = "type-binary"
	TypeASCII           ID = "type-ascii"
	ModeStream          ID = "mode-stream"
	StructureFile       ID = "structure-file"
	AllocationNotNeeded ID = "allocation-not-needed"
	PermissionsNotKept  ID = "permissions-not-kept"
	RestartAccepted     ID = "restart-accepted" // offset
	RangeAccepted       ID = "range-accepted"   // first byte, last byte
	RangeForDownloads   ID = "range-for-downloads"
	HashAccepted        ID = "hash-accepted"
	HashForWholeFiles   ID = "hash-for-whole-files"
	RestartInASCII      ID = "restart-in-ascii"
	SizeInASCII         ID = "size-in-ascii"
	UTF8On              ID = "utf8-on"
	UTF8StaysOn         ID = "utf8-stays-on"
	UTF8Off             ID = "utf8-off" // charset

	// Directories and files.

	CurrentDirectory ID = "current-directory"
	DirectoryCreated ID = "directory-created"
	DirectoryRemoved ID = "directory-removed"
	FileDeleted      ID = "file-deleted"
	RenameReady      ID = "rename-ready"
	Renamed          ID = "renamed"
	CopyReady        ID = "copy-ready"
	Copied           ID = "copied"
	FileDetails      ID = "file-details"
	DetailsEnd       ID = "details-end"
	URLsIntro        ID = "urls-intro"
	URLsEnd          ID = "urls-end"
	LinkIntro        ID = "link-intro" // time
	LinkEnd          ID = "link-end"
	LinksDisabled    ID = "links-disabled"
	QuotaState       ID = "quota-state" // used, limit
	QuotaUnknown     ID = "quota-unknown"
	QuotaNone        ID = "quota-none"

	// Storage errors.

	NotFound            ID = "not-found"
	PermissionDenied    ID = "permission-denied"
	DirectoryFixed      ID = "directory-fixed"
	FileArchived        ID = "file-archived"
	FileRestoring       ID = "file-restoring" // time
	VersionsReadOnly    ID = "versions-read-only"
	NotADirectory       ID = "not-a-directory"
	IsADirectory        ID = "is-a-directory"
	ParentIsFile        ID = "parent-is-file"
	DirectoryNotEmpty   ID = "directory-not-empty"
	DirectoryIntoItself ID = "directory-into-itself"
	AlreadyExists       ID = "already-exists"
	OverwriteDenied     ID = "overwrite-denied"
	NameNotUTF8         ID = "name-not-utf8"
	NameNotInCharset    ID = "name-not-in-charset" // charset
	NameInvisible       ID = "name-invisible-character"
	NameReserved        ID = "name-reserved" // part
	NameNotStorable     ID = "name-not-storable"
	NameTooLong         ID = "name-too-long"
	TooDeep             ID = "too-deep" // limit
	StorageFull         ID = "storage-full"
	FileTooLarge        ID = "file-too-large"
	FileRefused         ID = "file-refused"
	FileNotChecked      ID = "file-not-checked"
	HashMismatch        ID = "hash-mismatch"
	FileNameDenied      ID = "file-name-denied"
	FileSizeLimit       ID = "file-size-limit"
	QuotaExceeded       ID = "quota-exceeded"
	AuditUnavailable    ID = "audit-unavailable"
	StorageUnavailable  ID = "storage-unavailable"
	StorageMissing      ID = "storage-missing"
	StorageDenied       ID = "storage-denied"
	StorageError        ID = "storage-error"
	NotSupported        ID = "not-supported"
	MoveBetweenAccounts ID = "move-between-accounts"
	FileChanged         ID = "file-changed"
	RestartBeyondEnd    ID = "restart-beyond-end"
	ResumeChanged       ID = "resume-changed"
	ResumeElsewhere     ID = "resume-elsewhere" // offset

	// The data connection.

	EnteringPassive          ID = "entering-passive"
	EnteringExtendedPassive  ID = "entering-extended-passive"
	DataAddressAccepted      ID = "data-address-accepted"
	DataAddressRefused       ID = "data-address-refused"
	DataPortRefused          ID = "data-port-refused"
	DataProtocolUnsupported  ID = "data-protocol-unsupported"
	PassiveNeedsIPv4         ID = "passive-needs-ipv4"
	PassiveAddressUnknown    ID = "passive-address-unknown"
	ExtendedPassiveOnly      ID = "extended-passive-only"
	PassivePortUnavailable   ID = "passive-port-unavailable"
	DataConnectionFirst      ID = "data-connection-first"
	PassiveConnectionMissing ID = "passive-connection-missing" // port
	ActiveConnectionFailed   ID = "active-connection-failed"
	TransferStarting         ID = "transfer-starting"
	TransferFileStarting     ID = "transfer-file-starting" // name
	TransferComplete         ID = "transfer-complete"
	TransferAborted          ID = "transfer-aborted"
	CommandAborted           ID = "command-aborted"
	TransferInterrupted      ID = "transfer-interrupted"
	UploadKept               ID = "upload-kept"
	NothingStored            ID = "nothing-stored"
	TransferStalled          ID = "transfer-stalled"
	AbortDone                ID = "abort-done"
	AbortNothing             ID = "abort-nothing"

	// Encryption.

	TLSStarting               ID = "tls-starting"
	TLSActive                 ID = "tls-active"
	TLSUnavailable            ID = "tls-unavailable"
	TLSFirst                  ID = "tls-first"
	TLSFailed                 ID = "tls-failed"
	ProtectionSizeFirst       ID = "protection-size-first"
	ProtectionPrivate         ID = "protection-private"
	ProtectionClear           ID = "protection-clear"
	ProtectionUnsupported     ID = "protection-unsupported"
	ProtectionRequired        ID = "protection-required"
	ClientCertificateRequired ID = "client-certificate-required"
	SessionReuseRequired      ID = "session-reuse-required"
	EncryptionStays           ID = "encryption-stays"

	// Language and host.

	LanguageSet         ID = "language-set"
	LanguageSetNearest  ID = "language-set-nearest" // requested, tag
	LanguageUnsupported ID = "language-unsupported" // requested, tags
	HostAccepted        ID = "host-accepted"        // host
	HostUnknown         ID = "host-unknown"
	HostMismatch        ID = "host-mismatch"
	HostTooLate         ID = "host-too-late"

	// Help and status.

	FeaturesIntro     ID = "features-intro"
	HelpIntro         ID = "help-intro"
	HelpEnd           ID = "help-end"
	SiteHelpIntro     ID = "site-help-intro"
	SiteHelpEnd       ID = "site-help-end"
	StatusIntro       ID = "status-intro"
	StatusAddress     ID = "status-address" // address
	StatusUser        ID = "status-user"    // user
	StatusNoUser      ID = "status-no-user"
	StatusLanguage    ID = "status-language" // language
	StatusCharset     ID = "status-charset"  // charset
	StatusEncrypted   ID = "status-encrypted"
	StatusUnencrypted ID = "status-unencrypted"
	StatusTransfer    ID = "status-transfer" // size
	StatusNoTransfer  ID = "status-no-transfer"
	StatusEnd         ID = "status-end"
	PathStatusIntro   ID = "path-status-intro"
	PathStatusEnd     ID = "path-status-end"

	// Values in replies.

	SizeBytes ID = "size-bytes" // bytes
	SizeUnits ID = "size-units"
)
