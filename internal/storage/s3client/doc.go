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
// address or the headers of its answers may tell (quirks.go). Else requests for an object that is removed in the end
// show it (features.go, verify.go, conditions.go).
//
// [Probe] tries the requests that users of a bucket need, and has the server show what its profile promises. All
// objects of probes are made by a scratch, which deletes them (scratch.go). [PolicyFor] is the least IAM policy for
// the requests of a probe, and makes a dry run of it. So a new kind of request is added to the probe only.
//
// [Region.Needs] is the only table of the IAM actions that a request needs, and on which resources. [Policy] writes
// them as JSON, and [Region.Explain] adds them to the errors of requests that S3 denies. The actions of S3:
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
package s3client
