package s3client

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
)

const (
	// stsTimeout limits a request to STS, including the retries of the SDK. Requests to S3 wait for it, so it is
	// shorter than checkTimeout.
	stsTimeout = 5 * time.Second
	// renewRetry is the time between attempts to renew credentials that are still valid.
	renewRetry = time.Minute
	// tokenRenewBefore is how long before their expiry the credentials for a token are renewed. The SDK would use them
	// until the last moment. Then S3 would reject requests that are under way at that moment, or all requests if the
	// clock of this machine is slow.
	tokenRenewBefore = 5 * time.Minute
)

// renewed renews credentials before they expire, and keeps using the old ones until their expiry if renewing fails.
// Wrap it with [aws.NewCredentialsCache], which serializes the calls.
type renewed struct {
	Provider aws.CredentialsProvider
	Before   time.Duration // how long before their expiry credentials are renewed
	Log      *slog.Logger

	Expires time.Time // expiry of the last credentials
}

// Retrieve implements [aws.CredentialsProvider]. It returns an earlier expiry than STS, so that the cache renews in
// time.
func (r *renewed) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := r.Provider.Retrieve(ctx)
	if err != nil {
		return aws.Credentials{}, err
	}
	r.Expires = c.Expires
	c.Expires = r.until(c.Expires.Add(-r.Before))
	return c, nil
}

// HandleFailToRefresh implements [aws.HandleFailRefreshCredentialsCacheStrategy]: the last credentials stay in use
// until they expire.
func (r *renewed) HandleFailToRefresh(_ context.Context, last aws.Credentials, err error) (aws.Credentials, error) {
	if !time.Now().Before(r.Expires) {
		return aws.Credentials{}, err
	}
	r.Log.Warn("renewing S3 credentials failed; the current ones work until they expire",
		"end", r.Expires, "err", err)
	last.Expires = r.until(time.Time{})
	return last, nil
}

// until returns the time of the next request to STS: t, but not sooner than renewRetry from now and not after the
// expiry.
func (r *renewed) until(t time.Time) time.Time {
	if soon := time.Now().Add(renewRetry); t.Before(soon) {
		t = soon
	}
	if t.After(r.Expires) {
		t = r.Expires
	}
	return t
}

// renewTokens makes the SDK's cache renew the credentials for a service account token (AWS STS, operation
// AssumeRoleWithWebIdentity) before they expire. The SDK already does so for instance roles. Other credentials are
// returned unchanged.
func renewTokens(credentials aws.CredentialsProvider, log *slog.Logger) aws.CredentialsProvider {
	cache, ok := credentials.(*aws.CredentialsCache)
	if !ok || !cache.IsCredentialsProvider((*stscreds.WebIdentityRoleProvider)(nil)) {
		return credentials
	}
	return aws.NewCredentialsCache(&renewed{Provider: uncached{cache}, Before: tokenRenewBefore, Log: log})
}

// uncached bypasses the cache of the SDK.
type uncached struct{ *aws.CredentialsCache }

// Retrieve implements [aws.CredentialsProvider].
func (u uncached) Retrieve(ctx context.Context) (aws.Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, stsTimeout)
	defer cancel()
	u.Invalidate()
	return u.CredentialsCache.Retrieve(ctx)
}
