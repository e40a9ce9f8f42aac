package embeddeds3
import (
 _ "github.com/versity/versitygw/s3api"
 _ "github.com/versity/versitygw/backend/posix"
 _ "github.com/aws/aws-sdk-go-v2/service/s3"
)
