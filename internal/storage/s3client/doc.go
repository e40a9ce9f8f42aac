// Package s3client makes S3 clients from a configuration, and checks the buckets that they reach.
//
// [LoadEnvironment] reads what the AWS SDK finds in its environment. A [Factory] turns a configuration into one
// [Bucket] for each tenant and each of its folders; buckets that are reached alike share a client. [Bucket.Verify]
// asks S3 whether a bucket can be used as the configuration promises. It sends HeadBucket (ListObjectsV2 where that
// is refused), and GetBucketVersioning for overwrite: version and for MinIO. To an unknown server it sends PutObject,
// CompleteMultipartUpload, UploadPartCopy, DeleteObject and DeleteObjects for an object of its own. An error is one
// line that names the tenant, the bucket and the key of the configuration to correct. A [Watcher] looks at buckets
// while the server runs.
//
// What the S3 servers differ in is data of the driver, its profiles. Which profile a server has is found out here. Its
// address or the headers of its responses may tell (quirks.go). Otherwise the server shows it in experiments.
//
// There is one table of experiments (experiments.go). A row has a name, the field of the profile that it proves, and
// the requests that prove it (conditions.go, abilities.go), for an object of their own (sample.go). Three readers share
// it:
//   - The detection of an unknown server sets the fields of its profile.
//   - "check --probe" names the rows that the profile promises and the server does not keep.
//   - The table of docs/s3-servers.md lists which profiles lack what.
//
// [Bucket.Verify] runs single rows too, if a configuration depends on them: overwrite: deny on If-None-Match, and
// objects.checksum on checksums. The requests of the experiments need no IAM actions of their own; the comment of the
// table says why.
//
// [Probe] tries the requests that users of a bucket need, and then the experiments. All objects of probes are made by a
// scratch, which deletes them (scratch.go). [PolicyFor] returns the least IAM policy for the requests of a probe, and
// makes a dry run of it. So a new kind of request is added to the probe only.
//
// [Region.Needs] is the only table of the IAM actions that a request needs, and on which resources. [Policy] writes
// them as JSON, and [Region.Explain] adds them to the errors of requests that S3 denies. The actions of S3:
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
package s3client
