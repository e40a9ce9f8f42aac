// Package s3client makes S3 clients from a configuration, and checks the buckets that they reach.
//
// [LoadAWS] reads what the AWS SDK finds in its environment. A [Factory] turns a configuration into one [Bucket] for each tenant and each of
// its folders; buckets that are reached alike share a client. [Bucket.Verify] asks S3 whether a bucket can be used as the configuration
// promises: HeadBucket (ListObjectsV2 where that is refused), GetBucketVersioning for overwrite: version, and for a server that is not known
// PutObject, CompleteMultipartUpload, UploadPartCopy, DeleteObject and DeleteObjects on an object of its own. An error is one line that names
// the tenant, the bucket and the key of the configuration to correct.
//
// What the S3 servers differ in is data of the driver, its profiles; which profile a server has is found out here.
package s3client
