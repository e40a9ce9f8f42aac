package s3client

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
)

const (
	// stsTimeout is how long STS may take to answer, the SDK's retries included. Requests to S3 wait for it. It ends
	// before the check of a bucket does.
	stsTimeout = 5 * time.Second
	// renewRetry is how long credentials are used before they are asked for again, while they are good and cannot be
	// renewed.
	renewRetry = time.Minute
	// tokenRenewBefore is how long before their end the credentials for a token are renewed. The SDK uses them to
	// their last moment: a request on its way then, or the clock of a machine that is late, would get an error from
	// S3.
	tokenRenewBefore = 5 * time.Minute
)

// renewed are credentials that are renewed before they end, and serve until their end while they cannot be renewed.
// They are for [aws.NewCredentialsCache], which asks for one after another.
type renewed struct {
	Provider aws.CredentialsProvider
	Before   time.Duration // how long before their end credentials are renewed
	Log      *slog.Logger

	Expires time.Time // end of the last credentials
}

// Retrieve implements [aws.CredentialsProvider]. The credentials expire some time before STS says so, to be renewed.
func (r *renewed) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := r.Provider.Retrieve(ctx)
	if err != nil {
		return aws.Credentials{}, err
	}
	r.Expires = c.Expires
	c.Expires = r.until(c.Expires.Add(-r.Before))
	return c, nil
}

// HandleFailToRefresh implements [aws.HandleFailRefreshCredentialsCacheStrategy]: credentials serve until their end.
func (r *renewed) HandleFailToRefresh(_ context.Context, last aws.Credentials, err error) (aws.Credentials, error) {
	if !time.Now().Before(r.Expires) {
		return aws.Credentials{}, err
	}
	r.Log.Warn("credentials for S3 cannot be renewed; the current ones work until they expire",
		"end", r.Expires, "err", err)
	last.Expires = r.until(time.Time{})
	return last, nil
}

// until is the time at which to ask STS: t, if that is not too soon, and not after the end of the credentials.
func (r *renewed) until(t time.Time) time.Time {
	if soon := time.Now().Add(renewRetry); t.Before(soon) {
		t = soon
	}
	if t.After(r.Expires) {
		t = r.Expires
	}
	return t
}

// renewTokens makes a cache of the SDK renew credentials for the token of a service account (AWS STS, operation
// AssumeRoleWithWebIdentity) before they end. It does so with those of machines by itself, and others are not
// changed.
func renewTokens(credentials aws.CredentialsProvider, log *slog.Logger) aws.CredentialsProvider {
	cache, ok := credentials.(*aws.CredentialsCache)
	if !ok || !cache.IsCredentialsProvider((*stscreds.WebIdentityRoleProvider)(nil)) {
		return credentials
	}
	return aws.NewCredentialsCache(&renewed{Provider: uncached{cache}, Before: tokenRenewBefore, Log: log})
}

// uncached are credentials of a cache that are never those from before.
type uncached struct{ *aws.CredentialsCache }

// Retrieve implements [aws.CredentialsProvider].
func (u uncached) Retrieve(ctx context.Context) (aws.Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, stsTimeout)
	defer cancel()
	u.Invalidate()
	return u.CredentialsCache.Retrieve(ctx)
}
