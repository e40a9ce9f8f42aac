package control

import (
	"io/fs"
	"strconv"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// siteQuota is SITE QUOTA: how much is stored of what the user may store.
func siteQuota(r *fileRequest, _ string) (wire.Reply, error) {
	switch usage, known := r.locale.UsageOf(r.login); {
	case r.login.Usage == nil:
		return r.reply(200, i18n.QuotaNone), nil
	case r.login.QuotaHidden():
		return wire.Reply{}, fs.ErrPermission
	case !known:
		return r.reply(451, i18n.QuotaUnknown), nil
	default:
		return r.reply(200, i18n.QuotaState, usage.Used, usage.Limit), nil
	}
}

// avbl is AVBL (draft-peterson-streamlined-ftp-command-extensions 4): how many bytes the quota leaves. S3 itself
// has no bound that it tells.
func avbl(r *fileRequest, _ string) (wire.Reply, error) {
	switch {
	case r.login.Usage == nil:
		return r.reply(550, i18n.QuotaNone), nil
	case r.login.QuotaHidden():
		return wire.Reply{}, fs.ErrPermission
	}
	used, limit, known := r.login.Usage()
	if !known {
		return r.reply(451, i18n.QuotaUnknown), nil
	}
	return wire.NewReply(213, strconv.FormatInt(max(0, limit-used), 10)), nil
}
