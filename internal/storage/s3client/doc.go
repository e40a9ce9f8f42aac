// Package s3client makes S3 clients from a configuration, and checks the buckets that they reach.
//
// Package transport reads what the AWS SDK finds in its environment. A [Factory] turns a configuration into one
// [Bucket] for each tenant and each of its folders; buckets that are reached alike share a client. [Bucket.Verify]
// asks S3 whether a bucket can be used as the configuration promises. It sends HeadBucket (ListObjectsV2 where that
// is refused), and GetBucketVersioning for overwrite: version and for MinIO. To an unknown server it sends PutObject,
// CompleteMultipartUpload, UploadPartCopy, DeleteObject and DeleteObjects for an object of its own. An error is one
// line that names the tenant, the bucket and the key of the configuration to correct. A [Watcher] looks at buckets
// while the server runs.
//
// What the S3 servers differ in is data of the driver, its profiles; which profile a server has is found out here.
package s3client
