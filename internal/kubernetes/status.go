package kubernetes

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/babelftp/babelftp/internal/certs"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/server"
)

// The types of conditions. Users have only Accepted and Ready.
const (
	conditionAccepted    = "Accepted"         // the current spec is in use
	conditionBucket      = "BucketReady"      // the bucket works, as check --probe tries it
	conditionCertificate = "CertificateReady" // clients get a valid certificate
	conditionReady       = "Ready"            // all of them are true
)

// The reasons of conditions, in addition to the reasons of a [config.ResourceOutcome].
const (
	reasonReady       = "Ready"
	reasonDisabled    = "Disabled"    // the user is disabled by its spec
	reasonNotAccepted = "NotAccepted" // no version of the spec is in use
	reasonChecking    = "Checking"    // not known yet
	reasonNotUsable   = "NotUsable"   // the last check of the bucket failed
	reasonProbeFailed = "ProbeFailed" // the bucket can be reached, but does not allow all that users may do
	reasonNotIssued   = "NotIssued"   // ACME has not issued a certificate
	reasonExpiresSoon = "ExpiresSoon"
	reasonExpired     = "Expired"
)

const (
	// expiresSoon is the time before the expiry of a certificate when its condition says so.
	expiresSoon = 14 * 24 * time.Hour
	// maxMessage limits the bytes of the message of a condition. The schema allows 32,768 characters.
	maxMessage = 8 << 10
)

// A verdict is a condition without its type and times.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// accepted returns whether the current spec is in use.
func accepted(o *config.ResourceOutcome) verdict {
	if o.Reason == config.ResourceAccepted {
		message := fmt.Sprintf("generation %d is in use", o.Resource.Generation)
		if o.Message != "" { // a warning
			message += "; " + o.Message
		}
		return verdict{metav1.ConditionTrue, string(o.Reason), message}
	}
	return verdict{metav1.ConditionFalse, string(o.Reason), o.Message}
}

// ready returns the summary of the other conditions of a resource.
func ready(o *config.ResourceOutcome, others ...verdict) verdict {
	if a := accepted(o); a.status != metav1.ConditionTrue {
		if o.Used != nil {
			a.message = fmt.Sprintf("generation %d stays in use: %s", o.Used.Generation, a.message)
		}
		return a
	}
	for _, v := range others {
		if v.status != metav1.ConditionTrue {
			return v
		}
	}
	if o.Disabled {
		return verdict{metav1.ConditionTrue, reasonDisabled, "the user is disabled"}
	}
	return verdict{status: metav1.ConditionTrue, reason: reasonReady}
}

// bucketReady returns whether the buckets of a tenant can be used. before is the condition that the resource has.
func bucketReady(o *config.ResourceOutcome, h server.TenantHealth, p *probe, before *metav1.Condition) verdict {
	switch {
	case o.Used == nil:
		return verdict{metav1.ConditionUnknown, reasonNotAccepted, "no version of the spec is in use"}
	case h.Storage != nil && h.Err != nil:
		return verdict{metav1.ConditionFalse, reasonNotUsable, inSpec(h.Err.Error(), o.Tenant)}
	case h.Storage != nil && h.Checked && p.storage == h.Storage && len(p.problems) > 0:
		return verdict{metav1.ConditionFalse, reasonProbeFailed, inSpec(strings.Join(p.problems, "; "), o.Tenant)}
	case h.Storage != nil && h.Checked && p.storage == h.Storage:
		return verdict{status: metav1.ConditionTrue, reason: reasonReady}
	case before != nil && before.ObservedGeneration == o.Used.Generation && before.Status != metav1.ConditionUnknown:
		return verdict{before.Status, before.Reason, before.Message} // until the check or the probe has ended
	}
	return verdict{metav1.ConditionUnknown, reasonChecking, "the bucket is being checked"}
}

// inSpec returns a message with the keys as the spec of a tenant has them, such as spec.bucket for tenants.acme.bucket.
func inSpec(message, tenant string) string {
	return strings.ReplaceAll(message, "tenants."+tenant+".", "spec.")
}

