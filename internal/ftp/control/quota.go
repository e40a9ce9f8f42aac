package control

import (
	"io/fs"
	"strconv"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// siteQuota handles SITE QUOTA, which shows how much of the user's quota is used.
func siteQuota(r *fileRequest, _ string) (wire.Reply, error) {
	switch usage := r.login.Usage(); {
	case usage == nil:
		return r.reply(200, i18n.QuotaNone), nil
	case r.login.QuotaHidden():
		return wire.Reply{}, fs.ErrPermission
	case !usage.Known:
		return r.reply(451, i18n.QuotaUnknown), nil
	default:
		return r.reply(200, i18n.QuotaState, r.locale.Size(usage.Used), r.locale.Size(usage.Limit)), nil
	}
}

// avbl handles AVBL (draft-peterson-streamlined-ftp-command-extensions, 4), which returns the bytes left in the
// quota. S3 itself reports no limit.
func avbl(r *fileRequest, _ string) (wire.Reply, error) {
	switch usage := r.login.Usage(); {
	case usage == nil:
		return r.reply(550, i18n.QuotaNone), nil
	case r.login.QuotaHidden():
		return wire.Reply{}, fs.ErrPermission
	case !usage.Known:
		return r.reply(451, i18n.QuotaUnknown), nil
	default:
		return wire.NewReply(213, strconv.FormatInt(max(0, usage.Limit-usage.Used), 10)), nil
	}
}
