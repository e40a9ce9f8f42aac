// Package view is the storage as one login sees it: which names exist, what the user may do with each of them, and
// which S3 bucket has the files. It is between the FTP session, which does not use S3, and the driver, which does not
// know users.
//
// # Types
//
// A [View] belongs to a login, and consists of values that answer one question each:
//
//	Mounts         which Store has the files of a directory? One is at "/", others can be at directories below it.
//	Policy         which Rights does the user have for a name: list, read, write, delete, rename, make directories?
//	Directories    which directories exist although S3 has no object in them, such as the home before its first file?
//	Past           which directory shows the files as they were, if the bucket keeps versions?
//	EndingUploads  which uploads are about to be stored, so that a client that comes back waits for its own?
//	Sink           who receives the events of changes? It makes an Event of each [FileChange].
//
// A [Store] has the files of one mount. [NewStore] makes one from a bucket of the driver. A [Files] is a View for one
// FTP command, with its context. It has one method for each thing that a command can do, so that the method can make
// as few S3 requests as possible.
//
//	bucket, err := driver.New(client, "acme-data", &driver.Options{Prefix: "inbox/"})
//	if err != nil {
//		return err
//	}
//	readOnly := view.Rights{List: true, Read: true}
//	v := &view.View{
//		Mounts:      view.NewMounts(view.Mount{Dir: "/", Store: view.NewStore(bucket)}),
//		Policy:      view.Policy{view.NewLayer(view.AllRights(), map[string]view.Rights{"/reports": readOnly})},
//		Form:        norm.NFC.String,
//		Directories: view.NewDirectories("/"),
//	}
//	err = v.For(ctx, nil).RemoveFile("/reports/2026.pdf") // fs.ErrPermission, without a request
//
// # A call
//
// A method of Files takes these steps:
//
//  1. It resolves the name to a target: the name in NFC, the user's rights, the mount, and the name within the mount.
//     This sends no request.
//  2. It checks the rights. A user without the right gets [io/fs.ErrPermission], whether the name exists or not.
//  3. It refuses operations that are impossible, such as creating a name with a control character, or moving a file to
//     another S3 account.
//  4. For a change, it stores the event durably.
//  5. It calls the store of the mount. An upload is published when its file is closed, so steps 4 to 6 are in Close.
//  6. It ends the event with the result. A change that was refused in an earlier step has no event.
//  7. It passes a [Note] to the session for each transfer, change and link, including refused ones. The note of an
//     upload comes when the file is opened.
//
// The error is the result of the command. The session makes the reply, the log line and the audit line from the error
// and the note. Errors, events and notes contain the path that the user sees. Events and notes also contain the URI of
// the object.
//
// Pathnames are absolute and in UTF-8. A final slash means a directory. RFC 959 and RFC 3659 leave the rest to the
// server. Section 7.5.5 of RFC 3659 ("perm") describes how clients learn the [Rights].
//
// # Limits
//
// A View does not check passwords, decode names from other charsets, choose replies, or count quotas and sessions. It
// does not cache objects: every request gets the current state from S3. It does not lock files either. If two users
// change the same file, the driver and S3 decide with conditional requests.
package view
