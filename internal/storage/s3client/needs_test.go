package s3client

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
)

// The table covers each operation that the driver calls.
func TestNeedsOfEveryOperation(t *testing.T) {
	client := reflect.TypeFor[driver.Client]()
	for i := range client.NumMethod() {
		in := reflect.New(client.Method(i).Type.In(1).Elem())
		if f := in.Elem().FieldByName("Delete"); f.IsValid() {
			f.Set(reflect.ValueOf(&types.Delete{Objects: []types.ObjectIdentifier{{Key: aws.String("key")}}}))
		}
		if len(Region("").Needs(in.Interface())) == 0 {
			t.Errorf("%s needs no permission", client.Method(i).Name)
		}
	}
	if needs := Region("").Needs(&s3.CreateBucketInput{}); needs != nil {
		t.Errorf("unknown operation: got needs %v", needs)
	}
}

func TestNeeds(t *testing.T) {
	bucket, key := aws.String("acme"), aws.String("in/a b")
	for name, tc := range map[string]struct {
		region Region
		in     any
		want   string
	}{
		"plain": {"", &s3.PutObjectInput{Bucket: bucket, Key: key}, "s3:PutObject on arn:aws:s3:::acme/in/a b\n"},
		"all": {
			"eu-west-3", &s3.CreateMultipartUploadInput{
				Bucket: bucket, Key: key, ACL: "private", Tagging: aws.String("a=b"), SSEKMSKeyId: aws.String("1234"),
				StorageClass: "STANDARD_IA",
			},
			"s3:PutObject on arn:aws:s3:::acme/in/a b\ns3:PutObjectAcl on arn:aws:s3:::acme/in/a " +
				"b\ns3:PutObjectTagging on arn:aws:s3:::acme/in/a b\n" +
				"kms:GenerateDataKey on arn:aws:kms:eu-west-3:*:key/1234\nkms:Decrypt on " +
				"arn:aws:kms:eu-west-3:*:key/1234\n",
		},
		"copy": {
			"", &s3.CopyObjectInput{Bucket: bucket, Key: key, CopySource: aws.String("old/caf%C3%A9%20%2F")},
			"s3:GetObject on arn:aws:s3:::old/café /\ns3:ListBucket on arn:aws:s3:::old if there is no such " +
				"object\nkms:Decrypt on  if KMS encrypts the object\n" +
				"s3:PutObject on arn:aws:s3:::acme/in/a b\ns3:GetObjectTagging on arn:aws:s3:::old/café / if the " +
				"object has tags\n" +
				"s3:PutObjectTagging on arn:aws:s3:::acme/in/a b if the object has tags\n",
		},
		"copy-without-tags": {
			"", &s3.CopyObjectInput{Bucket: bucket, Key: key, CopySource: aws.String("old/key"),
				TaggingDirective: types.TaggingDirectiveReplace},
			"s3:GetObject on arn:aws:s3:::old/key\ns3:ListBucket on arn:aws:s3:::old if there is no such " +
				"object\nkms:Decrypt on  if KMS encrypts the object\n" +
				"s3:PutObject on arn:aws:s3:::acme/in/a b\n",
		},
		"version": {
			"cn-north-1", &s3.DeleteObjectInput{Bucket: bucket, Key: key, VersionId: aws.String("1")},
			"s3:DeleteObjectVersion on arn:aws-cn:s3:::acme/in/a b\n",
		},
		"several": {
			"us-gov-west-1", &s3.DeleteObjectsInput{Bucket: bucket,
				Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: key}, {Key: aws.String("b")}}}},
			"s3:DeleteObject on arn:aws-us-gov:s3:::acme/in/a b\ns3:DeleteObject on arn:aws-us-gov:s3:::acme/b\n",
		},
		"directory-bucket": {
			"eu-north-1", &s3.PutObjectInput{Bucket: aws.String("acme--eun1-az1--x-s3"), Key: key},
			"s3express:CreateSession on arn:aws:s3express:eu-north-1:*:bucket/acme--eun1-az1--x-s3\n",
		},
		"list-directory-bucket": {
			"", &s3.ListObjectsV2Input{Bucket: aws.String("acme--eun1-az1--x-s3")},
			"s3express:CreateSession on arn:aws:s3express:*:*:bucket/acme--eun1-az1--x-s3\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			for _, n := range tc.region.Needs(tc.in) {
				got.WriteString(n.String())
				if n.Case != Always {
					got.WriteString(" if " + string(n.Case))
				}
				got.WriteString("\n")
			}
			if got.String() != tc.want {
				t.Errorf("got\n%swant\n%s", &got, tc.want)
			}
		})
	}
}

func TestKeyARN(t *testing.T) {
	for id, want := range map[string]string{
		"1234": "arn:aws:kms:eu-west-3:*:key/1234 ",
		"arn:aws:kms:eu-west-1:123456789012:key/1234": "arn:aws:kms:eu-west-1:123456789012:key/1234 ",
		"alias/ftp": "arn:aws:kms:eu-west-3:*:key/* alias/ftp",
		"arn:aws:kms:eu-west-1:123456789012:alias/ftp": "arn:aws:kms:eu-west-3:*:key/* alias/ftp",
	} {
		if arn, alias := Region("eu-west-3").KeyARN(id); arn+" "+alias != want {
			t.Errorf("%s: got %s %s, want %s", id, arn, alias, want)
		}
	}
}

func TestPolicy(t *testing.T) {
	object := func(action string) allowance {
		return allowance{Permission: Permission{Action: action, Resource: "arn:aws:s3:::acme/in/*"}}
	}
	policy := newPolicy([]allowance{
		object(PutObject), object(GetObject), object(PutObject),
		{
			Permission{Action: ListBucket, Resource: "arn:aws:s3:::acme"},
			clause{"StringLike", "s3:prefix", literal("in $*?/") + "*"},
		},
		{
			Permission{Action: Decrypt, Resource: "arn:aws:kms:eu-west-3:*:key/*"},
			clause{"ForAnyValue:StringEquals", "kms:ResourceAliases", "alias/ftp"},
		},
	})
	const want = `{"Version":"2012-10-17","Statement":[` +
		`{"Effect":"Allow","Action":["kms:Decrypt"],"Resource":["arn:aws:kms:eu-west-3:*:key/*"],` +
		`"Condition":{"ForAnyValue:StringEquals":{"kms:ResourceAliases":["alias/ftp"]}}},` +
		`{"Effect":"Allow","Action":["s3:ListBucket"],"Resource":["arn:aws:s3:::acme"],"Condition":{"StringLike":{"s3:prefix":["in ${$}${*}${?}/*"]}}},` +
		`{"Effect":"Allow","Action":["s3:GetObject","s3:PutObject"],"Resource":["arn:aws:s3:::acme/in/*"]}]}`
	got, err := json.Marshal(policy)
	if err != nil || string(got) != want {
		t.Errorf("got\n%s, %v\nwant\n%s", got, err, want)
	}
	if got, want := fmt.Sprint(object(GetObject).Permission), "s3:GetObject on arn:aws:s3:::acme/in/*"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
