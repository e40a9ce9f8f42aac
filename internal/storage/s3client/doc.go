// Package s3client creates S3 clients from a configuration, and checks the buckets that they reach.
//
// [LoadEnvironment] reads the AWS SDK's environment variables and files. A [Factory] turns a configuration into one
// [Bucket] per tenant and per folder of a tenant. Buckets with the same server and credentials share a client.
// [Bucket.Verify] checks that a bucket can do what the configuration requires, and a [Watcher] repeats the check while
// the server runs:
//
//	env, err := s3client.LoadEnvironment(ctx, log)
//	factory := s3client.NewFactory(env, nil, log)
//	buckets, err := factory.Buckets(cfg)
//	err = buckets["acme"].Verify(ctx, log)
//
// Verify sends HeadBucket (or ListObjectsV2 if HeadBucket is refused), and GetBucketVersioning for MinIO and for
// "overwrite: version". To an unknown server it sends PutObject, CompleteMultipartUpload, UploadPartCopy, DeleteObject
// and DeleteObjects for objects of its own. An error is one line that names the tenant, the bucket and the
// configuration key to correct.
//
// The differences between S3 servers are data: the profiles of package driver. This package selects the profile of a
// server. Its address or the headers of its responses may identify it (quirks.go). If they do not, experiments show
// what the server can do.
//
// All experiments are in one table (experiments.go). A row has a name, the field of the profile that it proves, and
// the requests that prove it (conditions.go, abilities.go), which work on objects of their own (sample.go). The table
// has three readers:
//   - The detection of an unknown server sets the fields of its profile.
//   - "check --probe" lists the rows that the profile promises and the server fails.
//   - The table in docs/s3-servers.md lists the features that profiles lack.
//
// [Bucket.Verify] also runs single rows if a configuration depends on them: "overwrite: deny" on If-None-Match, and
// objects.checksum on checksums. The requests of the experiments need no IAM actions of their own; the comment of the
// table explains why.
//
// [Probe] tries the requests that users of a bucket need, and then the experiments. A scratch records all objects of a
// probe and deletes them (scratch.go). [PolicyFor] returns the minimal IAM policy for the requests of a probe, which
// it runs without sending them. To support a new kind of request, add it to the probe only.
//
// [Region.Needs] is the only table of the IAM actions and resources that a request needs. [Policy] writes them as
// JSON, and [Region.Explain] adds them to the errors of denied requests. For the actions of S3, see
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
package s3client