// certificateReady returns whether clients of a tenant get a valid certificate. ok is false if the tenant has none and
// needs none.
func certificateReady(all []certs.Certificate, missing []string, now time.Time) (v verdict, ok bool) {
	if len(all)+len(missing) == 0 {
		return verdict{}, false
	}
	if len(missing) > 0 {
		return verdict{metav1.ConditionFalse, reasonNotIssued, "there is no certificate for " + strings.Join(missing, ", ") +
			" yet: ACME has not issued one, or the host is not in tls.acme.hosts; the log of the servers has the reason"}, true
	}
	first := slices.MinFunc(all, func(a, b certs.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	end := first.NotAfter.UTC().Format(time.DateOnly)
	switch {
	case first.Expired(now):
		return verdict{metav1.ConditionFalse, reasonExpired,
			fmt.Sprintf("the certificate for %s expired on %s, and clients reject it: renew it", first.Host, end)}, true
	case first.NotAfter.Sub(now) < expiresSoon:
		return verdict{metav1.ConditionTrue, reasonExpiresSoon,
			fmt.Sprintf("the certificate for %s expires on %s: renew it", first.Host, end)}, true
	}
	return verdict{metav1.ConditionTrue, reasonReady,
		fmt.Sprintf("the certificate for %s expires on %s", first.Host, end)}, true
}

// numbers are the parts of a status that change with the use of the server.
type numbers struct {
	users     int64 // of a tenant
	sessions  int64
	lastLogin time.Time // of a user
}

// statusOf returns the status of a resource. Conditions that are unchanged keep their time.
func statusOf(before *Status, o *config.ResourceOutcome, of map[string]verdict, n numbers, now time.Time) *Status {
	s := &Status{
		Name: o.Tenant, ObservedGeneration: o.Resource.Generation, Sessions: &n.sessions,
	}
	if o.Used != nil {
		s.Accepted = &AcceptedSpec{Generation: o.Used.Generation, Spec: o.Used.Spec}
	}
	if o.Resource.Kind == config.TenantResource {
		s.Users = &n.users
	} else {
		enabled := o.Used != nil && !o.Disabled
		s.Name, s.Enabled = o.User+"@"+o.Tenant, &enabled
		if !n.lastLogin.IsZero() {
			s.LastLogin = &metav1.Time{Time: n.lastLogin}
		}
	}
	for _, kind := range []string{conditionAccepted, conditionBucket, conditionCertificate, conditionReady} {
		v, ok := of[kind]
		if !ok {
			continue
		}
		c := metav1.Condition{
			Type: kind, Status: v.status, Reason: v.reason, Message: shorten(v.message, maxMessage),
			ObservedGeneration: o.Resource.Generation,
			LastTransitionTime: metav1.Time{Time: now.UTC().Truncate(time.Second)},
		}
		if (kind == conditionBucket || kind == conditionCertificate) && o.Used != nil {
			c.ObservedGeneration = o.Used.Generation
		}
		if was := before.condition(kind); was != nil && was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
		s.Conditions = append(s.Conditions, c)
	}
	return s
}

// shorten returns at most limit bytes of valid UTF-8.
func shorten(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) <= limit {
		return text
	}
	const more = " ..."
	cut := limit - len(more)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + more
}

// condition returns the condition of a type, or nil.
func (s *Status) condition(kind string) *metav1.Condition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			return &s.Conditions[i]
		}
	}
	return nil
}

// sameState reports whether two statuses differ in nothing but numbers. The spec in use is the same if its generation
// is, because the API server may order its keys in another way.
func (s *Status) sameState(other *Status) bool {
	generation := func(s *Status) int64 {
		if s.Accepted == nil || len(s.Accepted.Spec) == 0 {
			return 0
		}
		return s.Accepted.Generation
	}
	sameCondition := func(a, b metav1.Condition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message &&
			a.ObservedGeneration == b.ObservedGeneration
	}
	return s.Name == other.Name && s.ObservedGeneration == other.ObservedGeneration &&
		generation(s) == generation(other) && equal(s.Enabled, other.Enabled) &&
		slices.EqualFunc(s.Conditions, other.Conditions, sameCondition)
}

// sameNumbers reports whether two statuses have the same numbers.
func (s *Status) sameNumbers(other *Status) bool {
	return equal(s.Users, other.Users) && equal(s.Sessions, other.Sessions) && s.lastLogin().Equal(other.lastLogin())
}

// lastLogin returns the time of the last login, or zero if it is unknown.
func (s *Status) lastLogin() time.Time {
	if s.LastLogin == nil {
		return time.Time{}
	}
	return s.LastLogin.Truncate(time.Second)
}

// equal reports whether two pointers are nil, or point to the same value.
func equal[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}
