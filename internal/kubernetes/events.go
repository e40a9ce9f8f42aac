package kubernetes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientset "k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// maxEventMessage is the maximum length of the message of an event in the API, in bytes.
	maxEventMessage = 1024
	// normalEvents is the number of events of type Normal for each second, after a burst of normalBurst. More are
	// dropped, so that the first start with many resources does not flood the API server. Warnings are never dropped.
	normalEvents, normalBurst = 10, 100
)

// An event is an event that tells about a change of a condition.
type event struct {
	kind            string // corev1.EventTypeNormal or corev1.EventTypeWarning
	reason, message string
}

// eventsOf returns the events for the change from one status to the next.
func eventsOf(before, after *Status) (all []event) {
	for _, c := range after.Conditions {
		was := before.condition(c.Type)
		if was == nil {
			was = &metav1.Condition{}
		}
		changed := was.Status != c.Status || was.Reason != c.Reason
		bad := c.Status == metav1.ConditionFalse
		switch c.Type {
		case conditionAccepted: // each new version is news
			changed = changed || was.ObservedGeneration != c.ObservedGeneration || bad && was.Message != c.Message
		case conditionBucket:
			changed = changed && c.Status != metav1.ConditionUnknown
		case conditionCertificate:
			changed = changed && (was.Type != "" || c.Reason != reasonReady)
			bad = bad || c.Reason == reasonExpiresSoon
		default: // Ready repeats the others
			changed = false
		}
		if !changed {
			continue
		}
		e := event{corev1.EventTypeNormal, c.Type, c.Message}
		if bad {
			e.kind, e.reason = corev1.EventTypeWarning, c.Reason
		}
		if e.message == "" {
			e.message = c.Type + " is " + string(c.Status)
		}
		all = append(all, e)
	}
	return all
}

// An eventWriter writes events of resources to the API server, in the background.
type eventWriter struct {
	recorder record.EventRecorder
	normal   flowcontrol.PassiveRateLimiter
}

// newEventWriter returns a writer that works until stop is called.
func newEventWriter(ctx context.Context, client clientset.Interface, identity string) (w *eventWriter, stop func()) {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	source := corev1.EventSource{Component: "babelftp", Host: identity}
	return &eventWriter{
		broadcaster.NewRecorder(runtime.NewScheme(), source),
		flowcontrol.NewTokenBucketPassiveRateLimiter(normalEvents, normalBurst),
	}, broadcaster.Shutdown
}

// write writes the events of a resource.
func (w *eventWriter) write(o *Object, all []event) {
	about := &corev1.ObjectReference{
		APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID,
		ResourceVersion: o.ResourceVersion,
	}
	for _, e := range all {
		if e.kind == corev1.EventTypeWarning || w.normal.TryAccept() {
			w.recorder.Event(about, e.kind, e.reason, shorten(e.message, maxEventMessage))
		}
	}
}
